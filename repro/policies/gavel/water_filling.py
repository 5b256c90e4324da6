"""Gavel's least attained service by water filling: what bottlenecked jobs cannot use goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.optimise.max_min import Array, Backend, Filling, Flags, fill, normalised
from repro.policies.gavel._job_types import JobSpeeds, JobTypes


@register("gavel-water-filling")
@dataclass(frozen=True)
class GavelWaterFilling(Policy):
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

    Examples
    --------
    >>> GavelWaterFilling().water_filling
    'exact'
    """

    heterogeneity_aware: bool = True
    water_filling: Filling = "exact"
    lp_backend: Backend = "centre"

    needs: ClassVar[frozenset[str]] = frozenset({"throughput", "priority_weight"})

    def __post_init__(self) -> None:
        # the class's value is that of aware policies; an instance is frozen
        object.__setattr__(self, "tells_types", self.heterogeneity_aware)

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers solved mixes of jobs."""
        speeds = JobSpeeds(view, self.name)
        weights = view.column("priority_weight", 1.0).astype(float).tolist()
        types = JobTypes(lambda job: (view.kind(job), view.gpus(job), weights[job]))
        solved: dict[object, Array] = {}

        def decide(view: View) -> Shares:
            jobs = tuple(view.jobs)
            keys, counts, row = types.group(jobs)
            mix = (tuple(keys), counts.tobytes())
            if mix not in solved:
                first = np.unique(row, return_index=True)[1]
                rows = speeds.rows([jobs[number] for number in first.tolist()])
                crowd = normalised(
                    rows if self.heterogeneity_aware else (rows > 0).astype(float),
                    counts,
                    np.array([width for _, width, _ in keys]),
                    view.gpu_counts,
                    lambda number: f"job type {keys[number][0]}",
                )
                each = np.array([weight for _, _, weight in keys])
                solved[mix] = fill(
                    crowd,
                    _equal(each / crowd.widths),
                    self.water_filling,
                    self.lp_backend,
                    steady=True,
                )
            return Shares(jobs, view.gpu_types, solved[mix][row])

        return decide


def _equal(weight: Array) -> Callable[[Flags], Array]:
    """Return the rule by which all jobs that can rise do so by their own weight."""
    return lambda fixed: np.where(fixed, 0.0, weight)
