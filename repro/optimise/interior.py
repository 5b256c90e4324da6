"""The compiled kernel of `_centre`: a primal-dual interior-point method for shares of GPU types.

A step eliminates the unknowns of every row; what is left is a system of the duals of the GPU types
and the level, which alone couple the rows. Its cost is linear in the rows. Arrays hold a line per
quantity and a column per row: loops over the rows are short, so that they compile to vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from repro.compiled import njit
from repro.optimise.interior_rows import (
    COUNT,
    LEAD,
    LOAD,
    RECIP,
    TINY,
    direction,
    eliminate,
    measure,
)  # fmt: skip

#: Largest number of steps; a well-posed programme takes 10 to 25.
STEPS = 80
#: After a step shorter than this the next one only leads back towards the path.
JAMMED = 0.1
#: Largest relative distance of a complementarity product from its target at the end.
CENTRED = 1e-5


@njit(error_model="numpy", fastmath=True)
def reach(ds: Any, over: Any, dq: Any, q: Any) -> float:
    """Return the longest step after which every slack is still positive, ``over`` its inverse."""
    most = 1e-9
    for j in range(q.size):
        most = max(most, -dq[j] / q[j])
    lines, rows = ds.shape
    for j in range(lines):
        for k in range(rows):
            most = max(most, -ds[j, k] * over[j, k])
    return 1.0 / most


@njit(error_model="numpy", fastmath={"contract", "reassoc", "arcp"})
def follow(
    v: Any, job: Any, barrier: Any, gpus: Any, s: Any, z: float, free: bool, end: float
) -> tuple[float, Any, int, bool]:
    """Follow the central path from the slacks ``s`` (overwritten) to complementarity ``end``.

    Arrays hold a line per quantity and a column per row of ``job[COUNT]`` equal jobs. Its slacks
    are the shares x (one per GPU type), the unused time, the slack of its value constraint and its
    value u = v x, each with a barrier weight (0 = absent; the slack is 0 then, that of the value
    apart). The constraint is linear u - recip / u >= scale z + floor. Without ``free`` the level z
    stays as given. Returns z, the duals, the steps, and whether it ended well.
    """
    n, rows = gpus.size, v.shape[1]
    slacks, types, pairs = (n + 3, rows), (n + 1, rows), (n * (n + 1) // 2, rows)
    y, ds, dy, iy = np.zeros(slacks), np.zeros(slacks), np.zeros(slacks), np.zeros(slacks)
    on, over, q, pi = np.zeros(slacks), np.zeros(slacks), gpus.copy(), np.zeros(n)
    dq, dpi = np.zeros(n), np.zeros(n)
    now, move = (s, y, q, pi), (ds, dy, dq, dpi)
    work = (
        iy, over, np.zeros(types), np.zeros(types), np.zeros(pairs), np.zeros(pairs),
        np.zeros((15, rows)), np.zeros(types), np.zeros(types), np.zeros(types),
        np.zeros((n + 1, n + 1)),
    )  # fmt: skip
    total, push = float(n), 0.0
    for k in range(rows):
        for j in range(n + 3):
            total += job[COUNT, k] * barrier[j, k]
            on[j, k] = 1.0 if barrier[j, k] > 0.0 else 0.0
        for j in range(n):
            q[j] -= job[LOAD, k] * s[j, k]
        if on[n + 1, k] > 0.0:
            push += job[LEAD, k] * barrier[n + 1, k] / s[n + 1, k]
    mu = 1.0 / push if free else end
    for j in range(n):
        pi[j] = mu / q[j]
    curved = False
    for k in range(rows):
        for j in range(n + 3):
            y[j, k] = barrier[j, k] * mu / max(s[j, k], TINY)
        curved |= job[RECIP, k] > 0.0
    last, done, a_was = not free, False, 1.0
    for number in range(STEPS):
        measure(v, job, on, now, z, work)
        eliminate(v, job, now, free, work)
        # a step to no complementarity foretells; at the end it leads from the path to the optimum
        goal, second, passes = 0.0, 0.0, 3 if done else 1
        if last and not done:
            goal, passes = end, 2
        elif not last:
            direction(v, job, barrier, gpus, now, free, goal, second, passes, work, move)
            a = min(1.0, reach(ds, over, dq, q))
            d = min(1.0, reach(dy, iy, dpi, pi))
            left = 0.0
            for j in range(n):
                left += (q[j] + a * dq[j]) * (pi[j] + d * dpi[j])
            for j in range(n + 3):
                for k in range(rows):
                    left += job[COUNT, k] * (s[j, k] + a * ds[j, k]) * (y[j, k] + d * dy[j, k])
            ratio = left / (total * mu)
            goal, second = max(end, mu * ratio * ratio * ratio), 1.0
            if a_was < JAMMED:
                # back towards the path first: next to the boundary no step leads far
                goal, second = mu, 0.0
        dz = direction(v, job, barrier, gpus, now, free, goal, second, passes, work, move)
        if done:
            small = True
            for j in range(n):
                for k in range(rows):
                    small &= abs(ds[j, k]) < 1e-7
            if small:
                # else rounding errors say otherwise
                z += dz
                for j in range(n + 2):
                    for k in range(rows):
                        s[j, k] = max(0.0, s[j, k] + ds[j, k])
            return z, y, number, True
        a = min(1.0, 0.995 * reach(ds, over, dq, q))
        d = min(1.0, 0.995 * reach(dy, iy, dpi, pi))
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
        for j in range(n + 3):
            for k in range(rows):
                s[j, k] += a * ds[j, k]
            for k in range(rows):
                y[j, k] += d * dy[j, k]
            for k in range(rows):
                mu += job[COUNT, k] * s[j, k] * y[j, k]
        for k in range(rows):
            s[n + 2, k] = 0.0
        for j in range(n):
            for k in range(rows):
                s[n + 2, k] += v[j, k] * s[j, k]
        mu /= total
        if not mu < 1e30:
            return z, y, number, False
        if last and a == 1.0:
            for j in range(n + 3):
                for k in range(rows):
                    off = max(off, abs(s[j, k] * y[j, k] / end - barrier[j, k]))
            if off < CENTRED:
                if not free:
                    return z, y, number + 1, True
                done = True
        if mu < 2.0 * end:
            last = True
    return z, y, STEPS, done
