"""Gavel's finish-time fairness (Themis) over unequal GPU types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.optimise.centre import Crowd, central_ratio
from repro.optimise.ecos import ecos_ratio
from repro.optimise.max_min import Array, Backend
from repro.optimise.vertex import vertex_ratio
from repro.policies.gavel._job_types import Asked, JobSpeeds


@register("gavel-ftf")
@dataclass(frozen=True)
class GavelFtf(Policy):
    """Minimise the largest ratio of a job's finishing time to that with its own 1/m of the GPUs.

    min_X max_i (t_i + rem_i / thr_i(X)) / D_i, where t_i is the time since arrival, and
    D_i = C_i + rem_i / thr_i(X^isolated) with C_i the time that the progress made so far would have
    taken under the isolated allocations of its time.

    Parameters
    ----------
    lp_backend : {"centre", "highs", "ecos"}
        Which of many optima: the analytic centre, a vertex found by bisection of the ratio, or that
        of Gavel's own solver (extra ``ecos``).

    References
    ----------
    Gavel, OSDI 2020, section 4.2 (finish-time fairness); Themis, NSDI 2020.

    Examples
    --------
    >>> GavelFtf().lp_backend
    'centre'
    """

    lp_backend: Backend = "centre"

    needs: ClassVar[frozenset[str]] = frozenset({"throughput", "duration"})

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers isolated time."""
        speeds = self._speeds(view)
        submits, gangs = Asked(view.submit), Asked(view.gpus)
        # at the last call: jobs, ascending, their steps left, isolated speeds and isolated time
        was, state = np.array([-1]), np.ones((3, 1))

        def decide(view: View) -> Shares:
            nonlocal was, state
            jobs = view.jobs
            values, left = speeds.rows(jobs), view.steps_left(jobs)
            widths = gangs(jobs).astype(np.int64)
            alone = (values * isolated_shares(widths, view.gpu_counts)).sum(axis=1)
            rows = np.array(jobs)
            place = np.minimum(np.searchsorted(was, rows), len(was) - 1)
            before, speed, time = state[:, place]
            past = np.where(was[place] == rows, time + (before - left) / speed, 0.0)
            was, state = rows, np.array([left, alone, past])
            crowd = Crowd(
                values, np.ones(len(jobs)), widths, view.gpu_counts,
                lambda row: f"job in row {jobs[row]}",
            )  # fmt: skip
            spent = view.now - submits(jobs)
            shares, _ = ftf_shares(crowd, left, past + left / alone, spent, self.lp_backend)
            return Shares(jobs, view.gpu_types, shares)

        return decide

    def _speeds(self, view: View) -> JobSpeeds:
        return JobSpeeds(view, self.name)


def ftf_shares(
    crowd: Crowd, left: Array, due: Array, spent: Array, backend: Backend = "centre"
) -> tuple[Array, float]:
    """Return the shares with the least ratio max_i (spent_i + left_i / thr_i) / due_i, and it.

    Parameters
    ----------
    crowd : Crowd
        Jobs with their speeds (steps/s) and GPUs.
    left : ndarray, shape (jobs,)
        Steps left.
    due, spent : ndarray, shape (jobs,)
        Finishing time with the job's own part of the cluster, and time since arrival (s).
    backend : {"centre", "highs", "ecos"}
        As for `GavelFtf`.

    Examples
    --------
    >>> crowd = Crowd(np.array([[2.0], [1.0]]), np.ones(2), np.ones(2), np.ones(1))
    >>> shares, ratio = ftf_shares(crowd, np.array([4.0, 1.0]), np.array([4.0, 2.0]), np.zeros(2))
    >>> shares.round(6).tolist(), round(ratio, 6)
    ([[0.5], [0.5]], 1.0)
    """
    left = np.maximum(left, 1e-9 * max(float(left.max()), 1e-300))
    due = np.maximum(due, 1e-9 * max(float(due.max()), 1e-300))
    if backend != "highs":
        answer = (central_ratio if backend == "centre" else ecos_ratio)(crowd, left, due, spent)
        if answer is not None:
            return answer.shares, -answer.level
    return vertex_ratio(crowd, left, due, spent)


def isolated_shares(widths: npt.NDArray[Any], gpus: Array) -> Array:
    """Return each job's shares if it had its own part of every GPU type (Gavel's X^isolated).

    Parameters
    ----------
    widths : ndarray, shape (jobs,)
        GPUs of each job.
    gpus : ndarray, shape (GPU types,)
        GPUs of each type.

    Examples
    --------
    >>> isolated_shares(np.array([1, 2]), np.array([1.0, 1.0])).tolist()
    [[0.5, 0.5], [0.25, 0.25]]
    """
    shares = gpus[None, :] / (len(widths) * widths[:, None])
    fair: Array = shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True))
    return fair
