"""Compiled interior-point method for the programmes of `repro.solve.pairs.programme`."""

# The programme, with slacks s, is: maximise goal v subject to A x + f v + s = b, x >= 0, s >= 0.
# The variable v is free, and its coefficients f are `free` in the code.
# Let y be the duals of the rows. The bounds x >= 0 have slacks s_x = x and duals y_x. With two more
# unknowns tau, kappa >= 0, the homogeneous self-dual embedding of the programme has no objective
# and always has a solution:
#
#   (1) A x + f v + s = b tau         `primal`
#   (2) y_x = A' y                    `dual`
#       s_x = x                       `bound`
#   (3) goal tau = f' y               `dual_free`
#   (4) kappa = goal v - b' y         `gap` (each name is left side minus right side)
#   (5) s y = w mu, s_x y_x = w_x mu, kappa tau = mu, all >= 0, with mu -> 0
#
# Where tau > 0, x / tau and y / tau are optimal. Weights of the barrier: w of a row is its number
# of jobs (1 for a GPU type), and w_x of a column its number of jobs or pairs of jobs. The answer
# over kinds is therefore the answer over jobs. A Newton step eliminates x and the slacks. With
# scaling = s_x / y_x there remains
#
#   (6) N dy = right-hand side + f dv - b dtau,    N = A diag(scaling) A' + diag(s / y)
#
# solved for f (`probe`), -b (`y1`) and the residuals of (1), (2) and (5) (`y2`). (3) then gives dv
# (`v1` and `v2`), and (4) dtau. A predictor towards mu = 0 sets the centring, sigma = (1 - its
# length)^3, and the second-order terms of the corrector (S. Mehrotra, SIAM J. Optim. 2, 1992).
#
# Every column touches at most five rows: time and value of both members, GPUs of the type. Only
# kinds of equal width share columns, so that N has one block per width; only the rows of GPU types
# couple the blocks. Columns come in ranges of one first member and one GPU type, in which the
# second member goes through consecutive kinds.

from typing import Any

import numpy as np

from repro.base.assign import assign
from repro.base.compiled import njit

#: Relative addition to the diagonal, as rows may become dependent near the optimum.
REGULARISATION = 1e-13
#: Smallest pivot, the square of a diagonal entry of the factor. A smaller pivot is replaced.
MIN_PIVOT = 1e-300
#: Pivots per block of the factorisation.
_BLOCK = 4


@njit(error_model="numpy", exact=False)
def factorise(matrix: Any) -> None:
    """Overwrite the upper half of a positive definite matrix with its Cholesky factor.

    Columns beyond the square are right-hand sides b. With the factor U they become U'^-1 b.
    """
    size, width = matrix.shape
    for begin in range(0, size, _BLOCK):
        end = min(begin + _BLOCK, size)
        for k in range(begin, end):
            for above in range(begin, k):
                factor = matrix[above, k]
                for j in range(k, width):
                    matrix[k, j] -= factor * matrix[above, j]
            inverse = 1.0 / np.sqrt(max(matrix[k, k], MIN_PIVOT))
            for j in range(k, width):
                matrix[k, j] *= inverse
        if end - begin < _BLOCK:
            break
        for i in range(end, size):
            a, b = matrix[begin, i], matrix[begin + 1, i]
            c = matrix[begin + 2, i]
            d = matrix[begin + 3, i]
            for j in range(i, width):
                matrix[i, j] -= (
                    a * matrix[begin, j] + b * matrix[begin + 1, j]
                    + c * matrix[begin + 2, j] + d * matrix[begin + 3, j]
                )  # fmt: skip


@njit(allocates=True, error_model="numpy")
def find_ranges(rows: Any, blocks: Any) -> Any:
    """Ranges of columns, shape (ranges, 10).

    The entries of a range are:

    - 0, 1: first column and number of columns
    - 2 to 6: the five rows of its first column
    - 7: first row of its block
    - 8: column of its GPU type in `normal_matrix`, in the rows of the block
    - 9: the same in the rows of the GPU types, which are stored without the columns of the blocks
    """
    ranges = np.empty((rows.shape[0], 10), dtype=np.uint64)
    count = 0
    block = 0
    for k in range(rows.shape[0]):
        same = k > 0 and rows[k, 0] == rows[k - 1, 0] and rows[k, 4] == rows[k - 1, 4]
        if same and rows[k, 1] == rows[k - 1, 1] + 1:
            ranges[count - 1, 1] += np.uint64(1)
            continue
        block = 0 if rows[k, 0] < blocks[block] else block
        while rows[k, 0] >= blocks[block + 1]:
            block += 1
        ranges[count, 0] = k
        ranges[count, 1] = 1
        for p in range(5):
            ranges[count, 2 + p] = rows[k, p]
        type_index = rows[k, 4] - blocks[-1]
        ranges[count, 7] = blocks[block]
        ranges[count, 8] = blocks[block + 1] - blocks[block] + type_index
        ranges[count, 9] = type_index
        count += 1
    return ranges[:count]


