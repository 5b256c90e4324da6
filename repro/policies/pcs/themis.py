"""Themis: GPUs to the job whose finish time suffers most, on leases or by shares of time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from repro.base.assign import assign
from repro.base.compiled import njit
from repro.base.typing import Floats, Ints
from repro.engine.elastic import ruled
from repro.model.decision import Decision
from repro.model.elastic import EVENTS, HOLDERS, NOW, SHOWN, Elastic, ElasticState, Jobs, give
from repro.model.policy import FromSettings, register
from repro.model.settings import Above, AtLeast
from repro.model.view import View
from repro.policies.pcs._themis_shares import FairShares

LEASES, SHARES = "leases", "shares"


class Memory(NamedTuple):
    """Own memory: a list of the jobs present, in order of arrival, so that loops run in order.

    All arrays but ``holding`` and ``number`` go by the place of a job in this list.
    """

    #: work left and work (s on one GPU), submission, GPUs asked for
    left: Floats
    work: Floats
    submit: Floats
    asked: Floats
    #: what `ElasticState.seen` says, for the mean number of jobs present
    shown: Floats
    born: Floats
    #: rho if offered the GPUs left, and the finish time in a fair share of the cluster (s)
    rho: Floats
    fair: Floats
    #: row of the job in the trace
    job: Ints
    #: places of the worst off, best off last; of jobs that ask for more than one GPU
    worst: Ints
    wide: Ints
    #: whether an offer was made; places of jobs that got one, in order
    taken: Ints
    picked: Ints
    #: of each job in `ElasticState.holders`: its place, -1 if it is done
    holding: Ints
    #: entry 0: jobs present
    number: Ints


@njit(inline="always")
def memory(s: ElasticState) -> Memory:
    """Own memory in a state."""
    return Memory(
        left=s.real[0],
        work=s.real[1],
        submit=s.real[2],
        asked=s.real[3],
        shown=s.real[4],
        born=s.real[5],
        rho=s.real[6],
        fair=s.real[7],
        job=s.whole[0],
        worst=s.whole[1],
        wide=s.whole[2],
        taken=s.whole[3],
        picked=s.whole[4],
        holding=s.whole[5],
        number=s.whole[6],
    )


@njit()
def _admit(jobs: Jobs, how: int, s: ElasticState, job: int) -> None:
    """Put a job at the end of the list."""
    own = memory(s)
    place = own.number[0]
    own.job[place] = job
    own.left[place] = s.left[job] * jobs.error[job]
    own.work[place] = jobs.work[job]
    own.submit[place] = jobs.submit[job]
    own.asked[place] = jobs.asked[job]
    own.shown[place] = s.seen[0, job] - s.seen[2, job]
    own.born[place] = 1 - s.seen[1, job]
    own.number[0] += 1


@njit()
def _retire(jobs: Jobs, how: int, s: ElasticState, job: int) -> None:
    """Take a job out of the list; those behind it move up."""
    own = memory(s)
    number = own.number[0]
    place = 0
    while own.job[place] != job:
        place += 1
    assign(own.job[place : number - 1], own.job[place + 1 :])
    assign(own.left[place : number - 1], own.left[place + 1 :])
    assign(own.work[place : number - 1], own.work[place + 1 :])
    assign(own.submit[place : number - 1], own.submit[place + 1 :])
    assign(own.asked[place : number - 1], own.asked[place + 1 :])
    assign(own.shown[place : number - 1], own.shown[place + 1 :])
    assign(own.born[place : number - 1], own.born[place + 1 :])
    for at in range(s.tally[HOLDERS]):
        if own.holding[at] == place:
            own.holding[at] = -1
        elif own.holding[at] > place:
            own.holding[at] -= 1
    own.number[0] -= 1


@njit(error_model="numpy")
def _rate(jobs: Jobs, s: ElasticState, number: int) -> None:
    """Compute rho of everyone who is offered all GPUs, or what it asks for."""
    own = memory(s)
    for at in range(s.tally[HOLDERS]):
        if own.holding[at] >= 0:
            job = s.holders[at]
            own.left[own.holding[at]] = s.left[job] * jobs.error[job]
    # two loops over few rows each: the compiler takes several jobs at once through them
    gpus = float(jobs.gpus)
    events = float(s.tally[EVENTS])
    shown = float(s.tally[SHOWN])
    seen = own.shown
    born = own.born
    work = own.work
    asked = own.asked
    fair = own.fair
    rho = own.rho
    for place in range(number):
        share = gpus / ((seen[place] + shown) / (born[place] + events))
        fair[place] = work[place] / min(share, asked[place])
    now = s.clock[NOW]
    parts = jobs.per_second
    left = own.left
    submit = own.submit
    for place in range(number):
        waited = (now - submit[place]) / parts
        rho[place] = (waited + left[place] / min(gpus, asked[place])) / fair[place]


@njit()
def _worse(rho: Floats, place: int, other: int) -> bool:
    """Tell whether a job is worse off than another; of equals the earlier arrival is."""
    return bool(rho[place] > rho[other] or (rho[place] == rho[other] and place < other))


@njit()
def _sink(worst: Ints, rho: Floats, count: int, place: int) -> None:
    """Put a place instead of that on top into a heap with the best off on top."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and _worse(rho, worst[child], worst[child + 1]):
            child += 1
        if _worse(rho, worst[child], place):
            break
        worst[at] = worst[child]
        at = child
    worst[at] = place


