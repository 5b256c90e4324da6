"""Shares that buy the most steps for the money."""

from __future__ import annotations

from typing import Literal

import numpy as np

from repro.core.typed_shares import Kinds
from repro.optimise.linear import best_shares
from repro.typing import Floats

Objective = Literal["ratio", "normalised"]

#: GPUs of a type below which none count as left over.
LEFT = 1e-4


def cheapest(
    objective: Objective, kinds: Kinds, prices: Floats, floors: Floats | None = None
) -> Floats | None:
    """Return the shares that buy the most steps; None if the floors cannot be met.

    ``objective`` as for `GavelMinCost`, ``prices`` in USD per hour of a GPU of each type,
    ``floors`` the least steps per second of each job.

    >>> one = np.ones(2)
    >>> kinds = Kinds(np.array([[2.0, 4.0], [1.0, 9.0]]), one, one, one, one)
    >>> cheapest("ratio", kinds, np.array([1.0, 3.0])).round(6).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    speeds, sizes = kinds.speeds, (kinds.counts, kinds.widths, kinds.gpus)
    if objective == "normalised":
        return best_shares(speeds / prices, *sizes, speeds=speeds, floors=floors)
    cost = kinds.widths[:, None] * prices
    shares: Floats | None = np.zeros_like(speeds)
    if floors is not None and floors.any():
        shares = best_shares(speeds, *sizes, cost=cost, speeds=speeds, floors=floors)
    return None if shares is None else _by_ratio(shares, speeds / cost, *sizes)


def _by_ratio(
    shares: Floats, ratio: Floats, counts: Floats, widths: Floats, gpus: Floats
) -> Floats:
    """Give the idle kinds time by falling ratio: without floors only the best pairs are optimal.

    Each turn is the optimum of the programme for the kinds without time on the GPUs left.
    """
    free = np.maximum(gpus - (counts * widths) @ shares, 0.0)
    idle = np.equal(shares.sum(axis=1), 0.0)
    while True:
        open_ratio = np.where(idle[:, None] & (free > LEFT), ratio, 0.0)
        best = float(open_ratio.max(initial=0.0))
        if not best > 0:
            return shares
        for row, column in np.argwhere(open_ratio >= best * (1 - 1e-12)).tolist():
            time = min(1.0 - shares[row].sum(), free[column] / (counts[row] * widths[row]))
            shares[row, column] += time
            free[column] -= time * counts[row] * widths[row]
            idle[row] = False
