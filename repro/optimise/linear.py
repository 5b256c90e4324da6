"""Linear and linear-fractional programmes over Gavel's shares of time, with one answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from repro.optimise.counted import solves

Array = npt.NDArray[np.float64]

#: Relative loss of an objective allowed to the passes after it.
SLACK = 1e-9
#: Shares below this are put down to that slack: a job given one would still be owed a round.
DUST = 1e-6


def collapse(kinds: Sequence[Hashable]) -> tuple[list[int], Array, list[int]]:
    """Group jobs that a programme cannot tell apart.

    Parameters
    ----------
    kinds : sequence of hashable
        One key per job.

    Returns
    -------
    list of int
        One job (position in ``kinds``) of each type; types in an order that does not depend on
        that of the jobs.
    ndarray, shape (types,)
        Jobs of each type.
    list of int
        Row of each job in the two above.

    Examples
    --------
    >>> collapse(["b", "a", "b"])
    ([1, 0], array([1., 2.]), [1, 0, 1])
    """
    counts = Counter(kinds)
    first = {kind: place for place, kind in reversed(list(enumerate(kinds)))}
    order = sorted(counts, key=repr)
    row = {kind: number for number, kind in enumerate(order)}
    each = np.array([counts[kind] for kind in order], dtype=float)
    return [first[kind] for kind in order], each, [row[kind] for kind in kinds]


def runnable(speeds: Array, widths: Any, capacity: Any) -> Array:
    """Return speeds with 0 where the gang is wider than the type has GPUs.

    Parameters
    ----------
    speeds : ndarray, shape (types, GPU types)
        Steps per second.
    widths, capacity : array-like
        GPUs of a job of each type; GPUs of each GPU type.

    Examples
    --------
    >>> runnable(np.array([[3.0, 2.0]]), [4], [2, 8]).tolist()
    [[0.0, 2.0]]
    """
    fits: Array = np.where(np.asarray(widths)[:, None] <= np.asarray(capacity), speeds, 0.0)
    return fits


def best_shares(
    values: Array,
    counts: Any,
    widths: Any,
    capacity: Any,
    *,
    cost: Array | None = None,
    speeds: Array | None = None,
    floors: Array | None = None,
) -> Array | None:
    """Return the shares of highest total value, or of highest total value per total cost.

    The variables are Y, the time of all jobs of a type together, and s: time sum_j Y_kj <= c_k s,
    GPUs sum_k width_k Y_kj <= W_j s, floors sum_j T_kj Y_kj >= c_k f_k s; X = Y / (c s). Without
    ``cost`` s is 1; with it sum cost Y is 1 (Charnes and Cooper), which makes the ratio linear.
    Of several optima, a second pass under ``cost`` takes those that run the jobs the most (least
    s), and a last pass the one with the largest least share of time z, sum_j Y_kj >= c_k z.

    Parameters
    ----------
    values : ndarray, shape (types, GPU types)
        Value of all the time of one job of the type on the GPU type; 0 = not to be run there.
    counts, widths, capacity : array-like
        Jobs of each type (c); GPUs of a job of each type; GPUs of each GPU type (W).
    cost : ndarray, shape (types, GPU types), optional
        Cost of all the time of one job.
    speeds, floors : ndarray, shapes (types, GPU types) and (types,), optional
        Steps per second (T) and the least a job of the type must reach (f).

    Returns
    -------
    ndarray, shape (types, GPU types), or None
        Share of time of one job of each type; None if the floors cannot be met together.

    References
    ----------
    Gavel, OSDI 2020, sections 4.1 (constraints) and 4.2 (cost).

    Examples
    --------
    >>> values = np.array([[1.0, 3.0], [1.0, 2.0]])
    >>> best_shares(values, [1, 1], [1, 1], [1, 1]).round(6).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    >>> cost = np.array([[1.0, 4.0], [1.0, 4.0]])
    >>> best_shares(values, [1, 1], [1, 1], [1, 1], cost=cost).round(6).tolist()
    [[0.5, 0.0], [0.5, 0.0]]
    """
    # the solver takes longer to import than most policies to run
    from scipy.sparse import csr_array, vstack

    each, gangs = np.asarray(counts, float), np.asarray(widths, float)
    types, kinds = values.shape
    size = types * kinds
    rows, columns = np.repeat(np.arange(types), kinds), np.tile(np.arange(kinds), types)
    place = np.arange(size)

    def per_type(weights: Array) -> Any:
        return csr_array((weights.ravel(), (rows, place)), shape=(types, size))

    time = per_type(np.ones(size))
    used = csr_array((gangs[rows], (columns, place)), shape=(kinds, size))
    # columns Y, s, z; every row is <= 0
    blocks = [
        _block(time, -each, np.zeros(types)),
        _block(used, -np.asarray(capacity, float), np.zeros(kinds)),
        _block(-time, np.zeros(types), each),
    ]
    if speeds is not None and floors is not None:
        bound = np.flatnonzero(floors > 0)
        reach = per_type(-speeds)[bound]
        blocks.append(_block(reach, (each * floors)[bound], np.zeros(len(bound))))
    upper = np.append(np.where(values > 0, np.inf, 0.0).ravel(), [np.inf, np.inf])
    unit = np.append(np.zeros(size), [1.0, 0.0])
    norm = unit if cost is None else np.append(cost.ravel(), [0.0, 0.0])
    goals = [np.append(values.ravel(), [0.0, 0.0])]
    if cost is not None:
        goals.append(-unit)
    goals.append(np.append(np.zeros(size), [0.0, 1.0]))

    matrix, limits, answer = vstack(blocks), np.zeros(sum(b.shape[0] for b in blocks)), None
    for goal in goals:
        found = _solve(-goal, matrix, limits, norm, upper)
        if found is None:
            # rounding may leave a later pass without any room; the answer before is optimal too
            break
        answer = found
        reached = float(goal @ found)
        matrix = vstack([matrix, csr_array(-goal[None, :])])
        limits = np.append(limits, SLACK * abs(reached) - reached)
    if answer is None:
        return None
    shares: Array = answer[:size].reshape(values.shape) / (each[:, None] * answer[size])
    return np.where(shares < DUST, 0.0, np.minimum(shares, 1.0))


def _block(left: Any, scale: Array, least: Array) -> Any:
    from scipy.sparse import csr_array, hstack

    return hstack([left, csr_array(np.column_stack([scale, least]))])


@solves("LP")
def _solve(goal: Array, matrix: Any, limits: Array, norm: Array, upper: Array) -> Array | None:
    from scipy.optimize import linprog

    answer = linprog(
        goal,
        A_ub=matrix,
        b_ub=limits,
        A_eq=norm[None, :],
        b_eq=[1.0],
        bounds=np.column_stack([np.zeros_like(upper), upper]),
        method="highs",
    )
    return None if answer.x is None else np.asarray(answer.x, dtype=float)
