"""Gavel's first in, first out (Gavel, section 4.2).

The programme of the paper (``form="lp"``), for M jobs numbered from 0 in order of arrival:

    max_X sum_m (M - m) throughput(m, X) / throughput(m, X^fastest)

X^fastest gives a job all its time on its fastest GPU type.

The rule of the public simulator (``form="greedy"``): in order of arrival, X_mj = 1 on the fastest
type j with at least scale_factor_m idle GPUs. The first job for which no type has enough idle GPUs
blocks all jobs behind it.

Ties: order of arrival, then order in the trace. Among equally fast types, the first in alphabetical
order. Among the optima of the programme, the one whose smallest share of time is largest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from repro.base.typing import Floats
from repro.model.policy import register
from repro.model.typed_shares import Kinds
from repro.policies.gavel._single_type import FifoShares, full_time_shares
from repro.solve.linear import best_shares


@register("gavel-fifo")
@dataclass(frozen=True)
class GavelFifo(FifoShares):
    """Place all jobs at every decision: in order of arrival, on the fastest type with enough GPUs.

    Parameters
    ----------
    form : {"greedy", "lp"}
        ``greedy``: the rule of the public simulator. The first job for which no type has enough
        idle GPUs blocks all jobs behind it. A job whose throughput is 0 on every type with enough
        idle GPUs waits, and blocks no job.
        ``lp``: the programme of the paper, which may divide the time of a job between types.

    Reference: Gavel, OSDI 2020, section 4.2 (FIFO).
    """

    form: Literal["greedy", "lp"] = "greedy"

    def shares(self, kinds: Kinds) -> Floats | None:
        """Allocation X, shape (jobs, GPU types); every row is one job."""
        if self.form == "greedy":
            speeds = kinds.speeds.tolist()
            widths = kinds.widths.tolist()
            columns, _ = fastest_idle_types(speeds, widths, kinds.gpus)
            return full_time_shares(kinds, columns)
        weights = np.arange(len(kinds.counts), 0, -1.0)[:, None]
        fastest = np.maximum(kinds.speeds.max(axis=1, keepdims=True), 1e-300)
        values = weights * kinds.speeds / fastest
        return best_shares(values, kinds.counts, kinds.widths, kinds.gpus)


def fastest_idle_types(
    speeds: Iterable[Sequence[float]], widths: Iterable[float], gpus: Floats
) -> tuple[dict[int, int], int]:
    """Place jobs in order on the fastest GPU type with enough idle GPUs.

    The first job for which no type has enough idle GPUs ends the placement. A job whose throughput
    is 0 on every type with enough idle GPUs waits, and the next job is placed.

    Parameters
    ----------
    speeds : iterable of sequence of float
        Steps per second of each job on each GPU type; 0: the job cannot run there.
    widths : iterable of float
        GPUs of each job.
    gpus : Floats
        GPUs of each type.

    Returns
    -------
    dict
        Column of the GPU type of each placed job.
    int
        The job that ended the placement; the number of jobs if none did.

    Examples
    --------
    One GPU of each of two types, for three jobs of one GPU.

    >>> fastest_idle_types([[1.0, 8.0], [1.0, 8.0], [1.0, 8.0]], [1, 1, 1], np.ones(2))
    ({0: 1, 1: 0}, 2)
    """
    idle_gpus = gpus.tolist()
    columns: dict[int, int] = {}
    job = -1
    for job, (job_speeds, width) in enumerate(zip(speeds, widths, strict=True)):
        if width > max(idle_gpus):
            return columns, job
        for column in _fastest_first(tuple(job_speeds)):
            if idle_gpus[column] >= width:
                columns[job] = column
                idle_gpus[column] -= width
                break
    return columns, job + 1


@lru_cache(maxsize=4096)
def _fastest_first(speeds: tuple[float, ...]) -> tuple[int, ...]:
    """Columns of the GPU types on which a job can run, fastest first; equal speeds by column."""
    usable = [column for column, speed in enumerate(speeds) if speed > 0]
    return tuple(sorted(usable, key=lambda column: -speeds[column]))
