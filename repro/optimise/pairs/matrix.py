"""Products and normal equations of the programme over single jobs and pairs, compiled.

Only types of equal width share columns, so that the normal matrix has one block per width, tied to
the others by the rows of the GPU types alone. Columns come in runs whose first member and GPU type
stay while the second goes through consecutive types.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from repro.compiled import njit
from repro.optimise.dense import SUMS, factorise

#: Relative addition to the diagonal: near the optimum rows may depend on each other.
STEADY = 1e-13


@njit(error_model="numpy")
def find_runs(rows: Any, blocks: Any) -> Any:
    """Return the runs of columns.

    Each has its first column, its length, the rows of its first column, and in the normal matrix
    the first row of its block, the column of its GPU type there and in the corner.
    """
    runs = np.empty((rows.shape[0], 10), dtype=np.uint64)
    count, block = 0, 0
    for k in range(rows.shape[0]):
        same = k > 0 and rows[k, 0] == rows[k - 1, 0] and rows[k, 4] == rows[k - 1, 4]
        if same and rows[k, 1] == rows[k - 1, 1] + 1:
            runs[count - 1, 1] += np.uint64(1)
            continue
        block = 0 if rows[k, 0] < blocks[block] else block
        while rows[k, 0] >= blocks[block + 1]:
            block += 1
        runs[count, 0], runs[count, 1] = k, 1
        for p in range(5):
            runs[count, 2 + p] = rows[k, p]
        kind = rows[k, 4] - blocks[-1]
        runs[count, 7], runs[count, 9] = blocks[block], kind
        runs[count, 8] = blocks[block + 1] - blocks[block] + kind
        count += 1
    return runs[:count]


@njit(error_model="numpy", fastmath=SUMS)
def times(runs: Any, coefs: Any, x: Any, out: Any) -> None:
    """Set ``out`` to A x."""
    c0, c1, c2, c3, c4 = coefs[0], coefs[1], coefs[2], coefs[3], coefs[4]
    out[:] = 0.0
    for r in range(runs.shape[0]):
        begin, length, r1, r3 = runs[r, 0], runs[r, 1], runs[r, 3], runs[r, 5]
        s0 = s2 = s4 = 0.0
        for k in range(begin, begin + length):
            s0 += c0[k] * x[k]
            s2 += c2[k] * x[k]
            s4 += c4[k] * x[k]
        for q in range(length):
            out[r1 + q] += c1[begin + q] * x[begin + q]
        for q in range(length):
            out[r3 + q] += c3[begin + q] * x[begin + q]
        out[runs[r, 2]] += s0
        out[runs[r, 4]] += s2
        out[runs[r, 6]] += s4


@njit(error_model="numpy", fastmath=SUMS)
def times_transposed(runs: Any, coefs: Any, y: Any, out: Any) -> None:
    """Set ``out`` to A' y."""
    c0, c1, c2, c3, c4 = coefs[0], coefs[1], coefs[2], coefs[3], coefs[4]
    for r in range(runs.shape[0]):
        begin, r1, r3 = runs[r, 0], runs[r, 3], runs[r, 5]
        y0, y2, y4 = y[runs[r, 2]], y[runs[r, 4]], y[runs[r, 6]]
        for q in range(runs[r, 1]):
            k = begin + q
            out[k] = (
                c0[k] * y0 + c2[k] * y2 + c4[k] * y4 + c1[k] * y[r1 + q] + c3[k] * y[r3 + q]
            )  # fmt: skip


@njit(error_model="numpy", fastmath=SUMS)
def normal_matrix(
    runs: Any, blocks: Any, coefs: Any, width: Any, slack: Any, matrix: Any
) -> None:  # fmt: skip
    """Set the upper half of each block of A diag(width) A' + diag(slack).

    A row of ``matrix`` holds the columns of its block, then those of the GPU types; the last rows
    are those of the GPU types.
    """
    c0, c1, c2, c3, c4 = coefs[0], coefs[1], coefs[2], coefs[3], coefs[4]
    matrix[:] = 0.0
    for r in range(runs.shape[0]):
        begin, r1, r3, lo, border = runs[r, 0], runs[r, 3], runs[r, 5], runs[r, 7], runs[r, 8]
        r0, r2, r4 = runs[r, 2], runs[r, 4], runs[r, 6]
        value_a = r2 - lo
        s00 = s02 = s04 = s22 = s24 = s44 = 0.0
        for q in range(runs[r, 1]):
            k, time, value = begin + q, r1 + q, r3 + q
            w0, w1, w2, w3 = c0[k] * width[k], c1[k] * width[k], c2[k] * width[k], c3[k] * width[k]
            s00 += w0 * c0[k]
            s02 += w0 * c2[k]
            s04 += w0 * c4[k]
            s22 += w2 * c2[k]
            s24 += w2 * c4[k]
            s44 += c4[k] * width[k] * c4[k]
            matrix[r0, time - lo] += w0 * c1[k]
            matrix[r0, value - lo] += w0 * c3[k]
            matrix[r2, value - lo] += w2 * c3[k]
            matrix[time, value_a] += w2 * c1[k]
            matrix[time, time - lo] += w1 * c1[k]
            matrix[time, value - lo] += w1 * c3[k]
            matrix[time, border] += w1 * c4[k]
            matrix[value, value - lo] += w3 * c3[k]
            matrix[value, border] += w3 * c4[k]
        matrix[r0, r0 - lo] += s00
        matrix[r0, value_a] += s02
        matrix[r0, border] += s04
        matrix[r2, value_a] += s22
        matrix[r2, border] += s24
        matrix[r4, runs[r, 9]] += s44
    for block in range(len(blocks)):
        first = blocks[block]
        end = blocks[block + 1] if block + 1 < len(blocks) else len(slack)
        for i in range(end - first):
            matrix[first + i, i] = (matrix[first + i, i] + slack[first + i]) * (1.0 + STEADY)


