"""Shares that buy the most steps for the money, and keep deadlines while they do."""

from __future__ import annotations

from typing import Literal

import numpy as np

from repro.core.kinds import Kinds
from repro.core.view import View
from repro.optimise.linear import best_shares
from repro.typing import Floats

Objective = Literal["ratio", "normalised"]

#: GPUs of a type below which none count as left over.
LEFT = 1e-4


def cheapest(
    objective: Objective, kinds: Kinds, prices: Floats, floors: Floats | None = None
) -> Floats | None:
    """Return the shares that buy the most steps; None if the floors cannot be met.

    ``objective`` as for `GavelMinCost`, ``prices`` in USD per hour of a GPU of each type,
    ``floors`` the least steps per second of each job.

    >>> one = np.ones(2)
    >>> kinds = Kinds(np.array([[2.0, 4.0], [1.0, 9.0]]), one, one, one, one)
    >>> cheapest("ratio", kinds, np.array([1.0, 3.0])).round(6).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    speeds, sizes = kinds.speeds, (kinds.counts, kinds.widths, kinds.gpus)
    if objective == "normalised":
        return best_shares(speeds / prices, *sizes, speeds=speeds, floors=floors)
    cost = kinds.widths[:, None] * prices
    shares: Floats | None = np.zeros_like(speeds)
    if floors is not None and floors.any():
        shares = best_shares(speeds, *sizes, cost=cost, speeds=speeds, floors=floors)
    return None if shares is None else _by_ratio(shares, speeds / cost, *sizes)


def _by_ratio(
    shares: Floats, ratio: Floats, counts: Floats, widths: Floats, gpus: Floats
) -> Floats:
    """Give the idle kinds time by falling ratio: without floors only the best pairs are optimal.

    Each turn is the optimum of the programme for the kinds without time on the GPUs left.
    """
    free = np.maximum(gpus - (counts * widths) @ shares, 0.0)
    idle = np.equal(shares.sum(axis=1), 0.0)
    while True:
        open_ratio = np.where(idle[:, None] & (free > LEFT), ratio, 0.0)
        best = float(open_ratio.max(initial=0.0))
        if not best > 0:
            return shares
        for row, column in np.argwhere(open_ratio >= best * (1 - 1e-12)).tolist():
            time = min(1.0 - shares[row].sum(), free[column] / (counts[row] * widths[row]))
            shares[row, column] += time
            free[column] -= time * counts[row] * widths[row]
            idle[row] = False


class Deadlines:
    """The deadlines of a run's jobs, at submission + slo * duration, kept at the least cost."""

    def __init__(self, view: View, objective: Objective, prices: Floats) -> None:
        self._view, self._objective, self._prices = view, objective, prices
        slo = np.asarray(view.column("slo", np.nan), dtype=float)
        self._slo = np.where(np.isnan(slo), np.inf, slo)

    def rates(self, jobs: Kinds, drop_lost: bool) -> Floats:
        """Return the steps per second each job needs until its deadline; 0 = no constraint.

        With ``drop_lost``, 0 also for those that cannot reach it on any GPU type.
        """
        view = self._view
        submit = np.array([view.submit(job) for job in jobs.jobs])
        duration = np.array([view.duration(job) for job in jobs.jobs])
        left = submit + self._slo[list(jobs.jobs)] * duration - view.now
        rates = np.where(left > 0, jobs.steps_left / np.where(left > 0, left, 1.0), np.inf)
        if drop_lost:
            rates[rates > jobs.speeds.max(axis=1) * (1 + 1e-9)] = 0.0
        return rates

    def kept(self, jobs: Kinds, rates: Floats) -> Floats | None:
        """Return shares that keep the rates, jobs of equal kind and rate taken together."""
        if not np.isfinite(rates).all():
            return None
        kinds, row = jobs.merged(list(zip(jobs.keys, rates.tolist(), strict=True)))
        floors = np.array([rate for _, rate in kinds.keys])
        shares = cheapest(self._objective, kinds, self._prices, floors)
        return None if shares is None else shares[row]

    def blame(self, jobs: Kinds, rates: Floats) -> str:
        """Name a job whose SLO cannot be met: alone, or beside those before it in arrival order."""
        view = self._view
        for row, fastest in enumerate(jobs.speeds.max(axis=1).tolist()):
            if rates[row] > fastest * (1 + 1e-9):
                return (
                    f"infeasible SLO constraint of job {view.job_id(jobs.jobs[row])!r}: it "
                    f"needs {rates[row]:.4g} steps/s from {view.now:g} s on and reaches at most "
                    f"{fastest:.4g}; raise its slo or leave strict off"
                )
        low, high = 0, len(rates)
        while high - low > 1:
            middle = (low + high) // 2
            first = np.where(np.arange(len(rates)) < middle, rates, 0.0)
            low, high = (low, middle) if self.kept(jobs, first) is None else (middle, high)
        return (
            f"infeasible SLO constraints: the GPUs at {view.now:g} s cannot give "
            f"job {view.job_id(jobs.jobs[high - 1])!r} its {rates[high - 1]:.4g} steps/s beside "
            f"the jobs before it; raise an slo, add GPUs, or leave strict off"
        )
