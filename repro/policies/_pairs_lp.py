"""An interior-point method for max-min programmes over single jobs and pairs, compiled.

Every column touches at most five rows (time and value of each member, GPUs of a type), so that a
step costs one small dense factorisation. The barrier is weighted: a column that stands for many
pairs of equal jobs weighs as much as all of them, which makes the answer of the programme over
types that of the programme over jobs.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from repro._dense import back_solve, factorise

#: Relative addition to the diagonal: near the optimum rows may depend on each other.
STEADY = 1e-13


@numba.njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def normal_matrix(rows: Any, coefs: Any, width: Any, slack: Any) -> Any:
    """Return A diag(width) A' + diag(slack), upper half; the rows of a column ascend."""
    size = len(slack)
    matrix = np.zeros((size, size))
    for k in range(rows.shape[0]):
        for p in range(5):
            left = coefs[k, p] * width[k]
            if left != 0.0:
                i = rows[k, p]
                for q in range(p, 5):
                    matrix[i, rows[k, q]] += left * coefs[k, q]
    for i in range(size):
        matrix[i, i] = (matrix[i, i] + slack[i]) * (1.0 + STEADY)
    return matrix


@numba.njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def times(rows: Any, coefs: Any, x: Any, size: int) -> Any:
    """Return A x."""
    out = np.zeros(size)
    for k in range(rows.shape[0]):
        for p in range(5):
            out[rows[k, p]] += coefs[k, p] * x[k]
    return out


@numba.njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def times_transposed(rows: Any, coefs: Any, y: Any) -> Any:
    """Return A' y."""
    out = np.zeros(rows.shape[0])
    for k in range(rows.shape[0]):
        total = 0.0
        for p in range(5):
            total += coefs[k, p] * y[rows[k, p]]
        out[k] = total
    return out


@numba.njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def balance(rows: Any, coefs: Any, free: Any, own: Any) -> Any:
    """Return row scales, of A and of x >= 0, that bring all entries near one (Ruiz, 3 passes).

    The answer does not depend on them, the way to it does. ``own`` marks columns that touch two
    rows of one kind, so that each of these sees half the coefficient.
    """
    count, size = rows.shape[0], len(free)
    scale, scale_low, entries = np.ones(size), np.ones(count), np.abs(coefs)
    low, last = np.ones(count), np.abs(free)
    for k in range(count):
        if own[k]:
            entries[k, 0] *= 0.5
            entries[k, 2] *= 0.5
    for _ in range(3):
        by_row, by_low, by_last = last.copy(), np.sqrt(low), max(last.max(), 1e-12)
        by_column = np.ones(count)
        for k in range(count):
            most = low[k]
            for p in range(5):
                most = max(most, entries[k, p])
                by_row[rows[k, p]] = max(by_row[rows[k, p]], entries[k, p])
            by_column[k] = np.sqrt(most)
        by_row = np.sqrt(np.where(by_row < 1e-6, 1.0, by_row))
        for k in range(count):
            for p in range(5):
                entries[k, p] /= by_row[rows[k, p]] * by_column[k]
        low /= by_low * by_column
        last = last / (by_row * np.sqrt(by_last))
        scale *= by_row
        scale_low *= by_low
    return scale, scale_low


@numba.njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def newton(
    rows: Any, coefs: Any, free: Any, upper: Any, probe: Any, wide: Any, r1: Any, r1_free: float,
    r2: Any, r2_low: Any,
) -> Any:  # fmt: skip
    """Solve G'z = r1, G x - W z = r2 for the steps of columns, free column and multipliers."""
    size = len(r2)
    y = times(rows, coefs, wide * r1 - r2_low, size) - r2
    back_solve(upper, y)
    curve = free @ probe
    step = (r1_free - free @ y) / curve if curve > 0.0 else 0.0
    y += step * probe
    x = wide * (r1 - times_transposed(rows, coefs, y)) - r2_low
    return x, step, y, -(x + r2_low) / wide


@numba.njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def longest_step(values: Any, steps: Any, most: float) -> float:
    """Return the largest step <= ``most`` that keeps all values >= 0."""
    for i in range(len(values)):
        if steps[i] < 0.0:
            most = min(most, -values[i] / steps[i])
    return most


