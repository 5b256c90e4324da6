"""Least cost per step on GPU types of unequal price, with or without deadlines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.core.kinds import Kinds
from repro.core.policy import register
from repro.core.typed_shares import TypedShares
from repro.core.view import View
from repro.errors import PolicyError
from repro.perf.prices import usd_per_hour
from repro.policies.gavel._cheapest import Deadlines, Objective, cheapest
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
    idle_ok = True
    needs = frozenset({"throughput"})
    rule_values: ClassVar = {
        "paper": {"objective": "ratio"},
        "gavel": {"objective": "normalised"},
    }

    def formula(self, view: View) -> Callable[[Kinds], Floats | None]:
        """Return X at the prices of the cluster's GPU types."""
        prices = usd_per_hour(view.gpu_types, self.market)
        return lambda kinds: cheapest(self.objective or "ratio", kinds, prices)


@register("gavel-min-cost-slo")
@dataclass(frozen=True)
class GavelMinCostSlo(GavelMinCost):
    """As `gavel-min-cost`, with thr_i(X) >= rem_i / (deadline_i - now) for every job with an SLO.

    The deadline is the submission plus SLO times duration (trace columns slo and duration). If
    not all deadlines can be met, the programme is solved without them.

    Parameters
    ----------
    objective, market
        As for `gavel-min-cost`.
    drop_lost : bool, optional
        Jobs that would miss the deadline even alone on their fastest type lose their row, so that
        the others keep theirs. Default: true under the paper's rules, false under Gavel's.
    strict : bool
        Refuse to go on when deadlines cannot be met, with the name of a job in the way.

    References
    ----------
    Gavel, OSDI 2020, section 4.2 (minimise cost with SLOs).
    """

    drop_lost: bool | None = None
    strict: bool = False

    needs = frozenset({"throughput", "duration", "slo"})
    rule_values: ClassVar = {
        "paper": {"objective": "ratio", "drop_lost": True},
        "gavel": {"objective": "normalised", "drop_lost": False},
    }

    def formula(self, view: View) -> Callable[[Kinds], Floats | None]:
        """Return X of one run; every row is one job."""
        prices = usd_per_hour(view.gpu_types, self.market)
        deadlines = Deadlines(view, self.objective or "ratio", prices)

        def shares(jobs: Kinds) -> Floats | None:
            rates = deadlines.rates(jobs, drop_lost=bool(self.drop_lost) and not self.strict)
            answer = deadlines.kept(jobs, rates)
            if answer is None and self.strict:
                raise PolicyError(f"{self.name}: {deadlines.blame(jobs, rates)}")
            return deadlines.kept(jobs, np.zeros_like(rates)) if answer is None else answer

        return shares
