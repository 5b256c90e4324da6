"""Gavel's least attained service by water filling: what bottlenecked jobs cannot use goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from repro.policies._centre import Crowd
from repro.policies._fairness import Array, Backend, Filling, Flags, fill
from repro.policies._jobtypes import JobSpeeds, JobTypes, equal_share
from repro.policies.base import Policy, register
from repro.sim.decision import Decision, Shares
from repro.sim.view import View


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


def normalised(
    speeds: Array, counts: Any, widths: Any, gpus: Array, name: Callable[[int], str]
) -> Crowd:
    """Return jobs whose values are throughputs normalised by their equal share.

    Parameters
    ----------
    speeds : ndarray, shape (rows, GPU types)
        Steps per second.
    counts, widths : ndarray, shape (rows,)
        Jobs of each row, GPUs of each job.
    gpus : ndarray, shape (GPU types,)
        GPUs of each type.
    name : callable
        Row number to the words that name its jobs in messages.

    Examples
    --------
    >>> crowd = normalised(np.array([[40.0, 10.0]]), np.ones(1), np.ones(1), np.ones(2), str)
    >>> crowd.worth.tolist()
    [[1.6, 0.4]]
    """
    return Crowd(speeds / equal_share(speeds, gpus)[:, None], counts, widths, gpus, name)
