"""Shortest job first on unequal GPU types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.core.decision import Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.policies.gavel.fifo_agnostic import placed


@register("gavel-sjf")
@dataclass(frozen=True)
class GavelSjf(Policy):
    """Minimise the shortest remaining duration, min_X min_i rem_i / thr_i(X), one job at a time.

    The programme for one job gives it all its time on the type that ends it soonest; the same is
    then solved for the other jobs on the GPUs left. So pairs of job and type are taken by
    remaining duration, those without room skipped; equal durations go by order of arrival.

    References
    ----------
    Gavel, OSDI 2020, section 4.2 (shortest job first).

    Examples
    --------
    >>> GavelSjf()
    GavelSjf()
    """

    needs: ClassVar[frozenset[str]] = frozenset({"throughput", "duration"})

    def decide(self, view: View) -> Shares:
        """Return who runs where."""
        jobs = tuple(view.jobs)
        free = np.array(view.gpu_counts, dtype=int)
        speeds = np.array([view.speeds(job) for job in jobs]).reshape(len(jobs), len(free))
        left = view.steps_left(jobs)[:, None]
        durations = np.where(speeds > 0, left / np.where(speeds > 0, speeds, 1.0), np.inf)
        place: dict[int, int] = {}
        for pair in np.argsort(durations, axis=None, kind="stable").tolist():
            row, kind = divmod(pair, len(free))
            job = jobs[row]
            if not np.isfinite(durations[row, kind]) or not free.any():
                break
            if job not in place and view.gpus(job) <= free[kind]:
                place[job] = kind
                free[kind] -= view.gpus(job)
        return placed(view, jobs, place)
