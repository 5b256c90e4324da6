"""The highest throughput per cost that keeps deadlines."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Floats
from repro.model.baseline import Baseline
from repro.model.policy import register
from repro.model.typed_shares import Kinds
from repro.model.view import View
from repro.policies.gavel.min_cost import GavelMinCost, Objective, cheapest
from repro.policies.gavel.prices import usd_per_hour


@register("gavel-min-cost-slo")
@dataclass(frozen=True)
class GavelMinCostSlo(GavelMinCost):
    """As `gavel-min-cost`, with thr_i(X) >= rem_i / (deadline_i - now) for every job with an SLO.

    The deadline is the submission plus SLO times duration (trace columns slo and duration). If
    not all deadlines can be met, the programme is solved without them.

    Parameters
    ----------
    objective, market
        As for `gavel-min-cost`.
    drop_lost : bool, optional
        Jobs that would miss the deadline even alone on their fastest type lose their row, so that
        the others keep theirs. Default: true under the paper's rules, false under Gavel's.
    strict : bool
        Refuse to go on when deadlines cannot be met, with the name of a job in the way.

    Reference: Gavel, OSDI 2020, section 4.2 (minimise cost with SLOs).
    """

    drop_lost: bool | None = None
    strict: bool = False

    needs = frozenset({"throughput", "duration", "slo"})
    baseline = Baseline(
        "gavel-min-cost",
        "without deadlines nothing is to be met; give the column slo (multiples of the duration)",
        columns=("slo",),
    )
    rule_values: ClassVar = {
        "paper": {"objective": "ratio", "drop_lost": True},
        "gavel": {"objective": "normalised", "drop_lost": False},
    }

    def formula(self, view: View) -> Callable[[Kinds], Floats | None]:
        """Return X of one run; every row is one job."""
        prices = usd_per_hour(view.gpu_types, self.market)
        slo = np.asarray(view.column("slo", np.nan, gaps=True), dtype=float)
        slo = np.where(np.isnan(slo), np.inf, slo)

        def kept(jobs: Kinds, rates: Floats) -> Floats | None:
            return _keep(self.objective or "ratio", jobs, prices, rates)

        def shares(jobs: Kinds) -> Floats | None:
            rates = _rates(view, jobs, slo[list(jobs.jobs)])
            if self.drop_lost and not self.strict:
                rates[rates > jobs.speeds.max(axis=1) * (1 + 1e-9)] = 0.0
            answer = kept(jobs, rates)
            if answer is None and self.strict:
                raise PolicyError(f"{self.name}: {_blame(view, jobs, rates, kept)}")
            return kept(jobs, np.zeros_like(rates)) if answer is None else answer

        return shares


def _rates(view: View, jobs: Kinds, slo: Floats) -> Floats:
    """Return the steps per second each job needs until its deadline; 0 = it has none."""
    submit = np.array([view.submit(job) for job in jobs.jobs])
    duration = np.array([view.duration(job) for job in jobs.jobs])
    left = submit + slo * duration - view.now
    return np.where(left > 0, jobs.steps_left / np.where(left > 0, left, 1.0), np.inf)


def _keep(objective: Objective, jobs: Kinds, prices: Floats, rates: Floats) -> Floats | None:
    """Return shares that keep the rates, jobs of equal kind and rate taken together."""
    if not np.isfinite(rates).all():
        return None
    kinds, row = jobs.merged([(jobs.key(job), rate) for job, rate in enumerate(rates.tolist())])
    floors = np.array([kinds.key(kind)[1] for kind in range(len(kinds.counts))])
    shares = cheapest(objective, kinds, prices, floors)
    return None if shares is None else shares[row]


def _blame(
    view: View, jobs: Kinds, rates: Floats, kept: Callable[[Kinds, Floats], Floats | None]
) -> str:
    """Name a job whose SLO cannot be met: alone, or beside those before it in arrival order."""
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
        low, high = (low, middle) if kept(jobs, first) is None else (middle, high)
    return (
        f"infeasible SLO constraints: the GPUs at {view.now:g} s cannot give "
        f"job {view.job_id(jobs.jobs[high - 1])!r} its {rates[high - 1]:.4g} steps/s beside "
        f"the jobs before it; raise an slo, add GPUs, or leave strict off"
    )
