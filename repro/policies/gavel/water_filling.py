"""Gavel's least attained service by water filling: what bottlenecked jobs cannot use goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.core.policy import register
from repro.core.typed_shares import Kinds
from repro.optimise.max_min import Backend, Filling, fill, normalised
from repro.policies.gavel._blind import MayBeBlind
from repro.typing import Floats


@register("gavel-water-filling")
@dataclass(frozen=True)
class GavelWaterFilling(MayBeBlind):
    """Maximise the least weighted throughput, then the least of the jobs that can still rise, ...

    Parameters
    ----------
    heterogeneity_aware : bool
        False: all GPU types count as equally fast, and rounds do not tell them apart.
    water_filling : {"exact", "published"}
        ``published``: all jobs count as bottlenecked after the first level, as in the figures
        Gavel's authors published; the answer is then that of gavel-las.
    lp_backend : {"centre", "highs"}
        Which of many optima: the analytic centre, or the vertex with the largest sum.

    References
    ----------
    Gavel, OSDI 2020, section 4.3 (water filling).
    """

    heterogeneity_aware: bool = True
    water_filling: Filling = "exact"
    lp_backend: Backend = "centre"

    needs: ClassVar[frozenset[str]] = frozenset({"throughput", "priority_weight"})

    def shares(self, kinds: Kinds) -> Floats:
        """Return X: all jobs that can rise do so by their weight per GPU."""
        crowd = normalised(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus, kinds.name)
        weight = kinds.weights / kinds.widths
        return fill(
            crowd,
            lambda fixed: np.where(fixed, 0.0, weight),
            self.water_filling,
            self.lp_backend,
            steady=True,
        )