@njit(error_model="numpy", exact=False)
def multiply(ranges: Any, coefs: Any, x: Any, out: Any) -> None:
    """Set ``out`` to A x."""
    c0 = coefs[0]
    c1 = coefs[1]
    c2 = coefs[2]
    c3 = coefs[3]
    c4 = coefs[4]
    out[:] = 0.0
    for r in range(ranges.shape[0]):
        begin = ranges[r, 0]
        length = ranges[r, 1]
        r1 = ranges[r, 3]
        r3 = ranges[r, 5]
        s0 = s2 = s4 = 0.0
        for k in range(begin, begin + length):
            s0 += c0[k] * x[k]
            s2 += c2[k] * x[k]
            s4 += c4[k] * x[k]
        for q in range(length):
            out[r1 + q] += c1[begin + q] * x[begin + q]
        for q in range(length):
            out[r3 + q] += c3[begin + q] * x[begin + q]
        out[ranges[r, 2]] += s0
        out[ranges[r, 4]] += s2
        out[ranges[r, 6]] += s4


@njit(error_model="numpy", exact=False)
def multiply_transposed(ranges: Any, coefs: Any, y: Any, out: Any) -> None:
    """Set ``out`` to A' y."""
    c0 = coefs[0]
    c1 = coefs[1]
    c2 = coefs[2]
    c3 = coefs[3]
    c4 = coefs[4]
    for r in range(ranges.shape[0]):
        begin = ranges[r, 0]
        r1 = ranges[r, 3]
        r3 = ranges[r, 5]
        y0 = y[ranges[r, 2]]
        y2 = y[ranges[r, 4]]
        y4 = y[ranges[r, 6]]
        for q in range(ranges[r, 1]):
            k = begin + q
            out[k] = (
                c0[k] * y0 + c2[k] * y2 + c4[k] * y4 + c1[k] * y[r1 + q] + c3[k] * y[r3 + q]
            )  # fmt: skip


@njit(error_model="numpy", exact=False)
def normal_matrix(
    ranges: Any, blocks: Any, coefs: Any, scaling: Any, added_diagonal: Any, matrix: Any
) -> None:  # fmt: skip
    """Set ``matrix`` to the upper half of A diag(scaling) A' + diag(added_diagonal).

    A row of a block has the columns of the block, then those of the GPU types.
    """
    c0 = coefs[0]
    c1 = coefs[1]
    c2 = coefs[2]
    c3 = coefs[3]
    c4 = coefs[4]
    matrix[:] = 0.0
    for r in range(ranges.shape[0]):
        begin = ranges[r, 0]
        r1 = ranges[r, 3]
        r3 = ranges[r, 5]
        lo = ranges[r, 7]
        border = ranges[r, 8]
        r0 = ranges[r, 2]
        r2 = ranges[r, 4]
        r4 = ranges[r, 6]
        value_column = r2 - lo
        s00 = s02 = s04 = s22 = s24 = s44 = 0.0
        for q in range(ranges[r, 1]):
            k = begin + q
            time = r1 + q
            value = r3 + q
            w0 = c0[k] * scaling[k]
            w1 = c1[k] * scaling[k]
            w2 = c2[k] * scaling[k]
            w3 = c3[k] * scaling[k]
            s00 += w0 * c0[k]
            s02 += w0 * c2[k]
            s04 += w0 * c4[k]
            s22 += w2 * c2[k]
            s24 += w2 * c4[k]
            s44 += c4[k] * scaling[k] * c4[k]
            matrix[r0, time - lo] += w0 * c1[k]
            matrix[r0, value - lo] += w0 * c3[k]
            matrix[r2, value - lo] += w2 * c3[k]
            matrix[time, value_column] += w2 * c1[k]
            matrix[time, time - lo] += w1 * c1[k]
            matrix[time, value - lo] += w1 * c3[k]
            matrix[time, border] += w1 * c4[k]
            matrix[value, value - lo] += w3 * c3[k]
            matrix[value, border] += w3 * c4[k]
        matrix[r0, r0 - lo] += s00
        matrix[r0, value_column] += s02
        matrix[r0, border] += s04
        matrix[r2, value_column] += s22
        matrix[r2, border] += s24
        matrix[r4, ranges[r, 9]] += s44
    for block in range(len(blocks)):
        begin = blocks[block]
        end = blocks[block + 1] if block + 1 < len(blocks) else len(added_diagonal)
        for i in range(end - begin):
            matrix[begin + i, i] = (matrix[begin + i, i] + added_diagonal[begin + i]) * (
                1.0 + REGULARISATION
            )


