"""Elastic FIFO and SRSF (PCS, section 5.1): GPUs to the jobs of smallest keys, one by one."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from repro.base.assign import assign
from repro.base.compiled import njit
from repro.base.typing import Floats, Ints
from repro.engine.elastic import ruled
from repro.model.elastic import HOLDERS, Elastic, ElasticState, Jobs, give, pop, push
from repro.model.policy import register


class Line(NamedTuple):
    """Own memory: the jobs that wait, in a heap; all arrays but the last three are by job."""

    key: Floats
    #: what decides between equal keys
    tie: Ints
    heap: Ints
    #: entry 0: jobs that wait
    waiting: Ints
    #: entry 0: the tie of the job that was pushed back last
    last: Ints
    #: scratch: jobs that get GPUs, in order
    granted: Ints


@njit(inline="always")
def line_of(s: ElasticState) -> Line:
    """Own memory in a state."""
    return Line(
        key=s.real[0],
        tie=s.whole[0],
        heap=s.whole[1],
        waiting=s.whole[2],
        last=s.whole[3],
        granted=s.whole[4],
    )


@njit()
def add(s: ElasticState, job: int, key: float, tie: int) -> None:
    """Put a job in line."""
    line = line_of(s)
    line.key[job] = key
    line.tie[job] = tie
    push(line.heap, line.key, line.tie, 0, line.waiting[0], job)
    line.waiting[0] += 1


@njit()
def leave(jobs: Jobs, how: int, s: ElasticState, job: int) -> None:
    """Take a job that held GPUs out."""
    held = s.holders[: s.tally[HOLDERS]]
    place = 0
    while held[place] != job:
        place += 1
    assign(held[place:-1], held[place + 1 :])
    s.tally[HOLDERS] -= 1


@njit()
def first(s: ElasticState) -> int:
    """Take the first of the waiting jobs out of the line and return it."""
    line = line_of(s)
    job = pop(line.heap, line.key, line.tie, 0, line.waiting[0])
    line.waiting[0] -= 1
    return job


@njit()
def sort_holders(s: ElasticState, tie_by_key: bool) -> None:
    """Sort those who hold GPUs by key; equal ones keep their order, or go by what breaks ties."""
    line = line_of(s)
    key = line.key
    tie = line.tie
    held = s.holders
    for place in range(1, s.tally[HOLDERS]):
        job = held[place]
        to = place
        while to > 0:
            other = held[to - 1]
            if key[other] < key[job] or (
                key[other] == key[job] and not (tie_by_key and tie[job] < tie[other])
            ):
                break
            held[to] = other
            to -= 1
        held[to] = job


@njit()
def hand_out(jobs: Jobs, s: ElasticState, single: bool, stable: bool) -> None:
    """Hand out GPUs in order of keys: what each asks for, or one each if ``single``.

    Those who hold GPUs are sorted. If ``stable``, they come before waiting jobs of equal keys, and
    who is pushed back comes before those who waited already; else ties are broken as in line.
    """
    line = line_of(s)
    key = line.key
    tie = line.tie
    granted = line.granted
    before = s.tally[HOLDERS]
    left = jobs.gpus
    place = count = 0
    while left > 0:
        job = -1
        if place < before:
            job = s.holders[place]
        if line.waiting[0] > 0:
            top = line.heap[0]
            if (
                job < 0
                or key[top] < key[job]
                or (not stable and key[top] == key[job] and tie[top] < tie[job])
            ):
                job = -1
        elif job < 0:
            break
        if job < 0:
            job = first(s)
        else:
            place += 1
        gpus = 1 if single else min(left, jobs.asked[job])
        give(jobs, s, job, gpus)
        granted[count] = job
        count += 1
        left -= gpus
    for back in range(before - 1, place - 1, -1):
        job = s.holders[back]
        s.gpus[job] = 0.0
        if stable:
            line.last[0] -= 1
            tie[job] = line.last[0]
        add(s, job, key[job], tie[job])
    assign(s.holders[:count], granted)
    s.tally[HOLDERS] = count


@njit()
def _admit_last(jobs: Jobs, how: int, s: ElasticState, job: int) -> None:
    """Put a job in line, which has its place for good."""
    add(s, job, float(job), job)


@njit()
def _share_as_came(jobs: Jobs, how: int, s: ElasticState) -> None:
    """Give the first ones what they ask for."""
    hand_out(jobs, s, False, True)


@njit()
def _service(jobs: Jobs, s: ElasticState, job: int) -> float:
    """Return the remaining service (GPU-seconds) on the GPUs asked for."""
    return float(jobs.asked[job] * (s.left[job] * jobs.error[job]) / jobs.fastest[job])


@njit()
def _admit_by_service(jobs: Jobs, how: int, s: ElasticState, job: int) -> None:
    """Put a job in line, behind others of equal keys; the key of a waiting job stands still."""
    add(s, job, _service(jobs, s, job), job)


@njit()
def _share_by_service(jobs: Jobs, how: int, s: ElasticState) -> None:
    """Give those of least service left what they ask for; equal ones keep their order."""
    line = line_of(s)
    for job in s.holders[: s.tally[HOLDERS]]:
        line.key[job] = _service(jobs, s, job)
    sort_holders(s, False)
    hand_out(jobs, s, False, True)


@register("fifo-elastic")
@dataclass(frozen=True)
class FifoElastic(Elastic):
    """Earlier arrivals get all they ask for, the next one what is left (FIFO in PCS, 5.1)."""

    needs = frozenset({"duration"})
    foresees = True
    rule: ClassVar[Any] = ruled(_admit_last, leave, _share_as_came, Line)


@register("srsf-elastic")
@dataclass(frozen=True)
class SrsfElastic(Elastic):
    """Smallest GPUs asked for times remaining time on them (called Tiresias in PCS, 5.1)."""

    needs = frozenset({"duration"})
    rule: ClassVar[Any] = ruled(_admit_by_service, leave, _share_by_service, Line, by_arrival=False)
