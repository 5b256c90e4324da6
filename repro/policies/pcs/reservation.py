"""Reservations (conservative backfilling): every job gets an interval on arrival and keeps it.

Job i arrives at a_i with demand D_i, work w_i (s on one GPU) and speed-up S_i. It reserves D_i GPUs
from t_i to t_i + l_i, next to all intervals reserved before:

    l_i = w_i / S_i(D_i)
    t_i = min {t >= a_i : D_i GPUs are free from t to t + l_i}

It starts at t_i, or at the first instant after t_i at which D_i GPUs are free.

Ties: of equal t_i the earlier arrival. No job starts before a waiting job with a smaller t_i.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Floats, Ints
from repro.engine.elastic import compiled_rule
from repro.model.elastic import (
    DEMANDED,
    HOLDERS,
    NOW,
    WAKE,
    Elastic,
    ElasticJobs,
    ElasticState,
    give,
    pop,
    push,
    speed,
    ticks_of,
)
from repro.model.policy import register
from repro.policies.pcs.in_order import retire

#: Largest delay of a start (s) that counts as on time: rounding moves completions by less.
_ON_TIME_S = 1e-3


class Memory(NamedTuple):
    """Memory by job; instants are in ticks."""

    #: start of the interval, moved when the job starts late
    start: Floats
    #: end of the interval, moved with the start
    end: Floats
    #: end of the interval when it was reserved
    promised: Floats
    #: waiting jobs as a heap, earliest start on top
    heap: Ints
    #: row of the job, the order among equal starts
    row: Ints
    #: entry 0: number of waiting jobs
    waiting: Ints


@njit(inline="always")
def memory_of(s: ElasticState) -> Memory:
    """Memory of a state."""
    return Memory(
        start=s.memory_floats[0],
        end=s.memory_floats[1],
        promised=s.memory_floats[2],
        heap=s.memory_ints[0],
        row=s.memory_ints[1],
        waiting=s.memory_ints[2],
    )


@njit(allocates=True)
def _earliest_start(jobs: ElasticJobs, s: ElasticState, gpus: int, length: float) -> float:
    """Earliest instant from which ``gpus`` GPUs are free for ``length`` (ticks).

    A job that is late to start is assumed to start now. A job that is late to end, by d, is assumed
    to end d from now.
    """
    memory = memory_of(s)
    now = s.clock[NOW]
    num_holders = s.tally[HOLDERS]
    num_jobs = num_holders + memory.waiting[0]
    times = np.empty(2 * num_jobs)
    change = np.empty(2 * num_jobs, np.int64)
    for index in range(num_jobs):
        is_holder = index < num_holders
        job = s.holders[index] if is_holder else memory.heap[index - num_holders]
        begin = memory.start[job]
        end = memory.end[job]
        reserved = min(jobs.demand[job], jobs.gpus)
        # of a holder that is d late to end: 2 now - end = now + d
        end = max(end, 2.0 * now - end) if is_holder else end + max(now - begin, 0.0)
        times[2 * index] = max(begin, now)
        times[2 * index + 1] = end
        change[2 * index] = -reserved
        change[2 * index + 1] = reserved
    order = np.argsort(times)
    free = jobs.gpus
    # candidate for the earliest start; -1: too few GPUs are free at the instant reached so far
    start = now
    position = 0
    while position < len(order):
        instant = times[order[position]]
        if start >= 0.0 and instant - start >= length:
            break
        while position < len(order) and times[order[position]] == instant:
            free += change[order[position]]
            position += 1
        if free < gpus:
            start = -1.0
        elif start < 0.0:
            start = instant
    return float(start)


@njit()
def _admit(jobs: ElasticJobs, settings: int, s: ElasticState, job: int) -> None:
    """Reserve the demand of a job for its pause and its predicted run time."""
    memory = memory_of(s)
    gpus = min(jobs.demand[job], jobs.gpus)
    seconds = s.work_left[job] * jobs.size_factor[job] / speed(jobs, job, gpus)
    length = jobs.pause + ticks_of(jobs, seconds)
    start = _earliest_start(jobs, s, gpus, length)
    end = start + length
    memory.start[job] = start
    memory.row[job] = job
    memory.end[job] = end
    memory.promised[job] = end
    push(memory.heap, memory.start, memory.row, 0, memory.waiting[0], job)
    memory.waiting[0] += 1


@njit()
def _share(jobs: ElasticJobs, settings: int, s: ElasticState) -> None:
    """Start the jobs whose intervals have begun, in order of starts.

    The first job that does not fit delays all jobs behind it.
    """
    memory = memory_of(s)
    now = s.clock[NOW]
    free = jobs.gpus
    count = s.tally[HOLDERS]
    heap = memory.heap
    start = memory.start
    row = memory.row
    for job in s.holders[:count]:
        free -= min(jobs.demand[job], jobs.gpus)
    while memory.waiting[0] > 0 and start[heap[0]] <= now:
        gpus = min(jobs.demand[heap[0]], jobs.gpus)
        if gpus > free:
            break
        job = pop(heap, start, row, 0, memory.waiting[0])
        memory.waiting[0] -= 1
        if now - start[job] > _ON_TIME_S * jobs.ticks_per_second:
            memory.end[job] += now - start[job]
            start[job] = now
        give(jobs, s, job, float(gpus))
        s.holders[count] = job
        count += 1
        free -= gpus
    s.tally[HOLDERS] = count
    s.clock[DEMANDED] = jobs.gpus - free
    # a job that is due already starts at the event that frees its GPUs
    starts_later = memory.waiting[0] > 0 and start[heap[0]] > now
    s.clock[WAKE] = start[heap[0]] if starts_later else np.inf


@register("reservation")
@dataclass(frozen=True)
class Reservation(Elastic):
    """Each job reserves its demand for the first free interval on arrival, and keeps it.

    This is conservative backfilling: a later job may start before an earlier one, and delays no
    job. The end of the interval is the prediction. With exact sizes it is always right. With a size
    error, a job that ends early leaves its GPUs to later arrivals. A late job keeps its GPUs and
    delays the next reservations, in order. New reservations assume that a job that is late by d
    ends d from now.

    Reference: PCS, arXiv 2401.10354, discussion; Mu'alem, Feitelson, IEEE TPDS 12 (6), 2001.
    """

    needs = frozenset({"duration"})
    reserved_end_row = Memory._fields.index("promised")
    rule: ClassVar[Any] = compiled_rule(_admit, retire, _share, Memory)
