"""Compiled interior-point method for the programmes of `repro.solve.max_min`."""

# The programme. Kind k has c_k equal jobs of w_k GPUs; type j < n has G_j GPUs. All jobs of a kind
# have the same shares x_j of their time. v_j is the value of all the time on type j. x_n is idle
# time, of value v_n = 0. A job must reach its floor g plus its scale s times the level z.
# t is the slack. The index k is left out:
#
#   maximise z                                                          its dual
#   (1) sum_j x_j = 1                    for each job                   tau
#   (2) sum_k c w x_j + q_j = G_j        for each type                  pi_j
#   (3) l u - h / u - t = s z + g        for each job, where u = v x    p
#   (4) x, q, t >= 0, and if h > 0 also u >= 0                          y_j, pi_j, p, y_u
#
# Max-min throughput has l = 1, h = 0. Finish-time fairness, which minimises the time h / u, has
# l = 0. (3) has the slope l + h / u^2 in u, and m = slope p + y_u is the value of one more unit of
# u. An optimum also satisfies
#
#   (5) y_j + v_j m - tau - w pi_j = 0   for each job and type; y_n = tau
#   (6) sum_k c s p = 1                  for the level, unless z is given
#   (7) x y = t p = u y_u = b mu, q pi = mu    with mu = 0; b: weight in the barrier, 0 = absent
#
# A Newton step (d) eliminates all but d pi and d z, so that its cost is linear in the kinds. By (7)
# d x = e (r / x - d y), with e = x / y and r = (target of x y) - x y. pull_j has the terms of (5)
# without d m and d tau: pull = r / x + (residual of (5)) - w d pi. With gap = 1 - sum_j x_j, (1)
# gives d tau and
#
#   (8)  d x_j = e_j gap / E + e_j (pull_j - <pull>) + f_j d m,  E = sum e, < > = mean by weights e
#   (9)  f_j = e_j (v_j - <v>) = sum_i e_i e_j (v_j - v_i) / E   (terms: lift)
#   (10) d u = gain + S d m,  gain = <v> gap + sum_j f_j pull_j,  S = sum_j f_j v_j   (S: spread)
#
# The left side of (3) exceeds its right side by ``excess``. (7) has a product for t and one for u.
# With rate = p / t and aim = r_t / p - excess, these three equations give
#
#   (11) d p = rate (aim + s d z - slope d u)
#   (12) d m = slope rate (aim + s d z) - (slope^2 rate + bend) d u + beta,
#        bend = (y_u + 2 p h / u^2) / u,  beta = r_u / u
#
# Inserting (10) gives, with own = 1 / (1 + (slope^2 rate + bend) S) and
# stiff = (slope^2 rate + bend) own,
#
#   (13) d m = tilt (aim + s d z) + own beta - stiff gain,   tilt = slope rate own
#   (14) d p = give (aim + s d z) - tilt (gain + S beta),    give = rate own (1 + bend S)
#
# (13) goes into (8). Near the boundary large terms of pull would cancel, with rounding errors.
# Therefore (15) writes them as flows between two types. The flows are small near the boundary. What
# one type gains the other loses, so that the flows change no sum over the types:
#
#   (15) d x_j = e_j gap / E + f_j [tilt (aim + s d z) + own beta - stiff <v> gap]
#                + sum_i flow_ij (pull_j - pull_i),
#        flow_ij = e_i e_j / E (own + stiff sum_m e_m (v_i - v_m) (v_j - v_m))
#
# Inserting (15) into (2) and (14) into (6) gives a system of d pi and d z. It has a row per type
# and a row for the level.
#
# Arrays have a line per quantity and a column per kind. Most loops over the kinds have a body of
# one or two statements, so that they compile to vectors. Lines are copied in loops, because a loop
# compiles in less time than the assignment of a slice.
#
# `repro.solve.pairs.interior` has another method, a homogeneous embedding, for programmes without
# the term h / u. The two share only Mehrotra's predictor and corrector (SIAM J. Optim. 2, 1992).

from typing import Any, NamedTuple

import numpy as np

from repro.base.compiled import njit

