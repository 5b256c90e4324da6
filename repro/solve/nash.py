"""Nash welfare over shares of time, and the discount that makes it strategy-proof."""

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Floats
from repro.solve.counted import SOLVED

#: Mean product of a slack and its price at which the path aims, if each kind has one job. It is
#: multiplied by the number of jobs of the most common kind.
END_GAP = 1e-10
#: Factor by which a step aims to reduce that product.
GAP_FACTOR = 0.1
#: Largest number of Newton steps.
MAX_STEPS = 150
#: Largest part of the way to the boundary in a step.
MAX_REACH = 0.99


def nash_shares(speeds: Floats, counts: Floats, widths: Floats, gpus: Floats) -> Floats:
    """Shares of highest product of throughputs (Nash welfare), for one or many problems at once.

    Maximise sum_k c_k log(a_k Y_k) over Y >= 0, sum_j Y_kj <= c_k, sum_k width_k Y_kj <= W_j, where
    Y is the time of all jobs of a kind together. The method is a primal-dual interior-point path.
    A Newton step solves one small system per kind and one for the GPU types.

    ``speeds`` (a) have shape (kinds, types), ``gpus`` (W) shape (types,). ``counts`` (c)
    have shape (kinds,) or (problems, kinds); 0 leaves a kind out. The shares of one job of each
    kind have shape (kinds, types) or (problems, kinds, types). Gavel, OSDI 2020, section 4.4;
    Eisenberg and Gale 1959.
    """
    SOLVED["convex"] += 1
    c = np.atleast_2d(counts).astype(float)
    present = c > 0
    # A kind that is left out becomes one job of width 0, which uses no GPUs.
    c = np.where(present, c, 1.0)
    width = np.where(present, widths, 0.0)[:, :, None]
    a = speeds / speeds.max(axis=1, keepdims=True)
    demand = np.maximum((c[:, :, None] * width).sum(axis=1, keepdims=True), 1e-300)
    y = 0.5 * c[:, :, None] * np.minimum(1.0 / len(gpus), gpus / demand)
    # Prices: z of Y >= 0, u of time, v of GPUs. The slacks r of time and s of GPUs follow below.
    z = np.ones_like(y)
    u = np.ones_like(c)
    v = np.ones((len(c), 1, len(gpus)))
    end = END_GAP * c.max(axis=1)
    # Slacks are variables. Computed from Y, a slack of 1e-12 would be mostly rounding.
    r = c - y.sum(axis=2)
    s = gpus - (width * y).sum(axis=1, keepdims=True)
    for _ in range(MAX_STEPS):
        gaps = [(slack * price).reshape(len(c), -1) for slack, price in ((y, z), (r, u), (s, v))]
        gap = np.concatenate(gaps, axis=1).mean(axis=1)
        total = (a * y).sum(axis=2, keepdims=True)
        residual_without_z = c[:, :, None] * a / total - u[:, :, None] - width * v
        if (gap < 2 * end).all() and (np.abs(residual_without_z + z) < 1e-6 * (1.0 + v)).all():
            shares: Floats = np.where(a > 0, y, 0.0) / c[:, :, None] * present[:, :, None]
            return shares.reshape(*np.shape(counts), -1)
        aim = np.maximum(GAP_FACTOR * gap, end)[:, None]
        primal_residuals = c - y.sum(axis=2) - r, gpus - (width * y).sum(axis=1, keepdims=True) - s
        point = (y, r, s, z, u, v)
        moves = _newton(a / total, c, width, point, residual_without_z, primal_residuals, aim)
        reach = np.ones(len(c))
        for value, move in zip(point, moves, strict=True):
            decrease = (-move / value).reshape(len(c), -1).max(axis=1)
            reach = np.minimum(reach, MAX_REACH / np.maximum(decrease, MAX_REACH))
        y, r, s, z, u, v = (
            value + reach.reshape(-1, *[1] * (value.ndim - 1)) * move
            for value, move in zip(point, moves, strict=True)
        )
    raise PolicyError(
        f"Nash welfare of {c.shape[1]} job kinds did not converge in {MAX_STEPS} steps"
    )


def _newton(
    slope: Floats,
    c: Floats,
    width: Floats,
    point: tuple[Floats, ...],
    residual_without_z: Floats,
    primal_residuals: tuple[Floats, Floats],
    aim: Floats,
) -> tuple[Floats, ...]:
    """Newton steps of Y, the slacks r and s, and their prices z, u and v.

    An optimum satisfies c a / (a Y) - u - width v + z = 0, time sum_j Y + r = c, GPUs sum_k width Y
    + s = W, and Y z = r u = s v = 0. A step aims at products of ``aim``. Given dv, one system per
    kind (``block``) gives dY and du. The system of the GPU types (``coupled``) gives dv.
    """
    y, r, s, z, u, v = point
    types = y.shape[2]
    block = np.zeros((*c.shape, types + 1, types + 1))
    block[..., :types, :types] = c[..., None, None] * slope[..., :, None] * slope[..., None, :]
    block[..., range(types), range(types)] += z / y
    block[..., :types, types] = block[..., types, :types] = 1.0
    block[..., types, types] = -r / u
    inverse = np.linalg.inv(block)
    right_side = np.append(
        residual_without_z + aim[..., None] / y,
        (primal_residuals[0] + r - aim / u)[..., None],
        axis=2,
    )
    steps_without_dv = (inverse @ right_side[..., None])[..., 0]
    coupled = (width[..., None] ** 2 * inverse[..., :types, :types]).sum(axis=1)
    # If the jobs ask for exactly all GPUs, the prices v are fixed only up to a constant. The small
    # addition to the diagonal sets the constant, so that rounding does not.
    diagonal = coupled[..., range(types), range(types)]
    coupled[..., range(types), range(types)] += (s / v)[:, 0] + 1e-13 * diagonal
    slack_step = aim[..., None] / v - s
    gpus_by_steps = (width * steps_without_dv[..., :types]).sum(axis=1)
    coupled_right_side = gpus_by_steps + (slack_step - primal_residuals[1])[:, 0]
    dv = np.linalg.solve(coupled, coupled_right_side[..., None])[:, None, :, 0]
    kind_steps = steps_without_dv - (inverse[..., :types] @ (width * dv)[..., None])[..., 0]
    dy = kind_steps[..., :types]
    du = kind_steps[..., types]
    dr = aim / u - r - r / u * du
    ds = slack_step - s / v * dv
    return dy, dr, ds, (aim[..., None] - z * dy) / y - z, du, dv


def strategy_proof_shares(speeds: Floats, counts: Floats, widths: Floats, gpus: Floats) -> Floats:
    """Nash shares (see `nash_shares`) with the discount that makes them strategy-proof.

    Row i is multiplied by prod_{l != i} thr_l(with i) / thr_l(without i). The throughput of i is
    then the largest product of all throughputs, divided by a number that does not depend on the
    speeds that i reports. A job therefore gains nothing by reporting other speeds. Gavel, OSDI
    2020, section 4.4; partial allocation of Cole, Gkatzelis and Goel, EC 2013.
    """
    problems = np.vstack([counts, counts - np.eye(len(speeds))])
    shares = nash_shares(speeds, problems, widths, gpus)
    throughputs = (speeds * shares).sum(axis=2)
    others = problems[1:]
    ratios = throughputs[0] / np.maximum(throughputs[1:], 1e-300)
    log_ratios = np.where(others > 0, np.log(ratios), 0.0)
    discount = np.minimum(np.exp((others * log_ratios).sum(axis=1)), 1.0)
    answer: Floats = shares[0] * discount[:, None]
    return answer
