"""Least cost per step on GPU types of unequal price."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from repro.core.policy import register
from repro.core.typed_shares import Kinds, TypedShares
from repro.core.view import View
from repro.perf.prices import usd_per_hour
from repro.policies.gavel._cheapest import Objective, cheapest
from repro.typing import Floats


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
        Which prices, see `repro.perf.prices.gpu_prices`.

    References
    ----------
    Gavel, OSDI 2020, section 4.2 (minimise cost).
    """

    objective: Objective | None = None
    market: str = "preemptible"

    # a job on a GPU it has no share of would pay for what the programme left out
    idle_ok: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"throughput"})
    rule_values: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"objective": "ratio"},
        "gavel": {"objective": "normalised"},
    }

    def formula(self, view: View) -> Callable[[Kinds], Floats | None]:
        """Return X at the prices of the cluster's GPU types."""
        prices = usd_per_hour(view.gpu_types, self.market)
        return lambda kinds: cheapest(self.objective or "ratio", kinds, prices)
