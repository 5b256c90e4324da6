"""Max-min fair shares of job types over GPU types, as a linear programme with one answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from repro.errors import PolicyError

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
        If the solver fails.

    References
    ----------
    Gavel, OSDI 2020, section 4.1.

    Examples
    --------
    >>> max_min_shares(np.array([[4.0, 1.0], [2.0, 1.0]]), [1, 1], [1, 1], [1, 1]).round(3)
    array([[0.25, 0.75],
           [0.75, 0.25]])
    """
    # the solver takes longer to import than most policies to run; only this one needs it
    from scipy.sparse import csr_array, hstack, vstack

    types, kinds = values.shape
    size = types * kinds
    each = np.asarray(counts, dtype=float)
    rows = np.repeat(np.arange(types), kinds)
    columns = np.tile(np.arange(kinds), types)
    wide = np.asarray(widths)[:, None] > np.asarray(capacity)[None, :]
    upper = np.where(wide | (values <= 0), 0.0, each[:, None]).ravel()
    place = np.arange(size)
    time = csr_array((np.ones(size), (rows, place)), shape=(types, size))
    used = csr_array((np.asarray(widths, float)[rows], (columns, place)), shape=(kinds, size))
    worth = csr_array((-values.ravel(), (rows, place)), shape=(types, size))
    limits = np.concatenate([each, np.asarray(capacity, dtype=float)])
    fixed = vstack([time, used])

    column = csr_array(np.concatenate([np.zeros(types + kinds), each])[:, None])
    first = _solve(
        np.append(np.zeros(size), -1.0),
        hstack([vstack([fixed, worth]), column]),
        np.concatenate([limits, np.zeros(types)]),
        np.append(upper, np.inf),
    )
    if first is None:
        raise PolicyError(f"no max-min shares for {types} job types on {list(capacity)} GPUs")
    second = _solve(
        -values.ravel(),
        vstack([fixed, worth]),
        np.concatenate([limits, -first[-1] * each]),
        upper,
    )
    # Rounding may leave the second pass without any room; the first answer is optimal too.
    shares = first[:-1] if second is None else second
    answer: Array = np.clip(shares.reshape(values.shape) / each[:, None], 0.0, 1.0)
    return answer


def _solve(cost: Array, matrix: Any, limits: Array, upper: Array) -> Array | None:
    from scipy.optimize import linprog

    bounds = np.column_stack([np.zeros_like(upper), upper])
    answer = linprog(cost, A_ub=matrix, b_ub=limits, bounds=bounds, method="highs")
    return None if answer.x is None else np.asarray(answer.x, dtype=float)
