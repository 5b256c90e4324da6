"""AFS-L (Hwang et al., NSDI 2021; PCS, section 5.1): each GPU to the job that gains most.

The inverse remaining time of job j with x GPUs, from its remaining work w_j and its speed-up S_j:

    r_j(x) = 1 / (w_j / S_j(x) + 1e-7)

Of two jobs, let l be the one with the shorter remaining time and h the other. Job l is preferred if

    (r_l(x_l + 1) - r_l(x_l)) / r_l(x_l)  >  (r_h(x_h + 1) - r_h(x_h)) / r_h(x_h + 1).

For each GPU, the job preferred so far is compared with the next job in order of arrival. The job
preferred after the last comparison gets the GPU. Every job gets a first GPU before any job gets a
second, the largest r_j(1) first.

Ties: of equal r_j(1) the later arrival. Of equal remaining times the job preferred so far counts as
the shorter. Of equal gains the longer job is preferred.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from repro.base.compiled import njit
from repro.base.typing import Floats
from repro.engine.elastic import compiled_rule
from repro.model.elastic import HOLDERS, PRESENT, Elastic, ElasticJobs, ElasticState, give, speed
from repro.model.policy import register
from repro.policies.pcs.in_order import (
    Queue,
    dequeue,
    enqueue,
    hand_out,
    queue_of,
    retire,
    sort_holders,
)

#: Seconds added to a remaining time before the division, as in PCS's artifact.
_EPSILON_S = 1e-7


class Memory(NamedTuple):
    """Memory of the rule by job, in addition to `repro.policies.pcs.in_order.Queue`."""

    #: GPUs in the present division so far, x
    gpus: Floats
    #: remaining time with these GPUs (s)
    time: Floats
    #: gain of one more GPU relative to r(x)
    gain: Floats
    #: gain of one more GPU relative to r(x + 1)
    gain_after: Floats


@njit(inline="always")
def memory_of(s: ElasticState) -> Memory:
    """Memory of a state; row 0 is the key of `repro.policies.pcs.in_order.Queue`."""
    return Memory(
        gpus=s.memory_floats[1],
        time=s.memory_floats[2],
        gain=s.memory_floats[3],
        gain_after=s.memory_floats[4],
    )


@njit()
def _inverse_time(jobs: ElasticJobs, job: int, work: float, gpus: float) -> float:
    """r(gpus) of a job with this remaining work (s on one GPU), 1/s."""
    return float(1.0 / (work / speed(jobs, job, gpus) + _EPSILON_S))


@njit()
def _admit(jobs: ElasticJobs, settings: int, s: ElasticState, job: int) -> None:
    """Add a job to the queue: largest r(1) first, then the later arrival."""
    work = s.work_left[job] * jobs.size_factor[job]
    enqueue(s, job, -_inverse_time(jobs, job, work, 1.0), -job)


@njit()
def _gains(jobs: ElasticJobs, job: int, work: float, gpus: float) -> tuple[float, float, float]:
    """Remaining time (s) with these GPUs, and the two relative gains of `Memory`."""
    now = _inverse_time(jobs, job, work, gpus)
    after = _inverse_time(jobs, job, work, gpus + 1.0)
    return work / speed(jobs, job, gpus), (after - now) / now, (after - now) / after


@njit()
def _share(jobs: ElasticJobs, settings: int, s: ElasticState) -> None:
    """Give one GPU to each job in order of r(1), then the remaining GPUs one by one."""
    queue = queue_of(s)
    for job in s.holders[: s.tally[HOLDERS]]:
        queue.key[job] = -_inverse_time(jobs, job, s.work_left[job] * jobs.size_factor[job], 1.0)
    present = s.tally[PRESENT]
    if present >= jobs.gpus:
        # at least as many jobs as GPUs: the jobs of largest r(1) get one GPU each
        sort_holders(s, by_tie=True)
        hand_out(jobs, s, single=True, holders_first=False)
        return
    while queue.waiting[0] > 0:
        s.holders[s.tally[HOLDERS]] = dequeue(s)
        s.tally[HOLDERS] += 1
    _sort_by_arrival(s)
    holders = s.holders[:present]
    memory = memory_of(s)
    time = memory.time
    gain = memory.gain
    gain_after = memory.gain_after
    gpus = memory.gpus
    unsatisfied = 0
    for job in holders:
        gpus[job] = 1.0
        work = s.work_left[job] * jobs.size_factor[job]
        time[job], gain[job], gain_after[job] = _gains(jobs, job, work, 1.0)
        unsatisfied += jobs.demand[job] > 1
    for _ in range(jobs.gpus - present):
        if unsatisfied == 0:
            break
        best = holders[0]
        for job in holders[1:]:
            # l of the module's formula is ``job`` in the first branch, ``best`` in the second
            if time[job] < time[best]:
                if gain[job] > gain_after[best]:
                    best = job
            elif not gain[best] > gain_after[job]:
                best = job
        gpus[best] += 1.0
        work = s.work_left[best] * jobs.size_factor[best]
        time[best], gain[best], gain_after[best] = _gains(jobs, best, work, gpus[best])
        unsatisfied -= gpus[best] == jobs.demand[best]
    for job in holders:
        # A job at its demand has gain 0. It gets a GPU only if no job has a positive gain. This GPU
        # stays idle.
        give(jobs, s, job, min(gpus[job], float(jobs.demand[job])))


@njit()
def _sort_by_arrival(s: ElasticState) -> None:
    """Sort the jobs that hold GPUs by arrival."""
    holders = s.holders
    for position in range(1, s.tally[HOLDERS]):
        job = holders[position]
        target = position
        while target > 0 and holders[target - 1] > job:
            holders[target] = holders[target - 1]
            target -= 1
        holders[target] = job


@register("afs")
@dataclass(frozen=True)
class Afs(Elastic):
    """Each GPU in turn to the job that gains most from it (AFS-L as PCS runs it, section 5.1)."""

    needs = frozenset({"duration"})
    rule: ClassVar[Any] = compiled_rule(_admit, retire, _share, Queue, Memory)
