"""Highest throughput of all jobs: in total, per cost (with deadlines or not), or in product."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from repro.core.kinds import Kinds
from repro.core.policy import register
from repro.core.typed_shares import TypedShares
from repro.core.view import View
from repro.errors import PolicyError
from repro.optimise.linear import best_shares
from repro.optimise.nash import strategy_proof_shares
from repro.perf.prices import usd_per_hour
from repro.typing import Floats

Objective = Literal["ratio", "normalised"]

#: GPUs of a type below which none count as left over.
LEFT = 1e-4


@register("gavel-max-throughput")
@dataclass(frozen=True)
class GavelMaxThroughput(TypedShares):
    """Maximise sum_i thr_i(X), steps per second of all jobs together.

    Steps of different models count alike, so slow models wait; equal jobs get equal shares.

    Reference: Gavel, OSDI 2020, section 4.1 (objective over the shares of time).
    """

    needs = frozenset({"throughput"})

    def shares(self, kinds: Kinds) -> Floats | None:
        """Return X."""
        return best_shares(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus)


@register("gavel-min-cost")
@dataclass(frozen=True)
class GavelMinCost(TypedShares):
    """Maximise total throughput per cost, sum thr_i(X) / sum_ij price_j width_i X_ij.

    Parameters
    ----------
    objective : {"ratio", "normalised"}, optional
        ``ratio`` is that; its optimum runs only the cheapest work, so jobs of the kinds it leaves
        without any time are given to the same programme again, on the GPUs left over.
        ``normalised``, as the public simulator: maximise sum_ij X_ij T_ij / price_j. Default:
        ``ratio`` under the paper's rules, ``normalised`` under Gavel's.
    market : {"preemptible", "on-demand"}
        Which prices, see `repro.perf.prices`.

    Reference: Gavel, OSDI 2020, section 4.2 (minimise cost).
    """

    objective: Objective | None = None
    market: str = "preemptible"

    # a job on a GPU it has no share of would pay for what the programme left out
    idle_ok = True
    needs = frozenset({"throughput"})
    rule_values: ClassVar = {"paper": {"objective": "ratio"}, "gavel": {"objective": "normalised"}}

    def formula(self, view: View) -> Callable[[Kinds], Floats | None]:
        """Return X at the prices of the cluster's GPU types."""
        prices = usd_per_hour(view.gpu_types, self.market)
        return lambda kinds: cheapest(self.objective or "ratio", kinds, prices)


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
    rule_values: ClassVar = {
        "paper": {"objective": "ratio", "drop_lost": True},
        "gavel": {"objective": "normalised", "drop_lost": False},
    }

    def formula(self, view: View) -> Callable[[Kinds], Floats | None]:
        """Return X of one run; every row is one job."""
        prices = usd_per_hour(view.gpu_types, self.market)
        slo = np.asarray(view.column("slo", np.nan), dtype=float)
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


@register("gavel-strategy-proof")
@dataclass(frozen=True)
class GavelStrategyProof(TypedShares):
    """Maximise the geometric mean of throughputs, then discount each job by its cost to others.

    Job i gets its share times prod_{l != i} thr_l(with i) / thr_l(without i), so GPUs are left
    idle. Gang sizes and weights multiply a throughput and change neither.

    Reference: Gavel, OSDI 2020, section 4.4; Cole, Gkatzelis and Goel, EC 2013.
    """

    needs = frozenset({"throughput"})

    def shares(self, kinds: Kinds) -> Floats:
        """Return X."""
        return strategy_proof_shares(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus)


def cheapest(
    objective: Objective, kinds: Kinds, prices: Floats, floors: Floats | None = None
) -> Floats | None:
    """Return the shares that buy the most steps at ``prices`` (USD per hour of a GPU of each type).

    None if no shares give every job its ``floors`` (steps per second).
    """
    speeds, sizes = kinds.speeds, (kinds.counts, kinds.widths, kinds.gpus)
    if objective == "normalised":
        return best_shares(speeds / prices, *sizes, speeds=speeds, floors=floors)
    cost = kinds.widths[:, None] * prices
    shares: Floats | None = np.zeros_like(speeds)
    if floors is not None and floors.any():
        shares = best_shares(speeds, *sizes, cost=cost, speeds=speeds, floors=floors)
    return None if shares is None else _by_ratio(shares, speeds / cost, kinds)


def _by_ratio(shares: Floats, ratio: Floats, kinds: Kinds) -> Floats:
    """Give the idle kinds time by falling ratio: without floors only the best pairs are optimal.

    Each turn is the optimum of the programme for the kinds without time on the GPUs left.
    """
    each = kinds.counts * kinds.widths
    free = np.maximum(kinds.gpus - each @ shares, 0.0)
    idle = np.equal(shares.sum(axis=1), 0.0)
    while True:
        open_ratio = np.where(idle[:, None] & (free > LEFT), ratio, 0.0)
        best = float(open_ratio.max(initial=0.0))
        if not best > 0:
            return shares
        for row, column in np.argwhere(open_ratio >= best * (1 - 1e-12)).tolist():
            time = min(1.0 - shares[row].sum(), free[column] / each[row])
            shares[row, column] += time
            free[column] -= time * kinds.counts[row] * kinds.widths[row]
            idle[row] = False


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
