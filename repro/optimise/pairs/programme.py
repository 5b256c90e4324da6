"""Max-min fair shares of single jobs and pairs over GPU types, for kinds of equal jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from repro.errors import PolicyError
from repro.optimise.counted import solves
from repro.optimise.linear import minimise
from repro.typing import Flags, Floats, Ints

TOLERANCE = 1e-8
MOST_STEPS = 60


@dataclass(frozen=True)
class PairCrowd:
    """Kinds of jobs that may share GPUs two at a time, and these GPUs.

    Parameters
    ----------
    value : ndarray, shape (kinds, types)
        Value to one job of all its time alone on the GPU type; 0 = cannot run there.
    paired : ndarray, shape (kinds, kinds, types)
        ``paired[a, b]``: value to a job of kind a while it shares its GPUs with one of kind b.
    widths : ndarray, shape (kinds,)
        GPUs of a job; only kinds of equal width are paired.
    gpus : ndarray, shape (types,)
        GPUs of each type.
    """

    value: Floats
    paired: Floats
    widths: Floats
    gpus: Floats


@dataclass(frozen=True)
class Programme:
    """Maximise v subject to A x + free v <= limits, x >= 0; one column per (kinds, GPU type).

    Rows: for each width, time and value of its kinds; then GPUs of each type.

    Parameters
    ----------
    first, second : ndarray of int, shape (columns,)
        Kinds of the members; ``second`` is -1 for a job alone.
    column : ndarray of int, shape (columns,)
        GPU type.
    rows, coefs : ndarray, shape (columns, 5)
        Sparse A: row numbers (time of both members, value of both, GPUs) and coefficients. A job
        alone is its own second member; its first has coefficients 0.
    free, limits, row_weights : ndarray, shape (rows,)
        Coefficients of v, right-hand sides, constraints on jobs that each row stands for.
    column_weights : ndarray, shape (columns,)
        Jobs or pairs of jobs that each column stands for.
    blocks : ndarray of int
        First row of each width, and of the GPU types.
    """

    first: Ints
    second: Ints
    column: Ints
    rows: Ints
    coefs: Floats
    free: Floats
    limits: Floats
    row_weights: Floats
    column_weights: Floats
    blocks: Ints


@dataclass(frozen=True)
class KindShares:
    """Time that kinds and pairs of kinds spend on each GPU type, summed over their jobs.

    Parameters
    ----------
    alone : ndarray, shape (kinds, types)
        Jobs that have their GPUs to themselves.
    first, second : ndarray of int, shape (pairs,)
        Kinds of the pairs, ``first <= second``.
    together : ndarray, shape (pairs, types)
        Pairs that share GPUs.
    level : float
        The maximised least value.
    """

    alone: Floats
    first: Ints
    second: Ints
    together: Floats
    level: float


def programme(
    crowd: PairCrowd,
    counts: Floats,
    *,
    demand: Floats | None = None,
    limits: Floats | None = None,
    within: Flags | None = None,
    pairs: str = "all",
) -> Programme:
    """Set up max-min fairness with space sharing; columns come in the order of kinds.

    Parameters
    ----------
    crowd : PairCrowd
        Kinds of jobs and GPUs.
    counts : ndarray, shape (kinds,)
        Jobs of each kind.
    demand, limits : ndarray, shape (kinds,), optional
        Value that all jobs of the kind get together per unit of v, and time they may spend
        together; None: ``counts``.
    within : ndarray of bool, shape (kinds,), optional
        Kinds whose jobs may be paired with each other; None: those of two jobs or more.
    pairs : {"all", "working", "useful"}
        Pairs offered: all, also those that run out of memory (they take up barrier, as in the
        public simulator); those that run; those that beat time slicing on the GPU type.

    References
    ----------
    Gavel, OSDI 2020, section 4.1 (space sharing).

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> programme(PairCrowd(one, 0.8 * one[None], one[0], one[0]), np.array([2.0])).coefs
    array([[ 0. ,  1. ,  0. , -1. ,  1. ],
           [ 2. ,  0. , -1.6,  0. ,  1. ]])
    """
    from repro.optimise.pairs.columns import OFFERS, columns

    kinds, types = crowd.value.shape
    within = counts >= 2 if within is None else within
    first, second, column, rows, coefs, weights, blocks, time, value = columns(
        crowd.value, crowd.paired, counts, crowd.widths, crowd.gpus, within, OFFERS[pairs]
    )
    free, bounds = np.zeros(2 * kinds + types), np.zeros(2 * kinds + types)
    row_weights = np.ones(2 * kinds + types)
    free[value] = counts if demand is None else demand
    bounds[time] = counts if limits is None else limits
    bounds[2 * kinds :] = crowd.gpus
    row_weights[time] = row_weights[value] = counts
    return Programme(first, second, column, rows, coefs, free, bounds, row_weights, weights, blocks)


def solve(
    problem: Programme, method: str = "centre", given: float | None = None
) -> tuple[Floats, float]:
    """Return the columns and v of the optimum, or of a point amid all with v of at least ``given``.

    ``method`` "centre" (interior point) ends near the analytic centre of all optima; "vertex"
    (HiGHS) also stands in where the interior point fails. Raises
    `PolicyError` if neither does.
    """
    found = _central(problem, given) if method == "centre" else None
    return _vertex(problem) if found is None else found


@solves("LP")
def _central(problem: Programme, given: float | None) -> tuple[Floats, float] | None:
    """Return columns and v near the centre; None where the interior point fails."""
    from repro.optimise.pairs.interior import centre

    free, limits, goal = problem.free, problem.limits, 1.0
    if given is not None:
        free, limits, goal = np.zeros_like(free), limits - given * free, 0.0
    x, level, _, steps = centre(
        problem.rows, problem.coefs, free, limits, problem.column_weights,
        problem.row_weights, problem.first == problem.second, problem.blocks, goal, TOLERANCE,
        MOST_STEPS,
    )  # fmt: skip
    if steps < 0 or not np.isfinite(x).all():
        return None
    return np.maximum(x, 0.0), float(level) if given is None else given


def _vertex(problem: Programme) -> tuple[Floats, float]:
    """Return columns and v of an optimal vertex."""
    from scipy.sparse import csr_array, hstack

    count, size = len(problem.first), len(problem.limits)
    numbers = np.repeat(np.arange(count), 5)
    matrix: Any = csr_array(
        (problem.coefs.ravel(), (problem.rows.ravel(), numbers)), shape=(size, count)
    )
    matrix = hstack([matrix, csr_array(problem.free[:, None])])
    answer = minimise(np.append(np.zeros(count), -1.0), matrix, problem.limits)
    if answer.x is None:
        raise PolicyError(
            f"no max-min shares of pairs for {np.count_nonzero(problem.free)} job types: "
            f"{answer.message}"
        )
    return np.asarray(answer.x[:-1], dtype=float), float(answer.x[-1])


def shares(
    problem: Programme, solver: Callable[[Programme], tuple[Floats, float]] = solve
) -> KindShares:
    """Solve and sort the answer into single jobs and pairs; what cannot run is dropped.

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> task = programme(PairCrowd(one, 0.8 * one[None], one[0], one[0]), np.array([2.0]))
    >>> round(shares(task).level, 6)
    0.8
    """
    from repro.optimise.pairs.columns import sort_out

    x, level = solver(problem)
    kinds, types = problem.blocks[-1] // 2, len(problem.limits) - problem.blocks[-1]
    alone, first, second, together = sort_out(
        x, problem.first, problem.second, problem.column, problem.coefs, kinds, types
    )
    return KindShares(alone, first, second, together, level)
