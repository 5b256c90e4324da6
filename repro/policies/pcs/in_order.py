"""Elastic FIFO and SRSF (PCS, section 5.1): GPUs to the jobs of smallest keys, one by one."""

from dataclasses import dataclass
from typing import Any, ClassVar

from repro.base.assign import assign
from repro.base.compiled import njit
from repro.engine.elastic import ruled
from repro.model.elastic import HOLDERS, Elastic, Jobs, State, give, pop, push
from repro.model.policy import register

#: Rows of own memory: the key of each job; the heap of waiting jobs, what decides between equal
#: keys, how many wait, and who was pushed back last.
KEY = 0
HEAP, TIE, NUMBERS, HELD = range(4)
WAITING, LAST = range(2)
REAL = 1
WHOLE = 4


@njit()
def add(s: State, job: int, key: float, tie: int) -> None:
    """Put a job in line."""
    s.real[KEY, job] = key
    s.whole[TIE, job] = tie
    push(s.whole[HEAP], s.real[KEY], s.whole[TIE], 0, s.whole[NUMBERS, WAITING], job)
    s.whole[NUMBERS, WAITING] += 1


@njit()
def leave(jobs: Jobs, how: int, s: State, job: int) -> None:
    """Take a job that held GPUs out."""
    held = s.holders[: s.tally[HOLDERS]]
    place = 0
    while held[place] != job:
        place += 1
    assign(held[place:-1], held[place + 1 :])
    s.tally[HOLDERS] -= 1


@njit()
def first(s: State) -> int:
    """Take the first of the waiting jobs out of the line and return it."""
    job = pop(s.whole[HEAP], s.real[KEY], s.whole[TIE], 0, s.whole[NUMBERS, WAITING])
    s.whole[NUMBERS, WAITING] -= 1
    return job


@njit()
def sort_holders(s: State, tie_by_key: bool) -> None:
    """Sort those who hold GPUs by key; equal ones keep their order, or go by what breaks ties."""
    key = s.real[KEY]
    tie = s.whole[TIE]
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
def hand_out(jobs: Jobs, s: State, single: bool, stable: bool) -> None:
    """Hand out GPUs in order of keys: what each asks for, or one each if ``single``.

    Those who hold GPUs are sorted. If ``stable``, they come before waiting jobs of equal keys, and
    who is pushed back comes before those who waited already; else ties are broken as in line.
    """
    key = s.real[KEY]
    tie = s.whole[TIE]
    numbers = s.whole[NUMBERS]
    held = s.whole[HELD]
    before = s.tally[HOLDERS]
    left = jobs.gpus
    place = count = 0
    while left > 0:
        job = -1
        if place < before:
            job = s.holders[place]
        if numbers[WAITING] > 0:
            top = s.whole[HEAP, 0]
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
        held[count] = job
        count += 1
        left -= gpus
    for back in range(before - 1, place - 1, -1):
        job = s.holders[back]
        s.gpus[job] = 0.0
        if stable:
            numbers[LAST] -= 1
            tie[job] = numbers[LAST]
        add(s, job, key[job], tie[job])
    assign(s.holders[:count], held)
    s.tally[HOLDERS] = count


@njit()
def _admit_last(jobs: Jobs, how: int, s: State, job: int) -> None:
    """Put a job in line, which has its place for good."""
    add(s, job, float(job), job)


@njit()
def _share_as_came(jobs: Jobs, how: int, s: State) -> None:
    """Give the first ones what they ask for."""
    hand_out(jobs, s, False, True)


@njit()
def _service(jobs: Jobs, s: State, job: int) -> float:
    """Return the remaining service (GPU-seconds) on the GPUs asked for."""
    return float(jobs.asked[job] * (s.left[job] * jobs.error[job]) / jobs.fastest[job])


@njit()
def _admit_by_service(jobs: Jobs, how: int, s: State, job: int) -> None:
    """Put a job in line, behind others of equal keys; the key of a waiting job stands still."""
    add(s, job, _service(jobs, s, job), job)


@njit()
def _share_by_service(jobs: Jobs, how: int, s: State) -> None:
    """Give those of least service left what they ask for; equal ones keep their order."""
    for job in s.holders[: s.tally[HOLDERS]]:
        s.real[KEY, job] = _service(jobs, s, job)
    sort_holders(s, False)
    hand_out(jobs, s, False, True)


@register("fifo-elastic")
@dataclass(frozen=True)
class FifoElastic(Elastic):
    """Earlier arrivals get all they ask for, the next one what is left (FIFO in PCS, 5.1)."""

    needs = frozenset({"duration"})
    foresees = True
    rule: ClassVar[Any] = ruled(_admit_last, leave, _share_as_came, REAL, WHOLE)


@register("srsf-elastic")
@dataclass(frozen=True)
class SrsfElastic(Elastic):
    """Smallest GPUs asked for times remaining time on them (called Tiresias in PCS, 5.1)."""

    needs = frozenset({"duration"})
    rule: ClassVar[Any] = ruled(
        _admit_by_service, leave, _share_by_service, REAL, WHOLE, by_arrival=False
    )
