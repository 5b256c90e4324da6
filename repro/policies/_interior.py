"""The compiled kernel of `_centre`: a primal-dual interior-point method for shares of GPU types.

A step solves a system of (GPU types + 2) unknowns per row and one for the duals of the GPU types
and the level, which alone couple the rows; its cost is linear in the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

#: Largest number of steps; a well-posed programme takes 10 to 25.
STEPS = 80
#: After a step shorter than this the next one only leads back towards the path.
JAMMED = 0.1
#: Largest relative distance of a complementarity product from its target at the end.
CENTRED = 1e-5
#: Relative addition to the system of the duals.
DEPENDENT = 1e-13


@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc", "arcp"})
def invert(a: Any, moved: Any) -> bool:
    """Invert ``a`` in place by Gauss-Jordan with row exchanges, noted in ``moved``."""
    n = a.shape[0]
    for c in range(n):
        best, most = c, abs(a[c, c])
        for i in range(c + 1, n):
            if abs(a[i, c]) > most:
                best, most = i, abs(a[i, c])
        if not most > 0.0:
            return False
        moved[c] = best
        if best != c:
            for j in range(n):
                a[c, j], a[best, j] = a[best, j], a[c, j]
        f = 1.0 / a[c, c]
        a[c, c] = 1.0
        for j in range(n):
            a[c, j] *= f
        for i in range(n):
            g = a[i, c]
            if i != c and g != 0.0:
                a[i, c] = 0.0
                for j in range(n):
                    a[i, j] -= g * a[c, j]
    for c in range(n - 1, -1, -1):
        other = moved[c]
        if other != c:
            for i in range(n):
                a[i, c], a[i, other] = a[i, other], a[i, c]
    return True


@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc", "arcp"})
def assemble(
    v: Any, count: Any, width: Any, scale: Any, linear: Any, recip: Any, barrier: Any,
    s: Any, y: Any, q: Any, pi: Any, free: bool, inverse: Any, whole: Any,
) -> bool:  # fmt: skip
    """Write the inverses of every row's system and of the system that couples the rows."""
    rows, n = v.shape
    moved = np.empty(n + 2, dtype=np.int64)
    whole[:, :] = 0.0
    for j in range(n):
        whole[j, j] = q[j] / pi[j]
    for k in range(rows):
        u = s[k, n + 2]
        bend = y[k, n + 2] / u + 2.0 * y[k, n + 1] * recip[k] / (u * u * u)
        slope = linear[k] + recip[k] / (u * u)
        a = inverse[k]
        for j in range(n):
            on = barrier[k, j] > 0.0
            for i in range(n):
                a[j, i] = -bend * v[k, j] * v[k, i]
            a[j, j] -= y[k, j] / s[k, j] if on else 1.0
            a[j, n] = a[n, j] = -1.0 if on else 0.0
            a[j, n + 1] = a[n + 1, j] = slope * v[k, j]
        a[n, n] = s[k, n] / y[k, n]
        a[n, n + 1] = a[n + 1, n] = 0.0
        a[n + 1, n + 1] = s[k, n + 1] / y[k, n + 1] if barrier[k, n + 1] > 0.0 else 1.0
        if not invert(a, moved):
            return False
        c, w, f = count[k], width[k], scale[k]
        for j in range(n):
            if barrier[k, j] > 0.0:
                for i in range(n):
                    if barrier[k, i] > 0.0:
                        whole[j, i] -= c * w * w * a[j, i]
                whole[j, n] -= c * w * f * a[j, n + 1]
                whole[n, j] += c * w * f * a[n + 1, j]
        whole[n, n] += c * f * f * a[n + 1, n + 1]
    for j in range(n):
        # where rows and columns are dependent, the duals are not unique: leave them where they are
        whole[j, j] *= 1.0 + DEPENDENT
    if not free:
        whole[n, :] = 0.0
        whole[:, n] = 0.0
        whole[n, n] = 1.0
    return invert(whole, moved)