@njit(error_model="numpy", exact=False)
def factorise_blocks(
    matrix: Any, blocks: Any, first_rhs: Any, second_rhs: Any, inverse: Any
) -> None:
    """Factorise `normal_matrix` in place and overwrite both right-hand sides with the solutions.

    The inverse diagonal of the factor is written into ``inverse``.
    """
    types_begin = blocks[-1]
    types = len(first_rhs) - types_begin
    corner = matrix[types_begin:, : types + 2]
    assign(corner[:, types], first_rhs[types_begin:])
    assign(corner[:, types + 1], second_rhs[types_begin:])
    for block in range(len(blocks) - 1):
        lo = blocks[block]
        hi = blocks[block + 1]
        block_size = hi - lo
        block_rows = matrix[lo:hi, : block_size + types + 2]
        assign(block_rows[:, block_size + types], first_rhs[lo:hi])
        assign(block_rows[:, block_size + types + 1], second_rhs[lo:hi])
        factorise(block_rows)
        assign(first_rhs[lo:hi], block_rows[:, block_size + types])
        assign(second_rhs[lo:hi], block_rows[:, block_size + types + 1])
        for i in range(block_size):
            inverse[lo + i] = 1.0 / block_rows[i, i]
            for g in range(types):
                for h in range(g, types + 2):
                    corner[g, h] -= block_rows[i, block_size + g] * block_rows[i, block_size + h]
    factorise(corner)
    assign(first_rhs[types_begin:], corner[:, types])
    assign(second_rhs[types_begin:], corner[:, types + 1])
    for g in range(types):
        inverse[types_begin + g] = 1.0 / corner[g, g]
    _backward(matrix, blocks, inverse, first_rhs)
    _backward(matrix, blocks, inverse, second_rhs)


@njit(error_model="numpy", exact=False)
def _forward(upper: Any, inverse: Any, x: Any, tail: Any) -> None:
    """Forward substitution in one block.

    ``tail`` has the right-hand sides of the GPU types. The terms of the block are subtracted there.
    """
    size = len(x)
    for i in range(size):
        value = x[i] * inverse[i]
        x[i] = value
        for j in range(i + 1, size):
            x[j] -= upper[i, j] * value
        for g in range(len(tail)):
            tail[g] -= upper[i, size + g] * value


@njit(error_model="numpy", exact=False)
def _backward(matrix: Any, blocks: Any, inverse: Any, x: Any) -> None:
    """Back substitution: first the rows of the GPU types, on which the blocks depend."""
    types_begin = blocks[-1]
    end = len(x)
    for block in range(len(blocks) - 1, -1, -1):
        lo = blocks[block]
        size = (blocks[block + 1] if lo < types_begin else end) - lo
        for i in range(size - 1, -1, -1):
            total = x[lo + i]
            for j in range(i + 1, size):
                total -= matrix[lo + i, j] * x[lo + j]
            if lo < types_begin:
                for g in range(end - types_begin):
                    total -= matrix[lo + i, size + g] * x[types_begin + g]
            x[lo + i] = total * inverse[lo + i]


@njit(error_model="numpy", exact=False)
def solve_blocks(matrix: Any, blocks: Any, inverse: Any, x: Any) -> None:
    """Overwrite ``x`` with the solution, by the factor of `factorise_blocks`."""
    types_begin = blocks[-1]
    for block in range(len(blocks) - 1):
        lo = blocks[block]
        hi = blocks[block + 1]
        _forward(matrix[lo:hi], inverse[lo:hi], x[lo:hi], x[types_begin:])
    _forward(matrix[types_begin:], inverse[types_begin:], x[types_begin:], x[:0])
    _backward(matrix, blocks, inverse, x)


@njit(error_model="numpy", exact=False)
def largest(values: Any) -> float:
    """Largest absolute value."""
    most = 0.0
    for k in range(len(values)):
        if abs(values[k]) > most:
            most = abs(values[k])
    return most