#: Largest number of steps; a well-posed programme takes 10 to 25.
STEPS = 80
#: After a step shorter than this, the next step only returns to the central path.
MIN_STEP = 0.1
#: Largest distance of a complementarity product from its target at the end of the path, relative to
#: ``end`` of `follow`.
CENTRED = 1e-5
#: Relative addition to the diagonal of the system of the duals.
REGULARISATION = 1e-13
#: Rounding error of a sum, relative to its terms.
ROUNDING = 4e-16
#: Smaller than any slack or dual.
TINY = 1e-300
#: Lines of `LevelProblem.job`, by the letters of (1) to (3): c, c w, c s, w, s, g, l, h.
COUNT, LOAD, LEAD, WIDTH, SCALE, FLOOR, LINEAR, INVERSE = range(8)
#: Lines of `Elimination.row`: 1 / E, <v>, S, slope, the other names of (8) to (14), and
#: COMMON, the bracket of (15).
OVER_E, MEAN, SPREAD, SLOPE, OWN, STIFF, TILT, GIVE = range(8)
GAP, EXCESS, AIM, BETA, GAIN, COMMON, DP = range(8, 15)


class LevelProblem(NamedTuple):
    """Constants of the programme, by kind and GPU type."""

    value: Any  #: v, shape (types + 1, kinds), idle time last
    job: Any  #: constants of a job, COUNT to INVERSE, shape (8, kinds)
    weight: Any  #: b, shape (types + 3, kinds), of x, idle time, t and u
    gpus: Any  #: G, shape (types,)


class Point(NamedTuple):
    """A point of the path, or a step."""

    x: Any  #: shares by type, idle time, t and u, shape (types + 3, kinds)
    y: Any  #: duals of the lines of x
    q: Any  #: idle GPUs, shape (types,)
    pi: Any  #: duals of q


class Elimination(NamedTuple):
    """Quantities of (8) to (15) at one point; 1 / x and 1 / y are 0 where b is 0."""

    over_x: Any  #: 1 / x, shape (types + 3, kinds)
    over_y: Any  #: 1 / y, shape (types + 3, kinds)
    e: Any  #: e of (8), shape (types + 1, kinds)
    f: Any  #: f of (9), shape (types + 1, kinds)
    lift: Any  #: terms of (9), shape (pairs of types, kinds)
    flow: Any  #: flow of (15), shape (pairs of types, kinds)
    row: Any  #: OVER_E to DP, shape (15, kinds)
    residual: Any  #: residual of (5), shape (types + 1, kinds)
    base: Any  #: pull without its term w d pi, shape (types + 1, kinds)
    pull: Any  #: pull of (8), shape (types + 1, kinds)
    matrix: Any  #: matrix of the system of d pi and d z, shape (types + 1, types + 1)


@njit(error_model="numpy", exact=False)
def solve(a: Any, b: Any) -> bool:
    """Overwrite ``b`` with the solution of ``a x = b``; ``a`` is lost. False if it is singular."""
    n = a.shape[0]
    for c in range(n):
        pivot_row = c
        for i in range(c + 1, n):
            if abs(a[i, c]) > abs(a[pivot_row, c]):
                pivot_row = i
        if not abs(a[pivot_row, c]) > 0.0:
            return False
        if pivot_row != c:
            b[c], b[pivot_row] = b[pivot_row], b[c]
            for j in range(n):
                a[c, j], a[pivot_row, j] = a[pivot_row, j], a[c, j]
        for i in range(c + 1, n):
            factor = a[i, c] / a[c, c]
            if factor != 0.0:
                b[i] -= factor * b[c]
                for j in range(c + 1, n):
                    a[i, j] -= factor * a[c, j]
    for c in range(n - 1, -1, -1):
        for j in range(c + 1, n):
            b[c] -= a[c, j] * b[j]
        b[c] /= a[c, c]
    return True


