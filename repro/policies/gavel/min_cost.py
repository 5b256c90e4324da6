"""The highest throughput per cost."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from repro.base.typing import Floats
from repro.model.policy import register
from repro.model.typed_shares import Kinds, TypedShares
from repro.model.view import View
from repro.policies.gavel.prices import usd_per_hour
from repro.solve.linear import best_shares

Objective = Literal["ratio", "normalised"]

#: GPUs of a type below which none count as left over.
LEFT = 1e-4


@register("gavel-min-cost")
@dataclass(frozen=True)
class GavelMinCost(TypedShares):
    """Maximise total throughput per cost, sum thr_i(X) / sum_ij price_j width_i X_ij.

    Parameters
    ----------
    objective : {"ratio", "normalised"}, optional
        ``ratio`` is that; its optimum runs only the cheapest work, so jobs of the kinds it leaves
        without any time are given to the same programme again, on the GPUs left over.
        ``normalised``, as the public simulator: maximise sum_ij X_ij T_ij / price_j. Default:
        ``ratio`` under the paper's rules, ``normalised`` under Gavel's.
    market : {"preemptible", "on-demand"}
        Which prices, see `repro.policies.gavel.prices`.

    Reference: Gavel, OSDI 2020, section 4.2 (minimise cost).
    """

    objective: Objective | None = None
    market: str = "preemptible"

    # a job on a GPU it has no share of would pay for what the programme left out
    idle_ok = True
    needs = frozenset({"throughput"})
    rule_values: ClassVar = {"paper": {"objective": "ratio"}, "gavel": {"objective": "normalised"}}

    def formula(self, view: View) -> Callable[[Kinds], Floats | None]:
        """Return X at the prices of the cluster's GPU types."""
        prices = usd_per_hour(view.gpu_types, self.market)
        return lambda kinds: cheapest(self.objective or "ratio", kinds, prices)


def cheapest(
    objective: Objective, kinds: Kinds, prices: Floats, floors: Floats | None = None
) -> Floats | None:
    """Return the shares that buy the most steps at ``prices`` (USD per hour of a GPU of each type).

    None if no shares give every job its ``floors`` (steps per second).
    """
    speeds = kinds.speeds
    sizes = (kinds.counts, kinds.widths, kinds.gpus)
    if objective == "normalised":
        return best_shares(speeds / prices, *sizes, speeds=speeds, floors=floors)
    cost = kinds.widths[:, None] * prices
    shares: Floats | None = np.zeros_like(speeds)
    if floors is not None and floors.any():
        shares = best_shares(speeds, *sizes, cost=cost, speeds=speeds, floors=floors)
    return None if shares is None else _by_ratio(shares, speeds / cost, kinds)


def _by_ratio(shares: Floats, ratio: Floats, kinds: Kinds) -> Floats:
    """Give the idle kinds time by falling ratio: without floors only the best pairs are optimal.

    Each turn is the optimum of the programme for the kinds without time on the GPUs left.
    """
    each = kinds.counts * kinds.widths
    free = np.maximum(kinds.gpus - each @ shares, 0.0)
    idle = np.equal(shares.sum(axis=1), 0.0)
    while True:
        open_ratio = np.where(idle[:, None] & (free > LEFT), ratio, 0.0)
        best = float(open_ratio.max(initial=0.0))
        if not best > 0:
            return shares
        for row, column in np.argwhere(open_ratio >= best * (1 - 1e-12)).tolist():
            time = min(1.0 - shares[row].sum(), free[column] / each[row])
            shares[row, column] += time
            free[column] -= time * kinds.counts[row] * kinds.widths[row]
            idle[row] = False
