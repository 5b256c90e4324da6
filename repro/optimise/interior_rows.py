"""One Newton step of the method of `_interior`: every row eliminated in closed form.

Idle time counts as one more GPU type, of no value. With the ratios e = x / y of a row's shares and
their duals, ``e / sum(e)`` are weights; terms that would cancel next to the boundary are written
as flows between two types, which are small there and add up to nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from repro.compiled import njit

#: Relative addition to the system of the duals.
DEPENDENT = 1e-13
#: Rounding error of a sum, relative to its terms.
ROUNDING = 4e-16
#: Less than any slack or dual.
TINY = 1e-300
#: Lines of the constants of the rows: jobs, times GPUs, times scale, GPUs, and the constraint.
COUNT, LOAD, LEAD, WIDTH, SCALE, FLOOR, LINEAR, RECIP = range(8)
#: Lines of the quantities of the rows.
FILL, MEAN, SPREAD, SLOPE, OWN, STIFF, TILT, GIVE, GAP, SHORT, AIM, BEND, GAIN, R, DP = range(15)


@njit(error_model="numpy", fastmath={"contract", "reassoc", "arcp"})
def solve(a: Any, b: Any) -> bool:
    """Overwrite ``b`` by the solution of ``a x = b``; ``a`` is lost."""
    n = a.shape[0]
    for c in range(n):
        best = c
        for i in range(c + 1, n):
            if abs(a[i, c]) > abs(a[best, c]):
                best = i
        if not abs(a[best, c]) > 0.0:
            return False
        if best != c:
            b[c], b[best] = b[best], b[c]
            for j in range(n):
                a[c, j], a[best, j] = a[best, j], a[c, j]
        for i in range(c + 1, n):
            g = a[i, c] / a[c, c]
            if g != 0.0:
                b[i] -= g * b[c]
                for j in range(c + 1, n):
                    a[i, j] -= g * a[c, j]
    for c in range(n - 1, -1, -1):
        for j in range(c + 1, n):
            b[c] -= a[c, j] * b[j]
        b[c] /= a[c, c]
    return True


@njit(error_model="numpy", fastmath={"contract", "reassoc", "arcp"})
def measure(v: Any, job: Any, on: Any, now: Any, z: float, work: Any) -> None:
    """Write the inverse slacks, and by how much rows and duals miss their constraints."""
    s, y, _, pi = now
    iy, over, _, _, _, _, row, dual, _, _, _ = work
    n, rows = pi.size, v.shape[1]
    for j in range(n + 3):
        for k in range(rows):
            over[j, k] = on[j, k] / max(s[j, k], TINY)
        for k in range(rows):
            iy[j, k] = on[j, k] / max(y[j, k], TINY)
    for k in range(rows):
        part = job[RECIP, k] / s[n + 2, k]
        row[SLOPE, k] = job[LINEAR, k] + part / s[n + 2, k]
        value = job[LINEAR, k] * s[n + 2, k]
        due = job[SCALE, k] * z + job[FLOOR, k]
        short = value - part - due - s[n + 1, k]
        # a slack may be smaller than the rounding error of what it is the difference of
        row[SHORT, k] = short if abs(short) > ROUNDING * (value + part + abs(due)) else 0.0
    for k in range(rows):
        row[GAP, k] = 1.0 - s[n, k]
    for j in range(n):
        for k in range(rows):
            row[GAP, k] -= s[j, k]
        for k in range(rows):
            dual[j, k] = y[j, k] - y[n, k] - job[WIDTH, k] * pi[j]
        for k in range(rows):
            dual[j, k] += v[j, k] * (row[SLOPE, k] * y[n + 1, k] + y[n + 2, k])


@njit(error_model="numpy", fastmath={"contract", "reassoc", "arcp"})
def eliminate(v: Any, job: Any, now: Any, free: bool, work: Any) -> None:
    """Eliminate the unknowns of the rows; write the system that couples them."""
    s, y, q, pi = now
    iy, over, e, f, lift, flow, row, _, _, _, whole = work
    n, rows = q.size, v.shape[1]
    for k in range(rows):
        row[FILL, k] = row[MEAN, k] = row[SPREAD, k] = 0.0
    for j in range(n + 1):
        for k in range(rows):
            e[j, k] = s[j, k] * iy[j, k]
        for k in range(rows):
            row[FILL, k] += e[j, k]
        for k in range(rows):
            row[MEAN, k] += e[j, k] * v[j, k]
        for k in range(rows):
            f[j, k] = 0.0
    for k in range(rows):
        row[FILL, k] = 1.0 / row[FILL, k]
    for k in range(rows):
        row[MEAN, k] *= row[FILL, k]
    pair = 0
    for i in range(n):
        for j in range(i + 1, n + 1):
            for k in range(rows):
                lift[pair, k] = e[i, k] * e[j, k] * row[FILL, k] * (v[i, k] - v[j, k])
            for k in range(rows):
                f[i, k] += lift[pair, k]
            for k in range(rows):
                f[j, k] -= lift[pair, k]
            for k in range(rows):
                row[SPREAD, k] += lift[pair, k] * (v[i, k] - v[j, k])
            pair += 1
    for k in range(rows):
        u = over[n + 2, k]
        bend = u * (y[n + 2, k] + 2.0 * y[n + 1, k] * job[RECIP, k] * u * u)
        rate = y[n + 1, k] * over[n + 1, k]
        stiff = row[SLOPE, k] * row[SLOPE, k] * rate + bend
        own = 1.0 / (1.0 + stiff * row[SPREAD, k])
        row[OWN, k] = own
        row[STIFF, k] = stiff * own
        row[TILT, k] = row[SLOPE, k] * rate * own
        row[GIVE, k] = rate * own * (1.0 + bend * row[SPREAD, k])
    for j in range(n):
        whole[j, j] = q[j] / pi[j]
    pair = 0
    for i in range(n):
        for j in range(i + 1, n + 1):
            for k in range(rows):
                flow[pair, k] = row[OWN, k]
            for m in range(n + 1):
                if m != i and m != j:
                    for k in range(rows):
                        apart = (v[i, k] - v[m, k]) * (v[j, k] - v[m, k])
                        flow[pair, k] += row[STIFF, k] * e[m, k] * apart
            for k in range(rows):
                flow[pair, k] *= e[i, k] * e[j, k] * row[FILL, k]
            add = 0.0
            for k in range(rows):
                add += job[LOAD, k] * job[WIDTH, k] * flow[pair, k]
            whole[i, i] += add
            if j < n:
                whole[j, j] += add
                whole[i, j] = whole[j, i] = -add
            pair += 1
    add = 0.0
    for k in range(rows):
        add += job[LEAD, k] * job[SCALE, k] * row[GIVE, k]
    whole[n, n] = add if free else 1.0
    for j in range(n):
        # where rows and columns are dependent, the duals are not unique: leave them where they are
        whole[j, j] *= 1.0 + DEPENDENT
        add = 0.0
        for k in range(rows):
            add += job[LEAD, k] * job[WIDTH, k] * f[j, k] * row[TILT, k]
        whole[n, j] = add if free else 0.0
        whole[j, n] = -whole[n, j]


@njit(error_model="numpy", fastmath={"contract", "reassoc", "arcp"})
def lean(job: Any, dpi: Any, dz: float, work: Any) -> None:
    """Write the changes of the duals of the rows for those of the duals that couple them."""
    _, _, _, _, lift, _, row, _, base, pull, _ = work
    n, rows = dpi.size, job.shape[1]
    for j in range(n):
        for k in range(rows):
            pull[j, k] = base[j, k] - job[WIDTH, k] * dpi[j]
    for k in range(rows):
        row[GAIN, k] = row[MEAN, k] * row[GAP, k]
    pair = 0
    for i in range(n):
        for j in range(i + 1, n + 1):
            for k in range(rows):
                row[GAIN, k] += lift[pair, k] * (pull[i, k] - pull[j, k])
            pair += 1
    for k in range(rows):
        aim = row[AIM, k] + job[SCALE, k] * dz
        gain = row[GAIN, k] + row[SPREAD, k] * row[BEND, k]
        row[DP, k] = row[GIVE, k] * aim - row[TILT, k] * gain
    for k in range(rows):
        aim = row[AIM, k] + job[SCALE, k] * dz
        row[R, k] = row[TILT, k] * aim + row[OWN, k] * row[BEND, k]
    for k in range(rows):
        row[R, k] -= row[STIFF, k] * row[MEAN, k] * row[GAP, k]


@njit(error_model="numpy", fastmath={"contract", "reassoc", "arcp"})
def direction(
    v: Any, job: Any, barrier: Any, gpus: Any, now: Any, free: bool,
    goal: float, second: float, passes: int, work: Any, move: Any,
) -> float:  # fmt: skip
    """Write the Newton step towards products of ``goal``; return its change of the level.

    With ``second`` = 1 the step holds the second-order terms of the step in ``move``.
    """
    (s, y, q, pi), (ds, dy, dq, dpi) = now, move
    iy, over, e, f, _, flow, row, dual, base, pull, whole = work
    n, rows = q.size, v.shape[1]
    aim, side = np.zeros(n + 1), np.zeros(n + 1)
    for j in range(n):
        dq[j] = goal - q[j] * pi[j] - second * dq[j] * dpi[j]
        dpi[j] = 0.0
        add = 0.0
        for k in range(rows):
            add += job[LOAD, k] * s[j, k]
        aim[j] = dq[j] / pi[j] - (gpus[j] - q[j] - add)
    add = 0.0
    for k in range(rows):
        add += job[LEAD, k] * y[n + 1, k]
    aim[n] = 1.0 - add
    for j in range(n + 3):
        for k in range(rows):
            dy[j, k] = barrier[j, k] * goal - s[j, k] * y[j, k] - second * ds[j, k] * dy[j, k]
    for j in range(n):
        for k in range(rows):
            base[j, k] = dy[j, k] * over[j, k] + dual[j, k]
    for k in range(rows):
        pull[n, k] = dy[n, k] * over[n, k]
    for k in range(rows):
        row[AIM, k] = dy[n + 1, k] * iy[n + 1, k] - row[SHORT, k]
    for k in range(rows):
        row[BEND, k] = dy[n + 2, k] * over[n + 2, k]
    dz = 0.0
    for number in range(passes + 1):
        lean(job, dpi, dz, work)
        if number == passes:
            break
        # a further pass solves for the rounding errors of the one before
        for j in range(n):
            add = 0.0
            for k in range(rows):
                x = e[j, k] * row[FILL, k] * row[GAP, k] + f[j, k] * row[R, k]
                add += job[LOAD, k] * x
            side[j] = aim[j] - q[j] / pi[j] * dpi[j] + add
        pair = 0
        for i in range(n):
            for j in range(i + 1, n + 1):
                add = 0.0
                for k in range(rows):
                    add += job[LOAD, k] * flow[pair, k] * (pull[i, k] - pull[j, k])
                side[i] += add
                if j < n:
                    side[j] -= add
                pair += 1
        add = 0.0
        for k in range(rows):
            add += job[LEAD, k] * row[DP, k]
        side[n] = aim[n] - add if free else 0.0
        if not solve(whole.copy(), side):
            return np.nan
        for j in range(n):
            dpi[j] += side[j]
        dz += side[n]
    for j in range(n + 1):
        for k in range(rows):
            ds[j, k] = e[j, k] * row[FILL, k] * row[GAP, k] + f[j, k] * row[R, k]
    pair = 0
    for i in range(n):
        for j in range(i + 1, n + 1):
            for k in range(rows):
                ds[i, k] += flow[pair, k] * (pull[i, k] - pull[j, k])
            for k in range(rows):
                ds[j, k] -= flow[pair, k] * (pull[i, k] - pull[j, k])
            pair += 1
    for k in range(rows):
        ds[n + 1, k] = (dy[n + 1, k] - s[n + 1, k] * row[DP, k]) * iy[n + 1, k]
    for k in range(rows):
        dy[n + 1, k] = row[DP, k]
    for k in range(rows):
        ds[n + 2, k] = 0.0
    for j in range(n):
        dq[j] = (dq[j] - q[j] * dpi[j]) / pi[j]
        for k in range(rows):
            ds[n + 2, k] += v[j, k] * ds[j, k]
    for j in range(n + 3):
        if j != n + 1:
            for k in range(rows):
                dy[j, k] = (dy[j, k] - y[j, k] * ds[j, k]) * over[j, k]
    return dz
