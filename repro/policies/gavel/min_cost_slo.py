"""Least cost per step, with deadlines (service level objectives) kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from repro.core.policy import register
from repro.core.typed_shares import Kinds, TypedShares
from repro.core.view import View
from repro.errors import PolicyError
from repro.perf.prices import usd_per_hour
from repro.policies.gavel._cheapest import Objective
from repro.policies.gavel._deadlines import Deadlines
from repro.typing import Floats


@register("gavel-min-cost-slo")
@dataclass(frozen=True)
class GavelMinCostSlo(TypedShares):
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

    objective: Objective | None = None
    market: str = "preemptible"
    drop_lost: bool | None = None
    strict: bool = False

    # a job on a GPU it has no share of would pay for what the programme left out
    idle_ok: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"throughput", "duration", "slo"})
    rule_values: ClassVar[Mapping[str, Mapping[str, Any]]] = {
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
