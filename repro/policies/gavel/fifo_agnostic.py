"""Heterogeneity-agnostic first in, first out: a GPU type at random (Gavel, section 4.2).

This rule solves no programme. In order of arrival, X_mj = 1 on a random type j with at least
scale_factor_m idle GPUs, until job m ends. The first job for which no type has enough idle GPUs
blocks all jobs behind it.

The rule of the public simulator (``assign="last"``) keeps a list of the GPU types with idle GPUs:

- A job gets the last type of the list that has as many GPUs as its gang, idle or not. Gangs that
  do not fit together take turns. Here the public simulator itself differs: it may also give a job
  a type with fewer GPUs, on which the job never runs.
- If the gang takes exactly the idle GPUs of this type, a random type that fits the gang leaves the
  list.
- A job that cannot run on the last type waits, and the next job is considered.
- When a job ends, its type is offered to the head of the queue. The head takes the type if it can
  run there and fits next to the older jobs.

Ties: order of arrival, then order in the trace. The seed of the run and ``stream`` decide the
random types.
"""

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from repro.base.typing import Floats
from repro.model.decision import Shares
from repro.model.policy import register
from repro.model.typed_shares import Kinds
from repro.model.view import View
from repro.policies.gavel._single_type import FifoShares, full_time_shares


@register("fifo-agnostic")
@dataclass(frozen=True)
class FifoAgnostic(FifoShares):
    """Jobs in order of arrival, each on one random GPU type until it ends.

    The first job for which no type has enough idle GPUs blocks all jobs behind it.

    Parameters
    ----------
    assign : {"drawn", "last"}, optional
        ``drawn``: a random type that has enough idle GPUs and on which the job can run. A job
        without such a type blocks all jobs behind it. ``last``: the rule of the public simulator.
        Default: ``drawn`` under the paper's rules, ``last`` under Gavel's.
    stream : int
        Number of the random stream; other streams give other types on the same trace. 0 is the
        stream of the public simulator.

    Reference: Gavel, OSDI 2020, section 4.2 (FIFO).
    """

    assign: Literal["drawn", "last"] | None = None
    stream: int = 0

    tells_types = False
    rule_values: ClassVar = {"paper": {"assign": "drawn"}, "gavel": {"assign": "last"}}

    def formula(self, view: View) -> Callable[[Kinds], Floats]:
        """Allocation X as a function of the jobs, which keeps the GPU type of each job."""
        random_types = RandomTypes(view.seed + self.stream, last=self.assign == "last")
        return lambda jobs: full_time_shares(jobs, random_types.update(jobs))

    def session(self, view: View) -> Callable[[View], Shares]:
        """Decision function of one simulation; under ``last`` shares may exceed the GPUs."""
        decide = super().session(view)
        if self.assign != "last":
            return decide
        return lambda view: replace(decide(view), overcommitted=True)


class RandomTypes:
    """GPU types of the jobs in one simulation of `FifoAgnostic`.

    Parameters
    ----------
    seed : int
        Seed of the random types.
    last : bool
        Whether jobs take the last type with idle GPUs, as in the public simulator.
    """

    def __init__(self, seed: int, last: bool) -> None:
        self._rng = random.Random(seed)
        self._last = last
        #: job -> column of its GPU type and GPUs of the job
        self._assigned: dict[int, tuple[int, float]] = {}

    def update(self, jobs: Kinds) -> dict[int, int]:
        """Assign types from the head of the queue on, and map rows of assigned jobs to columns."""
        assigned = self._assigned
        unfinished = set(jobs.jobs)
        idle_gpus = jobs.gpus.tolist()
        queue = deque((row, job) for row, job in enumerate(jobs.jobs) if job not in assigned)
        # The type of a finished job is offered to the head of the queue. The public simulator has
        # counted only the older jobs by then. A head that does not fit stays at the head.
        for job in sorted(assigned):
            column, width = assigned[job]
            if job in unfinished:
                idle_gpus[column] -= width
                continue
            del assigned[job]
            if self._last and queue:
                row, head = queue[0]
                head_width = jobs.widths.item(row)
                if head_width <= idle_gpus[column] and jobs.speeds[row, column] > 0:
                    queue.popleft()
                    assigned[head] = column, head_width
                    idle_gpus[column] -= head_width
        self._admit(jobs, iter(queue), idle_gpus)
        return {row: assigned[job][0] for row, job in enumerate(jobs.jobs) if job in assigned}

    def _admit(self, jobs: Kinds, queue: Iterator[tuple[int, int]], idle_gpus: list[float]) -> None:
        """Assign types to (row, job) pairs of the queue until no type has enough idle GPUs."""
        columns = [column for column, gpus in enumerate(idle_gpus) if gpus > 0]
        for row, job in queue:
            width = jobs.widths.item(row)
            can_run = jobs.speeds[row] > 0
            fitting = [column for column in columns if idle_gpus[column] >= width]
            if not self._last:
                fitting = [column for column in fitting if can_run[column]]
            if not fitting:
                return
            random_column = fitting[self._rng.randrange(len(fitting))]
            column = random_column
            if self._last:
                # the list is not empty: a type with enough idle GPUs has enough GPUs
                large_enough = [other for other in columns if jobs.gpus.item(other) >= width]
                column = large_enough[-1]
            if not can_run[column]:
                continue
            self._assigned[job] = column, width
            idle_gpus[column] -= width
            if idle_gpus[column] == 0:
                # With `last` this random type need not be the type without an idle GPU.
                columns.remove(random_column)