@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc", "arcp"})
def direction(
    v: Any, count: Any, width: Any, scale: Any, floor: Any, linear: Any, recip: Any, barrier: Any,
    gpus: Any, s: Any, y: Any, q: Any, pi: Any, z: float, free: bool, inverse: Any, whole: Any,
    goal: float, second: float, passes: int, ds: Any, dy: Any, dq: Any, dpi: Any, part: Any,
) -> float:  # fmt: skip
    """Write the Newton step towards products of ``goal``; return its change of the level.

    With ``second`` = 1 the step holds the second-order terms of the step in ds ... dpi.
    """
    rows, n = v.shape
    aim, side, b = np.zeros(n + 1), np.zeros(n + 1), np.empty(n + 2)
    for j in range(n):
        dq[j] = goal - q[j] * pi[j] - second * dq[j] * dpi[j]
        dpi[j] = 0.0
        aim[j] = dq[j] / pi[j] - (gpus[j] - q[j])
    aim[n] = 1.0
    for k in range(rows):
        c, w, f, u = count[k], width[k], scale[k], s[k, n + 2]
        slope = linear[k] + recip[k] / (u * u)
        for j in range(n + 3):
            ds[k, j] = barrier[k, j] * goal - s[k, j] * y[k, j] - second * ds[k, j] * dy[k, j]
        gap = 1.0 - s[k, n]
        for j in range(n):
            b[j] = 0.0
            if barrier[k, j] > 0.0:
                gap -= s[k, j]
                aim[j] += c * w * s[k, j]
                dual = y[k, j] + v[k, j] * (slope * y[k, n + 1] + y[k, n + 2])
                dual -= y[k, n] + w * pi[j]
                b[j] = -dual - ds[k, j] / s[k, j] - v[k, j] * ds[k, n + 2] / u
        b[n] = ds[k, n] / y[k, n] - gap
        b[n + 1] = 0.0
        if barrier[k, n + 1] > 0.0:
            gap = linear[k] * u - recip[k] / u - f * z - floor[k] - s[k, n + 1]
            b[n + 1] = ds[k, n + 1] / y[k, n + 1] - gap
        for i in range(n + 2):
            add = 0.0
            for j in range(n + 2):
                add += inverse[k, i, j] * b[j]
            part[k, i] = add
        aim[n] -= c * f * y[k, n + 1]
    dz, rise = 0.0, 0.0
    # a further pass solves for the rounding errors of the one before
    for _ in range(passes):
        for j in range(n):
            side[j] = aim[j] - q[j] / pi[j] * dpi[j]
        side[n] = aim[n] if free else 0.0
        for k in range(rows):
            for j in range(n):
                if barrier[k, j] > 0.0:
                    side[j] += count[k] * width[k] * part[k, j]
            if free:
                side[n] -= count[k] * scale[k] * part[k, n + 1]
        for i in range(n + 1):
            move = 0.0
            for j in range(n + 1):
                move += whole[i, j] * side[j]
            if i < n:
                b[i] = move
                dpi[i] += move
            else:
                rise = move
        dz += rise
        for k in range(rows):
            for i in range(n + 2):
                add = scale[k] * rise * inverse[k, i, n + 1]
                for j in range(n):
                    if barrier[k, j] > 0.0:
                        add += width[k] * inverse[k, i, j] * b[j]
                part[k, i] += add
    for j in range(n):
        dq[j] = (dq[j] - q[j] * dpi[j]) / pi[j]
    for k in range(rows):
        gain = 0.0
        for j in range(n):
            if barrier[k, j] > 0.0:
                gain += v[k, j] * part[k, j]
                dy[k, j] = (ds[k, j] - y[k, j] * part[k, j]) / s[k, j]
                ds[k, j] = part[k, j]
            else:
                ds[k, j] = dy[k, j] = 0.0
        for i in range(n, n + 2):
            if barrier[k, i] > 0.0:
                dy[k, i] = part[k, i]
                ds[k, i] = (ds[k, i] - s[k, i] * part[k, i]) / y[k, i]
            else:
                ds[k, i] = dy[k, i] = 0.0
        dy[k, n + 2] = (ds[k, n + 2] - y[k, n + 2] * gain) / s[k, n + 2]
        ds[k, n + 2] = gain
    return dz


@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc", "arcp"})
def reach(s: Any, ds: Any, q: Any, dq: Any, barrier: Any) -> float:
    """Return the longest step after which every slack is still positive."""
    step = 1e9
    for j in range(q.size):
        if dq[j] * step < -q[j]:
            step = -q[j] / dq[j]
    rows, size = s.shape
    for k in range(rows):
        for j in range(size):
            if barrier[k, j] > 0.0 and ds[k, j] * step < -s[k, j]:
                step = -s[k, j] / ds[k, j]
    return step


