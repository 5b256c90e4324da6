"""Linear programmes by HiGHS: Gavel's shares of highest total value, or value per cost."""

from typing import Any

import numpy as np

from repro.base.typing import Floats
from repro.solve.counted import SOLVED

#: Relative loss of an objective that each later pass may cause.
SLACK = 1e-9
#: Smaller shares are dropped. They come from `SLACK`. With such a share, a job would still get GPUs
#: in some rounds.
MIN_SHARE = 1e-6


def minimise_linear(
    cost: Floats,
    matrix: Any,
    limits: Any,
    *,
    lower: Any = 0.0,
    upper: Any = np.inf,
    equality_row: Floats | None = None,
) -> Any:
    """Minimise cost x subject to matrix x <= limits and lower <= x <= upper.

    With an ``equality_row``, equality_row x = 1 is a further constraint. The answer is SciPy's; its
    ``x`` is None where there is no optimum.
    """
    # This import takes longer than a run of most policies.
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, vstack

    SOLVED["LP"] += 1
    size = len(cost)
    row_lower = np.full(len(limits), -np.inf)
    row_upper = np.asarray(limits, dtype=float)
    if equality_row is not None:
        matrix = vstack([matrix, csr_array(equality_row[None, :])])
        row_lower = np.append(row_lower, 1.0)
        row_upper = np.append(row_upper, 1.0)
    # `linprog` passes the same model to HiGHS and takes twice as long for small programmes.
    return milp(
        cost,
        constraints=LinearConstraint(matrix, row_lower, row_upper),
        bounds=Bounds(np.broadcast_to(lower, size), np.broadcast_to(upper, size)),
    )


def time_and_gpus(kinds: int, widths: Floats, types: int) -> tuple[Any, Any]:
    """Matrices that give the time and the GPUs in use, from Y in row-major order.

    Y_kj is the time of all jobs of kind k together on GPU type j, (kinds, types). The first matrix
    has a row sum_j Y_kj per kind. The second has a row sum_k width_k Y_kj per GPU type.
    """
    from scipy.sparse import csr_array

    size = kinds * types
    variable = np.arange(size)
    kind = np.repeat(np.arange(kinds), types)
    gpu_type = np.tile(np.arange(types), kinds)
    time = csr_array((np.ones(size), (kind, variable)), shape=(kinds, size))
    used = csr_array((widths[kind], (gpu_type, variable)), shape=(types, size))
    return time, used


def total_by_kind(values: Floats) -> Any:
    """Matrix with a row sum_j values_kj Y_kj per kind, from Y in row-major order.

    ``values`` has shape (kinds, types), the matrix (kinds, kinds x types).
    """
    from scipy.sparse import csr_array

    kinds, types = values.shape
    row_begins = np.arange(0, values.size + 1, types)
    entries = (values.ravel(), np.arange(values.size), row_begins)
    return csr_array(entries, shape=(kinds, values.size))


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
    """Shares of highest total value, or of highest total value per total cost, (kinds, types).

    ``values``, ``cost`` and ``speeds`` (T, steps/s) have the shape (kinds, types). An entry is that
    of one job with all its time on the GPU type. A job of kind k gets at least f_k = ``floors``
    steps/s. None: the floors cannot be met.

    The variables are Y, the time of all jobs of a kind together, and s. The shares are
    X = Y / (c s), with c_k the ``counts`` of kind k. Constraints: time sum_j Y_kj <= c_k s, GPUs
    sum_k width_k Y_kj <= W_j s, floors sum_j T_kj Y_kj >= c_k f_k s. W_j are the ``gpus`` of type
    j. Without ``cost`` s is 1. With ``cost``, sum cost Y is 1, which makes the ratio linear
    (Charnes and Cooper). A second pass among the optima then minimises s, so that X = Y / (c s) is
    largest. A last pass maximises the least share of time z, sum_j Y_kj >= c_k z.
    """
    from scipy.sparse import csr_array, hstack, vstack

    job_counts = np.asarray(counts, float)
    capacity = np.asarray(gpus, float)
    kinds, types = values.shape
    size = values.size
    time, used = time_and_gpus(kinds, np.asarray(widths, float), types)
    # Columns are Y, s and z; every row is <= 0.
    rows = [
        (time, -job_counts, np.zeros(kinds)),
        (used, -capacity, np.zeros(types)),
        (-time, np.zeros(kinds), job_counts),
    ]
    if speeds is not None and floors is not None:
        with_floor = np.flatnonzero(floors > 0)
        throughput = total_by_kind(-speeds)
        floor_coefs = (job_counts * floors)[with_floor]
        rows.append((throughput[with_floor], floor_coefs, np.zeros(len(with_floor))))
    blocks = [
        hstack([shares_block, csr_array(np.column_stack([s_column, z_column]))])
        for shares_block, s_column, z_column in rows
    ]
    matrix = vstack(blocks)
    upper = np.append(np.where(values > 0, np.inf, 0.0).ravel(), [np.inf, np.inf])
    s_coefs = np.zeros(size + 2)
    s_coefs[-2] = 1.0
    z_coefs = np.zeros(size + 2)
    z_coefs[-1] = 1.0
    equality_row = s_coefs if cost is None else np.append(cost.ravel(), [0.0, 0.0])
    total_value = np.append(values.ravel(), [0.0, 0.0])
    goals = [total_value, z_coefs] if cost is None else [total_value, -s_coefs, z_coefs]

    limits = np.zeros(matrix.shape[0])
    answer = None
    for goal in goals:
        x = minimise_linear(-goal, matrix, limits, upper=upper, equality_row=equality_row).x
        if x is None:
            # Rounding can make a later pass infeasible; the answer of the pass before is optimal.
            break
        answer = np.asarray(x, dtype=float)
        reached = float(goal @ answer)
        matrix = vstack([matrix, csr_array(-goal[None, :])])
        limits = np.append(limits, SLACK * abs(reached) - reached)
    if answer is None:
        return None
    shares: Floats = answer[:size].reshape(values.shape) / (job_counts[:, None] * answer[size])
    return np.where(shares < MIN_SHARE, 0.0, np.minimum(shares, 1.0))
