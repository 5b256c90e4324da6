"""Highest total throughput of the cluster, whoever it comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.errors import PolicyError
from repro.optimise.linear import Array, best_shares, collapse, runnable


@register("gavel-max-throughput")
@dataclass(frozen=True)
class GavelMaxThroughput(Policy):
    """Maximise sum_i thr_i(X), steps per second of all jobs together.

    Steps of different models count alike, so slow models wait; equal jobs get equal shares.

    References
    ----------
    Gavel, OSDI 2020, section 4.1 (objective over the shares of time).

    Examples
    --------
    >>> GavelMaxThroughput()
    GavelMaxThroughput()
    """

    needs: ClassVar[frozenset[str]] = frozenset({"throughput"})

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers solved mixes of jobs."""
        solved: dict[tuple[object, ...], Array] = {}

        def decide(view: View) -> Shares:
            jobs = tuple(view.jobs)
            kinds = [view.kind(job) for job in jobs]
            first, counts, row = collapse(kinds)
            mix = (*(kinds[place] for place in first), *counts.tolist())
            if jobs and mix not in solved:
                speeds = np.array([view.speeds(jobs[place]) for place in first])
                widths = [view.gpus(jobs[place]) for place in first]
                values = runnable(speeds, widths, view.gpu_counts)
                shares = best_shares(values, counts, widths, view.gpu_counts)
                if shares is None:
                    raise PolicyError(f"{self.name}: no shares for {len(jobs)} jobs were found")
                solved[mix] = shares
            empty = np.zeros((0, len(view.gpu_types)))
            return Shares(jobs, view.gpu_types, solved[mix][row] if jobs else empty)

        return decide