@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc", "arcp"})
def follow(
    v: Any, count: Any, width: Any, scale: Any, floor: Any, linear: Any, recip: Any, barrier: Any,
    gpus: Any, s: Any, z: float, free: bool, end: float,
) -> tuple[float, Any, int, bool]:  # fmt: skip
    """Follow the central path from the slacks ``s`` (overwritten) to complementarity ``end``.

    Row k stands for ``count[k]`` equal jobs; its slacks are the shares x (one per GPU type), the
    unused time, the slack of its value constraint and its value u = v x, each with a barrier
    weight (0 = absent). The constraint is linear u - recip / u >= scale z + floor. Without
    ``free`` the level z stays as given. Returns z, the duals, the steps, and whether it ended well.
    """
    rows, n = v.shape
    ds, dy, y = np.zeros_like(s), np.zeros_like(s), np.ones_like(s)
    q, pi, dq, dpi = gpus.copy(), np.zeros(n), np.zeros(n), np.zeros(n)
    inverse, part = np.zeros((rows, n + 2, n + 2)), np.zeros((rows, n + 2))
    whole = np.zeros((n + 1, n + 1))
    total, push = float(n), 0.0
    for k in range(rows):
        for j in range(n + 3):
            total += count[k] * barrier[k, j]
        for j in range(n):
            q[j] -= count[k] * width[k] * s[k, j] * (barrier[k, j] > 0.0)
        push += count[k] * scale[k] * barrier[k, n + 1] / s[k, n + 1]
    mu = 1.0 / push if free else end
    for j in range(n):
        pi[j] = mu / q[j]
    for k in range(rows):
        for j in range(n + 3):
            y[k, j] = barrier[k, j] * mu / s[k, j]
    curved = False
    for k in range(rows):
        curved |= recip[k] > 0.0
    last, a_was = not free, 1.0
    for number in range(STEPS):
        if not assemble(
            v, count, width, scale, linear, recip, barrier, s, y, q, pi, free, inverse, whole
        ):
            return z, y, number, False
        goal, second = end, 0.0
        if not last:
            dz = direction(
                v, count, width, scale, floor, linear, recip, barrier, gpus, s, y, q, pi, z, free,
                inverse, whole, 0.0, 0.0, 1, ds, dy, dq, dpi, part,
            )  # fmt: skip
            a = min(1.0, reach(s, ds, q, dq, barrier))
            d = min(1.0, reach(y, dy, pi, dpi, barrier))
            left = 0.0
            for j in range(n):
                left += (q[j] + a * dq[j]) * (pi[j] + d * dpi[j])
            for k in range(rows):
                for j in range(n + 3):
                    left += count[k] * (s[k, j] + a * ds[k, j]) * (y[k, j] + d * dy[k, j])
            ratio = left / (total * mu)
            goal, second = max(end, mu * ratio * ratio * ratio), 1.0
            if a_was < JAMMED:
                # back towards the path first: next to the boundary no step leads far
                goal, second = mu, 0.0
        dz = direction(
            v, count, width, scale, floor, linear, recip, barrier, gpus, s, y, q, pi, z, free,
            inverse, whole, goal, second, 2 if last else 1, ds, dy, dq, dpi, part,
        )  # fmt: skip
        a = min(1.0, 0.995 * reach(s, ds, q, dq, barrier))
        d = min(1.0, 0.995 * reach(y, dy, pi, dpi, barrier))
        if curved or last:
            a = d = min(a, d)
        z += a * dz
        a_was = a
        mu, off = 0.0, 0.0
        for j in range(n):
            q[j] += a * dq[j]
            pi[j] += d * dpi[j]
            mu += q[j] * pi[j]
            off = max(off, abs(q[j] * pi[j] / end - 1.0))
        for k in range(rows):
            u = 0.0
            for j in range(n + 3):
                if barrier[k, j] > 0.0:
                    s[k, j] += a * ds[k, j]
                    y[k, j] += d * dy[k, j]
                    mu += count[k] * s[k, j] * y[k, j]
                    off = max(off, abs(s[k, j] * y[k, j] / (barrier[k, j] * end) - 1.0))
                if j < n:
                    u += v[k, j] * s[k, j] * (barrier[k, j] > 0.0)
            s[k, n + 2] = u
        mu /= total
        if not mu < 1e30:
            return z, y, number, False
        if last and a == 1.0 and off < CENTRED:
            if free:
                # from the path to the optimum it leads to, unless rounding errors say otherwise
                dz = direction(
                    v, count, width, scale, floor, linear, recip, barrier, gpus, s, y, q, pi, z,
                    free, inverse, whole, 0.0, 0.0, 3, ds, dy, dq, dpi, part,
                )  # fmt: skip
                move = 0.0
                for k in range(rows):
                    for j in range(n):
                        move = max(move, abs(ds[k, j]))
                if move < 1e-7:
                    z += dz
                    for k in range(rows):
                        for j in range(n + 2):
                            s[k, j] = max(0.0, s[k, j] + ds[k, j] * (barrier[k, j] > 0.0))
            return z, y, number + 1, True
        if mu < 2.0 * end:
            last = True
    return z, y, STEPS, False
