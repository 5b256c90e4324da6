"""Equal shares of GPUs, fractions allowed (PCS, section 5.1); on one GPU processor sharing."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Floats, Ints
from repro.engine.elastic import ruled
from repro.model.elastic import HOLDERS, NOW, PRESENT, Elastic, ElasticState, Jobs, give, pop, push
from repro.model.policy import register


class Memory(NamedTuple):
    """Own memory, by job or by kind of jobs."""

    #: by job: work per job that its kind will have done when it ends (s on one GPU)
    goal: Floats
    #: by kind: work done so far per job, and its rate
    done: Floats
    rate: Floats
    #: entry 0: the instant up to which ``done`` counts
    until: Floats
    #: heaps of the kinds by goal, one after the other; by kind: their sizes
    heap: Ints
    number: Ints
    #: by job: its row, which decides between equal goals
    row: Ints


@njit(inline="always")
def memory(s: ElasticState) -> Memory:
    """Own memory in a state."""
    return Memory(
        goal=s.real[0],
        done=s.real[1],
        rate=s.real[2],
        until=s.real[3],
        heap=s.whole[0],
        number=s.whole[1],
        row=s.whole[2],
    )


class Heaps(NamedTuple):
    """Where the heap of each kind begins, and whether every job is a kind of its own."""

    start: Ints
    alone: bool


@njit(inline="always")
def _catch_up(jobs: Jobs, how: Heaps, s: ElasticState, own: Memory) -> None:
    """Let every kind work up to now."""
    seconds = (s.clock[NOW] - own.until[0]) / jobs.per_second
    if seconds > 0.0:
        for kind in range(len(how.start) - 1):
            own.done[kind] += own.rate[kind] * seconds
        own.until[0] = s.clock[NOW]


@njit()
def _admit(jobs: Jobs, how: Heaps, s: ElasticState, job: int) -> None:
    """Add a job to its kind."""
    own = memory(s)
    _catch_up(jobs, how, s, own)
    kind = jobs.group[job]
    own.goal[job] = own.done[kind] + s.left[job]
    own.row[job] = job
    push(own.heap, own.goal, own.row, how.start[kind], own.number[kind], job)
    own.number[kind] += 1


@njit()
def _retire(jobs: Jobs, how: Heaps, s: ElasticState, job: int) -> None:
    """Take the first job of its kind out."""
    own = memory(s)
    _catch_up(jobs, how, s, own)
    kind = jobs.group[job]
    pop(own.heap, own.goal, own.row, how.start[kind], own.number[kind])
    own.number[kind] -= 1


@njit()
def _share(jobs: Jobs, how: Heaps, s: ElasticState) -> None:
    """Fill up from the smallest demand: each takes at most an equal part of what is left.

    Jobs of a kind, of one demand and one speed-up curve, do equal work, so that the one that ends
    first is known; it alone is listed among those who hold GPUs.
    """
    own = memory(s)
    _catch_up(jobs, how, s, own)
    left = float(jobs.gpus)
    waiting = s.tally[PRESENT]
    count = 0
    for kind in range(len(how.start) - 1):
        number = own.number[kind]
        if number == 0:
            continue
        job = own.heap[how.start[kind]]
        gpus = min(float(jobs.asked[job]), left / waiting)
        give(jobs, s, job, gpus)
        own.rate[kind] = s.rate[job]
        if not how.alone:
            s.left[job] = own.goal[job] - own.done[kind]
        s.holders[count] = job
        count += 1
        left -= gpus * number
        waiting -= number
    s.tally[HOLDERS] = count


@register("max-min")
@dataclass(frozen=True)
class MaxMin(Elastic):
    """Everyone gets the same number of GPUs, or what it asks for if that is less (PCS, 5.1)."""

    needs = frozenset({"duration"})
    rule: ClassVar[Any] = ruled(_admit, _retire, _share, Memory)

    def groups(self, jobs: Jobs, *, alone: bool) -> tuple[Ints, int]:
        """Return the kind of every job, in order of the GPUs asked for, and how many there are."""
        row = np.arange(len(jobs.work)) if alone else jobs.curve
        pairs = np.column_stack([jobs.asked, row])
        kinds, kind = np.unique(pairs, axis=0, return_inverse=True)
        return kind.ravel(), len(kinds)

    def settings(self, jobs: Jobs) -> Any:
        """Return the kinds."""
        sizes = np.bincount(jobs.group)
        return Heaps(np.append(0, np.cumsum(sizes)), bool(sizes.max() == 1))
