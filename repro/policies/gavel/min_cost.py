"""Least cost per step on GPU types of unequal price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.errors import PolicyError
from repro.optimise.linear import Array, best_shares, collapse, runnable
from repro.perf.prices import usd_per_hour

Objective = Literal["ratio", "normalised"]

#: GPUs of a type below which none count as left over.
LEFT = 1e-4


@register("gavel-min-cost")
@dataclass(frozen=True)
class GavelMinCost(Policy):
    """Maximise total throughput per cost, sum thr_i(X) / sum_ij price_j width_i X_ij.

    Parameters
    ----------
    objective : {"ratio", "normalised"}, optional
        ``ratio`` is that; its optimum runs only the cheapest work, so jobs of the types it leaves
        without any time are given to the same programme again, on the GPUs left over.
        ``normalised``, as the public simulator: maximise sum_ij X_ij T_ij / price_j. Default:
        ``ratio`` under the paper's rules, ``normalised`` under Gavel's.
    market : {"preemptible", "on-demand"}
        Which prices, see `repro.perf.prices.gpu_prices`.

    References
    ----------
    Gavel, OSDI 2020, section 4.2 (minimise cost).

    Examples
    --------
    >>> GavelMinCost().under("paper").objective
    'ratio'
    """

    objective: Objective | None = None
    market: str = "preemptible"

    # a job on a GPU it has no share of would pay for what the programme left out
    idle_ok: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"throughput"})
    rule_values: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {"objective": "ratio"},
        "gavel": {"objective": "normalised"},
    }

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers solved mixes of jobs."""
        solved: dict[tuple[object, ...], Array] = {}
        prices = usd_per_hour(view.gpu_types, self.market)

        def decide(view: View) -> Shares:
            jobs = tuple(view.jobs)
            kinds = [view.kind(job) for job in jobs]
            first, counts, row = collapse(kinds)
            mix = (*(kinds[place] for place in first), *counts.tolist())
            if jobs and mix not in solved:
                speeds = np.array([view.speeds(jobs[place]) for place in first])
                widths = np.array([view.gpus(jobs[place]) for place in first], dtype=float)
                shares = cheapest(
                    self.objective or "ratio", speeds, counts, widths, view.gpu_counts, prices
                )
                if shares is None:
                    raise PolicyError(f"{self.name}: no shares for {len(jobs)} jobs were found")
                solved[mix] = shares
            empty = np.zeros((0, len(view.gpu_types)))
            return Shares(jobs, view.gpu_types, solved[mix][row] if jobs else empty)

        return decide


def cheapest(
    objective: Objective,
    speeds: Array,
    counts: Array,
    widths: Array,
    capacity: Array,
    prices: Array,
    floors: Array | None = None,
) -> Array | None:
    """Return the shares that buy the most steps.

    Parameters
    ----------
    objective : {"ratio", "normalised"}
        As for `GavelMinCost`.
    speeds : ndarray, shape (types, GPU types)
        Steps per second of one job of each type.
    counts, widths : ndarray, shape (types,)
        Jobs of each type, GPUs of each of them.
    capacity, prices : ndarray, shape (GPU types,)
        GPUs of each type and what one costs (USD per hour).
    floors : ndarray, shape (types,), optional
        Least steps per second of each job.

    Returns
    -------
    ndarray, shape (types, GPU types), or None
        Share of time of one job of each type; None if the floors cannot be met.

    Examples
    --------
    >>> speeds = np.array([[2.0, 4.0], [1.0, 9.0]])
    >>> one = np.ones(2)
    >>> cheapest("ratio", speeds, one, one, one, np.array([1.0, 3.0])).round(6).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    speeds = runnable(speeds, widths, capacity)
    if objective == "normalised":
        return best_shares(speeds / prices, counts, widths, capacity, speeds=speeds, floors=floors)
    cost = widths[:, None] * prices
    shares: Array | None = np.zeros_like(speeds)
    if floors is not None and floors.any():
        shares = best_shares(
            speeds, counts, widths, capacity, cost=cost, speeds=speeds, floors=floors
        )
    return None if shares is None else _by_ratio(shares, speeds / cost, counts, widths, capacity)


def _by_ratio(shares: Array, ratio: Array, counts: Array, widths: Array, capacity: Array) -> Array:
    """Give the idle types time by falling ratio: without floors only the best pairs are optimal.

    Each turn is the optimum of the programme for the types without time on the GPUs left.
    """
    free = np.maximum(capacity - (counts * widths) @ shares, 0.0)
    idle = np.equal(shares.sum(axis=1), 0.0)
    while True:
        open_ratio = np.where(idle[:, None] & (free > LEFT), ratio, 0.0)
        best = float(open_ratio.max(initial=0.0))
        if not best > 0:
            return shares
        for row, kind in np.argwhere(open_ratio >= best * (1 - 1e-12)).tolist():
            time = min(1.0 - shares[row].sum(), free[kind] / (counts[row] * widths[row]))
            shares[row, kind] += time
            free[kind] -= time * counts[row] * widths[row]
            idle[row] = False
