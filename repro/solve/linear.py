"""Linear programmes by HiGHS; the best total value, or value per cost, of Gavel's shares."""

from typing import Any

import numpy as np

from repro.base.typing import Floats
from repro.solve.counted import SOLVED

#: Relative loss of an objective allowed to the passes after it.
SLACK = 1e-9
#: Shares below this are put down to that slack: a job given one would still be owed a round.
DUST = 1e-6


def minimise(
    cost: Floats,
    matrix: Any,
    limits: Any,
    *,
    lower: Any = 0.0,
    upper: Any = np.inf,
    unit: Floats | None = None,
) -> Any:
    """Minimise cost x with matrix x <= limits, lower <= x <= upper and, if given, unit x = 1.

    The answer is scipy's; its ``x`` is None where there is no optimum.
    """
    # takes longer to import than most policies to run
    from scipy.optimize import linprog

    SOLVED["LP"] += 1
    size = len(cost)
    return linprog(
        cost,
        A_ub=matrix,
        b_ub=limits,
        A_eq=None if unit is None else unit[None, :],
        b_eq=None if unit is None else [1.0],
        bounds=np.column_stack([np.broadcast_to(lower, size), np.broadcast_to(upper, size)]),
        method="highs",
    )


def time_and_gpus(kinds: int, widths: Floats, types: int) -> tuple[Any, Any]:
    """Return the rows sum_j Y_kj of each kind, and sum_k width_k Y_kj of each type; Y row-major."""
    from scipy.sparse import csr_array

    place = np.arange(kinds * types)
    size = kinds * types
    rows, columns = np.repeat(np.arange(kinds), types), np.tile(np.arange(types), kinds)
    time = csr_array((np.ones(size), (rows, place)), shape=(kinds, size))
    return time, csr_array((widths[rows], (columns, place)), shape=(types, size))


def best_shares(
    values: Floats,
    counts: Any,
    widths: Any,
    gpus: Any,
    *,
    cost: Floats | None = None,
    speeds: Floats | None = None,
    floors: Floats | None = None,
) -> Floats | None:
    """Return the shares of highest total value, or of highest total value per total cost.

    Arrays of shape (kinds, types) have the value, cost and steps per second (T) of all the time of
    one job. No job of kind k gets less than f_k = ``floors`` steps per second; None if that cannot
    be.

    The variables are Y, the time of all jobs of a kind together, and s: time sum_j Y_kj <= c_k s,
    GPUs sum_k width_k Y_kj <= W_j s, floors sum_j T_kj Y_kj >= c_k f_k s; X = Y / (c s). Without
    ``cost`` s is 1; with it sum cost Y is 1 (Charnes and Cooper), which makes the ratio linear.
    Of several optima, a second pass under ``cost`` takes those that run the jobs the most (least
    s), and a last pass the one with the largest least share of time z, sum_j Y_kj >= c_k z.
    """
    from scipy.sparse import csr_array, hstack, vstack

    each = np.asarray(counts, float)
    capacity = np.asarray(gpus, float)
    kinds, types = values.shape
    size = values.size
    time, used = time_and_gpus(kinds, np.asarray(widths, float), types)
    # columns Y, s, z; every row is <= 0
    rows = [
        (time, -each, np.zeros(kinds)),
        (used, -capacity, np.zeros(types)),
        (-time, np.zeros(kinds), each),
    ]
    if speeds is not None and floors is not None:
        bound = np.flatnonzero(floors > 0)
        ends = np.arange(0, size + 1, types)
        reach = csr_array((-speeds.ravel(), np.arange(size), ends), shape=(kinds, size))[bound]
        rows.append((reach, (each * floors)[bound], np.zeros(len(bound))))
    matrix = vstack([hstack([left, csr_array(np.column_stack(right))]) for left, *right in rows])
    upper = np.append(np.where(values > 0, np.inf, 0.0).ravel(), [np.inf, np.inf])
    level = np.zeros(size + 2)
    least = np.zeros(size + 2)
    level[-2] = least[-1] = 1.0
    unit = level if cost is None else np.append(cost.ravel(), [0.0, 0.0])
    goals = [np.append(values.ravel(), [0.0, 0.0])] + [-level] * (cost is not None) + [least]

    limits = np.zeros(matrix.shape[0])
    answer = None
    for goal in goals:
        found = minimise(-goal, matrix, limits, upper=upper, unit=unit).x
        if found is None:
            # rounding may leave a later pass without any room; the answer before is optimal too
            break
        answer = np.asarray(found, dtype=float)
        reached = float(goal @ answer)
        matrix = vstack([matrix, csr_array(-goal[None, :])])
        limits = np.append(limits, SLACK * abs(reached) - reached)
    if answer is None:
        return None
    shares: Floats = answer[:size].reshape(values.shape) / (each[:, None] * answer[size])
    return np.where(shares < DUST, 0.0, np.minimum(shares, 1.0))
