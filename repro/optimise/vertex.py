"""Max-min fair shares of job types over GPU types by linear programmes solved at a vertex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from repro.errors import PolicyError
from repro.optimise.counted import solves

if TYPE_CHECKING:
    from repro.optimise.centre import Centre, Crowd

Array = npt.NDArray[np.float64]


def max_min_shares(
    values: Array, counts: Sequence[int], widths: Sequence[int], capacity: Sequence[int]
) -> Array:
    """Return the shares that maximise the smallest value, then the sum of values.

    Jobs of one type get the same shares, which is optimal because the problem is convex; the
    size of the programme is that of the types. The second pass singles out one of many optima,
    and rows must come in an order that does not depend on that of the jobs.

    Parameters
    ----------
    values : ndarray, shape (types, GPU types)
        Value to one job of the type of all its time on the GPU type; 0 = cannot run there.
    counts : sequence of int
        Jobs of each type.
    widths : sequence of int
        GPUs of a job of each type.
    capacity : sequence of int
        GPUs of each GPU type.

    Returns
    -------
    ndarray, shape (types, GPU types)
        Share of time of one job of each type.

    Raises
    ------
    PolicyError
        If the solver fails, or a type runs nowhere.

    References
    ----------
    Gavel, OSDI 2020, section 4.1.

    Examples
    --------
    >>> max_min_shares(np.array([[4.0, 1.0], [2.0, 1.0]]), [1, 1], [1, 1], [1, 1]).round(3)
    array([[0.25, 0.75],
           [0.75, 0.25]])
    """
    from repro.optimise.centre import Crowd

    crowd = Crowd(values, np.asarray(counts), np.asarray(widths), np.asarray(capacity))
    return vertex_level(crowd, np.ones(len(values)))[0]


def vertex_level(crowd: Crowd, scale: Array, floor: Array | None = None) -> tuple[Array, float]:
    """Return shares with the largest z in v_k x_k >= scale_k z + floor_k, and z.

    Parameters
    ----------
    crowd : Crowd
        Rows and GPUs.
    scale, floor : ndarray, shape (rows,)
        As for `central_level`.

    Returns
    -------
    (ndarray, float)
        Among the best shares those with the largest sum of values; the level.

    Raises
    ------
    PolicyError
        If the floors cannot be met; names the row that is to blame.

    Examples
    --------
    >>> from repro.optimise.centre import Crowd
    >>> crowd = Crowd(np.array([[1.0]]), np.ones(1), np.ones(1), np.ones(1))
    >>> vertex_level(crowd, np.array([0.5]))[1]
    2.0
    """
    from scipy.sparse import csr_array, hstack

    rows, kinds = crowd.worth.shape
    floor = np.zeros(rows) if floor is None else floor
    matrix, limits, upper, need = _constraints(crowd, floor)
    column = csr_array(np.append(np.zeros(rows + kinds), need * scale)[:, None])
    first = _solve(
        np.append(np.zeros(rows * kinds), -1.0),
        hstack([matrix, column]),
        limits,
        np.append(upper, np.inf),
        -np.inf,
    )
    if first is None:
        raise PolicyError(blame(crowd, floor))
    level = float(first[-1])
    limits[rows + kinds :] -= need * scale * level
    second = _solve(-np.where(crowd.usable, crowd.worth, 0.0).ravel(), matrix, limits, upper)
    # Rounding may leave the second pass without any room; the first answer is optimal too.
    shares = first[:-1] if second is None else second
    each = crowd.counts[:, None].astype(float)
    return np.clip(shares.reshape(rows, kinds) / each, 0.0, 1.0), level


def improvable(crowd: Crowd, scale: Array, floor: Array, level: float) -> npt.NDArray[np.bool_]:
    """Tell which rows can exceed scale_k z + floor_k while all others reach it.

    The set of such shares is convex: rows that can improve one at a time can improve together.

    Parameters
    ----------
    crowd, scale, floor
        As for `vertex_level`.
    level : float
        z.

    Returns
    -------
    ndarray of bool, shape (rows,)
        The rows that are no bottleneck.
    """
    from scipy.sparse import csr_array, hstack

    rows, kinds = crowd.worth.shape
    matrix, limits, upper, need = _constraints(crowd, floor)
    goal = np.where(need > 0, floor, 0.0) + scale * level
    limits[rows + kinds :] = -need * (goal - 1e-9 * np.abs(goal))
    gain = 1e-5 * np.maximum(goal, 1e-3)
    extra = csr_array((need, (rows + kinds + np.arange(rows), np.arange(rows))),
                      shape=(2 * rows + kinds, rows))  # fmt: skip
    found = _solve(
        np.concatenate([np.zeros(rows * kinds), -1.0 / gain]),
        hstack([matrix, extra]),
        limits,
        np.concatenate([upper, gain]),
    )
    if found is None:
        return np.zeros(rows, dtype=bool)
    better: npt.NDArray[np.bool_] = found[rows * kinds :] > 0.5 * gain
    return better


def blame(crowd: Crowd, floor: Array) -> str:
    """Say which constraint family and which row make the floors impossible."""
    alone = np.where(crowd.usable, crowd.worth, 0.0).max(axis=1)
    for row in np.flatnonzero(floor > alone * (1 + 1e-9)).tolist():
        return (
            f"time of one job: {crowd.name(row)} must reach {floor[row]:.6g} but all its time on "
            f"its best GPU type gives {alone[row]:.6g}; lower what it is promised"
        )
    from repro.optimise.centre import central_level

    real = floor > 0
    best = central_level(crowd, np.where(real, floor, 0.0), np.where(real, 0.0, -np.inf))
    row = int(np.argmax(floor / alone if best is None else best.price))
    return (
        f"GPUs of each type: {crowd.gpus.tolist()} GPUs cannot give every job what it is promised; "
        f"{crowd.name(row)} weighs most; use more GPUs or lower the promises"
    )


def _constraints(crowd: Crowd, floor: Array) -> tuple[Any, Array, Array, Array]:
    """Return matrix, limits and bounds over total shares of a row, and each row's multiplier.

    The rows are the time of each row, the GPUs of each type, and the floors.
    """
    # the solver takes longer to import than most policies to run; only this one needs it
    from scipy.sparse import csr_array, vstack

    rows, kinds = crowd.worth.shape
    size = rows * kinds
    each = crowd.counts.astype(float)
    row, place = np.repeat(np.arange(rows), kinds), np.arange(size)
    need = np.where(floor > -np.inf, each, 0.0)
    kept = np.where(crowd.usable & (floor > -np.inf)[:, None], crowd.worth, 0.0)
    time = csr_array((np.ones(size), (row, place)), shape=(rows, size))
    column = np.tile(np.arange(kinds), rows)
    used = csr_array((crowd.widths.astype(float)[row], (column, place)), shape=(kinds, size))
    worth = csr_array((-kept.ravel(), (row, place)), shape=(rows, size))
    least = need * np.where(floor > -np.inf, floor, 0.0)
    limits = np.concatenate([each, crowd.gpus.astype(float), -least])
    upper = np.where(crowd.usable, each[:, None], 0.0).ravel()
    return vstack([time, used, worth]), limits, upper, need


@solves("LP")
def _solve(
    cost: Array, matrix: Any, limits: Array, upper: Array, last: float = 0.0
) -> Array | None:
    """Return the solution with 0 <= unknowns <= upper; ``last`` is the last one's lower bound."""
    from scipy.optimize import linprog

    bounds = np.column_stack([np.zeros_like(upper), upper])
    bounds[-1, 0] = last
    answer = linprog(cost, A_ub=matrix, b_ub=limits, bounds=bounds, method="highs")
    return None if answer.x is None else np.asarray(answer.x, dtype=float)


