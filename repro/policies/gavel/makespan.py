"""Gavel's minimum makespan: everything finishes as early as possible, over unequal GPU types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from repro.core.policy import register
from repro.core.typed_shares import Kinds
from repro.errors import ParamError
from repro.optimise.centre import Crowd
from repro.optimise.max_min import Backend
from repro.policies.gavel._blind import MayBeBlind
from repro.policies.gavel._least_makespan import makespan_shares
from repro.typing import Floats

#: Tolerance of the makespan by rules: 5 % is where the public simulator stops.
TOLERANCES: Mapping[str, Mapping[str, Any]] = {
    "paper": {"tolerance": 0.0},
    "gavel": {"tolerance": 0.05},
}


def check_tolerance(tolerance: float | None) -> None:
    """Refuse a tolerance that no bisection can stop at."""
    if tolerance is not None and not 0 <= tolerance < 1:
        raise ParamError(f"tolerance is {tolerance!r}; give a number from 0 to below 1")


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

    References
    ----------
    Gavel, OSDI 2020, section 4.2 (minimise makespan).
    """

    tolerance: float | None = None
    lp_backend: Backend = "centre"

    needs: ClassVar[frozenset[str]] = frozenset({"throughput", "duration"})
    rule_values: ClassVar[Mapping[str, Mapping[str, Any]]] = TOLERANCES

    def __post_init__(self) -> None:
        super().__post_init__()
        check_tolerance(self.tolerance)

    def shares(self, kinds: Kinds) -> Floats:
        """Return X; every row is one job."""
        crowd = Crowd(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus, kinds.name)
        tolerance = self.tolerance or 0.0
        return makespan_shares(crowd, kinds.steps_left, tolerance, self.lp_backend)[0]


@register("makespan-agnostic")
@dataclass(frozen=True)
class MakespanAgnostic(GavelMakespan):
    """Minimise max_i rem_i / thr_i(X) with the speeds of one GPU type for all.

    Parameters
    ----------
    tolerance, lp_backend
        As for `gavel-makespan`.
    reference : str
        GPU type whose speeds count for all types; the job's fastest where the cluster has none.

    References
    ----------
    Gavel, OSDI 2020, section 4.2.
    """

    heterogeneity_aware = False
    reference: str = "v100"
