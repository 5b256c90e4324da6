"""Gavel's minimum makespan: everything finishes as early as possible, over unequal GPU types."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from repro.base.typing import Floats
from repro.model.baseline import Baseline
from repro.model.policy import register
from repro.model.settings import Between
from repro.model.typed_shares import Kinds
from repro.policies.gavel._blind import Blind, MayBeBlind
from repro.solve.ecos import ecos_point
from repro.solve.max_min import (
    LONGEST,
    SHORTEST,
    Backend,
    Crowd,
    bisected,
    central_point,
    level_shares,
)

#: Tolerance of the makespan by rules: 5 % is where the public simulator stops.
TOLERANCES = {"paper": {"tolerance": 0.0}, "gavel": {"tolerance": 0.05}}


#: Relative width at which a bisection of the makespan stops.
Tolerance = Annotated[float, Between(0, 1, below=True)]


@register("gavel-makespan")
@dataclass(frozen=True)
class GavelMakespan(MayBeBlind):
    """Minimise the time at which the last job finishes: min_X max_i rem_i / thr_i(X).

    Parameters
    ----------
    tolerance : float, optional
        0: the optimum. Otherwise a bisection of the makespan from [100 s, 1e6 s] stops when the
        upper end is at most 1 + tolerance times the lower, and the shares are the centre of all
        that reach the upper end. None: as the rules say.
    lp_backend : {"centre", "highs", "ecos"}
        Which of many optima: the analytic centre, the vertex with the largest sum, or that of
        Gavel's own solver (extra ``ecos``).

    Reference: Gavel, OSDI 2020, section 4.2 (minimise makespan).
    """

    tolerance: Tolerance | None = None
    lp_backend: Backend = "centre"

    needs = frozenset({"throughput", "duration"})
    baseline: ClassVar[Baseline | None] = Baseline(
        "makespan-agnostic",
        "without speeds by GPU type all types are alike; give a throughput table "
        "(--throughputs gavel-throughputs) and a cluster of GPU types",
        model=True,
    )
    rule_values: ClassVar = TOLERANCES

    def shares(self, kinds: Kinds) -> Floats:
        """Return X; every row is one job."""
        crowd = Crowd(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus, kinds.name)
        tolerance = self.tolerance or 0.0
        return makespan_shares(crowd, kinds.steps_left, tolerance, self.lp_backend)[0]


@register("makespan-agnostic")
@dataclass(frozen=True)
class MakespanAgnostic(Blind, GavelMakespan):
    """Minimise max_i rem_i / thr_i(X) with the speeds of one GPU type for all.

    Parameters: those of `gavel-makespan` and of `Blind`.
    """

    baseline = None


def makespan_shares(
    crowd: Crowd, left: Floats, tolerance: float = 0.0, backend: Backend = "centre"
) -> tuple[Floats, float]:
    """Return the shares that minimise max_i left_i / thr_i, and the makespan they reach (s).

    ``left`` is in steps, ``tolerance`` and ``backend`` as for `GavelMakespan`.
    """
    left = np.maximum(left, 1e-9 * max(float(left.max()), 1e-300))
    if backend == "ecos" and tolerance > 0:
        return _bisected_by_ecos(crowd, left, tolerance)
    best = level_shares(crowd, left, backend)
    if not tolerance > 0:
        return best.shares, 1.0 / best.level
    end = bisected(1.0 / best.level, tolerance)
    return central_point(crowd, left / end, level_shares(crowd, left / end, backend)), end


def _bisected_by_ecos(
    crowd: Crowd, left: Floats, tolerance: float, low: float = SHORTEST, high: float = LONGEST
) -> tuple[Floats, float]:
    """Return the shares of the last makespan of the bisection that ECOS calls possible, and it."""
    found = None
    limit = high
    while (1.0 + tolerance) * low < high:
        middle = 0.5 * (low + high)
        shares = ecos_point(crowd, left / middle)
        low, high = (middle, high) if shares is None else (low, middle)
        found = found if shares is None else shares
    if found is None:
        return _bisected_by_ecos(crowd, left, tolerance, limit, 10.0 * limit)
    return found, high
