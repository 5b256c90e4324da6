"""Shares with the least finish-time ratio, and the isolated time that the ratio compares with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from repro.optimise.centre import Crowd, central_ratio
from repro.optimise.ecos import ecos_ratio
from repro.optimise.max_min import Backend
from repro.optimise.vertex import vertex_ratio
from repro.typing import Floats


class IsolatedTime:
    """How long the progress of each job would have taken under the isolated shares of its time."""

    def __init__(self) -> None:
        # at the last call: jobs, ascending, their steps left, isolated speeds and isolated time
        self._jobs, self._state = np.array([-1]), np.ones((3, 1))

    def update(self, jobs: Sequence[int], left: Floats, alone: Floats) -> Floats:
        """Return the isolated time of each job (s), given steps left and isolated speeds now."""
        rows = np.array(jobs)
        place = np.minimum(np.searchsorted(self._jobs, rows), len(self._jobs) - 1)
        before, speed, time = self._state[:, place]
        past = np.where(self._jobs[place] == rows, time + (before - left) / speed, 0.0)
        self._jobs, self._state = rows, np.array([left, alone, past])
        return past


def ftf_shares(
    crowd: Crowd, left: Floats, due: Floats, spent: Floats, backend: Backend = "centre"
) -> tuple[Floats, float]:
    """Return the shares with the least ratio max_i (spent_i + left_i / thr_i) / due_i, and it.

    ``left`` is in steps; ``due``, the finishing time with the job's own part of the cluster, and
    ``spent``, the time since arrival, in seconds.

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