@njit(error_model="numpy", exact=False)
def measure(problem: Any, on: Any, point: Any, z: float, terms: Any) -> None:
    """Write 1 / x, 1 / y, the slope, and the residuals of (1), (3) and (5).

    ``on`` is 1 where b > 0, else 0.
    """
    x, y, _, pi = point
    v = problem.value
    job = problem.job
    over_x = terms.over_x
    over_y = terms.over_y
    row = terms.row
    residual = terms.residual
    n = pi.size
    size = v.shape[1]
    for j in range(n + 3):
        for k in range(size):
            over_x[j, k] = on[j, k] / max(x[j, k], TINY)
        for k in range(size):
            over_y[j, k] = on[j, k] / max(y[j, k], TINY)
    for k in range(size):
        h_over_u = job[INVERSE, k] / x[n + 2, k]
        row[SLOPE, k] = job[LINEAR, k] + h_over_u / x[n + 2, k]
        value = job[LINEAR, k] * x[n + 2, k]
        due = job[SCALE, k] * z + job[FLOOR, k]
        excess = value - h_over_u - due - x[n + 1, k]
        # A slack may be smaller than the rounding error of its terms.
        row[EXCESS, k] = excess if abs(excess) > ROUNDING * (value + h_over_u + abs(due)) else 0.0
    for k in range(size):
        row[GAP, k] = 1.0 - x[n, k]
    for j in range(n):
        for k in range(size):
            row[GAP, k] -= x[j, k]
        for k in range(size):
            residual[j, k] = y[j, k] - y[n, k] - job[WIDTH, k] * pi[j]
        for k in range(size):
            residual[j, k] += v[j, k] * (row[SLOPE, k] * y[n + 1, k] + y[n + 2, k])


@njit(error_model="numpy", exact=False)
def eliminate(problem: Any, point: Any, level_is_free: bool, terms: Any) -> None:
    """Write the coefficients of (8) to (15), and the matrix of the system of d pi and d z.

    With ``level_is_free`` the last row of the matrix is (6), otherwise d z = 0.
    """
    x, y, q, pi = point
    v = problem.value
    job = problem.job
    over_x = terms.over_x
    over_y = terms.over_y
    e = terms.e
    f = terms.f
    lift = terms.lift
    flow = terms.flow
    row = terms.row
    matrix = terms.matrix
    n = q.size
    size = v.shape[1]
    row[: SPREAD + 1] = 0.0
    f[:] = 0.0
    for j in range(n + 1):
        for k in range(size):
            e[j, k] = x[j, k] * over_y[j, k]
        for k in range(size):
            row[OVER_E, k] += e[j, k]
        for k in range(size):
            row[MEAN, k] += e[j, k] * v[j, k]
    for k in range(size):
        row[OVER_E, k] = 1.0 / row[OVER_E, k]
    for k in range(size):
        row[MEAN, k] *= row[OVER_E, k]
    pair = 0
    for i in range(n):
        for j in range(i + 1, n + 1):
            for k in range(size):
                lift[pair, k] = e[i, k] * e[j, k] * row[OVER_E, k] * (v[i, k] - v[j, k])
            for k in range(size):
                f[i, k] += lift[pair, k]
            for k in range(size):
                f[j, k] -= lift[pair, k]
            for k in range(size):
                row[SPREAD, k] += lift[pair, k] * (v[i, k] - v[j, k])
            pair += 1
    for k in range(size):
        over_u = over_x[n + 2, k]
        bend = over_u * (y[n + 2, k] + 2.0 * y[n + 1, k] * job[INVERSE, k] * over_u * over_u)
        rate = y[n + 1, k] * over_x[n + 1, k]
        curvature = row[SLOPE, k] * row[SLOPE, k] * rate + bend
        own = 1.0 / (1.0 + curvature * row[SPREAD, k])
        row[OWN, k] = own
        row[STIFF, k] = curvature * own
        row[TILT, k] = row[SLOPE, k] * rate * own
        row[GIVE, k] = rate * own * (1.0 + bend * row[SPREAD, k])
    for j in range(n):
        matrix[j, j] = q[j] / pi[j]
    pair = 0
    for i in range(n):
        for j in range(i + 1, n + 1):
            for k in range(size):
                flow[pair, k] = row[OWN, k]
            for m in range(n + 1):
                if m != i and m != j:
                    for k in range(size):
                        apart = (v[i, k] - v[m, k]) * (v[j, k] - v[m, k])
                        flow[pair, k] += row[STIFF, k] * e[m, k] * apart
            for k in range(size):
                flow[pair, k] *= e[i, k] * e[j, k] * row[OVER_E, k]
            add = 0.0
            for k in range(size):
                add += job[LOAD, k] * job[WIDTH, k] * flow[pair, k]
            matrix[i, i] += add
            if j < n:
                matrix[j, j] += add
                matrix[i, j] = matrix[j, i] = -add
            pair += 1
    add = 0.0
    for k in range(size):
        add += job[LEAD, k] * job[SCALE, k] * row[GIVE, k]
    matrix[n, n] = add if level_is_free else 1.0
    for j in range(n):
        # Dependent rows have no unique duals. The small addition keeps the step of the duals small.
        matrix[j, j] *= 1.0 + REGULARISATION
        add = 0.0
        for k in range(size):
            add += job[LEAD, k] * job[WIDTH, k] * f[j, k] * row[TILT, k]
        matrix[n, j] = add if level_is_free else 0.0
        matrix[j, n] = -matrix[n, j]


