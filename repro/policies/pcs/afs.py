"""AFS-L: each GPU to the job whose short-term gain pays most (Hwang et al., NSDI 2021)."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from repro.base.compiled import njit
from repro.base.typing import Floats
from repro.engine.elastic import ruled
from repro.model.elastic import HOLDERS, PRESENT, Elastic, ElasticState, Jobs, give, speed
from repro.model.policy import register
from repro.policies.pcs.in_order import (
    Line,
    add,
    first,
    hand_out,
    leave,
    line_of,
    sort_holders,
)

#: Seconds added to a remaining time before it is divided by, as in PCS's artifact.
_EPSILON_S = 1e-7


class Memory(NamedTuple):
    """Own memory by job, besides that of `repro.policies.pcs.in_order.Line`."""

    #: GPUs so far, and the time left with them (s)
    gpus: Floats
    time: Floats
    #: gain of one GPU more, relative to the inverse time without it, and with it
    gain: Floats
    gain_after: Floats


@njit(inline="always")
def memory(s: ElasticState) -> Memory:
    """Own memory in a state; row 0 is the key of `repro.policies.pcs.in_order.Line`."""
    return Memory(
        gpus=s.real[1],
        time=s.real[2],
        gain=s.real[3],
        gain_after=s.real[4],
    )


@njit()
def _inverse_time(jobs: Jobs, job: int, work: float, gpus: float) -> float:
    """Inverse of the time that work takes on so many GPUs (1/s), in which close times are equal."""
    return float(1.0 / (work / speed(jobs, job, gpus) + _EPSILON_S))


@njit()
def _admit(jobs: Jobs, how: int, s: ElasticState, job: int) -> None:
    """Put a job in line: the shortest on one GPU first, the later of equals."""
    work = s.left[job] * jobs.error[job]
    add(s, job, -_inverse_time(jobs, job, work, 1.0), -job)


@njit()
def _gains(jobs: Jobs, job: int, work: float, gpus: float) -> tuple[float, float, float]:
    """Time that work takes on so many GPUs (s); relative gains from one more, see `Memory`."""
    now = _inverse_time(jobs, job, work, gpus)
    then = _inverse_time(jobs, job, work, gpus + 1.0)
    return work / speed(jobs, job, gpus), (then - now) / now, (then - now) / then


@njit()
def _share(jobs: Jobs, how: int, s: ElasticState) -> None:
    """Give a GPU to each of the shortest jobs; with GPUs to spare, hand them out one by one.

    A job without a GPU always comes before a second GPU of another, so that with as many jobs as
    GPUs or more the second part falls away. There jobs are compared in order of arrival, the one
    preferred so far with the next: the shorter one is preferred if its relative gain is larger than
    what the longer one's is relative to its larger inverse time.
    """
    line = line_of(s)
    for job in s.holders[: s.tally[HOLDERS]]:
        line.key[job] = -_inverse_time(jobs, job, s.left[job] * jobs.error[job], 1.0)
    present = s.tally[PRESENT]
    if present >= jobs.gpus:
        sort_holders(s, True)
        hand_out(jobs, s, True, False)
        return
    while line.waiting[0] > 0:
        s.holders[s.tally[HOLDERS]] = first(s)
        s.tally[HOLDERS] += 1
    _by_arrival(s)
    held = s.holders[:present]
    own = memory(s)
    time = own.time
    gain = own.gain
    after = own.gain_after
    gpus = own.gpus
    wanting = 0
    for job in held:
        gpus[job] = 1.0
        work = s.left[job] * jobs.error[job]
        time[job], gain[job], after[job] = _gains(jobs, job, work, 1.0)
        wanting += jobs.asked[job] > 1
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
        gpus[best] += 1.0
        work = s.left[best] * jobs.error[best]
        time[best], gain[best], after[best] = _gains(jobs, best, work, gpus[best])
        wanting -= gpus[best] == jobs.asked[best]
    for job in held:
        # a GPU more than a job asks for, won where all gains are 0 or less, is of no use
        give(jobs, s, job, min(gpus[job], float(jobs.asked[job])))


@njit()
def _by_arrival(s: ElasticState) -> None:
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
    rule: ClassVar[Any] = ruled(_admit, leave, _share, Line, Memory)
