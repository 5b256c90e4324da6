"""Themis (NSDI 2020): finish-time fairness, as leases of GPUs or as shares of time.

Form ``leases`` (PCS, section 5.1). At time t, R of G GPUs are left. Of job i:

    a_i, D_i   arrival (s), demand (GPUs)
    s_i, w_i   work, remaining work (s on one GPU)
    N_i        mean of the numbers of jobs in the system at the events since a_i
    S_i(m)     speed-up of job i on m GPUs
    rho_i    = (t - a_i + w_i / S_i(min(R, D_i))) / (s_i / S_i(min(G / N_i, D_i)))

PCS's public simulator has m in place of S_i(m) (``rho_speed`` linear). The job of largest rho gets
min(R, D_i) GPUs. Then R falls, and the next job is chosen.

Ties: of equal rho the earlier arrival.

Form ``shares`` follows Muri's public simulator. Shares of time between 0 and 1 minimise the largest
finish-time ratio. Jobs run in descending order of share over executed time, if first fit finds
nodes. Of equal jobs the larger demand comes first, then the rank at the last event.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from repro.base.assign import assign
from repro.base.compiled import njit
from repro.base.typing import Floats, Ints
from repro.engine.elastic import compiled_rule
from repro.model.decision import Decision
from repro.model.elastic import (
    EVENTS,
    HOLDERS,
    NOW,
    PRESENT_SUM,
    Elastic,
    ElasticJobs,
    ElasticState,
    give,
    speed,
)
from repro.model.policy import FromSettings, register
from repro.model.settings import Above, AtLeast
from repro.model.view import View
from repro.policies.pcs._themis_shares import FairShares

LEASES = "leases"
SHARES = "shares"
#: speed of a job on m GPUs in its rho: m, or S(m)
LINEAR, SPEEDUP = "linear", "speedup"


class Memory(NamedTuple):
    """Memory of the policy: a list of the jobs present, in order of arrival.

    A slot is a position in this list. Arrays have an entry per slot, with five
    exceptions. ``by_rho``, ``wide`` and ``offers`` list slots. ``holder_slot`` has an entry per
    holder. ``present`` is one number.
    """

    #: remaining work (s on one GPU)
    remaining_work: Floats
    #: work of the whole job, as the trace predicts it (s on one GPU)
    work: Floats
    #: arrival (ticks)
    submit: Floats
    #: demand (GPUs)
    demand: Floats
    #: with the tallies of `ElasticState`, the mean number of jobs present over the job's life:
    #: N = (present_sum_offset + PRESENT_SUM) / (event_offset + EVENTS)
    present_sum_offset: Floats
    event_offset: Floats
    #: rho if the job receives the GPUs that are left, at most its demand
    rho: Floats
    #: duration on a fair share of the cluster, min(G / N, D) GPUs (s), the denominator of rho
    fair_duration: Floats
    #: demand at arrival (GPUs)
    first_demand: Floats
    #: row of the job in the trace
    job: Ints
    #: slots in descending order of rho
    by_rho: Ints
    #: slots of jobs with a demand of several GPUs
    wide: Ints
    #: 1: the job has an offer at this event
    has_offer: Ints
    #: slots of the jobs with an offer, in order of offers
    offers: Ints
    #: by entry of `ElasticState.holders`: slot of the job, -1 after its completion
    holder_slot: Ints
    #: entry 0: number of jobs present
    present: Ints


@njit(inline="always")
def memory_of(s: ElasticState) -> Memory:
    """Memory of a state."""
    return Memory(
        remaining_work=s.memory_floats[0],
        work=s.memory_floats[1],
        submit=s.memory_floats[2],
        demand=s.memory_floats[3],
        present_sum_offset=s.memory_floats[4],
        event_offset=s.memory_floats[5],
        rho=s.memory_floats[6],
        fair_duration=s.memory_floats[7],
        first_demand=s.memory_floats[8],
        job=s.memory_ints[0],
        by_rho=s.memory_ints[1],
        wide=s.memory_ints[2],
        has_offer=s.memory_ints[3],
        offers=s.memory_ints[4],
        holder_slot=s.memory_ints[5],
        present=s.memory_ints[6],
    )


@njit()
def _admit(jobs: ElasticJobs, is_linear: bool, s: ElasticState, job: int) -> None:
    """Add a job at the end of the list."""
    memory = memory_of(s)
    slot = memory.present[0]
    memory.job[slot] = job
    memory.remaining_work[slot] = s.work_left[job] * jobs.size_factor[job]
    memory.work[slot] = jobs.predicted_work[job]
    memory.submit[slot] = jobs.submit[job]
    memory.demand[slot] = jobs.demand[job]
    memory.first_demand[slot] = jobs.demand[job]
    # rows of at_arrival: jobs present, events, and jobs present summed over the events
    memory.present_sum_offset[slot] = s.at_arrival[0, job] - s.at_arrival[2, job]
    memory.event_offset[slot] = 1 - s.at_arrival[1, job]
    memory.present[0] += 1


@njit()
def _retire(jobs: ElasticJobs, is_linear: bool, s: ElasticState, job: int) -> None:
    """Remove a job from the list; later jobs move up by one slot."""
    memory = memory_of(s)
    present = memory.present[0]
    slot = 0
    while memory.job[slot] != job:
        slot += 1
    assign(memory.job[slot : present - 1], memory.job[slot + 1 :])
    assign(memory.remaining_work[slot : present - 1], memory.remaining_work[slot + 1 :])
    assign(memory.work[slot : present - 1], memory.work[slot + 1 :])
    assign(memory.submit[slot : present - 1], memory.submit[slot + 1 :])
    assign(memory.demand[slot : present - 1], memory.demand[slot + 1 :])
    assign(memory.first_demand[slot : present - 1], memory.first_demand[slot + 1 :])
    assign(memory.present_sum_offset[slot : present - 1], memory.present_sum_offset[slot + 1 :])
    assign(memory.event_offset[slot : present - 1], memory.event_offset[slot + 1 :])
    for holder in range(s.tally[HOLDERS]):
        if memory.holder_slot[holder] == slot:
            memory.holder_slot[holder] = -1
        elif memory.holder_slot[holder] > slot:
            memory.holder_slot[holder] -= 1
    memory.present[0] -= 1


@njit()
def _resize(jobs: ElasticJobs, is_linear: bool, s: ElasticState, job: int, demand: int) -> None:
    """Change the demand of a job that is present.

    With a linear speed in rho, the denominator of its rho keeps the first demand.
    """
    memory = memory_of(s)
    slot = 0
    while memory.job[slot] != job:
        slot += 1
    memory.demand[slot] = demand


@njit(error_model="numpy")
def _compute_rho(jobs: ElasticJobs, is_linear: bool, s: ElasticState, present: int) -> None:
    """Compute rho of each job as if it received min(all GPUs, demand).

    With ``is_linear``, its speed on m GPUs is m instead of S(m).
    """
    memory = memory_of(s)
    for holder in range(s.tally[HOLDERS]):
        slot = memory.holder_slot[holder]
        if slot >= 0:
            job = s.holders[holder]
            memory.remaining_work[slot] = s.work_left[job] * jobs.size_factor[job]
    # two loops over few arrays each, which the compiler vectorises
    gpus = float(jobs.gpus)
    events = float(s.tally[EVENTS])
    present_sum = float(s.tally[PRESENT_SUM])
    present_sum_offset = memory.present_sum_offset
    event_offset = memory.event_offset
    work = memory.work
    demand = memory.demand
    first_demand = memory.first_demand
    fair_duration = memory.fair_duration
    rho = memory.rho
    for slot in range(present):
        share = gpus / ((present_sum_offset[slot] + present_sum) / (event_offset[slot] + events))
        fair_duration[slot] = work[slot] / min(share, first_demand[slot])
    now = s.clock[NOW]
    ticks_per_second = jobs.ticks_per_second
    remaining_work = memory.remaining_work
    submit = memory.submit
    for slot in range(present):
        elapsed = (now - submit[slot]) / ticks_per_second
        rho[slot] = (elapsed + remaining_work[slot] / min(gpus, demand[slot])) / fair_duration[slot]
    if is_linear:
        return
    for slot in range(present):
        job = memory.job[slot]
        share = gpus / ((present_sum_offset[slot] + present_sum) / (event_offset[slot] + events))
        fair_duration[slot] = work[slot] / speed(jobs, job, share)
        elapsed = (now - submit[slot]) / ticks_per_second
        rho[slot] = (elapsed + remaining_work[slot] / speed(jobs, job, gpus)) / fair_duration[slot]


@njit()
def _precedes(rho: Floats, slot: int, other: int) -> bool:
    """Whether a job comes before another: larger rho, or equal rho and earlier arrival."""
    return bool(rho[slot] > rho[other] or (rho[slot] == rho[other] and slot < other))


@njit()
def _replace_top(by_rho: Ints, rho: Floats, count: int, slot: int) -> None:
    """Put ``slot`` in place of the top of a heap of ``count`` slots. The top has the least rho."""
    position = 0
    while True:
        child = 2 * position + 1
        if child >= count:
            break
        if child + 1 < count and _precedes(rho, by_rho[child], by_rho[child + 1]):
            child += 1
        if _precedes(rho, by_rho[child], slot):
            break
        by_rho[position] = by_rho[child]
        position = child
    by_rho[position] = slot


@njit()
def _list_by_rho(
    by_rho: Ints, rho: Floats, has_offer: Ints, demand: Floats, present: int, gpus: int
) -> int:
    """List the candidates in ``by_rho`` by descending rho; return their number.

    A candidate has no offer, and its demand is at most the ``gpus`` left. Each takes a GPU or more,
    so that ``gpus`` candidates are enough.
    """
    count = 0
    for slot in range(present):
        if has_offer[slot] == 1 or demand[slot] > gpus:
            continue
        # until the list is sorted, it is a heap with the least rho on top
        if count == gpus:
            if rho[slot] > rho[by_rho[0]]:
                _replace_top(by_rho, rho, count, slot)
            continue
        position = count
        while position > 0 and _precedes(rho, by_rho[(position - 1) // 2], slot):
            by_rho[position] = by_rho[(position - 1) // 2]
            position = (position - 1) // 2
        by_rho[position] = slot
        count += 1
    for last in range(count - 1, 0, -1):
        top = by_rho[0]
        _replace_top(by_rho, rho, last, by_rho[last])
        by_rho[last] = top
    return count


@njit(error_model="numpy")
def _share(jobs: ElasticJobs, is_linear: bool, s: ElasticState) -> None:
    """Offer the GPUs left to the job of largest rho, again and again.

    The rho of a job is constant while its demand is at most the GPUs left. Jobs with such a demand
    are therefore sorted once. Other jobs get a new rho for every offer.
    """
    memory = memory_of(s)
    present = memory.present[0]
    demand = memory.demand
    rho = memory.rho
    by_rho = memory.by_rho
    wide = memory.wide
    has_offer = memory.has_offer
    offers = memory.offers
    _compute_rho(jobs, is_linear, s, present)
    has_offer[:present] = 0
    num_wide = 0
    largest_demand = 1.0
    for slot in range(present):
        if demand[slot] > 1.0:
            wide[num_wide] = slot
            num_wide += 1
            largest_demand = max(largest_demand, demand[slot])
    free = jobs.gpus
    num_offers = 0
    candidate = 0
    num_candidates = _list_by_rho(by_rho, rho, has_offer, demand, present, free)
    while free > 0 and num_offers < present:
        while candidate < num_candidates and demand[by_rho[candidate]] > free:
            candidate += 1
        if candidate == num_candidates and num_candidates > 0:
            num_candidates = _list_by_rho(by_rho, rho, has_offer, demand, present, free)
            candidate = 0
        chosen = by_rho[candidate] if candidate < num_candidates else -1
        if free < largest_demand:
            for slot in wide[:num_wide]:
                if has_offer[slot] == 0 and demand[slot] > free:
                    elapsed = (s.clock[NOW] - memory.submit[slot]) / jobs.ticks_per_second
                    rate = float(free) if is_linear else speed(jobs, memory.job[slot], free)
                    finish = elapsed + memory.remaining_work[slot] / rate
                    rho[slot] = finish / memory.fair_duration[slot]
                    if chosen < 0 or _precedes(rho, slot, chosen):
                        chosen = slot
        if candidate < num_candidates and chosen == by_rho[candidate]:
            candidate += 1
        has_offer[chosen] = 1
        offers[num_offers] = chosen
        free -= min(free, int(demand[chosen]))
        num_offers += 1
    for holder in range(s.tally[HOLDERS]):
        slot = memory.holder_slot[holder]
        if slot >= 0 and has_offer[slot] == 0:
            s.gpus[s.holders[holder]] = 0.0
    free = jobs.gpus
    for holder in range(num_offers):
        job = memory.job[offers[holder]]
        s.holders[holder] = job
        memory.holder_slot[holder] = offers[holder]
        gpus = min(free, jobs.demand[job])
        give(jobs, s, job, float(gpus))
        free -= gpus
    s.tally[HOLDERS] = num_offers


#: Trace columns that both forms need.
NEEDS = frozenset({"duration"})
RULE = compiled_rule(_admit, _retire, _share, Memory, resize=_resize)


@register("themis")
@dataclass(frozen=True)
class Themis(Elastic):
    """Largest finish-time fairness rho first; jobs are truthful, there is no auction.

    Form ``leases``, as PCS runs it: rho = (time in system + remaining work / S(GPUs offered)) /
    (work / S(min(G / N, D))). N is the mean of the numbers of jobs in the system at the events
    since the arrival of the job.

    Form ``shares``, as Muri's public simulator runs it: shares of time x that minimise the largest
    finish-time fairness. Its denominator is the time of the job on ceil(G / N) GPUs of its own. N
    is the number of jobs in the system, which changes at every event. Jobs get their demand or no
    GPU, in descending order of x / executed time.

    Parameters
    ----------
    form : {"leases", "shares"}, optional
        Form of the policy. None: that of the rule set.
    lease : float
        Leases: seconds from the last event until all GPUs are offered again.
    rho_speed : {"linear", "speedup"}, optional
        Leases: speed of a job on m GPUs in its rho. "linear": m, as in PCS's public simulator.
        "speedup": the job's speed-up S(m), as in the paper and in the runs of its Fig 7.
    iterations_in_denominator : bool, optional
        Shares: count the denominator of rho in iterations and the numerator in seconds, an error of
        the public simulator. Jobs with long iterations then go first.
    count_starts : bool
        Shares: divide by the number of decisions at which the job got GPUs instead of by its
        executed time, as the scheduler of Muri's testbed does.
    initial_service : float
        Shares: executed time (s) that a new job starts with. With 0, as in the public simulator,
        jobs that never ran go before all others.

    Reference: Themis, NSDI 2020; PCS, arXiv 2401.10354, section 5.1; Muri's public simulator.
    """

    families = ("ftf",)

    form: Literal["leases", "shares"] | None = None
    lease: Annotated[float, Above(0, "seconds")] = 600.0
    rho_speed: Literal["linear", "speedup"] | None = None
    iterations_in_denominator: bool | None = None
    count_starts: bool = False
    initial_service: Annotated[float, AtLeast(0, "seconds", finite=True)] = 0.0

    time_fields = (*Elastic.time_fields, "lease", "initial_service")
    rule_values: ClassVar = {
        "paper": {"form": LEASES, "rho_speed": SPEEDUP, "iterations_in_denominator": False},
        "pcs": {"form": LEASES, "rho_speed": LINEAR, "iterations_in_denominator": False},
        "muri": {"form": SHARES, "rho_speed": SPEEDUP, "iterations_in_denominator": True},
    }

    # form ``shares`` gives a job its demand or nothing
    elastic: ClassVar[Any] = FromSettings(True, lambda policy: policy.form != SHARES)
    first_fit: ClassVar[Any] = FromSettings(False, lambda policy: policy.form == SHARES)
    needs: ClassVar[Any] = FromSettings(NEEDS, lambda policy: policy._needs())
    #: only form ``leases`` has a compiled rule
    rule: ClassVar[Any] = FromSettings(None, lambda policy: RULE if policy.form == LEASES else None)

    def _needs(self) -> frozenset[str]:
        """Trace columns that the form needs, ``iteration_time`` if rho divides by iterations."""
        in_iterations = self.form == SHARES and self.iterations_in_denominator
        return NEEDS | {"iteration_time"} if in_iterations else NEEDS

    def settings(self, jobs: ElasticJobs) -> bool:
        """Whether the speed of a job in its rho is linear in GPUs."""
        return self.rho_speed == LINEAR

    @property
    def lease_s(self) -> float:
        """Seconds from the last event until all GPUs are offered again."""
        return self.lease

    def session(self, view: View) -> Callable[[View], Decision]:
        """Decision function of one simulation."""
        if self.form == SHARES:
            return FairShares(
                view,
                bool(self.iterations_in_denominator),
                self.initial_service,
                count_starts=self.count_starts,
            )
        return super().session(view)