@njit(error_model="numpy", exact=False)
def substitute(problem: Any, dpi: Any, dz: float, terms: Any) -> None:
    """Write the pulls, d p of (14) and the bracket of (15) at some d pi and d z."""
    job = problem.job
    lift = terms.lift
    row = terms.row
    base = terms.base
    pull = terms.pull
    n = dpi.size
    size = pull.shape[1]
    for j in range(n):
        for k in range(size):
            pull[j, k] = base[j, k] - job[WIDTH, k] * dpi[j]
    for k in range(size):
        row[GAIN, k] = row[MEAN, k] * row[GAP, k]
    pair = 0
    for i in range(n):
        for j in range(i + 1, n + 1):
            for k in range(size):
                row[GAIN, k] += lift[pair, k] * (pull[i, k] - pull[j, k])
            pair += 1
    for k in range(size):
        aim = row[AIM, k] + job[SCALE, k] * dz
        gain = row[GAIN, k] + row[SPREAD, k] * row[BETA, k]
        row[DP, k] = row[GIVE, k] * aim - row[TILT, k] * gain
    for k in range(size):
        aim = row[AIM, k] + job[SCALE, k] * dz
        row[COMMON, k] = row[TILT, k] * aim + row[OWN, k] * row[BETA, k]
    for k in range(size):
        row[COMMON, k] -= row[STIFF, k] * row[MEAN, k] * row[GAP, k]


@njit(allocates=True, error_model="numpy", exact=False)
def direction(
    problem: Any,
    point: Any,
    level_is_free: bool,
    target_mu: float,
    second_order: float,
    passes: int,
    terms: Any,
    move: Any,
) -> float:
    """Write the Newton step towards complementarity ``target_mu`` into ``move``; return its d z.

    ``second_order`` = 1 adds the second-order terms of the step that is in ``move``; 0 does not.
    ``passes`` is the number of solves; each solve after the first refines the step.
    """
    x, y, q, pi = point
    dx, dy, dq, dpi = move
    v, job, weight, gpus = problem
    over_x = terms.over_x
    over_y = terms.over_y
    e = terms.e
    f = terms.f
    flow = terms.flow
    row = terms.row
    residual = terms.residual
    base = terms.base
    pull = terms.pull
    matrix = terms.matrix
    n = q.size
    size = v.shape[1]
    # right-hand sides of (2) and (6), without the terms that each pass adds
    fixed_side = np.zeros(n + 1)
    right_side = np.zeros(n + 1)
    # Until the steps are known, dq and dy hold r: (target of the product) - (product), by (7).
    for j in range(n):
        dq[j] = target_mu - q[j] * pi[j] - second_order * dq[j] * dpi[j]
        dpi[j] = 0.0
        add = 0.0
        for k in range(size):
            add += job[LOAD, k] * x[j, k]
        fixed_side[j] = dq[j] / pi[j] - (gpus[j] - q[j] - add)
    add = 0.0
    for k in range(size):
        add += job[LEAD, k] * y[n + 1, k]
    fixed_side[n] = 1.0 - add
    for j in range(n + 3):
        for k in range(size):
            product_change = weight[j, k] * target_mu - x[j, k] * y[j, k]
            dy[j, k] = product_change - second_order * dx[j, k] * dy[j, k]
    for j in range(n):
        for k in range(size):
            base[j, k] = dy[j, k] * over_x[j, k] + residual[j, k]
    for k in range(size):
        pull[n, k] = dy[n, k] * over_x[n, k]
    for k in range(size):
        row[AIM, k] = dy[n + 1, k] * over_y[n + 1, k] - row[EXCESS, k]
    for k in range(size):
        row[BETA, k] = dy[n + 2, k] * over_x[n + 2, k]
    dz = 0.0
    for pass_count in range(passes + 1):
        substitute(problem, dpi, dz, terms)
        if pass_count == passes:
            break
        # Iterative refinement: each further pass corrects rounding errors of the previous pass.
        for j in range(n):
            add = 0.0
            for k in range(size):
                direct = e[j, k] * row[OVER_E, k] * row[GAP, k] + f[j, k] * row[COMMON, k]
                add += job[LOAD, k] * direct
            right_side[j] = fixed_side[j] - q[j] / pi[j] * dpi[j] + add
        pair = 0
        for i in range(n):
            for j in range(i + 1, n + 1):
                add = 0.0
                for k in range(size):
                    add += job[LOAD, k] * flow[pair, k] * (pull[i, k] - pull[j, k])
                right_side[i] += add
                if j < n:
                    right_side[j] -= add
                pair += 1
        add = 0.0
        for k in range(size):
            add += job[LEAD, k] * row[DP, k]
        right_side[n] = fixed_side[n] - add if level_is_free else 0.0
        if not solve(matrix.copy(), right_side):
            return np.nan
        for j in range(n):
            dpi[j] += right_side[j]
        dz += right_side[n]
    for j in range(n + 1):
        for k in range(size):
            dx[j, k] = e[j, k] * row[OVER_E, k] * row[GAP, k] + f[j, k] * row[COMMON, k]
    pair = 0
    for i in range(n):
        for j in range(i + 1, n + 1):
            for k in range(size):
                dx[i, k] += flow[pair, k] * (pull[i, k] - pull[j, k])
            for k in range(size):
                dx[j, k] -= flow[pair, k] * (pull[i, k] - pull[j, k])
            pair += 1
    for k in range(size):
        dx[n + 1, k] = (dy[n + 1, k] - x[n + 1, k] * row[DP, k]) * over_y[n + 1, k]
    for k in range(size):
        dy[n + 1, k] = row[DP, k]
    dx[n + 2] = 0.0
    for j in range(n):
        dq[j] = (dq[j] - q[j] * dpi[j]) / pi[j]
        for k in range(size):
            dx[n + 2, k] += v[j, k] * dx[j, k]
    for j in range(n + 3):
        if j != n + 1:
            for k in range(size):
                dy[j, k] = (dy[j, k] - y[j, k] * dx[j, k]) * over_x[j, k]
    return dz