@njit(error_model="numpy", exact=False)
def dot(a: Any, b: Any) -> float:
    """Inner product."""
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@njit(error_model="numpy", exact=False)
def complete_steps(
    target: Any, values: Any, duals: Any, steps: Any, dual_steps: Any, largest_decrease: float
) -> float:  # fmt: skip
    """Set the steps for which values times duals changes by ``target``.

    The result is ``largest_decrease``, or a larger relative decrease of a value or dual.
    """
    for k in range(len(values)):
        steps[k] = (target[k] - values[k] * dual_steps[k]) / duals[k]
    for k in range(len(values)):
        if largest_decrease * values[k] + steps[k] < 0.0:
            largest_decrease = -steps[k] / values[k]
        if largest_decrease * duals[k] + dual_steps[k] < 0.0:
            largest_decrease = -dual_steps[k] / duals[k]
    return largest_decrease


@njit(allocates=True, error_model="numpy", exact=False)
def balance(rows: Any, coefs: Any, free: Any, same_kind: Any) -> Any:
    """Two scales that bring all entries near 1 (Ruiz, 3 passes).

    Rows of A are divided by the first scale. The second scale is the unit of x: x is divided by it,
    and the columns of A are multiplied by it.

    ``free`` has the coefficients of v, each divided by the number of jobs of its row. ``same_kind``
    marks columns of two jobs of one kind.
    """
    count = rows.shape[0]
    size = len(free)
    scale = np.ones(size)
    scale_x = np.ones(count)
    entries = np.abs(coefs)
    # entries of the rows x >= 0
    bound = np.ones(count)
    level_entries = np.abs(free)
    by_column = np.empty(count)
    for k in range(count):
        if same_kind[k]:
            # Entries 0 and 2 are sums over both members, and entries 1 and 3 are 0. In a programme
            # over jobs instead of kinds, each member has rows of its own with half of the sum.
            entries[k, 0] *= 0.5
            entries[k, 2] *= 0.5
    for _ in range(3):
        by_row = level_entries.copy()
        by_level = max(level_entries.max(), 1e-12)
        for k in range(count):
            most = bound[k]
            for p in range(5):
                entry = entries[k, p]
                i = rows[k, p]
                if entry > most:
                    most = entry
                if entry > by_row[i]:
                    by_row[i] = entry
            by_column[k] = most
        for i in range(size):
            by_row[i] = 1.0 if by_row[i] < 1e-6 else 1.0 / np.sqrt(by_row[i])
        for k in range(count):
            by_column[k] = 1.0 / np.sqrt(by_column[k])
            by_bound = np.sqrt(bound[k])
            bound[k] *= by_column[k] / by_bound
            scale_x[k] *= by_bound
        for k in range(count):
            for p in range(5):
                entries[k, p] *= by_row[rows[k, p]] * by_column[k]
        level_entries = level_entries * by_row / np.sqrt(by_level)
        scale /= by_row
    return scale, scale_x