@numba.njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def centre(
    rows: Any, coefs: Any, free: Any, limits: Any, column_weights: Any, row_weights: Any,
    own: Any, goal: float, tolerance: float, most_steps: int,
) -> Any:  # fmt: skip
    """Maximise goal v subject to A x + free v <= limits, x >= 0; v has no sign.

    A homogeneous self-dual embedding with predictor and corrector steps (Mehrotra); the answer
    lies near the weighted analytic centre of all optimal points.

    Parameters
    ----------
    rows : ndarray of int, shape (columns, 5)
        Rows each column touches, ascending; an entry may repeat a row with coefficient 0.
    coefs : ndarray, shape (columns, 5)
        Coefficients there.
    free : ndarray, shape (rows,)
        Coefficients of v.
    limits : ndarray, shape (rows,)
        Right-hand sides.
    column_weights, row_weights : ndarray
        How many equal variables and constraints each column and row stands for.
    own : ndarray of bool, shape (columns,)
        Columns whose members share their rows, see `balance`.
    goal : float
        1; or 0, with ``free`` all 0, for a point amid all that satisfy the constraints.
    tolerance : float
        Largest relative residual and gap.
    most_steps : int
        Steps after which the method gives up.

    Returns
    -------
    (x, v, multipliers, steps) : tuple
        ``steps`` is -1 where the tolerance was not reached.
    """
    size, count = len(limits), rows.shape[0]
    scale, scale_low = balance(rows, coefs, free / row_weights, own)
    coefs = coefs.copy()
    for k in range(count):
        for p in range(5):
            coefs[k, p] *= scale_low[k] / scale[rows[k, p]]
    free, limits = free / scale, limits / scale
    weights = column_weights.sum() + row_weights.sum() + 1.0
    norm = max(1.0, np.sqrt((limits * limits).sum()))
    # start: least-squares points, shifted into the positive orthant
    upper = normal_matrix(rows, coefs, column_weights, row_weights)
    factorise(upper)
    probe = free.copy()
    back_solve(upper, probe)
    none, nothing = np.zeros(count), np.zeros(size)
    x, v, s, s_low = newton(
        rows, coefs, free, upper, probe, column_weights, none, 0.0, limits, none
    )
    s, s_low = -s, -s_low
    shift = max((-s).max(), (-s_low).max())
    if shift >= 0.0:
        s += 1.0 + shift
        s_low += 1.0 + shift
    s, s_low = s * row_weights, s_low * column_weights
    _, _, y, y_low = newton(
        rows, coefs, free, upper, probe, column_weights, none, goal, nothing, none
    )
    shift = max((-y).max(), (-y_low).max())
    if shift >= 0.0:
        y += 1.0 + shift
        y_low += 1.0 + shift
    tau, kappa = 1.0, 1.0

    for number in range(most_steps):
        dual = y_low - times_transposed(rows, coefs, y)
        dual_free = -(free @ y) + goal * tau
        primal = s + times(rows, coefs, x, size) + free * v - limits * tau
        primal_low = s_low - x
        gap = kappa - goal * v + limits @ y
        mu = ((s * y).sum() + (s_low * y_low).sum() + kappa * tau) / weights
        value = max(abs(v) / tau, 1e-12) if goal > 0.0 else 1.0
        wrong = max(np.abs(primal).max(), np.abs(primal_low).max()) / tau / norm
        off = max(np.abs(dual).max(), abs(dual_free)) / tau
        apart = abs(limits @ y - goal * v) / tau / value
        if wrong < tolerance and off < tolerance and apart < tolerance:
            return x * scale_low / tau, v / tau, y / scale / tau, number
        if not (mu > 0.0) or not np.isfinite(mu):
            break
        wide, slack = s_low / y_low, s / y
        upper = normal_matrix(rows, coefs, wide, slack)
        factorise(upper)
        probe = free.copy()
        back_solve(upper, probe)
        x1, v1, y1, y1_low = newton(rows, coefs, free, upper, probe, wide, none, goal, limits, none)
        below = kappa / tau + goal * v1 - limits @ y1
        sigma, pull = 0.0, 1.0
        target, target_low, target_tau = -s * y, -s_low * y_low, -kappa * tau
        for phase in range(2):
            x2, v2, y2, y2_low = newton(
                rows, coefs, free, upper, probe, wide, pull * dual, pull * dual_free,
                -pull * primal - target / y, -pull * primal_low - target_low / y_low,
            )  # fmt: skip
            d_tau = (pull * gap + target_tau / tau - goal * v2 + limits @ y2) / below
            dx, dv = x2 + d_tau * x1, v2 + d_tau * v1
            dy, dy_low = y2 + d_tau * y1, y2_low + d_tau * y1_low
            ds, ds_low = (target - s * dy) / y, (target_low - s_low * dy_low) / y_low
            d_kappa = (target_tau - kappa * d_tau) / tau
            most = 1.0 if phase == 0 else 1.0 / 0.99
            most = longest_step(s, ds, longest_step(s_low, ds_low, most))
            most = longest_step(y, dy, longest_step(y_low, dy_low, most))
            if d_tau < 0.0:
                most = min(most, -tau / d_tau)
            if d_kappa < 0.0:
                most = min(most, -kappa / d_kappa)
            if phase == 0:
                sigma = min(1.0, max(1e-4, (1.0 - most) ** 3))
                pull = 1.0 - sigma
                target = sigma * mu * row_weights - s * y - ds * dy
                target_low = sigma * mu * column_weights - s_low * y_low - ds_low * dy_low
                target_tau = sigma * mu - kappa * tau - d_kappa * d_tau
        step = min(0.99 * most, 0.999)
        x += step * dx
        v += step * dv
        s += step * ds
        s_low += step * ds_low
        y += step * dy
        y_low += step * dy_low
        tau += step * d_tau
        kappa += step * d_kappa
    return x * scale_low / tau, v / tau, y / scale / tau, -1
