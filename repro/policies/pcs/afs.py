"""AFS-L: each GPU to the job whose short-term gain pays most (Hwang et al., NSDI 2021)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from repro.base.compiled import njit
from repro.engine.elastic import ruled
from repro.model.elastic import HOLDERS, PRESENT, Elastic, Jobs, State, give, speed
from repro.model.policy import register
from repro.policies.pcs.in_order import (
    KEY,
    NUMBERS,
    REAL,
    WAITING,
    WHOLE,
    add,
    first,
    hand_out,
    leave,
    sort_holders,
)

#: Seconds added to a remaining time before it is divided by, as in PCS's artifact.
_EPSILON_S = 1e-7
#: Rows of own memory: time left with the GPUs a job has so far; gain of one more, relative to its
#: inverse now and then; GPUs so far.
_TIME, _GAIN, _GAIN_AFTER, _GPUS = range(REAL, REAL + 4)


@njit()
def _inverse_time(jobs: Jobs, s: State, job: int, gpus: float) -> float:
    """Inverse of the remaining time on so many GPUs (1/s), in which close times are equal."""
    work = s.left[job] * jobs.error[job]
    return float(1.0 / (work / speed(jobs, job, gpus) + _EPSILON_S))


@njit()
def _admit(jobs: Jobs, how: int, s: State, job: int) -> None:
    """Put a job in line: the shortest on one GPU first, the later of equals."""
    add(s, job, -_inverse_time(jobs, s, job, 1.0), -job)


@njit()
def _try(jobs: Jobs, s: State, job: int, gpus: int) -> None:
    """Note what a job gains from one GPU more than so many."""
    work = s.left[job] * jobs.error[job]
    s.real[_GPUS, job] = gpus
    s.real[_TIME, job] = work / speed(jobs, job, gpus)
    now = _inverse_time(jobs, s, job, gpus)
    then = _inverse_time(jobs, s, job, gpus + 1.0)
    s.real[_GAIN, job] = (then - now) / now
    s.real[_GAIN_AFTER, job] = (then - now) / then


@njit()
def _share(jobs: Jobs, how: int, s: State) -> None:
    """Give a GPU to each of the shortest jobs; with GPUs to spare, hand them out one by one.

    A job without a GPU always comes before a second GPU of another, so that with as many jobs as
    GPUs or more the second part falls away. There jobs are compared in order of arrival, the one
    preferred so far with the next: the shorter one is preferred if its relative gain is larger than
    what the longer one's is relative to its larger inverse time.
    """
    for job in s.holders[: s.tally[HOLDERS]]:
        s.real[KEY, job] = -_inverse_time(jobs, s, job, 1.0)
    present = s.tally[PRESENT]
    if present >= jobs.gpus:
        sort_holders(s, True)
        hand_out(jobs, s, True, False)
        return
    while s.whole[NUMBERS, WAITING] > 0:
        s.holders[s.tally[HOLDERS]] = first(s)
        s.tally[HOLDERS] += 1
    _by_arrival(s)
    held = s.holders[:present]
    wanting = 0
    for job in held:
        _try(jobs, s, job, 1)
        wanting += jobs.asked[job] > 1
    time = s.real[_TIME]
    gain = s.real[_GAIN]
    after = s.real[_GAIN_AFTER]
    gpus = s.real[_GPUS]
    for _ in range(jobs.gpus - present):
        if wanting == 0:
            break
        best = held[0]
        for job in held[1:]:
            if time[job] < time[best]:
                if gain[job] > after[best]:
                    best = job
            elif not gain[best] > after[job]:
                best = job
        _try(jobs, s, best, int(gpus[best]) + 1)
        wanting -= gpus[best] == jobs.asked[best]
    for job in held:
        # a GPU more than a job asks for, won where all gains are 0 or less, is of no use
        give(jobs, s, job, min(gpus[job], float(jobs.asked[job])))


@njit()
def _by_arrival(s: State) -> None:
    """Sort those who hold GPUs by arrival."""
    held = s.holders
    for place in range(1, s.tally[HOLDERS]):
        job = held[place]
        to = place
        while to > 0 and held[to - 1] > job:
            held[to] = held[to - 1]
            to -= 1
        held[to] = job


@register("afs")
@dataclass(frozen=True)
class Afs(Elastic):
    """Each GPU in turn to the job that gains most from it (AFS-L, as PCS runs it, 5.1)."""

    needs = frozenset({"duration"})
    rule: ClassVar[Any] = ruled(_admit, leave, _share, REAL + 4, WHOLE)
