"""Elastic FIFO and SRSF (PCS, section 5.1): GPUs go to jobs by ascending key.

Key of job i, with arrival a_i, demand D_i, remaining work w_i (s on one GPU), speed-up S_i:

    FIFO   a_i
    SRSF   D_i w_i / S_i(D_i), the remaining service in GPU-seconds

The next job gets min(D_i, R) of the R GPUs that are left.

Ties: in FIFO, order in the trace. In SRSF, jobs that hold GPUs come first and keep their order.
Stopped jobs follow, latest stop first, and then new jobs in order of arrival.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from repro.base.assign import assign
from repro.base.compiled import njit
from repro.base.typing import Floats, Ints
from repro.engine.elastic import compiled_rule
from repro.model.elastic import HOLDERS, Elastic, ElasticJobs, ElasticState, give, pop, push
from repro.model.policy import register


class Queue(NamedTuple):
    """Memory of these rules: the waiting jobs, in a heap."""

    #: by job: key
    key: Floats
    #: by job: order among equal keys, smallest first
    tie: Ints
    #: waiting jobs as a heap, smallest key on top
    heap: Ints
    #: entry 0: number of waiting jobs
    waiting: Ints
    #: entry 0: tie of the job that was stopped last, below all earlier ties
    last_tie: Ints
    #: scratch: jobs that get GPUs, in order of keys
    granted: Ints


@njit(inline="always")
def queue_of(s: ElasticState) -> Queue:
    """Queue of a state."""
    return Queue(
        key=s.memory_floats[0],
        tie=s.memory_ints[0],
        heap=s.memory_ints[1],
        waiting=s.memory_ints[2],
        last_tie=s.memory_ints[3],
        granted=s.memory_ints[4],
    )


@njit()
def enqueue(s: ElasticState, job: int, key: float, tie: int) -> None:
    """Add a job to the queue."""
    queue = queue_of(s)
    queue.key[job] = key
    queue.tie[job] = tie
    push(queue.heap, queue.key, queue.tie, 0, queue.waiting[0], job)
    queue.waiting[0] += 1


@njit()
def dequeue(s: ElasticState) -> int:
    """Remove the first job of the queue and return it."""
    queue = queue_of(s)
    job = pop(queue.heap, queue.key, queue.tie, 0, queue.waiting[0])
    queue.waiting[0] -= 1
    return job


@njit()
def retire(jobs: ElasticJobs, settings: int, s: ElasticState, job: int) -> None:
    """Remove a completed job from the jobs that hold GPUs."""
    holders = s.holders[: s.tally[HOLDERS]]
    position = 0
    while holders[position] != job:
        position += 1
    assign(holders[position:-1], holders[position + 1 :])
    s.tally[HOLDERS] -= 1


@njit()
def sort_holders(s: ElasticState, by_tie: bool) -> None:
    """Sort the jobs that hold GPUs by key.

    Equal keys keep their order. With ``by_tie`` the smaller tie comes first.
    """
    queue = queue_of(s)
    key = queue.key
    tie = queue.tie
    holders = s.holders
    for position in range(1, s.tally[HOLDERS]):
        job = holders[position]
        target = position
        while target > 0:
            other = holders[target - 1]
            if key[other] < key[job] or (
                key[other] == key[job] and not (by_tie and tie[job] < tie[other])
            ):
                break
            holders[target] = other
            target -= 1
        holders[target] = job


@njit()
def hand_out(jobs: ElasticJobs, s: ElasticState, single: bool, holders_first: bool) -> None:
    """Hand out GPUs in order of keys: the demand of each job, or one GPU each if ``single``.

    The jobs that hold GPUs are sorted already. With ``holders_first``, among equal keys they come
    first, then stopped jobs (latest stop first), then new jobs. Without it, ties decide.
    """
    queue = queue_of(s)
    key = queue.key
    tie = queue.tie
    granted = queue.granted
    num_holders = s.tally[HOLDERS]
    free = jobs.gpus
    kept = 0
    count = 0
    # merge two lists in order of keys: the jobs that hold GPUs, and the queue
    while free > 0:
        from_queue = kept == num_holders
        if queue.waiting[0] > 0:
            waiting = queue.heap[0]
            if not from_queue:
                holder = s.holders[kept]
                from_queue = key[waiting] < key[holder] or (
                    not holders_first and key[waiting] == key[holder] and tie[waiting] < tie[holder]
                )
        elif from_queue:
            break
        if from_queue:
            job = dequeue(s)
        else:
            job = s.holders[kept]
            kept += 1
        gpus = 1 if single else min(free, jobs.demand[job])
        give(jobs, s, job, gpus)
        granted[count] = job
        count += 1
        free -= gpus
    # The loop goes from the last stopped job to the first. With ``holders_first``, the tie of each
    # is smaller than the tie of the job before it in this loop, so stopped jobs keep their order.
    for stopped in range(num_holders - 1, kept - 1, -1):
        job = s.holders[stopped]
        s.gpus[job] = 0.0
        if holders_first:
            queue.last_tie[0] -= 1
            tie[job] = queue.last_tie[0]
        enqueue(s, job, key[job], tie[job])
    assign(s.holders[:count], granted)
    s.tally[HOLDERS] = count


@njit()
def _admit_fifo(jobs: ElasticJobs, settings: int, s: ElasticState, job: int) -> None:
    """Add a job to the queue. Its key never changes."""
    enqueue(s, job, float(job), job)


@njit()
def _share_fifo(jobs: ElasticJobs, settings: int, s: ElasticState) -> None:
    """Hand out demands in order of arrival."""
    hand_out(jobs, s, single=False, holders_first=True)


@njit()
def _remaining_service(jobs: ElasticJobs, s: ElasticState, job: int) -> float:
    """Remaining service D w / S(D), GPU-seconds."""
    return float(
        jobs.demand[job] * (s.work_left[job] * jobs.size_factor[job]) / jobs.full_speed[job]
    )


@njit()
def _admit_srsf(jobs: ElasticJobs, settings: int, s: ElasticState, job: int) -> None:
    """Add a job to the queue. Its key is constant while it waits."""
    enqueue(s, job, _remaining_service(jobs, s, job), job)


@njit()
def _share_srsf(jobs: ElasticJobs, settings: int, s: ElasticState) -> None:
    """Hand out demands in order of remaining service."""
    queue = queue_of(s)
    for job in s.holders[: s.tally[HOLDERS]]:
        queue.key[job] = _remaining_service(jobs, s, job)
    sort_holders(s, by_tie=False)
    hand_out(jobs, s, single=False, holders_first=True)


@register("fifo-elastic")
@dataclass(frozen=True)
class FifoElastic(Elastic):
    """Each job in order of arrival gets its demand or the GPUs that are left (FIFO in PCS, 5.1)."""

    needs = frozenset({"duration"})
    reads_sizes = False
    # The GPUs of a job do not depend on later arrivals, so its completion is known.
    foresees = True
    rule: ClassVar[Any] = compiled_rule(_admit_fifo, retire, _share_fifo, Queue)


@register("srsf-elastic")
@dataclass(frozen=True)
class SrsfElastic(Elastic):
    """Smallest remaining service first, at most the demand each (called Tiresias in PCS, 5.1)."""

    needs = frozenset({"duration"})
    rule: ClassVar[Any] = compiled_rule(_admit_srsf, retire, _share_srsf, Queue, by_arrival=False)
