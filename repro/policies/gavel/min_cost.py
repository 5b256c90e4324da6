"""Gavel's highest throughput per cost (Gavel, section 4.2).

cost_j is the price of a GPU of type j (USD per hour). ``objective="ratio"``, the programme of the
paper:

    max_X sum_m throughput(m, X) / sum_mj cost_j scale_factor_m X_mj

Its optimum runs only the cheapest work. The same programme is then solved for the kinds without
time, on the idle GPUs. This is repeated until all kinds have time or no GPU is idle.

``objective="normalised"``, the programme of the public simulator:

    max_X sum_mj T_mj X_mj / cost_j

Ties: jobs of one kind have equal shares. Equal ratios T_mj / (cost_j scale_factor_m) are served in
alphabetical order of model and demand, then of GPU type. Among the optima of the normalised
objective, the one whose smallest share of time is largest.
"""

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

#: A GPU type with fewer idle GPUs counts as full: the remainder is a rounding error.
LEAST_IDLE_GPUS = 1e-4


@register("gavel-min-cost")
@dataclass(frozen=True)
class GavelMinCost(TypedShares):
    """Maximise the total throughput per cost.

    Parameters
    ----------
    objective : {"ratio", "normalised"}, optional
        ``ratio``: the programme of the paper. ``normalised``: the programme of the public
        simulator, which divides each throughput by the price of its GPU type. Default: ``ratio``
        under the paper's rules, ``normalised`` under Gavel's.
    market : {"preemptible", "on-demand"}
        Prices in USD per hour: of preemptible or of on-demand GPUs (``params/gavel_prices.csv``).

    Reference: Gavel, OSDI 2020, section 4.2 (minimise cost).
    """

    objective: Objective | None = None
    market: str = "preemptible"

    # GPUs idle rather than run a job on a type where it has no share, which would cost money.
    idle_ok = True
    needs = frozenset({"throughput"})
    rule_values: ClassVar = {"paper": {"objective": "ratio"}, "gavel": {"objective": "normalised"}}

    def formula(self, view: View) -> Callable[[Kinds], Floats | None]:
        """Allocation X as a function of the kinds, at the prices of the cluster's GPU types."""
        prices = usd_per_hour(view.gpu_types, self.market)
        return lambda kinds: cost_efficient_shares(self.objective or "ratio", kinds, prices)


def cost_efficient_shares(
    objective: Objective, kinds: Kinds, prices: Floats, floors: Floats | None = None
) -> Floats | None:
    """Allocation X of highest throughput per cost, shape (kinds, GPU types).

    Parameters
    ----------
    objective : {"ratio", "normalised"}
        As for `GavelMinCost`.
    kinds : Kinds
        Job kinds of the decision.
    prices : Floats
        Price of a GPU of each type (USD per hour).
    floors : Floats, optional
        Least throughput of a job of each kind (steps/s).

    Returns
    -------
    Floats or None
        None if no allocation gives every job its floor.

    Examples
    --------
    Four steps per second for 1 USD per hour beat six for 2 USD.

    >>> ones = np.ones(1)
    >>> kinds = Kinds(np.array([[4.0, 6.0]]), np.ones(2), ones, ones, ones)
    >>> cost_efficient_shares("ratio", kinds, np.array([1.0, 2.0])).tolist()
    [[1.0, 0.0]]
    """
    speeds = kinds.speeds
    sizes = (kinds.counts, kinds.widths, kinds.gpus)
    if objective == "normalised":
        return best_shares(speeds / prices, *sizes, speeds=speeds, floors=floors)
    cost = kinds.widths[:, None] * prices
    shares: Floats | None = np.zeros_like(speeds)
    if floors is not None and floors.any():
        shares = best_shares(speeds, *sizes, cost=cost, speeds=speeds, floors=floors)
    return None if shares is None else _serve_kinds_without_time(shares, speeds / cost, kinds)


def _serve_kinds_without_time(shares: Floats, ratio: Floats, kinds: Kinds) -> Floats:
    """Give the kinds without time a share of the idle GPUs, by falling throughput per cost.

    The result is ``shares``, changed in place. ``ratio`` is T_mj / (cost_j scale_factor_m), shape
    (kinds, GPU types). A pass serves all pairs of kind and GPU type with the best ratio. This
    solves the programme for the kinds without time on the idle GPUs.
    """
    gpus_per_kind = kinds.counts * kinds.widths
    idle_gpus = np.maximum(kinds.gpus - gpus_per_kind @ shares, 0.0)
    without_time = np.equal(shares.sum(axis=1), 0.0)
    while True:
        can_serve = without_time[:, None] & (idle_gpus > LEAST_IDLE_GPUS)
        open_ratio = np.where(can_serve, ratio, 0.0)
        best = float(open_ratio.max(initial=0.0))
        if not best > 0:
            return shares
        for row, column in np.argwhere(open_ratio >= best * (1 - 1e-12)).tolist():
            if idle_gpus[column] <= LEAST_IDLE_GPUS:
                # Another kind of this pass has the GPUs; a later pass serves this one.
                continue
            time = min(1.0 - shares[row].sum(), idle_gpus[column] / gpus_per_kind[row])
            shares[row, column] += time
            idle_gpus[column] -= time * kinds.counts[row] * kinds.widths[row]
            without_time[row] = False
