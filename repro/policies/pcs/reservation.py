"""Reservations: conservative backfilling, a job gets its interval on arrival and keeps it."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Floats, Ints
from repro.engine.elastic import ruled
from repro.model.elastic import (
    ASKED,
    HOLDERS,
    NOW,
    WAKE,
    Elastic,
    ElasticState,
    Jobs,
    give,
    in_parts,
    pop,
    push,
    speed,
)
from repro.model.policy import register
from repro.policies.pcs.in_order import leave

#: Seconds by which rounding may move a completion: who starts no later than that starts on time.
_ON_TIME_S = 1e-3


class Memory(NamedTuple):
    """Own memory, by job; all times are instants of the clock."""

    #: begin and end of the reserved interval, as far as is known
    start: Floats
    end: Floats
    #: end of the interval when it was reserved
    promised: Floats
    #: waiting jobs in a heap by ``start``; rows decide between equal ones
    heap: Ints
    row: Ints
    #: entry 0: jobs that wait
    number: Ints


@njit(inline="always")
def memory(s: ElasticState) -> Memory:
    """Own memory in a state."""
    return Memory(
        start=s.real[0],
        end=s.real[1],
        promised=s.real[2],
        heap=s.whole[0],
        row=s.whole[1],
        number=s.whole[2],
    )


@njit()
def _earliest(jobs: Jobs, s: ElasticState, gpus: int, length: float) -> float:
    """Return from when on so many GPUs are free for so long, next to everyone's interval.

    One late to start is taken to begin now, one late to end to be late as long again.
    """
    own = memory(s)
    now = s.clock[NOW]
    held = s.tally[HOLDERS]
    number = own.number[0]
    times = np.empty(2 * (held + number))
    change = np.empty(2 * (held + number), np.int64)
    for place in range(held + number):
        job = s.holders[place] if place < held else own.heap[place - held]
        start, end = own.start[job], own.end[job]
        taken = min(jobs.asked[job], jobs.gpus)
        end = max(end, 2.0 * now - end) if place < held else end + max(now - start, 0.0)
        times[2 * place] = max(start, now)
        times[2 * place + 1] = end
        change[2 * place] = -taken
        change[2 * place + 1] = taken
    order = np.argsort(times)
    free = jobs.gpus
    start = now
    at = 0
    while at < len(order):
        moment = times[order[at]]
        if start >= 0.0 and moment - start >= length:
            break
        while at < len(order) and times[order[at]] == moment:
            free += change[order[at]]
            at += 1
        if free < gpus:
            start = -1.0
        elif start < 0.0:
            start = moment
    return float(start)


@njit()
def _admit(jobs: Jobs, how: int, s: ElasticState, job: int) -> None:
    """Reserve the GPUs a job asks for, for as long as it is believed to take."""
    own = memory(s)
    gpus = min(jobs.asked[job], jobs.gpus)
    seconds = s.left[job] * jobs.error[job] / speed(jobs, job, gpus)
    length = jobs.pause + in_parts(jobs, seconds)
    start = _earliest(jobs, s, gpus, length)
    own.start[job] = start
    own.row[job] = job
    own.end[job] = own.promised[job] = start + length
    push(own.heap, own.start, own.row, 0, own.number[0], job)
    own.number[0] += 1


@njit()
def _share(jobs: Jobs, how: int, s: ElasticState) -> None:
    """Start those whose interval has begun, in this order; nobody passes one without GPUs."""
    own = memory(s)
    now = s.clock[NOW]
    free = jobs.gpus
    count = s.tally[HOLDERS]
    heap = own.heap
    start = own.start
    rows = own.row
    for job in s.holders[:count]:
        free -= min(jobs.asked[job], jobs.gpus)
    while own.number[0] > 0 and start[heap[0]] <= now:
        gpus = min(jobs.asked[heap[0]], jobs.gpus)
        if gpus > free:
            break
        job = pop(heap, start, rows, 0, own.number[0])
        own.number[0] -= 1
        if now - start[job] > _ON_TIME_S * jobs.per_second:
            own.end[job] += now - start[job]
            start[job] = now
        give(jobs, s, job, float(gpus))
        s.holders[count] = job
        count += 1
        free -= gpus
    s.tally[HOLDERS] = count
    s.clock[ASKED] = jobs.gpus - free
    waits = own.number[0] > 0 and start[heap[0]] > now
    s.clock[WAKE] = start[heap[0]] if waits else np.inf


@register("reservation")
@dataclass(frozen=True)
class Reservation(Elastic):
    """Each job reserves all it asks for, for the first interval in which it is free, and keeps it.

    Conservative backfilling: a later job may begin before an earlier one, but moves nobody. What
    is predicted is the end of the interval, which with exact sizes is always right. With a size
    error a job that ends early leaves its GPUs to later arrivals. One that ends late keeps them,
    and those who were to follow begin as soon as GPUs are free, in order of their intervals; for
    new intervals it is taken to be late as long again.

    Reference: PCS, arXiv 2401.10354, discussion; Mu'alem, Feitelson, IEEE TPDS 12 (6), 2001.
    """

    needs = frozenset({"duration"})
    promised = Memory._fields.index("promised")
    rule: ClassVar[Any] = ruled(_admit, leave, _share, Memory)
