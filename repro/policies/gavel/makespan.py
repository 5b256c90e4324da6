"""Gavel's minimum makespan over unequal GPU types (Gavel, section 4.2).

    min_X max_m num_steps_m / throughput(m, X)

Ties: many X reach the optimum. ``lp_backend`` chooses among these optima:

- ``centre``: the analytic centre, where equal jobs have equal shares.
- ``highs``: the vertex with the largest sum of throughputs.
- ``ecos``: the optimum of Gavel's own solver.

With a tolerance, X is the analytic centre of all allocations whose makespan is at most the upper
end of the bisection. With ``ecos`` it is the last solution of Gavel's own solver.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from repro.base.typing import Floats
from repro.model.baseline import Baseline
from repro.model.policy import register
from repro.model.settings import Between
from repro.model.typed_shares import Kinds
from repro.policies.gavel._agnostic import Agnostic, AwareOrAgnostic
from repro.solve.ecos import ecos_point
from repro.solve.max_min import (
    BISECTION_HIGH_S,
    BISECTION_LOW_S,
    Backend,
    JobKinds,
    bisected_makespan,
    central_point,
    level_shares,
)

#: Tolerance of the makespan by rule set; the public simulator stops at 5 %.
TOLERANCES = {"paper": {"tolerance": 0.0}, "gavel": {"tolerance": 0.05}}

#: Relative width at which a bisection of the makespan stops.
Tolerance = Annotated[float, Between(0, 1, below=True)]


@register("gavel-makespan")
@dataclass(frozen=True)
class GavelMakespan(AwareOrAgnostic):
    """Minimise the time at which the last job finishes.

    Parameters
    ----------
    tolerance : float, optional
        0: the optimum. Otherwise the makespan is bisected, from [100 s, 1e6 s] on, until the upper
        end is at most 1 + tolerance times the lower end. Default: 0 under the paper's rules,
        0.05 under Gavel's.
    lp_backend : {"centre", "highs", "ecos"}
        Optimum among many: the analytic centre, the vertex with the largest sum of throughputs, or
        the optimum of Gavel's own solver (extra ``ecos``).

    Reference: Gavel, OSDI 2020, section 4.2 (minimise makespan).
    """

    tolerance: Tolerance | None = None
    lp_backend: Backend = "centre"

    needs = frozenset({"throughput", "duration"})
    baseline: ClassVar[Baseline | None] = Baseline(
        "makespan-agnostic",
        "without speeds by GPU type all types are alike; give a throughput table "
        "(--throughputs gavel-throughputs) and a cluster of GPU types",
        parameters=("lp_backend",),
        model=True,
        type_order=True,
    )
    rule_values: ClassVar = TOLERANCES

    def shares(self, kinds: Kinds) -> Floats:
        """Allocation X, shape (jobs, GPU types); every row is one job."""
        problem = JobKinds(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus, kinds.name)
        tolerance = self.tolerance or 0.0
        allocation, _ = makespan_shares(problem, kinds.work_left, tolerance, self.lp_backend)
        return allocation


@register("makespan-agnostic")
@dataclass(frozen=True)
class MakespanAgnostic(Agnostic, GavelMakespan):
    """Minimise the makespan with the speeds of one GPU type for all."""

    baseline = None


def makespan_shares(
    problem: JobKinds, steps_left: Floats, tolerance: float = 0.0, backend: Backend = "centre"
) -> tuple[Floats, float]:
    """Allocation X of least makespan, shape (jobs, GPU types), and the makespan (s).

    Parameters
    ----------
    problem : JobKinds
        Throughputs (steps/s), demands and GPUs; a row is one job.
    steps_left : Floats
        Remaining steps of each job.
    tolerance : float
        As for `GavelMakespan`. Above 0, the makespan is the upper end of the bisection.
    backend : {"centre", "highs", "ecos"}
        As for `GavelMakespan`.

    Examples
    --------
    Two equal jobs of 1,000 steps on one GPU that does five steps per second.

    >>> ones = np.ones(2)
    >>> problem = JobKinds(np.full((2, 1), 5.0), ones, ones, np.ones(1))
    >>> shares, makespan = makespan_shares(problem, 1e3 * ones)
    >>> shares.ravel().round(6).tolist(), round(makespan, 3)
    ([0.5, 0.5], 400.0)
    """
    # Jobs without remaining steps get a share too. If no job has remaining steps, all jobs count
    # the same.
    steps_left = np.maximum(steps_left, 1e-9 * float(steps_left.max()) or 1.0)
    if backend == "ecos" and tolerance > 0:
        return _bisected_by_ecos(problem, steps_left, tolerance)
    best = level_shares(problem, steps_left, backend)
    if not tolerance > 0:
        return best.shares, 1.0 / best.level
    makespan = bisected_makespan(1.0 / best.level, tolerance)
    floor = steps_left / makespan
    return central_point(problem, floor, level_shares(problem, floor, backend)), makespan


def _bisected_by_ecos(
    problem: JobKinds,
    steps_left: Floats,
    tolerance: float,
    low: float = BISECTION_LOW_S,
    high: float = BISECTION_HIGH_S,
) -> tuple[Floats, float]:
    """Solution at the last makespan that ECOS calls feasible, and the upper end (s).

    If no makespan up to ``high`` is feasible, the bisection goes on from ``high`` to 10 ``high``.
    """
    solution = None
    first_high = high
    while (1.0 + tolerance) * low < high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        shares = ecos_point(problem, steps_left / middle)
        if shares is None:
            low = middle
        else:
            high = middle
            solution = shares
    if solution is None:
        return _bisected_by_ecos(problem, steps_left, tolerance, first_high, 10.0 * first_high)
    return solution, high