def vertex_centre(crowd: Crowd, scale: Array, floor: Array | None = None) -> Centre:
    """Return `vertex_level` with the bottlenecks found by `improvable`, as a `Centre`."""
    from repro.optimise.centre import Centre

    shares, level = vertex_level(crowd, scale, floor)
    free = improvable(crowd, scale, np.zeros(len(scale)) if floor is None else floor, level)
    return Centre(shares, level, free.astype(float), (~free).astype(float))


def vertex_ratio(crowd: Crowd, left: Array, due: Array, spent: Array) -> tuple[Array, float]:
    """Return shares with the least ratio max_k (spent_k + left_k / u_k) / due_k, and the ratio.

    Bisection: a ratio is possible if every job reaches the speed left / (ratio due - spent).

    Parameters
    ----------
    crowd, left, due, spent
        As for `central_ratio`.

    Examples
    --------
    >>> from repro.optimise.centre import Crowd
    >>> crowd = Crowd(np.array([[2.0]]), np.array([2]), np.ones(1), np.ones(1))
    >>> round(vertex_ratio(crowd, np.array([4.0]), np.array([3.0]), np.array([1.0]))[1], 6)
    1.666667
    """
    low = float((spent / due).max())
    start = (crowd.sparse_shares() * crowd.worth).sum(axis=1)
    high = float(((spent + left / start) / due).max())
    shares = crowd.sparse_shares()
    while high - low > 1e-9 * high:
        ratio = 0.5 * (low + high)
        found, level = vertex_level(crowd, left / (ratio * due - spent))
        if level >= 1.0:
            shares, high = found, ratio
        else:
            low = ratio
    return shares, high