@njit(error_model="numpy", fastmath=SUMS)
def factorise_blocks(matrix: Any, blocks: Any, one: Any, two: Any, inverse: Any) -> None:
    """Overwrite `normal_matrix` by its factor and both vectors by the solutions with it.

    ``inverse`` becomes the inverse diagonal of the factor.
    """
    last = blocks[-1]
    kinds = len(one) - last
    corner = matrix[last:, : kinds + 2]
    corner[:, kinds], corner[:, kinds + 1] = one[last:], two[last:]
    for block in range(len(blocks) - 1):
        lo, hi = blocks[block], blocks[block + 1]
        wide = hi - lo
        part = matrix[lo:hi, : wide + kinds + 2]
        part[:, wide + kinds], part[:, wide + kinds + 1] = one[lo:hi], two[lo:hi]
        factorise(part)
        for i in range(wide):
            for g in range(kinds):
                for h in range(g, kinds + 2):
                    corner[g, h] -= part[i, wide + g] * part[i, wide + h]
    factorise(corner)
    _backward_both(corner, kinds, one[last:], two[last:], one, two, inverse[last:])
    for block in range(len(blocks) - 1):
        lo, hi = blocks[block], blocks[block + 1]
        _backward_both(
            matrix[lo:hi], hi - lo + kinds, one[lo:hi], two[lo:hi], one[last:], two[last:],
            inverse[lo:hi],
        )  # fmt: skip


@njit(error_model="numpy", fastmath=SUMS)
def _backward_both(
    upper: Any, known: int, one: Any, two: Any, one_tail: Any, two_tail: Any, inverse: Any
) -> None:
    """Solve one block for two right-hand sides that stand behind its ``known`` columns."""
    size = len(one)
    for i in range(size - 1, -1, -1):
        inverse[i] = 1.0 / upper[i, i]
        x, y = upper[i, known], upper[i, known + 1]
        for j in range(i + 1, size):
            x -= upper[i, j] * one[j]
            y -= upper[i, j] * two[j]
        for g in range(known - size):
            x -= upper[i, size + g] * one_tail[g]
            y -= upper[i, size + g] * two_tail[g]
        one[i], two[i] = x * inverse[i], y * inverse[i]


@njit(error_model="numpy", fastmath=SUMS)
def _forward(upper: Any, inverse: Any, x: Any, tail: Any) -> None:
    """Solve with the transpose of one block of the factor, and tell the tail."""
    size = len(x)
    for i in range(size):
        value = x[i] * inverse[i]
        x[i] = value
        for j in range(i + 1, size):
            x[j] -= upper[i, j] * value
        for g in range(len(tail)):
            tail[g] -= upper[i, size + g] * value


@njit(error_model="numpy", fastmath=SUMS)
def _backward(upper: Any, inverse: Any, x: Any, tail: Any) -> None:
    """Solve with one block of the factor, given the tail."""
    size = len(x)
    for i in range(size - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, size):
            total -= upper[i, j] * x[j]
        for g in range(len(tail)):
            total -= upper[i, size + g] * tail[g]
        x[i] = total * inverse[i]


@njit(error_model="numpy", fastmath=SUMS)
def solve_blocks(matrix: Any, blocks: Any, inverse: Any, x: Any) -> None:
    """Overwrite ``x`` by the solution with the factor of `factorise_blocks`."""
    last = blocks[-1]
    tail = x[last:]
    for block in range(len(blocks) - 1):
        lo, hi = blocks[block], blocks[block + 1]
        _forward(matrix[lo:hi], inverse[lo:hi], x[lo:hi], tail)
    _forward(matrix[last:], inverse[last:], tail, tail[:0])
    _backward(matrix[last:], inverse[last:], tail, tail[:0])
    for block in range(len(blocks) - 1):
        lo, hi = blocks[block], blocks[block + 1]
        _backward(matrix[lo:hi], inverse[lo:hi], x[lo:hi], tail)
