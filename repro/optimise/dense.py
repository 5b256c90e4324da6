"""Small dense positive definite systems, compiled."""

from typing import Any

import numpy as np

from repro.compiled import njit

#: Least pivot.
SINGULAR = 1e-300
#: What the compiler may assume of sums.
SUMS = {"contract", "reassoc", "arcp"}
#: Pivots taken at a time.
_BLOCK = 4


@njit(error_model="numpy", fastmath=SUMS)
def factorise(matrix: Any) -> None:
    """Overwrite the upper half of a positive definite matrix by its Cholesky factor.

    Columns beyond the square are right-hand sides: they become solutions with the factor's
    transpose.
    """
    size, width = matrix.shape
    for begin in range(0, size, _BLOCK):
        end = min(begin + _BLOCK, size)
        for k in range(begin, end):
            for above in range(begin, k):
                factor = matrix[above, k]
                for j in range(k, width):
                    matrix[k, j] -= factor * matrix[above, j]
            inverse = 1.0 / np.sqrt(max(matrix[k, k], SINGULAR))
            for j in range(k, width):
                matrix[k, j] *= inverse
        if end - begin < _BLOCK:
            break
        for i in range(end, size):
            a, b = matrix[begin, i], matrix[begin + 1, i]
            c, d = matrix[begin + 2, i], matrix[begin + 3, i]
            for j in range(i, width):
                matrix[i, j] -= (
                    a * matrix[begin, j] + b * matrix[begin + 1, j]
                    + c * matrix[begin + 2, j] + d * matrix[begin + 3, j]
                )  # fmt: skip
