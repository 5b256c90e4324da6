"""Gavel's highest throughput per cost that keeps deadlines (Gavel, section 4.2).

The programme of `gavel-min-cost` with a constraint for each job m that has an SLO:

    throughput(m, X) >= num_steps_m / (deadline_m - now)
    deadline_m = submission_m + SLO_m duration_m

The trace columns ``slo`` (multiples of the duration) and ``duration`` hold SLO_m and duration_m. If
no X satisfies all constraints, the programme is solved without them.

Ties: jobs of one kind that need equal throughputs have equal shares. Otherwise as for
`gavel-min-cost`.
"""

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
from repro.policies.gavel.min_cost import GavelMinCost, Objective, cost_efficient_shares
from repro.policies.gavel.prices import usd_per_hour

#: Relative excess of a needed throughput over a reachable one that counts as rounding error.
ROUNDING = 1e-9


@register("gavel-min-cost-slo")
@dataclass(frozen=True)
class GavelMinCostSlo(GavelMinCost):
    """As `gavel-min-cost`, with the throughput that meets its deadline for every job with an SLO.

    Parameters
    ----------
    objective : {"ratio", "normalised"}, optional
        ``ratio``: the programme of the paper. ``normalised``: the programme of the public
        simulator, which divides each throughput by the price of its GPU type. Default: ``ratio``
        under the paper's rules, ``normalised`` under Gavel's.
    market : {"preemptible", "on-demand"}
        Prices in USD per hour: of preemptible or of on-demand GPUs (``params/gavel_prices.csv``).
    drop_lost : bool, optional
        Whether a job that would miss its deadline even alone on its fastest type loses its
        constraint. The other jobs then keep theirs. Default: true under the paper's rules, false
        under Gavel's.
    strict : bool
        Whether the run ends with an error that names a job when the deadlines cannot be met.
        ``drop_lost`` then has no effect.

    Reference: Gavel, OSDI 2020, section 4.2 (minimise cost with SLOs).
    """

    drop_lost: bool | None = None
    strict: bool = False

    needs = frozenset({"throughput", "duration", "slo"})
    baseline = Baseline(
        "gavel-min-cost",
        "without deadlines there is no SLO; give the column slo (multiples of the duration)",
        columns=("slo",),
    )
    rule_values: ClassVar = {
        "paper": {"objective": "ratio", "drop_lost": True},
        "gavel": {"objective": "normalised", "drop_lost": False},
    }

    def formula(self, view: View) -> Callable[[Kinds], Floats | None]:
        """Allocation X as a function of the jobs; every row is one job."""
        prices = usd_per_hour(view.gpu_types, self.market)
        deadlines = view.deadlines()

        def shares_with_floors(jobs: Kinds, floors: Floats) -> Floats | None:
            return _shares_by_kind(self.objective or "ratio", jobs, prices, floors)

        def shares(jobs: Kinds) -> Floats | None:
            floors = _needed_throughputs(view, jobs, deadlines[list(jobs.jobs)])
            if self.drop_lost and not self.strict:
                reachable = jobs.speeds.max(axis=1)
                floors[floors > reachable * (1 + ROUNDING)] = 0.0
            allocation = shares_with_floors(jobs, floors)
            if allocation is None and self.strict:
                message = _infeasible_job(view, jobs, floors, shares_with_floors)
                raise PolicyError(f"{self.name}: {message}")
            if allocation is None:
                allocation = shares_with_floors(jobs, np.zeros_like(floors))
            return allocation

        return shares


def _needed_throughputs(view: View, jobs: Kinds, deadlines: Floats) -> Floats:
    """Throughput (steps/s) with which each job meets its deadline, shape (jobs,).

    0 without an SLO, infinity after the deadline.
    """
    time_left = deadlines - view.now
    in_time = time_left > 0
    return np.where(in_time, jobs.work_left / np.where(in_time, time_left, 1.0), np.inf)


def _shares_by_kind(
    objective: Objective, jobs: Kinds, prices: Floats, floors: Floats
) -> Floats | None:
    """Allocation X that keeps the floors, shape (jobs, GPU types); None if there is none.

    Jobs of equal kind and floor are one row of the programme.
    """
    if not np.isfinite(floors).all():
        return None
    kinds, kind_of_job = jobs.merged(
        [(jobs.key(row), floor) for row, floor in enumerate(floors.tolist())]
    )
    kind_floors = np.array([kinds.key(kind)[1] for kind in range(len(kinds.counts))])
    shares = cost_efficient_shares(objective, kinds, prices, kind_floors)
    return None if shares is None else shares[kind_of_job]


def _infeasible_job(
    view: View,
    jobs: Kinds,
    floors: Floats,
    shares_with_floors: Callable[[Kinds, Floats], Floats | None],
) -> str:
    """Message that names a job whose SLO cannot be met.

    Either the job is too slow even alone, or the jobs that arrived before it leave too few GPUs.
    """
    for row, reachable in enumerate(jobs.speeds.max(axis=1).tolist()):
        if floors[row] > reachable * (1 + ROUNDING):
            return (
                f"infeasible SLO constraint of job {view.job_id(jobs.jobs[row])!r}: it "
                f"needs {floors[row]:.4g} steps/s from {view.now:g} s on and reaches at most "
                f"{reachable:.4g}; raise its slo or leave strict off"
            )
    # The GPUs can meet the floors of the first `feasible` jobs together, but not those of the first
    # `infeasible` jobs.
    feasible = 0
    infeasible = len(floors)
    while infeasible - feasible > 1:
        middle = (feasible + infeasible) // 2
        first_floors = np.where(np.arange(len(floors)) < middle, floors, 0.0)
        if shares_with_floors(jobs, first_floors) is None:
            infeasible = middle
        else:
            feasible = middle
    row = infeasible - 1
    return (
        f"infeasible SLO constraints: the GPUs at {view.now:g} s cannot give "
        f"job {view.job_id(jobs.jobs[row])!r} its {floors[row]:.4g} steps/s next to the jobs "
        f"before it; raise an slo, add GPUs, or leave strict off"
    )
