"""Ridge regressions of many rows on the same factor, compiled."""

from typing import Any

import numpy as np

from repro.compiled import SUMS, njit
from repro.optimise.pairs.interior import factorise


@njit()
def _patterns(known: Any) -> Any:
    """Return for each row the first row with the same gaps."""
    first = np.arange(len(known))
    for r in range(len(known)):
        for earlier in range(r):
            if first[earlier] == earlier and (known[earlier] == known[r]).all():
                first[r] = earlier
                break
    return first


@njit(error_model="numpy", fastmath=SUMS)
def _fit(factor: Any, weights: Any, first: Any, target: Any, penalty: float) -> Any:
    """Return the best other factor; rows with the same gaps have one matrix."""
    rank = factor.shape[1]
    answer = target @ factor
    x = np.empty((rank, len(weights)))
    for leader in range(len(weights)):
        if first[leader] != leader:
            continue
        matrix = (factor.T * weights[leader]) @ factor
        for i in range(rank):
            matrix[i, i] += penalty
        factorise(matrix)
        same = np.flatnonzero(first == leader)
        count = len(same)
        x[:, :count] = answer[same].T
        for i in range(rank):
            for k in range(count):
                x[i, k] /= matrix[i, i]
            for j in range(i + 1, rank):
                for k in range(count):
                    x[j, k] -= matrix[i, j] * x[i, k]
        for i in range(rank - 1, -1, -1):
            for j in range(i + 1, rank):
                for k in range(count):
                    x[i, k] -= matrix[i, j] * x[j, k]
            for k in range(count):
                x[i, k] /= matrix[i, i]
        answer[same] = x[:, :count].T
    return answer


@njit()
def alternate(
    values: Any, known: Any, left: Any, right: Any, penalty: float, stop: float, sweeps: int
) -> Any:
    """Return the product of two factors, fitted in turns, when it changes by less than ``stop``."""
    of_row, of_column = _patterns(known), _patterns(known.T.copy())
    weights = known.astype(np.float64)
    target = values * weights
    across, turned = weights.T.copy(), target.T.copy()
    before = left @ right.T
    for _ in range(sweeps):
        left = _fit(right, weights, of_row, target, penalty)
        right = _fit(left, across, of_column, turned, penalty)
        product = left @ right.T
        change = product - before
        before = product
        if np.sqrt((change * change).mean()) < stop:
            break
    return before