@njit()
def _list_worst(
    worst: Ints, rho: Floats, taken: Ints, asked: Floats, number: int, gpus: int
) -> int:
    """List the worst off who got no offer and ask for no more GPUs than are left; return count.

    Each takes a GPU or more, so that as many as there are GPUs will do.
    """
    count = 0
    for place in range(number):
        if taken[place] == 1 or asked[place] > gpus:
            continue
        if count == gpus:
            if rho[place] > rho[worst[0]]:
                _sink(worst, rho, count, place)
            continue
        at = count
        while at > 0 and _worse(rho, worst[(at - 1) // 2], place):
            worst[at] = worst[(at - 1) // 2]
            at = (at - 1) // 2
        worst[at] = place
        count += 1
    for last in range(count - 1, 0, -1):
        top = worst[0]
        _sink(worst, rho, last, worst[last])
        worst[last] = top
    return count


@njit(error_model="numpy")
def _share(jobs: Jobs, how: int, s: ElasticState) -> None:
    """Offer the GPUs left to the job of largest rho, again and again.

    While the GPUs left are no fewer than a job asks for, its rho stands still: of these the worst
    off are sorted once. Those that ask for more are looked at anew for every offer.
    """
    own = memory(s)
    number = own.number[0]
    asked = own.asked
    rho = own.rho
    worst = own.worst
    wide = own.wide
    taken = own.taken
    picked = own.picked
    _rate(jobs, s, number)
    taken[:number] = 0
    wides = 0
    widest = 1.0
    for place in range(number):
        if asked[place] > 1.0:
            wide[wides] = place
            wides += 1
            widest = max(widest, asked[place])
    left = jobs.gpus
    count = 0
    following = 0
    listed = _list_worst(worst, rho, taken, asked, number, left)
    while left > 0 and count < number:
        while following < listed and asked[worst[following]] > left:
            following += 1
        if following == listed and listed > 0:
            listed = _list_worst(worst, rho, taken, asked, number, left)
            following = 0
        chosen = worst[following] if following < listed else -1
        if left < widest:
            for place in wide[:wides]:
                if taken[place] == 0 and asked[place] > left:
                    waited = (s.clock[NOW] - own.submit[place]) / jobs.per_second
                    rho[place] = (waited + own.left[place] / left) / own.fair[place]
                    if chosen < 0 or _worse(rho, place, chosen):
                        chosen = place
        following += following < listed and chosen == worst[following]
        taken[chosen] = 1
        picked[count] = chosen
        left -= min(left, int(asked[chosen]))
        count += 1
    for at in range(s.tally[HOLDERS]):
        if own.holding[at] >= 0 and taken[own.holding[at]] == 0:
            s.gpus[s.holders[at]] = 0.0
    left = jobs.gpus
    for at in range(count):
        job = own.job[picked[at]]
        s.holders[at] = job
        own.holding[at] = picked[at]
        give(jobs, s, job, float(min(left, jobs.asked[job])))
        left -= min(left, jobs.asked[job])
    s.tally[HOLDERS] = count


#: What both forms read.
NEEDS = frozenset({"duration"})
RULE = ruled(_admit, _retire, _share, Memory)


@register("themis")
@dataclass(frozen=True)
class Themis(Elastic):
    """The job whose finish time suffers most first; truthful jobs, no auction.

    Form ``leases`` (as PCS runs it): largest finish-time fairness rho = (time in system + work left
    / GPUs offered) / (work / min(G / N, D)) first, with N the mean number of jobs in the system
    over the events of the job's life.

    Form ``shares`` (as Muri's public simulator runs it): at every event, shares of time x in [0, 1]
    that minimise the largest (time in system + time left / x) / (time so far and time left in a
    cluster of one's own), where that cluster has ceil(G / N) GPUs for N jobs now. Jobs run, with
    the GPUs they ask for or not at all, in order of x / time run.

    Parameters
    ----------
    form : {"leases", "shares"}, optional
        Which of the two.
    lease : float
        Leases: seconds after the last event at which GPUs are handed out anew.
    iterations_in_denominator : bool, optional
        Shares: count the denominator in iterations while the numerator is in seconds, as the public
        simulator does by mistake, so that jobs of slow iterations go first.
    initial_service : float
        Shares: seconds a new job is taken to have run already; with 0, the public simulator's, jobs
        that never ran go before all others.

    Reference: Themis, NSDI 2020; PCS, arXiv 2401.10354, section 5.1; Muri's public simulator.
    """

    families = ("ftf",)

    form: Literal["leases", "shares"] | None = None
    lease: Annotated[float, Above(0, "seconds")] = 600.0
    iterations_in_denominator: bool | None = None
    initial_service: Annotated[float, AtLeast(0, "seconds", finite=True)] = 0.0

    time_fields = ("lease", "initial_service")
    rule_values: ClassVar = {
        "paper": {"form": LEASES, "iterations_in_denominator": False},
        "muri": {"form": SHARES, "iterations_in_denominator": True},
    }

    # form ``shares`` keeps gangs whole and reads more
    elastic: ClassVar[Any] = FromSettings(True, lambda policy: policy.form != SHARES)
    needs: ClassVar[Any] = FromSettings(
        NEEDS, lambda policy: NEEDS | {"iteration_time"} if policy.form == SHARES else NEEDS
    )
    #: only form ``leases`` has a compiled rule
    rule: ClassVar[Any] = FromSettings(None, lambda policy: RULE if policy.form == LEASES else None)

    @property
    def lease_s(self) -> float:
        """Seconds after the last event at which GPUs are handed out anew."""
        return self.lease

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run."""
        if self.form == SHARES:
            return FairShares(view, bool(self.iterations_in_denominator), self.initial_service)
        return super().session(view)
