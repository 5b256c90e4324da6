"""Jobs that take turns on several resources: interleaving time and grouping efficiency (Muri)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro.errors import ParamError, TraceError
from repro.sim.decision import Run
from repro.sim.jobs import JobTable
from repro.sim.records import Nodes

Stages = tuple[float, ...]
Ordering = Literal["best", "worst"]

#: Trace columns in the order in which an iteration passes through the resources.
STAGE_COLUMNS = ("stage_storage", "stage_cpu", "stage_gpu", "stage_network")


def interleaving_time(members: Sequence[Stages], ordering: Ordering = "best") -> float:
    """Return the period T in which every member completes one iteration.

    Each member starts one or more stages after the next, with a barrier after every step, so that
    no two members use one resource at once.

    Parameters
    ----------
    members : sequence of tuple of float
        Time on each of k resources per iteration (s), one tuple per job; at most k jobs.
    ordering : {"best", "worst"}
        Which of all assignments of jobs to offsets counts: the shortest or the longest.

    Returns
    -------
    float
        T (s); for one job the sum of its stages.

    Raises
    ------
    ParamError
        No member, more members than resources, unequal or negative stages.

    References
    ----------
    Muri, SIGCOMM 2022, Eq 1 and 3.

    Examples
    --------
    >>> interleaving_time([(2, 1), (1, 2)]), interleaving_time([(2, 1), (2, 1)])
    (3.0, 4.0)
    """
    return _period(*_checked(members), ordering)


def efficiency(members: Sequence[Stages], ordering: Ordering = "best") -> float:
    """Return the grouping efficiency gamma: the mean busy share of the k resources.

    Parameters
    ----------
    members, ordering
        As for `interleaving_time`.

    Returns
    -------
    float
        Between 0 and 1.

    References
    ----------
    Muri, SIGCOMM 2022, Eq 2 and 4.

    Examples
    --------
    >>> efficiency([(2, 1), (1, 2)]), efficiency([(2, 1), (2, 1)])
    (1.0, 0.75)
    """
    group, resources = _checked(members)
    period = _period(group, resources, ordering)
    return sum(map(sum, group)) / (resources * period)


def pair_efficiencies(members: Sequence[Stages]) -> npt.NDArray[np.float64]:
    """Return gamma of every pair, the weights of Muri's matching; 0 on the diagonal.

    Parameters
    ----------
    members : sequence of tuple of float
        Stage times of each job (s).

    Examples
    --------
    >>> pair_efficiencies([(2, 1), (1, 2), (2, 1)])[0].tolist()
    [0.0, 1.0, 0.75]
    """
    gamma = np.zeros((len(members), len(members)))
    for i, j in itertools.combinations(range(len(members)), 2):
        gamma[i, j] = gamma[j, i] = efficiency((members[i], members[j]))
    return gamma


def _checked(members: Sequence[Stages]) -> tuple[tuple[Stages, ...], int]:
    """Return members in sorted order, so that equal groups share one cache entry, and k."""
    group = tuple(sorted(tuple(map(float, stages)) for stages in members))
    resources = len(group[0]) if group else 0
    if not 1 <= len(group) <= resources or any(len(stages) != resources for stages in group):
        raise ParamError(
            f"a group of {len(group)} jobs with stages {list(members)}; give 1 to k jobs with the "
            f"times of the same k resources each"
        )
    if any(not 0 <= time < float("inf") for stages in group for time in stages):
        raise ParamError(f"stage times {list(members)}: each is 0 s or more")
    if any(sum(stages) == 0 for stages in group):
        raise ParamError(f"stage times {list(members)}: a job uses no resource at all")
    return group, resources


@lru_cache(maxsize=100_000)
def _period(group: tuple[Stages, ...], resources: int, ordering: Ordering) -> float:
    steps = range(resources)
    periods = []
    # Rotating all offsets together changes nothing, so the first member stays at offset 0.
    for others in itertools.permutations(steps[1:], len(group) - 1):
        offsets = (0, *others)
        busy = ([stages[(step + o) % resources] for stages, o in zip(group, offsets, strict=True)]
                for step in steps)  # fmt: skip
        periods.append(sum(map(max, busy)))
    return min(periods) if ordering == "best" else max(periods)


@dataclass(frozen=True)
class Interleaving:
    """Performance model of grouped jobs: every member completes one iteration per period T.

    Parameters
    ----------
    columns : tuple of str
        Trace columns of the stage times (s per iteration), in order; at least as many as the
        largest group has jobs.
    ordering : {"best", "worst"}
        Which order of the members is run.
    factors : tuple of float
        Measured period over T for groups of 2, 3, … jobs; 1 beyond the end.

    Examples
    --------
    >>> Interleaving(("stage_cpu", "stage_gpu"))
    Interleaving(columns=('stage_cpu', 'stage_gpu'), ordering='best', factors=())
    """

    columns: tuple[str, ...] = STAGE_COLUMNS
    ordering: Ordering = "best"
    factors: tuple[float, ...] = ()

    def pair_efficiencies(self, trace: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Return gamma of every pair of jobs of a trace; see `pair_efficiencies`."""
        rows = trace[list(self.columns)].to_numpy(float).tolist()
        return pair_efficiencies([tuple(row) for row in rows])

    def stages(self, table: JobTable, job: int) -> Stages:
        """Return the stage times of a job (s)."""
        missing = [name for name in self.columns if name not in table.frame]
        if missing:
            raise TraceError(
                f"the trace has no column {missing[0]!r}; grouped jobs need the stage times "
                f"{', '.join(self.columns)} in seconds per iteration"
            )
        return tuple(float(table.frame[name].to_numpy()[job]) for name in self.columns)

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Return solo iteration time over period for every member; 1 for a job alone."""
        scale = [run.gpus / table.gpus[job] for job in run.jobs]
        if len(run.jobs) == 1:
            return scale
        group = [self.stages(table, job) for job in run.jobs]
        factor = dict(enumerate(self.factors, start=2)).get(len(group), 1.0)
        period = interleaving_time(group, self.ordering) * factor
        # A job whose stages overlap inside one iteration says how long that takes alone.
        if "iteration_time" in table.frame:
            times = table.frame["iteration_time"].to_numpy()
            alone = [float(times[job]) for job in run.jobs]
        else:
            alone = [sum(stages) for stages in group]
        return [part * solo / period for part, solo in zip(scale, alone, strict=True)]
