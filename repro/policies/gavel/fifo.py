"""First in, first out on unequal GPU types: earlier jobs get the faster GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from repro.core.decision import Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.errors import PolicyError
from repro.optimise.linear import best_shares, runnable
from repro.policies.gavel._in_order import fastest_with_room
from repro.policies.gavel.fifo_agnostic import placed


@register("gavel-fifo")
@dataclass(frozen=True)
class GavelFifo(Policy):
    """Jobs in order of arrival, each on the fastest type with room; all anew at every decision.

    Parameters
    ----------
    form : {"greedy", "lp"}
        ``greedy``: as the public simulator; the first job that finds no room blocks all behind it,
        while one that cannot run where there is room waits and lets them pass.
        ``lp``: the paper's programme, max sum_i (M - i) thr_i(X) / thr_i(fastest type) for M jobs
        in order of arrival i, which may divide a job's time between types.

    References
    ----------
    Gavel, OSDI 2020, section 4.2 (FIFO).

    Examples
    --------
    >>> GavelFifo().form
    'greedy'
    """

    form: Literal["greedy", "lp"] = "greedy"

    idle_ok: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"throughput"})

    def decide(self, view: View) -> Shares:
        """Return who runs where."""
        jobs = tuple(view.jobs)
        if not jobs:
            return Shares(jobs, view.gpu_types, np.zeros((0, len(view.gpu_types))))
        return self._programme(view, jobs) if self.form == "lp" else self._greedy(view, jobs)

    def _greedy(self, view: View, jobs: tuple[int, ...]) -> Shares:
        speeds, widths = map(view.speeds, jobs), map(view.gpus, jobs)
        place, _ = fastest_with_room(speeds, widths, view.gpu_counts)
        return placed(view, jobs, {jobs[row]: kind for row, kind in place.items()})

    def _programme(self, view: View, jobs: tuple[int, ...]) -> Shares:
        speeds = np.array([view.speeds(job) for job in jobs])
        widths = np.array([view.gpus(job) for job in jobs])
        speeds = runnable(speeds, widths, view.gpu_counts)
        rank = np.arange(len(jobs), 0, -1.0)[:, None]
        values = rank * speeds / np.maximum(speeds.max(axis=1, keepdims=True), 1e-300)
        shares = best_shares(values, np.ones(len(jobs)), widths, view.gpu_counts)
        if shares is None:
            raise PolicyError(f"gavel-fifo: the programme for {len(jobs)} jobs was not solved")
        return Shares(jobs, view.gpu_types, shares)
