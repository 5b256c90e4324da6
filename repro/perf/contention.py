"""Jobs that share GPUs without taking turns: a stage is slower while others use its resource."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar

import numpy as np

from repro.base.errors import ParamError
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.records import Nodes
from repro.perf.stages import STAGE_COLUMNS, Stages, stage_columns

#: Weight of the new times in a step of the fixed point.
_DAMPING = 0.5
#: Relative change of the times below which the fixed point ends, and the most steps.
_STOP = 1e-10
_STEPS = 10_000


@dataclass(frozen=True)
class Contention:
    """Performance model of jobs side by side on the same GPUs, without locks or an order.

    Let t[i, r] be the time of job i on resource r alone, and d[i, r] its time in the group (s per
    iteration). The times in the group solve d[i, r] = t[i, r] (1 + f[r] sum over the other jobs j
    of q[j, r]). Here q[j, r] = d[j, r] / sum over s of d[j, s] is the share of its time that job j
    spends on r. The rate of job i is sum of t[i] / sum of d[i].

    With factor f = 0 the jobs never meet on the resource. With f = 1 they share it evenly while
    they meet, as in processor sharing.

    In its methods, ``table`` has the jobs of the trace, ``run`` is the gang, and ``nodes`` are its
    nodes, which play no role.

    Parameters
    ----------
    factors : tuple of float
        Factor f of each resource, in the order of the stage columns of the trace: storage, CPU,
        GPU, network, or data (storage and CPU), GPU, network.

    Raises
    ------
    ParamError
        If a factor is negative or not finite.

    Examples
    --------
    >>> evenly_shared_gpu = Contention((0.0, 0.0, 1.0, 0.0))
    >>> evenly_shared_gpu.rates_of([(0, 0, 2, 0), (0, 2, 0, 0)])
    (1.0, 1.0)
    >>> [round(rate, 6) for rate in evenly_shared_gpu.rates_of([(0, 0, 2, 0), (0, 0, 2, 0)])]
    [0.5, 0.5]
    """

    factors: tuple[float, ...]

    #: rates are the same on any nodes
    reads_nodes: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not all(0 <= factor < math.inf for factor in self.factors):
            raise ParamError(f"contention: factors are {self.factors}; give numbers of 0 or more")

    def rates_of(self, members: Sequence[Stages]) -> tuple[float, ...]:
        """Rate of each member relative to running alone, from its stage times (s)."""
        for stages in members:
            if len(stages) != len(self.factors):
                raise ParamError(
                    f"contention has {len(self.factors)} factors, and a job has {len(stages)} "
                    "stages; give one factor per stage"
                )
        # Sorted, so that the orders of one group share a cache entry.
        order = sorted(range(len(members)), key=lambda member: members[member])
        rates = _rates(tuple(members[member] for member in order), self.factors)
        rate_of = dict(zip(order, rates, strict=True))
        return tuple(rate_of[member] for member in range(len(members)))

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Rate of every member, times GPUs held over demand."""
        gpu_ratios = [run.gpus / table.gpus[job] for job in run.jobs]
        if len(run.jobs) == 1:
            return gpu_ratios
        stages: list[Stages] = table.derived("stages of contention", partial(_stages, table))
        rates = self.rates_of([stages[job] for job in run.jobs])
        return [ratio * rate for ratio, rate in zip(gpu_ratios, rates, strict=True)]


def _stages(table: JobTable) -> list[Stages]:
    """Stage times (s) of each job of a table."""
    columns = stage_columns(list(filter(table.has, STAGE_COLUMNS)))
    return list(zip(*map(table.column, columns), strict=True))


@lru_cache(maxsize=200_000)
def _rates(members: tuple[Stages, ...], factors: tuple[float, ...]) -> tuple[float, ...]:
    """Rates of the members of a group, by damped steps to the fixed point.

    The steps begin at the times of jobs that run alone.
    """
    alone = np.array(members, dtype=float)
    together = alone
    for _ in range(_STEPS):
        shares = together / together.sum(axis=1, keepdims=True)
        target = alone * (1 + np.array(factors) * (shares.sum(axis=0) - shares))
        step = _DAMPING * (target - together)
        together = together + step
        if np.abs(step).max() <= _STOP * together.max():
            break
    rates = alone.sum(axis=1) / together.sum(axis=1)
    return tuple(rates.tolist())
