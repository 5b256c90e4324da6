"""Least cost per step, with deadlines (service level objectives) kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.errors import PolicyError
from repro.optimise.linear import Array, collapse, runnable
from repro.perf.prices import usd_per_hour
from repro.policies.gavel.min_cost import Objective, cheapest


@register("gavel-min-cost-slo")
@dataclass(frozen=True)
class GavelMinCostSlo(Policy):
    """As `gavel-min-cost`, with thr_i(X) >= rem_i / (deadline_i - now) for every job with an SLO.

    The deadline is the submission plus SLO times duration (trace columns slo and duration). If
    not all deadlines can be met, the programme is solved without them.

    Parameters
    ----------
    objective : {"ratio", "normalised"}, optional
        As for `gavel-min-cost`.
    market : {"preemptible", "on-demand"}
        Which prices, see `repro.perf.prices.gpu_prices`.
    drop_lost : bool, optional
        Jobs that would miss the deadline even alone on their fastest type lose their row, so that
        the others keep theirs. Default: true under the paper's rules, false under Gavel's.
    strict : bool
        Refuse to go on when deadlines cannot be met, with the name of a job in the way.

    References
    ----------
    Gavel, OSDI 2020, section 4.2 (minimise cost with SLOs).

    Examples
    --------
    >>> GavelMinCostSlo().under("gavel").drop_lost
    False
    """

    objective: Objective | None = None
    market: str = "preemptible"
    drop_lost: bool | None = None
    strict: bool = False

    # a job on a GPU it has no share of would pay for what the programme left out
    idle_ok: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"throughput", "duration", "slo"})
    rule_values: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {"objective": "ratio", "drop_lost": True},
        "gavel": {"objective": "normalised", "drop_lost": False},
    }

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run."""
        slo = np.asarray(view.column("slo", np.nan), dtype=float)
        slo = np.where(np.isnan(slo), np.inf, slo)
        prices = usd_per_hour(view.gpu_types, self.market)

        def decide(view: View) -> Shares:
            jobs = tuple(view.jobs)
            if not jobs:
                return Shares(jobs, view.gpu_types, np.zeros((0, len(view.gpu_types))))
            rates = self._rates(view, jobs, slo)
            answer = self._solve(view, jobs, rates, prices)
            if answer is None and self.strict:
                raise PolicyError(self._blame(view, jobs, rates, prices))
            if answer is None:
                answer = self._solve(view, jobs, np.zeros(len(jobs)), prices)
            if answer is None:
                raise PolicyError(f"{self.name}: no shares for {len(jobs)} jobs were found")
            return Shares(jobs, view.gpu_types, answer)

        return decide

    def _rates(self, view: View, jobs: tuple[int, ...], slo: Array) -> Array:
        """Return the steps per second each job needs until its deadline; 0 = no constraint."""
        submit = np.array([view.submit(job) for job in jobs])
        duration = np.array([view.duration(job) for job in jobs])
        left = submit + slo[list(jobs)] * duration - view.now
        rates = np.where(left > 0, view.steps_left(jobs) / np.where(left > 0, left, 1.0), np.inf)
        lost = rates > self._fastest(view, jobs) * (1 + 1e-9)
        if self.drop_lost and not self.strict:
            rates[lost] = 0.0
        return rates

    def _fastest(self, view: View, jobs: tuple[int, ...]) -> Array:
        speeds = np.array([view.speeds(job) for job in jobs])
        fastest: Array = runnable(speeds, [view.gpus(job) for job in jobs], view.gpu_counts).max(
            axis=1
        )
        return fastest

    def _solve(
        self, view: View, jobs: tuple[int, ...], rates: Array, prices: Array
    ) -> Array | None:
        """Return shares that keep the rates, jobs of equal speed and rate taken together."""
        if not np.isfinite(rates).all():
            return None
        kinds = [(view.kind(job), rate) for job, rate in zip(jobs, rates.tolist(), strict=True)]
        first, counts, row = collapse(kinds)
        speeds = np.array([view.speeds(jobs[place]) for place in first])
        widths = np.array([view.gpus(jobs[place]) for place in first], dtype=float)
        shares = cheapest(
            self.objective or "ratio",
            speeds,
            counts,
            widths,
            view.gpu_counts,
            prices,
            rates[first],
        )
        return None if shares is None else shares[row]

    def _blame(self, view: View, jobs: tuple[int, ...], rates: Array, prices: Array) -> str:
        """Name a job whose SLO cannot be met: alone, or beside those before it in arrival order."""
        for row, fastest in enumerate(self._fastest(view, jobs).tolist()):
            if rates[row] > fastest * (1 + 1e-9):
                return (
                    f"{self.name}: infeasible SLO constraint of job {view.job_id(jobs[row])!r}: it "
                    f"needs {rates[row]:.4g} steps/s from {view.now:g} s on and reaches at most "
                    f"{fastest:.4g}; raise its slo or leave strict off"
                )
        low, high = 0, len(jobs)
        while high - low > 1:
            middle = (low + high) // 2
            kept = np.where(np.arange(len(jobs)) < middle, rates, 0.0)
            if self._solve(view, jobs, kept, prices) is None:
                high = middle
            else:
                low = middle
        return (
            f"{self.name}: infeasible SLO constraints: the GPUs at {view.now:g} s cannot give "
            f"job {view.job_id(jobs[high - 1])!r} its {rates[high - 1]:.4g} steps/s beside the "
            f"jobs before it; raise an slo, add GPUs, or leave strict off"
        )
