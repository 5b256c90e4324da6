"""Allocations that need no throughputs: an isolated part of the cluster, and an equal split.

- ``isolated``: X^isolated_mj = num_workers_j / (M scale_factor_m) for M jobs. A row whose sum
  exceeds 1 is divided by its sum. Gavel, section 4.2 (finish-time fairness).
- ``proportional``: X^equal_mj = num_workers_j / sum_j num_workers_j. All rows are divided by the
  same number if the GPUs do not suffice. Gavel, section 4.1.

Ties: both are closed forms. Jobs of equal demand have equal shares.
"""

from dataclasses import dataclass

import numpy as np

from repro.base.typing import Floats
from repro.model.policy import register
from repro.model.typed_shares import Kinds, TypedShares


@register("isolated")
@dataclass(frozen=True)
class Isolated(TypedShares):
    """Each of M jobs owns 1/M of the GPUs of every type, whatever its demand.

    The share of time is this part divided by the demand. Finish-time fairness compares other
    allocations with this one.

    Reference: Gavel, OSDI 2020, section 4.2 (isolated share).
    """

    tells_types = False

    def shares(self, kinds: Kinds) -> Floats:
        """X^isolated, shape (kinds, GPU types)."""
        return isolated_shares(kinds.widths, kinds.gpus, kinds.counts.sum())


@register("proportional")
@dataclass(frozen=True)
class Proportional(TypedShares):
    """Every job divides its time over the GPU types in proportion to their GPUs.

    All shares are scaled down by one factor if the GPUs do not suffice. Gavel divides the
    throughput of each job by its throughput under this split before it compares jobs.

    Reference: Gavel, OSDI 2020, section 4.1 (normalised throughput).
    """

    tells_types = False

    def shares(self, kinds: Kinds) -> Floats:
        """X^equal, scaled so that all gangs together fit the cluster; shape (kinds, GPU types)."""
        demand = float(kinds.counts @ kinds.widths)
        row = kinds.gpus / max(float(kinds.gpus.sum()), demand)
        return np.tile(row, (len(kinds.counts), 1))


def isolated_shares(widths: Floats, gpus: Floats, num_jobs: float | None = None) -> Floats:
    """X^isolated, shape (rows, GPU types); a row whose sum exceeds 1 is scaled down to 1.

    Parameters
    ----------
    widths : Floats
        GPUs of one job of each row.
    gpus : Floats
        GPUs of each type.
    num_jobs : float, optional
        Number of jobs that divide the cluster. Default: one per row.

    Examples
    --------
    Two jobs, of one and of two GPUs, on four GPUs of one type and two of another.

    >>> isolated_shares(np.array([1.0, 2.0]), np.array([4.0, 2.0])).round(2).tolist()
    [[0.67, 0.33], [0.67, 0.33]]
    """
    shares: Floats = gpus / ((num_jobs or len(widths)) * widths[:, None])
    shares /= np.maximum(1.0, shares.sum(axis=1, keepdims=True))
    return shares