@njit(allocates=True, error_model="numpy", exact=False)
def centre(
    rows: Any, coefs: Any, free: Any, limits: Any, column_weights: Any, row_weights: Any,
    same_kind: Any, blocks: Any, goal: float, tolerance: float, max_steps: int,
) -> Any:  # fmt: skip
    """Solve the programme: x, v, duals y and number of steps (-1: ``tolerance`` was not reached).

    Arguments are as in `Programme`. ``free`` is its ``level_coefs``. ``same_kind`` marks columns of
    two jobs of one kind. ``goal`` 1 maximises v. ``goal`` 0 with ``free`` 0 gives the centre of all
    points within the constraints.
    """
    size = len(limits)
    count = rows.shape[0]
    scale, scale_x = balance(rows, coefs, free / row_weights, same_kind)
    scaled = np.empty((5, count))
    for k in range(count):
        for p in range(5):
            scaled[p, k] = coefs[k, p] * (scale_x[k] / scale[rows[k, p]])
    free = free / scale
    limits = limits / scale
    sum_of_weights = column_weights.sum() + row_weights.sum() + 1.0
    norm = max(1.0, np.sqrt(dot(limits, limits)))
    ranges = find_ranges(rows, blocks)
    upper = np.empty((size, (blocks[1:] - blocks[:-1]).max() + size - blocks[-1] + 2))
    primal, y1, y2, ds, target, inverse = np.empty((6, size))
    dual, bound, scaling, t, fixed_step, dy_x, ds_x, target_x = np.empty((8, count))

    # Start: least-squares points, shifted into the positive orthant.
    normal_matrix(ranges, blocks, scaled, column_weights, row_weights, upper)
    probe = free.copy()
    assign(y1, -limits)
    factorise_blocks(upper, blocks, probe, y1, inverse)
    # pivot of v: f' N^-1 f; 0 without f
    v_pivot = dot(free, probe)
    v = -dot(free, y1) / v_pivot if v_pivot > 0.0 else 0.0
    y1 += v * probe
    multiply_transposed(ranges, scaled, y1, t)
    x = -column_weights * t
    s = -y1
    s_x = -t
    shift = max(-s.min(), -s_x.min())
    if shift >= 0.0:
        s += 1.0 + shift
        s_x += 1.0 + shift
    s = s * row_weights
    s_x = s_x * column_weights
    y = probe * (goal / v_pivot if v_pivot > 0.0 else 0.0)
    y_x = np.empty(count)
    multiply_transposed(ranges, scaled, y, y_x)
    shift = max(-y.min(), -y_x.min())
    if shift >= 0.0:
        y += 1.0 + shift
        y_x += 1.0 + shift
    tau = 1.0
    kappa = 1.0

    for step_count in range(max_steps):
        multiply_transposed(ranges, scaled, y, t)
        multiply(ranges, scaled, x, primal)
        dual_free = -dot(free, y) + goal * tau
        primal += s + free * v - limits * tau
        for k in range(count):
            dual[k] = y_x[k] - t[k]
            bound[k] = s_x[k] - x[k]
            scaling[k] = s_x[k] / y_x[k]
        limits_y = dot(limits, y)
        gap = kappa - goal * v + limits_y
        mu = (dot(s, y) + dot(s_x, y_x) + kappa * tau) / sum_of_weights
        value = max(abs(v) / tau, 1e-12) if goal > 0.0 else 1.0
        primal_error = max(largest(primal), largest(bound)) / tau / norm
        dual_error = max(largest(dual), abs(dual_free)) / tau
        gap_error = abs(limits_y - goal * v) / tau / value
        if primal_error < tolerance and dual_error < tolerance and gap_error < tolerance:
            return x * scale_x / tau, v / tau, y / scale / tau, step_count
        if not (mu > 0.0) or not np.isfinite(mu):
            break
        normal_matrix(ranges, blocks, scaled, scaling, s / y, upper)
        assign(probe, free)
        assign(y1, -limits)
        factorise_blocks(upper, blocks, probe, y1, inverse)
        v_pivot = dot(free, probe)
        v1 = (goal - dot(free, y1)) / v_pivot if v_pivot > 0.0 else 0.0
        y1 += v1 * probe
        denominator = kappa / tau + goal * v1 - dot(limits, y1)
        sigma = 0.0
        residual_part = 1.0
        assign(target, -s * y)
        assign(target_x, -s_x * y_x)
        target_tau = -kappa * tau
        for phase in range(2):
            # ``fixed_step`` is the step of x if dy were 0. Then dy follows from (6).
            for k in range(count):
                fixed_step[k] = (
                    residual_part * (scaling[k] * dual[k] + bound[k]) + target_x[k] / y_x[k]
                )
            multiply(ranges, scaled, fixed_step, y2)
            y2 += residual_part * primal + target / y
            solve_blocks(upper, blocks, inverse, y2)
            v2 = (residual_part * dual_free - dot(free, y2)) / v_pivot if v_pivot > 0.0 else 0.0
            y2 += v2 * probe
            d_tau = (
                residual_part * gap + target_tau / tau - goal * v2 + dot(limits, y2)
            ) / denominator
            y2 += d_tau * y1
            multiply_transposed(ranges, scaled, y2, t)
            for k in range(count):
                dy_x[k] = t[k] - residual_part * dual[k]
            d_kappa = (target_tau - kappa * d_tau) / tau
            decrease = max(1.0 if phase == 0 else 0.99, -d_tau / tau, -d_kappa / kappa)
            decrease = complete_steps(target_x, s_x, y_x, ds_x, dy_x, decrease)
            # Longest step that keeps values and duals at 0 or more, limited to about 1.
            longest_step = 1.0 / complete_steps(target, s, y, ds, y2, decrease)
            if phase == 0:
                sigma = min(1.0, max(1e-4, (1.0 - longest_step) ** 3))
                residual_part = 1.0 - sigma
                # Towards the central path, less the second-order terms of the predictor.
                aim = sigma * mu
                assign(target, aim * row_weights - s * y - ds * y2)
                assign(target_x, aim * column_weights - s_x * y_x - ds_x * dy_x)
                target_tau = sigma * mu - kappa * tau - d_kappa * d_tau
        step = min(0.99 * longest_step, 0.999)
        for k in range(count):
            x[k] += step * (fixed_step[k] - scaling[k] * t[k])
            s_x[k] += step * ds_x[k]
            y_x[k] += step * dy_x[k]
        v += step * (v2 + d_tau * v1)
        s += step * ds
        y += step * y2
        tau += step * d_tau
        kappa += step * d_kappa
    return x * scale_x / tau, v / tau, y / scale / tau, -1
