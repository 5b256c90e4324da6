"""Ridge regressions of many rows on the same factor, compiled."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from repro._dense import back_solve, factorise


@numba.njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def _patterns(known: Any) -> Any:
    """Return for each row the first row with the same gaps."""
    first = np.arange(len(known))
    for r in range(len(known)):
        for earlier in range(r):
            if first[earlier] == earlier and (known[earlier] == known[r]).all():
                first[r] = earlier
                break
    return first


@numba.njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def _fit(factor: Any, known: Any, first: Any, target: Any, penalty: float) -> Any:
    """Return the best other factor; rows with the same gaps have one matrix."""
    rank = factor.shape[1]
    answer = np.zeros((len(known), rank))
    matrix = np.empty((rank, rank))
    for leader in range(len(known)):
        if first[leader] != leader:
            continue
        matrix[:] = 0.0
        for c in range(len(factor)):
            if known[leader, c]:
                for i in range(rank):
                    for j in range(i, rank):
                        matrix[i, j] += factor[c, i] * factor[c, j]
        for i in range(rank):
            matrix[i, i] += penalty
        factorise(matrix)
        for r in range(leader, len(known)):
            if first[r] == leader:
                for c in range(len(factor)):
                    if known[r, c]:
                        for i in range(rank):
                            answer[r, i] += target[r, c] * factor[c, i]
                back_solve(matrix, answer[r])
    return answer


@numba.njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def alternate(
    values: Any, known: Any, left: Any, right: Any, penalty: float, stop: float, sweeps: int
) -> Any:
    """Return the product of two factors, fitted in turns.

    Parameters
    ----------
    values, known : ndarray, shape (rows, columns)
        Entries, and which of them count.
    left, right : ndarray, shapes (rows, rank) and (columns, rank)
        Where the search starts.
    penalty : float
        Weight of the squared factors.
    stop : float
        Root mean square change of an entry below which the search ends.
    sweeps : int
        Most turns.
    """
    across, target = known.T.copy(), values.T.copy()
    of_row, of_column = _patterns(known), _patterns(across)
    before = left @ right.T
    for _ in range(sweeps):
        left = _fit(right, known, of_row, values, penalty)
        right = _fit(left, across, of_column, target, penalty)
        product = left @ right.T
        change = product - before
        before = product
        if np.sqrt((change * change).mean()) < stop:
            break
    return before
