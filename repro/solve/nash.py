"""Nash welfare over shares of time, and the discount that makes it strategy-proof."""

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Floats
from repro.solve.counted import SOLVED

#: Mean product of a slack and its price at which the path ends, per job of the most common kind,
#: and how it falls per step.
END = 1e-10
FALL = 0.1
#: Newton steps allowed, and the part of the way to the border each may go.
STEPS = 150
NEAR = 0.99


def nash_shares(speeds: Floats, counts: Floats, widths: Floats, gpus: Floats) -> Floats:
    """Return the shares of highest product of throughputs, for one or many problems at once.

    Maximises sum_k c_k log(a_k Y_k) over Y >= 0, sum_j Y_kj <= c_k, sum_k width_k Y_kj <= W_j,
    where Y is the time of all jobs of a kind together, by a primal-dual interior-point path. A
    Newton step costs one small system per kind and one for the GPU types. ``speeds`` (a) have
    shape (kinds, types), ``counts`` (c) shape (kinds,) or (problems, kinds), where 0 leaves a kind
    out; the shares of one job of each kind have shape (kinds, types) or (problems, kinds, types)
    (Gavel, OSDI 2020, section 4.4; Eisenberg and Gale 1959).
    """
    SOLVED["convex"] += 1
    c = np.atleast_2d(counts).astype(float)
    present = c > 0
    # a kind that is left out becomes a job apart, which uses no GPUs of the others
    c = np.where(present, c, 1.0)
    width = np.where(present, widths, 0.0)[:, :, None]
    a = speeds / speeds.max(axis=1, keepdims=True)
    need = np.maximum((c[:, :, None] * width).sum(axis=1, keepdims=True), 1e-300)
    y = 0.5 * c[:, :, None] * np.minimum(1.0 / len(gpus), gpus / need)
    z = np.ones_like(y)
    u = np.ones_like(c)
    v = np.ones((len(c), 1, len(gpus)))
    end = END * c.max(axis=1)
    # slacks are variables: computed anew from Y, one of 1e-12 would be mostly rounding
    r = c - y.sum(axis=2)
    s = gpus - (width * y).sum(axis=1, keepdims=True)
    for _ in range(STEPS):
        gaps = [(q * p).reshape(len(c), -1) for q, p in ((y, z), (r, u), (s, v))]
        gap = np.concatenate(gaps, axis=1).mean(axis=1)
        total = (a * y).sum(axis=2, keepdims=True)
        force = c[:, :, None] * a / total - u[:, :, None] - width * v
        if (gap < 2 * end).all() and (np.abs(force + z) < 1e-6 * (1.0 + v)).all():
            shares: Floats = np.where(a > 0, y, 0.0) / c[:, :, None] * present[:, :, None]
            return shares.reshape(*np.shape(counts), -1)
        aim = np.maximum(FALL * gap, end)[:, None]
        short = c - y.sum(axis=2) - r, gpus - (width * y).sum(axis=1, keepdims=True) - s
        point = (y, r, s, z, u, v)
        moves = _newton(a / total, c, width, point, force, short, aim)
        reach = np.ones(len(c))
        for now, move in zip(point, moves, strict=True):
            worst = (-move / now).reshape(len(c), -1).max(axis=1)
            reach = np.minimum(reach, NEAR / np.maximum(worst, NEAR))
        y, r, s, z, u, v = (
            now + reach.reshape(-1, *[1] * (now.ndim - 1)) * move
            for now, move in zip(point, moves, strict=True)
        )
    raise PolicyError(f"Nash welfare of {c.shape[1]} job types was not found in {STEPS} steps")


def _newton(
    slope: Floats,
    c: Floats,
    width: Floats,
    point: tuple[Floats, ...],
    force: Floats,
    short: tuple[Floats, Floats],
    aim: Floats,
) -> tuple[Floats, ...]:
    """Return the Newton steps of Y, the slacks r and s, and the prices z, u and v of the three.

    Optimal are c a / (a Y) - u - width v + z = 0, time sum_j Y + r = c, GPUs sum_k width Y + s = W,
    and Y z = r u = s v = 0; a step aims at products of ``aim``. Of each kind dY and du follow from
    one system (``block``) given dv, and dv from the sum of these over the kinds (``coupled``).
    """
    y, r, s, z, u, v = point
    types = y.shape[2]
    block = np.zeros((*c.shape, types + 1, types + 1))
    block[..., :types, :types] = c[..., None, None] * slope[..., :, None] * slope[..., None, :]
    block[..., range(types), range(types)] += z / y
    block[..., :types, types] = block[..., types, :types] = 1.0
    block[..., types, types] = -r / u
    inverse = np.linalg.inv(block)
    right = np.append(force + aim[..., None] / y, (short[0] + r - aim / u)[..., None], axis=2)
    alone = (inverse @ right[..., None])[..., 0]
    coupled = (width[..., None] ** 2 * inverse[..., :types, :types]).sum(axis=1)
    # as many jobs as GPUs leave all prices free to rise together: rounding must not decide there
    diagonal = coupled[..., range(types), range(types)]
    coupled[..., range(types), range(types)] += (s / v)[:, 0] + 1e-13 * diagonal
    freed = aim[..., None] / v - s
    wanted = (width * alone[..., :types]).sum(axis=1) + (freed - short[1])[:, 0]
    dv = np.linalg.solve(coupled, wanted[..., None])[:, None, :, 0]
    both = alone - (inverse[..., :types] @ (width * dv)[..., None])[..., 0]
    dy = both[..., :types]
    du = both[..., types]
    dr = aim / u - r - r / u * du
    ds = freed - s / v * dv
    return dy, dr, ds, (aim[..., None] - z * dy) / y - z, du, dv


def strategy_proof_shares(speeds: Floats, counts: Floats, widths: Floats, gpus: Floats) -> Floats:
    """Return Nash shares (see `nash_shares`), each row times what its presence leaves to others.

    Row i is multiplied by prod_{l != i} thr_l(with i) / thr_l(without i). What i then gets is
    the highest product of throughputs, divided by a number its report has no part in, so that no
    other report serves it better (Gavel, OSDI 2020, section 4.4; the partial allocation of Cole,
    Gkatzelis and Goel, EC 2013).
    """
    problems = np.vstack([counts, counts - np.eye(len(speeds))])
    shares = nash_shares(speeds, problems, widths, gpus)
    throughputs = (speeds * shares).sum(axis=2)
    others = problems[1:]
    lost = np.where(others > 0, np.log(throughputs[0] / np.maximum(throughputs[1:], 1e-300)), 0.0)
    answer: Floats = shares[0] * np.minimum(np.exp((others * lost).sum(axis=1)), 1.0)[:, None]
    return answer
