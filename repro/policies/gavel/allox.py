"""AlloX: shortest mean completion time on unequal GPU types by matching, without preemption."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.errors import PolicyError
from repro.matching.slots import start_now
from repro.policies.gavel.fifo_agnostic import placed


@register("allox")
@dataclass(frozen=True)
class Allox(Policy):
    """Whenever a GPU is free and a job waits, match waiting jobs to the free GPUs' queues.

    The head of each queue starts and keeps its GPU type to the end; the others wait for the next
    matching. Gangs of one GPU only.

    Parameters
    ----------
    alpha : float
        Part of the waiting jobs that is considered, oldest first, at least as many as there are
        free GPUs.

    References
    ----------
    AlloX, EuroSys 2020, section 4; the baseline of Gavel, OSDI 2020, section 7.

    Examples
    --------
    >>> Allox().alpha
    1.0
    """

    alpha: float = 1.0

    needs: ClassVar[frozenset[str]] = frozenset({"throughput", "duration"})

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers who runs where."""
        place: dict[int, int] = {}

        def decide(view: View) -> Shares:
            for job in [job for job in place if not view.is_unfinished(job)]:
                del place[job]
            jobs = tuple(view.jobs)
            waiting = [job for job in jobs if job not in place]
            free = np.array(view.gpu_counts, dtype=np.int64)
            np.subtract.at(free, list(place.values()), 1)
            if waiting and free.any():
                self._start(view, place, waiting, free)
            return placed(view, jobs, place)

        return decide

    def _start(
        self, view: View, place: dict[int, int], waiting: list[int], free: np.ndarray
    ) -> None:
        oldest = waiting[: max(int(self.alpha * len(waiting)), int(free.sum()))]
        for job in oldest:
            if view.gpus(job) != 1:
                raise PolicyError(
                    f"policy 'allox': job {view.job_id(job)!r} asks for {view.gpus(job)} GPUs; "
                    "AlloX places jobs of one GPU only: take those, or another policy "
                    "(gavel-las, gandiva-ss)"
                )
        speeds = np.array([view.speeds(job) for job in oldest])
        left = np.array([view.remaining_steps(job) for job in oldest])[:, None]
        durations = np.where(speeds > 0, left / np.where(speeds > 0, speeds, 1.0), np.inf)
        for row, kind in start_now(durations, free):
            place[oldest[row]] = kind
