"""How fast the members of a group run: one iteration each per period T (Muri)."""

import itertools
import math
from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from repro.core.decision import Run
from repro.core.jobs import JobTable
from repro.core.records import Nodes
from repro.errors import TraceError
from repro.perf.stages import StageOrder, Stages, efficiency, interleaving_time
from repro.typing import Floats

#: Trace columns in the order in which an iteration passes through the resources.
STAGE_COLUMNS = ("stage_storage", "stage_cpu", "stage_gpu", "stage_network")
#: The same where storage and CPU were measured together, as ``stage_storage``.
MERGED_COLUMNS = ("stage_storage", "stage_gpu", "stage_network")


def stage_columns(present: Container[str], source: str = "the trace") -> tuple[str, ...]:
    """Return the stage columns of a trace: four, or three if storage and CPU are one."""
    columns = STAGE_COLUMNS if "stage_cpu" in present else MERGED_COLUMNS
    if missing := [name for name in columns if name not in present]:
        raise TraceError(
            f"{source}: no column {missing[0]!r}; grouped jobs need their stage times in seconds "
            f"per iteration: {', '.join(STAGE_COLUMNS)} (stage_cpu may be part of stage_storage)"
        )
    return columns


@dataclass(frozen=True)
class Interleaving:
    """Performance model of grouped jobs: every member completes one iteration per period T.

    Parameters
    ----------
    columns : tuple of str, optional
        Trace columns of the stage times (s per iteration), in order; at least as many as the
        largest group has jobs. None: storage, CPU, GPU, network, or storage with CPU in one.
    ordering : {"best", "worst"}
        Which order of the members is run.
    factors : tuple of float
        Measured period over T for groups of 2, 3, … jobs; 1 beyond the end.

    References
    ----------
    Muri, SIGCOMM 2022, Eq 3; the factors are its public simulator's.

    Examples
    --------
    >>> Interleaving(factors=(1.5,)).period([(2, 1), (1, 2)])
    4.5
    """

    columns: tuple[str, ...] | None = None
    ordering: StageOrder = "best"
    factors: tuple[float, ...] = ()

    def period(self, members: Sequence[Stages], merged: bool = False) -> float:
        """Return the seconds of one iteration of every member; ``merged``: CPU within storage."""
        number = len(members) - 2
        factor = self.factors[number] if 0 <= number < len(self.factors) else 1.0
        return interleaving_time(members, self.ordering, merged=merged) * factor

    def pair_efficiencies(self, trace: pd.DataFrame) -> Floats:
        """Return gamma of every pair of jobs of a trace, shape (jobs, jobs); 0 on the diagonal."""
        columns = self.columns or stage_columns(trace.columns)
        jobs = [tuple(row) for row in trace[list(columns)].to_numpy(float).tolist()]
        gamma = np.zeros((len(jobs), len(jobs)))
        for i, j in itertools.combinations(range(len(jobs)), 2):
            gamma[i, j] = gamma[j, i] = efficiency((jobs[i], jobs[j]))
        return gamma

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Return solo iteration time over period for every member; 1 for a job alone."""
        scale = [run.gpus / table.gpus[job] for job in run.jobs]
        if len(run.jobs) == 1:
            return scale
        group, period = self._group(table, run)
        rates = []
        for job, part, stages in zip(run.jobs, scale, group, strict=True):
            # a job whose stages overlap inside one iteration says how long that takes alone
            alone = table.iteration_s(job)
            rates.append(part * (sum(stages) if math.isnan(alone) else alone) / period)
        return rates

    def paces(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Return the period for every member of a group whose work counts iterations."""
        if len(run.jobs) == 1 or not table.counts_iterations:
            rates = self.rates(table, run, nodes)
            return [table.solo[job] / rate for job, rate in zip(run.jobs, rates, strict=True)]
        return [self._group(table, run)[1]] * len(run.jobs)

    def _group(self, table: JobTable, run: Run) -> tuple[list[Stages], float]:
        """Return the stage times of the members and their period (s)."""
        columns, stages = table.derived(f"stages {self.columns}", lambda: self._stages(table))
        group = [stages[job] for job in run.jobs]
        return group, self.period(group, columns == MERGED_COLUMNS)

    def _stages(self, table: JobTable) -> tuple[tuple[str, ...], list[Stages]]:
        """Return the columns and the stage times of every job."""
        columns = self.columns or stage_columns(table.frame.columns)
        if missing := [name for name in columns if name not in table.frame]:
            raise TraceError(
                f"the trace has no column {missing[0]!r}; grouped jobs need the stage times "
                f"{', '.join(columns)} in seconds per iteration"
            )
        return columns, list(zip(*map(table.column, columns), strict=True))
