"""Gavel's minimum makespan: everything finishes as early as possible, over unequal GPU types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.errors import ParamError
from repro.optimise.centre import Crowd, central_point
from repro.optimise.ecos import ecos_point
from repro.optimise.max_min import Array, Backend, level_shares
from repro.policies.gavel._job_types import JobSpeeds

#: First bracket of the bisection (s).
SHORTEST, LONGEST = 100.0, 1e6


@register("gavel-makespan")
@dataclass(frozen=True)
class GavelMakespan(Policy):
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

    Examples
    --------
    >>> GavelMakespan().under("paper").tolerance
    0.0
    """

    tolerance: float | None = None
    lp_backend: Backend = "centre"

    needs: ClassVar[frozenset[str]] = frozenset({"throughput", "duration"})
    rule_values: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"tolerance": 0.0},
        "gavel": {"tolerance": 0.05},
    }

    def __post_init__(self) -> None:
        if self.tolerance is not None and not 0 <= self.tolerance < 1:
            raise ParamError(f"tolerance is {self.tolerance!r}; give a number from 0 to below 1")

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run."""
        speeds = self._speeds(view)

        def decide(view: View) -> Shares:
            jobs = tuple(view.jobs)
            crowd = Crowd(
                speeds.rows(jobs),
                np.ones(len(jobs)),
                np.array([view.gpus(job) for job in jobs]),
                view.gpu_counts,
                lambda row: f"job in row {jobs[row]}",
            )
            shares, _ = makespan_shares(
                crowd, view.steps_left(jobs), self.tolerance or 0.0, self.lp_backend
            )
            return Shares(jobs, view.gpu_types, shares)

        return decide

    def _speeds(self, view: View) -> JobSpeeds:
        return JobSpeeds(view, self.name)


def makespan_shares(
    crowd: Crowd, left: Array, tolerance: float = 0.0, backend: Backend = "centre"
) -> tuple[Array, float]:
    """Return the shares that minimise max_i left_i / thr_i, and the makespan they reach (s).

    Parameters
    ----------
    crowd : Crowd
        Jobs with their speeds (steps/s) and GPUs.
    left : ndarray, shape (jobs,)
        Steps left.
    tolerance, backend
        As for `GavelMakespan`.

    Examples
    --------
    >>> speeds = np.array([[40.0, 10.0], [12.0, 4.0]])
    >>> crowd = Crowd(speeds, np.ones(2), np.ones(2), np.ones(2))
    >>> shares, makespan = makespan_shares(crowd, np.array([1600.0, 480.0]))
    >>> shares.round(3).tolist(), round(makespan, 3)
    ([[0.529, 0.471], [0.471, 0.529]], 61.818)
    """
    left = np.maximum(left, 1e-9 * max(float(left.max()), 1e-300))
    if backend == "ecos" and tolerance > 0:
        return _bisected(crowd, left, tolerance)
    best = level_shares(crowd, left, backend)
    if not tolerance > 0:
        return best.shares, 1.0 / best.level
    low, high = SHORTEST, LONGEST
    while high < 1.0 / best.level:
        high *= 10.0
    while (1.0 + tolerance) * low < high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if middle * best.level > 1.0 else (middle, high)
    needed = level_shares(crowd, left / high, backend)
    return central_point(crowd, left / high, needed), high


def _bisected(crowd: Crowd, left: Array, tolerance: float) -> tuple[Array, float]:
    """Return the shares of the last makespan of the bisection that ECOS calls possible, and it."""
    low, high = SHORTEST, LONGEST
    found, limit = None, high
    while found is None:
        while (1.0 + tolerance) * low < high:
            middle = 0.5 * (low + high)
            shares = ecos_point(crowd, left / middle)
            if shares is None:
                low = middle
            else:
                found, high = shares, middle
        if found is None:
            low, high = limit, 10.0 * limit
            limit = high
    return found, high
