"""Small dense positive definite systems, compiled."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

SINGULAR = 1e-300


@numba.njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator,unused-ignore]
def factorise(matrix: Any) -> None:
    """Overwrite the upper half of a positive definite matrix by its Cholesky factor."""
    size = matrix.shape[0]
    for k in range(size):
        pivot = np.sqrt(max(matrix[k, k], SINGULAR))
        matrix[k, k] = pivot
        for j in range(k + 1, size):
            matrix[k, j] /= pivot
        for i in range(k + 1, size):
            factor = matrix[k, i]
            if factor != 0.0:
                for j in range(i, size):
                    matrix[i, j] -= factor * matrix[k, j]


@numba.njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator,unused-ignore]
def back_solve(upper: Any, x: Any) -> None:
    """Overwrite ``x`` by the solution of (upper' upper) solution = x."""
    size = upper.shape[0]
    for i in range(size):
        x[i] /= upper[i, i]
        for j in range(i + 1, size):
            x[j] -= upper[i, j] * x[i]
    for i in range(size - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, size):
            total -= upper[i, j] * x[j]
        x[i] = total / upper[i, i]