@njit(error_model="numpy", exact=False)
def longest_step(dx: Any, over_x: Any, dq: Any, q: Any) -> float:
    """Longest step after which x and q are still positive; ``over_x`` is 1 / x."""
    largest_decrease = 1e-9
    for j in range(q.size):
        largest_decrease = max(largest_decrease, -dq[j] / q[j])
    lines, size = dx.shape
    for j in range(lines):
        for k in range(size):
            largest_decrease = max(largest_decrease, -dx[j, k] * over_x[j, k])
    return 1.0 / largest_decrease


@njit(allocates=True, error_model="numpy", exact=False)
def follow(
    problem: Any, x: Any, z: float, level_is_free: bool, end: float
) -> tuple[float, Any, int, bool]:
    """Follow the central path from ``x`` to complementarity ``end``.

    ``x`` is as in `Point`, and overwritten. Without ``level_is_free`` the level z is fixed. The
    result is z, the duals of x, the number of steps, and whether the path converged.
    """
    v, job, weight, gpus = problem
    n = gpus.size
    size = v.shape[1]
    point_shape = (n + 3, size)
    types_shape = (n + 1, size)
    pairs_shape = (n * (n + 1) // 2, size)
    y = np.zeros(point_shape)
    dx = np.zeros(point_shape)
    dy = np.zeros(point_shape)
    on = np.zeros(point_shape)
    q = gpus.copy()
    pi = np.zeros(n)
    dq = np.zeros(n)
    dpi = np.zeros(n)
    point = Point(x, y, q, pi)
    move = Point(dx, dy, dq, dpi)
    over_x = np.zeros(point_shape)
    over_y = np.zeros(point_shape)
    terms = Elimination(
        over_x, over_y, np.zeros(types_shape), np.zeros(types_shape), np.zeros(pairs_shape),
        np.zeros(pairs_shape), np.zeros((15, size)), np.zeros(types_shape), np.zeros(types_shape),
        np.zeros(types_shape), np.zeros((n + 1, n + 1)),
    )  # fmt: skip
    # number of products in (7), each by its weight
    sum_of_weights = float(n)
    level_slope = 0.0
    for k in range(size):
        for j in range(n + 3):
            sum_of_weights += job[COUNT, k] * weight[j, k]
            on[j, k] = 1.0 if weight[j, k] > 0.0 else 0.0
        for j in range(n):
            q[j] -= job[LOAD, k] * x[j, k]
        if on[n + 1, k] > 0.0:
            level_slope += job[LEAD, k] * weight[n + 1, k] / x[n + 1, k]
    # At this mu the duals p = b mu / t satisfy (6).
    mu = 1.0 / level_slope if level_is_free else end
    for j in range(n):
        pi[j] = mu / q[j]
    curved = False
    for k in range(size):
        for j in range(n + 3):
            y[j, k] = weight[j, k] * mu / max(x[j, k], TINY)
        curved |= job[INVERSE, k] > 0.0
    final_phase = not level_is_free
    is_centred = False
    last_primal_step = 1.0
    for step_count in range(STEPS):
        measure(problem, on, point, z, terms)
        eliminate(problem, point, level_is_free, terms)
        # The predictor aims at complementarity 0. The last step, from a centred point, does so too.
        target_mu = 0.0
        second_order = 0.0
        passes = 3 if is_centred else 1
        if final_phase and not is_centred:
            target_mu = end
            passes = 2
        elif not final_phase:
            direction(problem, point, level_is_free, target_mu, second_order, passes, terms, move)
            primal_step = min(1.0, longest_step(dx, over_x, dq, q))
            dual_step = min(1.0, longest_step(dy, over_y, dpi, pi))
            products = 0.0
            for j in range(n):
                products += (q[j] + primal_step * dq[j]) * (pi[j] + dual_step * dpi[j])
            for j in range(n + 3):
                for k in range(size):
                    next_x = x[j, k] + primal_step * dx[j, k]
                    next_y = y[j, k] + dual_step * dy[j, k]
                    products += job[COUNT, k] * next_x * next_y
            ratio = products / (sum_of_weights * mu)
            target_mu = max(end, mu * ratio * ratio * ratio)
            second_order = 1.0
            if last_primal_step < MIN_STEP:
                # Near the boundary every step is short, so this step returns to the central path.
                target_mu = mu
                second_order = 0.0
        dz = direction(problem, point, level_is_free, target_mu, second_order, passes, terms, move)
        if is_centred:
            is_small = True
            for j in range(n):
                for k in range(size):
                    is_small &= abs(dx[j, k]) < 1e-7
            if is_small:
                # Only a small step is taken. A larger one would come from rounding errors.
                z += dz
                for j in range(n + 2):
                    for k in range(size):
                        x[j, k] = max(0.0, x[j, k] + dx[j, k])
            return z, y, step_count, True
        primal_step = min(1.0, 0.995 * longest_step(dx, over_x, dq, q))
        dual_step = min(1.0, 0.995 * longest_step(dy, over_y, dpi, pi))
        if curved or final_phase:
            primal_step = dual_step = min(primal_step, dual_step)
        z += primal_step * dz
        last_primal_step = primal_step
        mu = 0.0
        off_centre = 0.0
        for j in range(n):
            q[j] += primal_step * dq[j]
            pi[j] += dual_step * dpi[j]
            mu += q[j] * pi[j]
            off_centre = max(off_centre, abs(q[j] * pi[j] / end - 1.0))
        for j in range(n + 3):
            for k in range(size):
                x[j, k] += primal_step * dx[j, k]
            for k in range(size):
                y[j, k] += dual_step * dy[j, k]
            for k in range(size):
                mu += job[COUNT, k] * x[j, k] * y[j, k]
        x[n + 2] = 0.0
        for j in range(n):
            for k in range(size):
                x[n + 2, k] += v[j, k] * x[j, k]
        mu /= sum_of_weights
        if not mu < 1e30:
            return z, y, step_count, False
        if final_phase and primal_step == 1.0:
            for j in range(n + 3):
                for k in range(size):
                    off_centre = max(off_centre, abs(x[j, k] * y[j, k] / end - weight[j, k]))
            if off_centre < CENTRED:
                if not level_is_free:
                    return z, y, step_count + 1, True
                is_centred = True
        if mu < 2.0 * end:
            final_phase = True
    return z, y, STEPS, is_centred
