"""Max-min fair shares of single jobs and pairs over GPU types, collapsed to job types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from repro.errors import PolicyError
from repro.optimise.counted import solves

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TOLERANCE = 1e-8
MOST_STEPS = 60


@dataclass(frozen=True)
class Programme:
    """Maximise v subject to A x + free v <= limits, x >= 0; one column per (types, GPU type).

    Rows: for each width, time and value of its types; then GPUs of each GPU type.

    Parameters
    ----------
    first, second : ndarray of int, shape (columns,)
        Types of the members; ``second`` is -1 for a job alone.
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
    coefs: Array
    free: Array
    limits: Array
    row_weights: Array
    column_weights: Array
    blocks: Ints


@dataclass(frozen=True)
class TypeShares:
    """Time that types and pairs of types spend on each GPU type, summed over their jobs.

    Parameters
    ----------
    alone : ndarray, shape (types, GPU types)
        Jobs that have their GPUs to themselves.
    first, second : ndarray of int, shape (pairs,)
        Types of the pairs, ``first <= second``.
    together : ndarray, shape (pairs, GPU types)
        Pairs that share GPUs.
    level : float
        The maximised least value.
    """

    alone: Array
    first: Ints
    second: Ints
    together: Array
    level: float


def programme(
    values: Array,
    paired: Array,
    counts: Array,
    widths: Array,
    capacity: Array,
    *,
    demand: Array | None = None,
    limits: Array | None = None,
    within: npt.NDArray[np.bool_] | None = None,
    pairs: str = "all",
) -> Programme:
    """Set up max-min fairness with space sharing over job types.

    Parameters
    ----------
    values : ndarray, shape (types, GPU types)
        Value to one job of a type of all its time alone on the GPU type; 0 = cannot run there.
    paired : ndarray, shape (types, types, GPU types)
        ``paired[a, b]``: value to a job of type a while it shares its GPUs with one of type b.
    counts : ndarray, shape (types,)
        Jobs of each type.
    widths : ndarray, shape (types,)
        GPUs of a job; only types of equal width are paired.
    capacity : ndarray, shape (GPU types,)
        GPUs of each type.
    demand : ndarray, shape (types,), optional
        Value that all jobs of the type get together per unit of v; None: ``counts``.
    limits : ndarray, shape (types,), optional
        Time that all jobs of the type may spend together; None: ``counts``.
    within : ndarray of bool, shape (types,), optional
        Types whose jobs may be paired with each other; None: those of two jobs or more.
    pairs : {"all", "working", "useful"}
        Pairs offered: all, also those that run out of memory (they take up barrier, as in the
        public simulator); those that run; those that beat time slicing on the GPU type.

    Returns
    -------
    Programme
        Columns in the order of types, so that the order of jobs does not matter.

    References
    ----------
    Gavel, OSDI 2020, section 4.1 (space sharing).

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> programme(one, 0.8 * one[None], np.array([2.0]), one[0], one[0]).coefs
    array([[ 0. ,  1. ,  0. , -1. ,  1. ],
           [ 2. ,  0. , -1.6,  0. ,  1. ]])
    """
    # the compiler takes longer to import than most policies to run
    from repro.optimise.pairs.columns import OFFERS, columns

    types, kinds = values.shape
    within = counts >= 2 if within is None else within
    first, second, column, rows, coefs, weights, blocks, time, value = columns(
        values, paired, counts, widths, capacity, within, OFFERS[pairs]
    )
    free, bounds = np.zeros(2 * types + kinds), np.zeros(2 * types + kinds)
    row_weights = np.ones(2 * types + kinds)
    free[value] = counts if demand is None else demand
    bounds[time] = counts if limits is None else limits
    bounds[2 * types :] = capacity
    row_weights[time] = row_weights[value] = counts
    return Programme(first, second, column, rows, coefs, free, bounds, row_weights, weights, blocks)


@solves("LP")
def solve(
    problem: Programme, method: str = "centre", given: float | None = None
) -> tuple[Array, float]:
    """Return the columns and v of the optimum.

    Parameters
    ----------
    problem : Programme
        The programme.
    method : {"centre", "vertex"}
        Near the analytic centre of all optima (interior point), or a vertex (HiGHS), which also
        stands in where the interior point fails.
    given : float, optional
        A point amid all that reach at least this v, instead of the largest v.

    Raises
    ------
    PolicyError
        If neither finds an optimum.
    """
    if method == "centre":
        from repro.optimise.pairs.interior import centre

        free, limits, goal = problem.free, problem.limits, 1.0
        if given is not None:
            free, limits, goal = np.zeros_like(free), limits - given * free, 0.0
        x, level, _, steps = centre(
            problem.rows, problem.coefs, free, limits, problem.column_weights,
            problem.row_weights, problem.first == problem.second, problem.blocks, goal, TOLERANCE,
            MOST_STEPS,
        )  # fmt: skip
        if steps >= 0 and np.isfinite(x).all():
            return np.maximum(x, 0.0), float(level) if given is None else given
    return _vertex(problem)


def _vertex(problem: Programme) -> tuple[Array, float]:
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack

    count, size = len(problem.first), len(problem.limits)
    numbers = np.repeat(np.arange(count), 5)
    matrix: Any = csr_array(
        (problem.coefs.ravel(), (problem.rows.ravel(), numbers)), shape=(size, count)
    )
    matrix = hstack([matrix, csr_array(problem.free[:, None])])
    answer = linprog(
        np.append(np.zeros(count), -1.0), A_ub=matrix, b_ub=problem.limits, method="highs"
    )
    if answer.x is None:
        raise PolicyError(
            f"no max-min shares of pairs for {np.count_nonzero(problem.free)} job types: "
            f"{answer.message}"
        )
    return np.asarray(answer.x[:-1], dtype=float), float(answer.x[-1])


def shares(
    problem: Programme,
    types: int,
    kinds: int,
    solver: Callable[[Programme], tuple[Array, float]] = solve,
) -> TypeShares:
    """Solve and sort the answer into single jobs and pairs; what cannot run is dropped.

    Parameters
    ----------
    problem : Programme
        From `programme`.
    types, kinds : int
        Number of job types and of GPU types.
    solver : callable
        `solve`, or another with its signature.

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> task = programme(one, 0.8 * one[None], np.array([2.0]), one[0], one[0])
    >>> round(shares(task, 1, 1).level, 6)
    0.8
    """
    from repro.optimise.pairs.columns import sort_out

    x, level = solver(problem)
    alone, first, second, together = sort_out(
        x, problem.first, problem.second, problem.column, problem.coefs, types, kinds
    )
    return TypeShares(alone, first, second, together, level)
