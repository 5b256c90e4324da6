"""Max-min fairness of GPUs, in fractions (PCS, section 5.1): processor sharing on one GPU.

With G GPUs and demands D_i, job i holds

    g_i = min(D_i, L),   the level L such that sum_i g_i = min(G, sum_i D_i).

The level is found by filling in order of ascending demand: L = R / n, with R GPUs and n jobs left,
at the first job with D_i > R / n.

Ties: none in GPUs, jobs of equal demand hold equally many. Of equal completions the earlier arrival
completes first.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Floats, Ints
from repro.engine.elastic import compiled_rule
from repro.model.elastic import (
    HOLDERS,
    NOW,
    PRESENT,
    Elastic,
    ElasticJobs,
    ElasticState,
    give,
    pop,
    push,
)
from repro.model.policy import register


class Memory(NamedTuple):
    """Memory of the policy: progress of every kind, and its jobs in a heap.

    Jobs of a kind have equal demand and speed-up, so that all of them do equal work.
    """

    #: by job: value of ``done`` of its kind at which the job completes (s on one GPU)
    goal: Floats
    #: by kind: sum of ``rate`` times seconds since the start of the run (s on one GPU)
    done: Floats
    #: by kind: work of each job per second
    rate: Floats
    #: entry 0: instant up to which ``done`` counts (ticks)
    counted_until: Floats
    #: heaps of the kinds, smallest goal on top, one kind after the other
    heap: Ints
    #: by kind: number of jobs present
    num_present: Ints
    #: by job: its row in the trace, the order among equal goals
    row: Ints


@njit(inline="always")
def memory_of(s: ElasticState) -> Memory:
    """Memory of a state."""
    return Memory(
        goal=s.memory_floats[0],
        done=s.memory_floats[1],
        rate=s.memory_floats[2],
        counted_until=s.memory_floats[3],
        heap=s.memory_ints[0],
        num_present=s.memory_ints[1],
        row=s.memory_ints[2],
    )


class Kinds(NamedTuple):
    """Kinds of jobs, in order of demand."""

    #: (kinds + 1,): first entry of each kind in `Memory.heap`, then the number of jobs
    start: Ints
    #: whether every job is a kind of its own
    single_jobs: bool


@njit(inline="always")
def _progress(jobs: ElasticJobs, kinds: Kinds, s: ElasticState, memory: Memory) -> None:
    """Bring the work of every kind up to the present time."""
    seconds = (s.clock[NOW] - memory.counted_until[0]) / jobs.ticks_per_second
    if seconds > 0.0:
        for kind in range(len(kinds.start) - 1):
            memory.done[kind] += memory.rate[kind] * seconds
        memory.counted_until[0] = s.clock[NOW]


@njit()
def _admit(jobs: ElasticJobs, kinds: Kinds, s: ElasticState, job: int) -> None:
    """Add a job to its kind."""
    memory = memory_of(s)
    _progress(jobs, kinds, s, memory)
    kind = jobs.group[job]
    memory.goal[job] = memory.done[kind] + s.work_left[job]
    memory.row[job] = job
    push(memory.heap, memory.goal, memory.row, kinds.start[kind], memory.num_present[kind], job)
    memory.num_present[kind] += 1


@njit()
def _retire(jobs: ElasticJobs, kinds: Kinds, s: ElasticState, job: int) -> None:
    """Remove the completed job, which is the first of its kind."""
    memory = memory_of(s)
    _progress(jobs, kinds, s, memory)
    kind = jobs.group[job]
    pop(memory.heap, memory.goal, memory.row, kinds.start[kind], memory.num_present[kind])
    memory.num_present[kind] -= 1


@njit()
def _share(jobs: ElasticJobs, kinds: Kinds, s: ElasticState) -> None:
    """Fill in order of ascending demand: each job gets at most an equal part of the GPUs left.

    The first job of a kind to complete represents the kind among the jobs that hold GPUs.
    """
    memory = memory_of(s)
    _progress(jobs, kinds, s, memory)
    free = float(jobs.gpus)
    unserved = s.tally[PRESENT]
    # L, once a job demands more than it. Computed again for each job, it would differ in the last
    # bit, and rounding would decide which of two equal jobs completes first.
    level = np.inf
    count = 0
    for kind in range(len(kinds.start) - 1):
        num_jobs = memory.num_present[kind]
        if num_jobs == 0:
            continue
        job = memory.heap[kinds.start[kind]]
        if level == np.inf and free / unserved < jobs.demand[job]:
            level = free / unserved
        gpus = min(float(jobs.demand[job]), level)
        give(jobs, s, job, gpus)
        memory.rate[kind] = s.rate[job]
        if not kinds.single_jobs:
            s.work_left[job] = memory.goal[job] - memory.done[kind]
        s.holders[count] = job
        count += 1
        free -= gpus * num_jobs
        unserved -= num_jobs
    s.tally[HOLDERS] = count


@register("max-min")
@dataclass(frozen=True)
class MaxMin(Elastic):
    """The same number of GPUs for every job, at most its demand (PCS, section 5.1)."""

    needs = frozenset({"duration"})
    reads_sizes = False
    divides_by_kind = True
    rule: ClassVar[Any] = compiled_rule(_admit, _retire, _share, Memory)

    def groups(self, jobs: ElasticJobs, *, alone: bool) -> tuple[Ints, int]:
        """Kind of every job, (jobs,), in order of demand, and the number of kinds.

        With ``alone`` every job is a kind of its own.
        """
        speed_up = np.arange(len(jobs.work)) if alone else jobs.curve
        pairs = np.column_stack([jobs.demand, speed_up])
        kinds, kind = np.unique(pairs, axis=0, return_inverse=True)
        return kind.ravel(), len(kinds)

    def settings(self, jobs: ElasticJobs) -> Any:
        """Kinds of the simulation."""
        sizes = np.bincount(jobs.group)
        return Kinds(np.append(0, np.cumsum(sizes)), bool(sizes.max() == 1))
