"""Jobs that share GPUs up to a limit of their utilisation, at speeds measured for pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from repro.core.decision import Run, RunSet
from repro.core.grouped import Grouped
from repro.core.jobs import JobTable
from repro.core.records import Nodes
from repro.core.view import View

#: (model, model beside it on the GPU): speed of the first over its speed alone.
Kept = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class MeasuredPairs:
    """Performance model of one or two jobs on a GPU, from measured pairs; alone at full speed."""

    kept: Kept

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Return the speed of each member relative to running alone."""
        if len(run.jobs) == 1:
            return [1.0]
        one, other = (str(table.models[job]) for job in run.jobs)
        return [self.kept[one, other], self.kept[other, one]]


@dataclass(frozen=True)
class Overcommit(Grouped):
    """First in, first out, on idle GPUs first, then beside one job if utilisations stay in a limit.

    ``limit`` bounds the sum of the two jobs' utilisation (trace column ``gpu_util``, 0 to 1); of
    several places that with the least sum is taken. Only pairs that were measured share; nobody is
    moved. One-GPU jobs. Liquid, section 6.2; the artifact's ``ShareMaxUtilization`` is 1.3.
    """

    kept: Kept
    limit: float = 1.3
    needs: ClassVar[frozenset[str]] = frozenset({"gpu_util", "model"})

    def performance(self) -> MeasuredPairs:
        """Return the speeds of pairs."""
        return MeasuredPairs(self.kept)

    def session(self, view: View) -> Callable[[View], RunSet]:
        """Return the function that decides one run."""
        use, models = view.column("gpu_util"), view.column("model")
        held: list[list[int]] = []

        def decide(view: View) -> RunSet:
            held[:] = [left for gpu in held if (left := list(filter(view.is_unfinished, gpu)))]
            placed = {job for gpu in held for job in gpu}
            for job in view.jobs:
                if job in placed:
                    continue
                if len(held) < view.gpu_counts.sum():
                    held.append([job])
                    continue
                sums = [
                    (use[gpu[0]] + use[job], place)
                    for place, gpu in enumerate(held)
                    if len(gpu) == 1 and (models[gpu[0]], models[job]) in self.kept
                ]
                if sums and min(sums)[0] <= self.limit:
                    held[min(sums)[1]].append(job)
            return RunSet([Run(tuple(gpu), 1) for gpu in held])

        return decide


def kept_speeds(pairs: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Return `Kept` of rows of ``traces/measured/colocated.csv`` of one mode, at most 1."""
    names = ("job_a", "job_b", "norm_a", "norm_b")
    rows = list(zip(*(pairs[name] for name in names), strict=True))
    kept = {(a, b): min(1.0, speed) for a, b, speed, _ in rows}
    return kept | {(b, a): min(1.0, speed) for a, b, _, speed in rows}
