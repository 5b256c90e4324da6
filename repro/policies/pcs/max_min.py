"""Equal shares of GPUs, fractions allowed (PCS, section 5.1); on one GPU processor sharing."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Ints
from repro.engine.elastic import ruled
from repro.model.elastic import HOLDERS, NOW, PRESENT, Elastic, Jobs, State, give, pop, push
from repro.model.policy import register

#: Rows of own memory. Of jobs: what its kind will have done per job when it ends; a heap by that
#: for each kind, one after the other. Of kinds: done so far per job, speed; number of jobs.
_GOAL, _DONE, _SPEED = range(3)
_HEAP, _NUMBER, _ROW = range(3)
#: Entries of `State.real[_SEEN]`.
_SEEN = 3


class Kinds(NamedTuple):
    """Where the heap of each kind begins, and whether every job is a kind of its own."""

    start: Ints
    alone: bool


@njit()
def _catch_up(jobs: Jobs, how: Kinds, s: State) -> None:
    """Let every kind work up to now."""
    seconds = (s.clock[NOW] - s.real[_SEEN, 0]) / jobs.per_second
    if seconds > 0.0:
        for kind in range(len(how.start) - 1):
            s.real[_DONE, kind] += s.real[_SPEED, kind] * seconds
        s.real[_SEEN, 0] = s.clock[NOW]


@njit()
def _admit(jobs: Jobs, how: Kinds, s: State, job: int) -> None:
    """Add a job to its kind."""
    _catch_up(jobs, how, s)
    kind = jobs.group[job]
    s.real[_GOAL, job] = s.real[_DONE, kind] + s.left[job]
    s.whole[_ROW, job] = job
    push(s.whole[_HEAP], s.real[_GOAL], s.whole[_ROW], how.start[kind], s.whole[_NUMBER, kind], job)
    s.whole[_NUMBER, kind] += 1


@njit()
def _retire(jobs: Jobs, how: Kinds, s: State, job: int) -> None:
    """Take the first job of its kind out."""
    _catch_up(jobs, how, s)
    kind = jobs.group[job]
    pop(s.whole[_HEAP], s.real[_GOAL], s.whole[_ROW], how.start[kind], s.whole[_NUMBER, kind])
    s.whole[_NUMBER, kind] -= 1


@njit()
def _share(jobs: Jobs, how: Kinds, s: State) -> None:
    """Fill up from the smallest demand: each takes at most an equal part of what is left.

    Jobs of a kind, of one demand and one speed-up curve, do equal work, so that the one that ends
    first is known; it alone is listed among those who hold GPUs.
    """
    _catch_up(jobs, how, s)
    left = float(jobs.gpus)
    waiting = s.tally[PRESENT]
    count = 0
    for kind in range(len(how.start) - 1):
        number = s.whole[_NUMBER, kind]
        if number == 0:
            continue
        job = s.whole[_HEAP, how.start[kind]]
        gpus = min(float(jobs.asked[job]), left / waiting)
        give(jobs, s, job, gpus)
        s.real[_SPEED, kind] = s.rate[job]
        if not how.alone:
            s.left[job] = s.real[_GOAL, job] - s.real[_DONE, kind]
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
    rule: ClassVar[Any] = ruled(_admit, _retire, _share, 4, 3)

    def groups(self, jobs: Jobs, *, alone: bool) -> tuple[Ints, int]:
        """Return the kind of every job, in order of the GPUs asked for, and how many there are."""
        row = np.arange(len(jobs.work)) if alone else jobs.curve
        pairs = np.column_stack([jobs.asked, row])
        kinds, kind = np.unique(pairs, axis=0, return_inverse=True)
        return kind.ravel(), len(kinds)

    def settings(self, jobs: Jobs) -> Any:
        """Return the kinds."""
        sizes = np.bincount(jobs.group)
        return Kinds(np.append(0, np.cumsum(sizes)), bool(sizes.max() == 1))
