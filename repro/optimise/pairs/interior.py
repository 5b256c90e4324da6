"""An interior-point method for max-min programmes over single jobs and pairs, compiled.

Every column touches at most five rows (time and value of each member, GPUs of a type), so that a
step costs one small dense factorisation. The barrier is weighted: a column that stands for many
pairs of equal jobs weighs as much as all of them, which makes the answer of the programme over
types that of the programme over jobs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from repro.compiled import njit
from repro.optimise.dense import SUMS
from repro.optimise.pairs.matrix import (
    factorise_blocks,
    find_runs,
    normal_matrix,
    solve_blocks,
    times,
    times_transposed,
)


@njit(error_model="numpy", fastmath=SUMS)
def dot(one: Any, other: Any) -> float:
    """Return the inner product."""
    total = 0.0
    for k in range(len(one)):
        total += one[k] * other[k]
    return total


@njit(error_model="numpy", fastmath=SUMS)
def largest(values: Any) -> float:
    """Return the largest absolute value."""
    most = 0.0
    for k in range(len(values)):
        if abs(values[k]) > most:
            most = abs(values[k])
    return most


@njit(error_model="numpy", fastmath=SUMS)
def turn(
    target: Any, values: Any, duals: Any, steps: Any, dual_steps: Any, most: float
) -> float:  # fmt: skip
    """Set the steps of values whose products with their multipliers change by ``target``.

    Return the largest part of itself that any of both loses, at least ``most``.
    """
    for k in range(len(values)):
        steps[k] = (target[k] - values[k] * dual_steps[k]) / duals[k]
    for k in range(len(values)):
        if most * values[k] + steps[k] < 0.0:
            most = -steps[k] / values[k]
        if most * duals[k] + dual_steps[k] < 0.0:
            most = -dual_steps[k] / duals[k]
    return most


@njit(error_model="numpy", fastmath=SUMS)
def correct(
    target: Any, weights: Any, mu: float, values: Any, duals: Any, steps: Any, dual_steps: Any
) -> None:
    """Aim at the central path, less what the first steps miss by being straight."""
    for k in range(len(values)):
        target[k] = mu * weights[k] - values[k] * duals[k] - steps[k] * dual_steps[k]


@njit(error_model="numpy", fastmath=SUMS)
def balance(rows: Any, coefs: Any, free: Any, own: Any) -> Any:
    """Return row scales, of A and of x >= 0, that bring all entries near one (Ruiz, 3 passes).

    The answer does not depend on them, the way to it does. ``own`` marks columns that touch two
    rows of one kind, so that each of these sees half the coefficient.
    """
    count, size = rows.shape[0], len(free)
    scale, scale_low, entries = np.ones(size), np.ones(count), np.abs(coefs)
    low, last, by_column = np.ones(count), np.abs(free), np.empty(count)
    for k in range(count):
        if own[k]:
            entries[k, 0] *= 0.5
            entries[k, 2] *= 0.5
    for _ in range(3):
        by_row, by_last = last.copy(), max(last.max(), 1e-12)
        for k in range(count):
            most = low[k]
            for p in range(5):
                entry, i = entries[k, p], rows[k, p]
                if entry > most:
                    most = entry
                if entry > by_row[i]:
                    by_row[i] = entry
            by_column[k] = most
        for i in range(size):
            by_row[i] = 1.0 if by_row[i] < 1e-6 else 1.0 / np.sqrt(by_row[i])
        for k in range(count):
            by_column[k] = 1.0 / np.sqrt(by_column[k])
            by_low = np.sqrt(low[k])
            low[k] *= by_column[k] / by_low
            scale_low[k] *= by_low
        for k in range(count):
            for p in range(5):
                entries[k, p] *= by_row[rows[k, p]] * by_column[k]
        last = last * by_row / np.sqrt(by_last)
        scale /= by_row
    return scale, scale_low


@njit(error_model="numpy", fastmath=SUMS)
def centre(
    rows: Any, coefs: Any, free: Any, limits: Any, column_weights: Any, row_weights: Any,
    own: Any, blocks: Any, goal: float, tolerance: float, most_steps: int,
) -> Any:  # fmt: skip
    """Maximise goal v subject to A x + free v <= limits, x >= 0; v has no sign.

    A homogeneous self-dual embedding with predictor and corrector steps (Mehrotra); the answer
    lies near the weighted analytic centre of all optimal points.

    Parameters
    ----------
    rows : ndarray of int, shape (columns, 5)
        Rows each column touches, as `repro.optimise.pairs.programme.Programme` has them.
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
    blocks : ndarray of int
        First row of each block of types of one width, and of the GPU types.
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
    scaled = np.empty((5, count))
    for k in range(count):
        for p in range(5):
            scaled[p, k] = coefs[k, p] * (scale_low[k] / scale[rows[k, p]])
    free, limits = free / scale, limits / scale
    weights = column_weights.sum() + row_weights.sum() + 1.0
    norm = max(1.0, np.sqrt(dot(limits, limits)))
    runs = find_runs(rows, blocks)
    upper = np.empty((size, (blocks[1:] - blocks[:-1]).max() + size - blocks[-1] + 2))
    primal, y1, y2, ds, target, inverse = np.empty((6, size))
    dual, low, wide, t, ahead, dy_low, ds_low, target_low = np.empty((8, count))

    # start: least-squares points, shifted into the positive orthant
    normal_matrix(runs, blocks, scaled, column_weights, row_weights, upper)
    probe = free.copy()
    y1[:] = -limits
    factorise_blocks(upper, blocks, probe, y1, inverse)
    curve = dot(free, probe)
    v = -dot(free, y1) / curve if curve > 0.0 else 0.0
    y1 += v * probe
    times_transposed(runs, scaled, y1, t)
    x, s, s_low = -column_weights * t, -y1, -t
    shift = max(-s.min(), -s_low.min())
    if shift >= 0.0:
        s += 1.0 + shift
        s_low += 1.0 + shift
    s, s_low = s * row_weights, s_low * column_weights
    y = probe * (goal / curve if curve > 0.0 else 0.0)
    y_low = np.empty(count)
    times_transposed(runs, scaled, y, y_low)
    shift = max(-y.min(), -y_low.min())
    if shift >= 0.0:
        y += 1.0 + shift
        y_low += 1.0 + shift
    tau, kappa = 1.0, 1.0
    none, nothing = np.zeros(size), np.zeros(count)

    for number in range(most_steps):
        times_transposed(runs, scaled, y, t)
        times(runs, scaled, x, primal)
        dual_free = -dot(free, y) + goal * tau
        primal += s + free * v - limits * tau
        for k in range(count):
            dual[k] = y_low[k] - t[k]
            low[k] = s_low[k] - x[k]
            wide[k] = s_low[k] / y_low[k]
        priced = dot(limits, y)
        gap = kappa - goal * v + priced
        mu = (dot(s, y) + dot(s_low, y_low) + kappa * tau) / weights
        value = max(abs(v) / tau, 1e-12) if goal > 0.0 else 1.0
        wrong = max(largest(primal), largest(low)) / tau / norm
        off = max(largest(dual), abs(dual_free)) / tau
        apart = abs(priced - goal * v) / tau / value
        if wrong < tolerance and off < tolerance and apart < tolerance:
            return x * scale_low / tau, v / tau, y / scale / tau, number
        if not (mu > 0.0) or not np.isfinite(mu):
            break
        normal_matrix(runs, blocks, scaled, wide, s / y, upper)
        probe[:] = free
        y1[:] = -limits
        factorise_blocks(upper, blocks, probe, y1, inverse)
        curve = dot(free, probe)
        v1 = (goal - dot(free, y1)) / curve if curve > 0.0 else 0.0
        y1 += v1 * probe
        below = kappa / tau + goal * v1 - dot(limits, y1)
        sigma, pull = 0.0, 1.0
        correct(target, row_weights, 0.0, s, y, none, none)
        correct(target_low, column_weights, 0.0, s_low, y_low, nothing, nothing)
        target_tau = -kappa * tau
        for phase in range(2):
            # columns eliminated: their steps if the rows asked for nothing, and the rows' answer
            for k in range(count):
                ahead[k] = pull * (wide[k] * dual[k] + low[k]) + target_low[k] / y_low[k]
            times(runs, scaled, ahead, y2)
            y2 += pull * primal + target / y
            solve_blocks(upper, blocks, inverse, y2)
            v2 = (pull * dual_free - dot(free, y2)) / curve if curve > 0.0 else 0.0
            y2 += v2 * probe
            d_tau = (pull * gap + target_tau / tau - goal * v2 + dot(limits, y2)) / below
            y2 += d_tau * y1
            times_transposed(runs, scaled, y2, t)
            for k in range(count):
                dy_low[k] = t[k] - pull * dual[k]
            d_kappa = (target_tau - kappa * d_tau) / tau
            most = max(1.0 if phase == 0 else 0.99, -d_tau / tau, -d_kappa / kappa)
            most = turn(target_low, s_low, y_low, ds_low, dy_low, most)
            most = 1.0 / turn(target, s, y, ds, y2, most)
            if phase == 0:
                sigma = min(1.0, max(1e-4, (1.0 - most) ** 3))
                pull = 1.0 - sigma
                correct(target, row_weights, sigma * mu, s, y, ds, y2)
                correct(target_low, column_weights, sigma * mu, s_low, y_low, ds_low, dy_low)
                target_tau = sigma * mu - kappa * tau - d_kappa * d_tau
        step = min(0.99 * most, 0.999)
        for k in range(count):
            x[k] += step * (ahead[k] - wide[k] * t[k])
            s_low[k] += step * ds_low[k]
            y_low[k] += step * dy_low[k]
        v += step * (v2 + d_tau * v1)
        s += step * ds
        y += step * y2
        tau += step * d_tau
        kappa += step * d_kappa
    return x * scale_low / tau, v / tau, y / scale / tau, -1
