"""Gavel's least attained service: max-min fairness over unequal GPU types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.optimise.centre import Crowd
from repro.optimise.ecos import worth_as_written
from repro.optimise.max_min import Array, Backend, equal_share, level_shares
from repro.perf.throughput import ThroughputTable
from repro.policies.gavel._job_types import Asked, Ints, JobSpeeds, JobTypes


@register("gavel-las")
@dataclass(frozen=True)
class GavelLas(Policy):
    """Maximise the least weighted throughput, each normalised by the job's equal share.

    max_X min_i (sf_i / w_i) thr_i(X) / thr_i(X^equal) for weights w and gangs of sf GPUs. Jobs of
    one model, gang size and weight get equal shares, and the same mix of jobs the same answer
    without solving again.

    Parameters
    ----------
    throughputs : ThroughputTable, optional
        Steps per second; None: those of the run, and equal speeds where it has none.
    lp_backend : {"centre", "highs", "ecos"}
        Which of many optima: the analytic centre, the vertex with the largest sum, or that of
        Gavel's own solver (extra ``ecos``), which is given every job by itself.

    References
    ----------
    Gavel, OSDI 2020, sections 4.1 and 4.2 (LAS, heterogeneity-aware).

    Examples
    --------
    >>> GavelLas().throughputs is None
    True
    """

    throughputs: ThroughputTable | None = None
    lp_backend: Backend = "centre"

    needs: ClassVar[frozenset[str]] = frozenset({"throughput", "priority_weight"})

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers solved mixes of jobs."""
        speeds = JobSpeeds(view, self.name, self.throughputs)
        gangs, weights = Asked(view.gpus), view.column("priority_weight", 1.0).astype(float)
        types = JobTypes(lambda job: (view.kind(job), view.gpus(job), weights[job]))
        solved: dict[object, Array] = {}

        def shares(jobs: Sequence[int], counts: Ints) -> Array:
            return las_shares(
                speeds.rows(jobs), counts, gangs(jobs), weights[list(jobs)], view.gpu_counts,
                self.lp_backend, lambda number: f"job type {view.kind(jobs[number])}",
            )  # fmt: skip

        def decide(view: View) -> Shares:
            jobs = tuple(view.jobs)
            if self.lp_backend == "ecos":
                return Shares(jobs, view.gpu_types, shares(jobs, np.ones(len(jobs), np.int64)))
            keys, counts, row = types.group(jobs)
            mix = (tuple(keys), counts.tobytes())
            if mix not in solved:
                first = np.unique(row, return_index=True)[1]
                solved[mix] = shares([jobs[at] for at in first.tolist()], counts)
            return Shares(jobs, view.gpu_types, solved[mix][row])

        return decide


def las_shares(
    speeds: Array,
    counts: npt.ArrayLike,
    widths: npt.ArrayLike,
    weights: npt.ArrayLike,
    gpus: npt.ArrayLike,
    lp_backend: Backend = "centre",
    name: Callable[[int], str] = "job type {}".format,
) -> Array:
    """Return X of max_X min_i (sf_i / w_i) thr_i(X) / thr_i(X^equal).

    Parameters
    ----------
    speeds : ndarray, shape (types, GPU types)
        Steps per second of a job of each type, 0 = cannot run.
    counts, widths, weights : array_like, shape (types,)
        Jobs of each type, GPUs of each job, priority weight.
    gpus : array_like, shape (GPU types,)
        GPUs of each type.
    lp_backend : {"centre", "highs", "ecos"}
        As for `GavelLas`.
    name : callable
        Row number to the words that name the type in messages.

    Returns
    -------
    ndarray, shape (types, GPU types)
        Share of time of one job of each type.

    Examples
    --------
    The lecture's three jobs on one V100 and one K80:

    >>> speeds = np.array([[40.0, 10.0], [12.0, 4.0], [100.0, 50.0]])
    >>> las_shares(speeds, [1] * 3, [1] * 3, [1.0] * 3, [1, 1]).round(4)
    array([[0.4545, 0.    ],
           [0.4545, 0.0909],
           [0.0909, 0.9091]])
    """
    gpus, widths = np.asarray(gpus, dtype=float), np.asarray(widths)
    if lp_backend == "ecos":
        worth = worth_as_written(speeds, widths, np.asarray(weights), gpus)
    else:
        worth = speeds * (widths / (np.asarray(weights) * equal_share(speeds, gpus)))[:, None]
    crowd = Crowd(worth, np.asarray(counts), widths, gpus, name)
    return level_shares(crowd, np.ones(len(speeds)), lp_backend).shares
