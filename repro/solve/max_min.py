"""Max-min programmes and water filling over shares of GPU types, for kinds of equal jobs.

Max-min programmes have many optima. Gavel's solver follows the central path and stops near the
analytic centre of the optimal face. The centre is unique, treats equal jobs equally, and does not
depend on the order of the jobs. HiGHS, on request or where the path fails, returns a vertex.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from repro.base.errors import PolicyError
from repro.base.typing import Flags, Floats
from repro.solve.counted import SOLVED
from repro.solve.ecos import accurate_weights, ecos_level
from repro.solve.linear import minimise_linear, time_and_gpus, total_by_kind

#: Relative accuracy of the level.
ACCURACY = 1e-10
#: Relative slack of floors. A floor that is just met leaves no interior.
FLOOR_SLACK = 1e-7
#: Gains of normalised throughput below this are rounding errors.
MIN_GAIN = 1e-6
#: If the largest coefficient of z is smaller, HiGHS gets all of them divided by a power of two.
MIN_SCALE = 1e-6
#: Relative accuracy of the least ratio of `vertex_ratio`.
RATIO_ACCURACY = 1e-9
#: First interval of a bisection of the makespan (s).
BISECTION_LOW_S = 100.0
BISECTION_HIGH_S = 1e6
Backend = Literal["centre", "highs", "ecos"]
WaterFilling = Literal["exact", "published"]


@dataclass(frozen=True)
class JobKinds:
    """Kinds of equal jobs, and GPUs of each type.

    Raises
    ------
    PolicyError
        If a kind can run on no GPU type.
    """

    value: Floats  #: v of a job with all its time on a GPU type, (kinds, types); 0: cannot run
    counts: npt.NDArray[Any]  #: jobs of each kind
    widths: npt.NDArray[Any]  #: GPUs of one job of each kind
    gpus: npt.NDArray[Any]  #: GPUs of each type
    name: Callable[[int], str] = "row {}".format  #: name of a kind in messages

    def __post_init__(self) -> None:
        for row in np.flatnonzero(~self.usable.any(axis=1)).tolist():
            raise PolicyError(
                f"{self.name(row)} can run on no GPU type: it needs {self.widths[row]} GPUs of one "
                f"type, the cluster has {self.gpus.tolist()}, and its speeds are "
                f"{self.value[row].tolist()}"
            )

    @cached_property
    def usable(self) -> Flags:
        """Whether a kind may use a GPU type, shape (kinds, types)."""
        fits: Flags = self.widths[:, None] <= self.gpus[None, :]
        return (self.value > 0) & fits

    @cached_property
    def usable_value(self) -> Floats:
        """``value``, with 0 where the kind may not use the GPU type, shape (kinds, types)."""
        return np.where(self.usable, self.value, 0.0)

    @cached_property
    def best_value(self) -> Floats:
        """Value of a job with all its time on its best GPU type, shape (kinds,)."""
        best: Floats = self.usable_value.max(axis=1)
        return best

    @cached_property
    def small_shares(self) -> Floats:
        """Half of an equal division: a strictly feasible starting point, shape (kinds, types)."""
        usable = self.usable
        load = (self.counts * self.widths) @ usable
        equal = np.where(usable, self.gpus / np.maximum(load, 1e-300), np.inf)
        limit = np.minimum(1.0 / usable.sum(axis=1), equal.min(axis=1))
        return np.where(usable, 0.5 * limit[:, None], 0.0)

    @cached_property
    def _relative(self) -> Floats:
        """Values relative to the best, and 0 for idle time, shape (types + 1, kinds)."""
        kind_count, types = self.value.shape
        values = np.zeros((types + 1, kind_count))
        values[:types] = self.usable_value.T / self.best_value
        return values


@dataclass(frozen=True)
class Centre:
    """Central shares, and the kinds that bound the level."""

    shares: Floats  #: x, shares of time of one job of each kind, shape (kinds, types)
    level: float  #: largest z in v_k x_k >= scale_k z + floor_k
    slack: Floats  #: slack of each kind's constraint, relative to the kind's value
    #: How much each kind bounds the level. If the value that one job of the kind must reach is cut
    #: slightly, the level rises. The price is the relative rise divided by the relative cut.
    price: Floats

    @property
    def tight(self) -> Flags:
        """Kinds whose constraint holds with equality in all optima (strict complementarity)."""
        return self.slack < self.price


def central_level(job_kinds: JobKinds, scale: Floats, floor: Floats | None = None) -> Centre | None:
    """Centre of the shares x that maximise z in v_k x_k >= scale_k z + floor_k, with v the values.

    A kind of scale 0 has only its floor; a kind of floor -inf has no constraint. None: the method
    did not converge, as for floors that cannot be met. The programme is that of Gavel, OSDI 2020,
    section 4.1.
    """
    SOLVED["LP"] += 1
    floor = np.zeros(len(job_kinds.value)) if floor is None else floor
    start = job_kinds.small_shares
    value = (job_kinds.usable_value * start).sum(axis=1)
    has_scale = scale > 0
    # In this unit the small shares reach z = 1 without floors. The path starts 0.5 below.
    unit = float((value[has_scale] / scale[has_scale]).min())
    start_level = float(((value - floor)[has_scale] / (scale[has_scale] * unit)).min()) - 0.5
    return _follow_path(job_kinds, scale, floor, start, start_level, unit)


def central_point(job_kinds: JobKinds, floor: Floats, best: Centre) -> Floats:
    """Centre of all shares that give every kind at least its floor, which is positive.

    ``best`` is the answer of `central_level` for ``scale=floor``. If its level does not exceed 1,
    no shares lie inside the floors, and the best shares are the answer.
    """
    if best.level <= 1.0:
        return best.shares
    # The best shares use all GPUs. Mixed with small shares they lie inside all constraints.
    weight = 0.5 * min(1.0, (best.level - 1.0) / best.level)
    start = (1.0 - weight) * best.shares + weight * job_kinds.small_shares
    answer = _follow_path(job_kinds, np.zeros(len(floor)), floor, start, 0.0)
    return start if answer is None else answer.shares


def central_ratio(
    job_kinds: JobKinds, remaining: Floats, due: Floats, spent: Floats
) -> tuple[Floats, float] | None:
    """Central shares of the least ratio max_k (spent_k + remaining_k / u_k) / due_k, and the ratio.

    u_k = v_k x_k is the speed of a job of kind k, in work per second. ``remaining`` is the work of
    a job. With ``spent`` the time since arrival (s) and ``due`` the isolated duration (s), the
    ratio is finish-time fairness. None: the method did not converge. Gavel, OSDI 2020, section 4.2;
    Themis, NSDI 2020.
    """
    SOLVED["convex"] += 1
    start = job_kinds.small_shares
    value = (job_kinds.usable_value * start).sum(axis=1)
    worst = float(((spent + remaining / value) / due).max())
    answer = _follow_path(job_kinds, due, spent, start, -1.5 * worst, remaining=remaining)
    if answer is None:
        return None
    # Recompute the ratio from the shares. They are rounded, which can spoil the ratio of a job that
    # needs almost no rate.
    rate = np.maximum((job_kinds.usable_value * answer.shares).sum(axis=1), 1e-300)
    is_reached = ((spent + remaining / rate) / due).max() <= -answer.level * (1 + 1e-6)
    return (answer.shares, -answer.level) if is_reached else None


def _follow_path(
    job_kinds: JobKinds,
    scale: Floats,
    floor: Floats,
    start: Floats,
    level: float,
    unit: float = 1.0,
    remaining: Floats | None = None,
) -> Centre | None:
    """Scale every kind to a largest value of 1, follow the central path, and scale back.

    ``level`` is z at the start, in units of ``unit``. With all ``scale`` 0 it stays fixed.
    ``remaining`` is the remaining work, for finish-time fairness. ``scale`` and ``floor`` are then
    ``due`` and ``spent`` of `central_ratio`.
    """
    from repro.solve.interior import LevelProblem, follow

    kind_count, types = job_kinds.value.shape
    # Without a scale the level is fixed, and the answer is a point inside the floors.
    level_is_free = bool(scale.any())
    counts = job_kinds.counts.astype(float)
    widths = job_kinds.widths.astype(float)
    v = job_kinds._relative
    top = job_kinds.best_value
    # s, g, h and linear (l) are the constants of (3) in repro.solve.interior.
    if remaining is None:
        s = scale * (unit / top)
        g = floor / top
        h = np.zeros(kind_count)
        linear = np.ones(kind_count)
    else:
        # Times are in units of the time due.
        s = np.ones(kind_count)
        g = floor / scale
        h = remaining / (top * scale)
        linear = np.zeros(kind_count)
    has_floor = g > -np.inf
    if not has_floor.all():
        s = np.where(has_floor, s, 0.0)
        g = np.where(has_floor, g, 0.0)
        h = np.where(has_floor, h, 0.0)
    barrier = np.ones((types + 3, kind_count))
    barrier[:types] = job_kinds.usable.T
    # The weights 1.5 and 0.5 give the centre of a cone programme, such as the programme for ECOS.
    # It has a variable q in place of 1 / u, with the second-order cone u q >= 1. The slack of (3)
    # is then t - h (q - 1 / u). The barrier is the logarithm of this slack plus log(u q - 1) / 2.
    # Its maximum over q is 1.5 log t + 0.5 log u, up to a constant.
    barrier[types + 1] = has_floor if remaining is None else 1.5
    barrier[types + 2] = 0.0 if remaining is None else 0.5
    # Lines as in `Point.x` of repro.solve.interior: shares, idle time, t and u.
    point = np.empty((types + 3, kind_count))
    point[:types] = start.T * job_kinds.usable.T
    point[types] = 1.0 - start.sum(axis=1)
    u = (v[:types] * point[:types]).sum(axis=0)
    point[types + 2] = u
    slack = linear * u - h / u - s * level - g
    least_slack = 1e-3 * (1e-3 + np.abs(g))
    point[types + 1] = np.where(has_floor, np.maximum(slack, least_slack), 0.0)
    total = float(barrier.sum(axis=0) @ counts) + types
    # In the order of COUNT to INVERSE in repro.solve.interior.
    job = np.array([counts, counts * widths, counts * s, widths, s, g, linear, h])
    problem = LevelProblem(v, job, barrier, job_kinds.gpus.astype(float))
    end = ACCURACY / total if level_is_free else 1.0
    z, duals, _, converged = follow(problem, point, level, level_is_free, end)
    if not converged:
        return None
    shares = point[:types].T.copy()
    if level_is_free:
        # A share that is 0 in all optima is not exactly 0 at the end of the path. It is
        # smaller than its dual.
        shares[shares * (1.0 + abs(z)) < duals[:types].T] = 0.0
        # Rounded, so that equal jobs have equal priorities in rounds.
        shares = np.round(shares, 12)
        if remaining is not None:
            # Zeroing and rounding would leave a job of tiny shares without time. Such a job keeps
            # its unrounded shares.
            lost_value = (v[:types].T * shares).sum(axis=1) < (1.0 - 1e-6) * point[types + 2]
            shares[lost_value] = point[:types].T[lost_value]
    u = point[types + 2]
    price = duals[types + 1] * u / (1.0 + abs(z))
    relative_slack = np.where(has_floor, point[types + 1], 1.0) / u
    return Centre(shares, float(z) * unit, relative_slack, price)


def vertex_level(
    job_kinds: JobKinds, scale: Floats, floor: Floats | None = None
) -> tuple[Floats, float]:
    """Shares at a vertex with the largest z in v_k x_k >= scale_k z + floor_k, and z, by HiGHS.

    A second pass maximises the sum of values among the optima. A PolicyError names the constraint
    and the kind whose floor cannot be met.
    """
    kind_count, types = job_kinds.value.shape
    floor = np.zeros(kind_count) if floor is None else floor
    matrix, limits, upper, counts_with_floor = _constraints(job_kinds, floor)
    optimum = _optimum(matrix, limits, upper, counts_with_floor * scale)
    if optimum is None:
        # Floors that an earlier solution has just reached can be out of reach by rounding.
        limits[kind_count + types :] *= 1.0 - FLOOR_SLACK
        optimum = _optimum(matrix, limits, upper, counts_with_floor * scale)
    if optimum is None:
        raise PolicyError(_impossible_floor(job_kinds, floor))
    level = float(optimum[-1])
    limits[kind_count + types :] -= counts_with_floor * scale * level
    best_sum = minimise_linear(-job_kinds.usable_value.ravel(), matrix, limits, upper=upper).x
    # Rounding can make the second pass infeasible. The first answer is optimal, too.
    shares = optimum[:-1] if best_sum is None else best_sum
    counts = job_kinds.counts[:, None].astype(float)
    return np.clip(shares.reshape(kind_count, types) / counts, 0.0, 1.0), level


def _optimum(matrix: Any, limits: Floats, upper: Floats, level_coefs: Floats) -> Floats | None:
    """Variables of `_constraints` and z at a vertex with the largest z; None if there is none.

    ``level_coefs`` are the coefficients of z in the rows of floors.
    """
    from scipy.sparse import csr_array, hstack

    size = len(upper)
    # HiGHS leaves out coefficients below 1e-9, such as those of jobs that are about to end
    largest = float(level_coefs.max())
    unit = 2.0 ** math.floor(math.log2(largest)) if 0 < largest < MIN_SCALE else 1.0
    level_column = np.append(np.zeros(matrix.shape[0] - len(level_coefs)), level_coefs / unit)
    lower = np.append(np.zeros(size), -np.inf)
    goal = np.append(np.zeros(size), -1.0)
    matrix_with_level = hstack([matrix, csr_array(level_column[:, None])])
    bounds = np.append(upper, np.inf)
    x: Floats | None = minimise_linear(goal, matrix_with_level, limits, lower=lower, upper=bounds).x
    if x is not None:
        x[-1] /= unit
    return x


def improvable(job_kinds: JobKinds, scale: Floats, floor: Floats, level: float) -> Flags:
    """Kinds that can exceed scale_k z + floor_k at level z while all others reach it, (kinds,).

    The set of such shares is convex, so kinds that can improve separately can improve together.
    """
    from scipy.sparse import csr_array, hstack

    kind_count, types = job_kinds.value.shape
    size = kind_count * types
    matrix, limits, upper, counts_with_floor = _constraints(job_kinds, floor)
    required = np.where(counts_with_floor > 0, floor, 0.0) + scale * level
    limits[kind_count + types :] = -counts_with_floor * (required - 1e-9 * np.abs(required))
    gain = 1e-5 * np.maximum(required, 1e-3)
    kind = np.arange(kind_count)
    extra = csr_array(
        (counts_with_floor, (kind_count + types + kind, kind)),
        shape=(2 * kind_count + types, kind_count),
    )
    cost = np.append(np.zeros(size), -1.0 / gain)
    bounds = np.append(upper, gain)
    x = minimise_linear(cost, hstack([matrix, extra]), limits, upper=bounds).x
    if x is None:
        return np.zeros(kind_count, dtype=bool)
    better: Flags = x[size:] > 0.5 * gain
    return better


def _impossible_floor(job_kinds: JobKinds, floor: Floats) -> str:
    """Message for floors that cannot be met. It names a constraint and a kind of jobs."""
    best_value = job_kinds.best_value
    rows_beyond_best = np.flatnonzero(floor > best_value * (1 + 1e-9))
    if rows_beyond_best.size:
        row = int(rows_beyond_best[0])
        return (
            f"time of one job: {job_kinds.name(row)} must reach {floor[row]:.6g} but all its time "
            f"on its best GPU type gives {best_value[row]:.6g}; lower its floor"
        )
    positive = floor > 0
    best = central_level(
        job_kinds, np.where(positive, floor, 0.0), np.where(positive, 0.0, -np.inf)
    )
    row = int(np.argmax(floor / best_value if best is None else best.price))
    return (
        f"GPUs of each type: {job_kinds.gpus.tolist()} GPUs cannot give every job its floor; "
        f"the floor of {job_kinds.name(row)} costs most; use more GPUs or lower the floors"
    )


def _constraints(job_kinds: JobKinds, floor: Floats) -> tuple[Any, Floats, Floats, Floats]:
    """Constraints of the programmes for HiGHS, in the time of all jobs of a kind together.

    The result is a matrix with a row per kind (time), per GPU type (GPUs) and per kind (floor), the
    limits of its rows, the upper bounds of the variables, and the jobs of each kind with a floor.
    """
    from scipy.sparse import vstack

    kind_count, types = job_kinds.value.shape
    counts = job_kinds.counts.astype(float)
    has_floor = floor > -np.inf
    counts_with_floor = np.where(has_floor, counts, 0.0)
    values = np.where(has_floor[:, None], job_kinds.usable_value, 0.0)
    time, used = time_and_gpus(kind_count, job_kinds.widths.astype(float), types)
    floors_of_kinds = counts_with_floor * np.where(has_floor, floor, 0.0)
    limits = np.concatenate([counts, job_kinds.gpus.astype(float), -floors_of_kinds])
    upper = np.where(job_kinds.usable, counts[:, None], 0.0).ravel()
    return vstack([time, used, total_by_kind(-values)]), limits, upper, counts_with_floor


@dataclass
class RatioBounds:
    """Bounds of the least ratio of `vertex_ratio`.

    Parameters
    ----------
    least_past, most_past : float
        Least and largest spent_k / due_k of the jobs.
    low, high : float
        Present lower and upper bound of the least ratio.
    """

    least_past: float
    most_past: float
    low: float
    high: float

    def narrow(self, ratio: float, level: float) -> None:
        """Narrow the bounds by the largest ``level`` such that all jobs reach it times their rates.

        The rates are those of ``ratio``. Shares with ``level`` times these rates give job k the
        ratio past_k + (ratio - past_k) / level. The largest of them is possible. No ratio below the
        least of them is possible, because a larger level would then exist.
        """
        if level <= 0:
            return
        reached = [past + (ratio - past) / level for past in (self.least_past, self.most_past)]
        self.low = max(self.low, min(reached))
        self.high = min(self.high, max(reached))

    @property
    def are_close(self) -> bool:
        """Whether the bounds are as close as the accuracy of the ratio."""
        return self.high - self.low <= RATIO_ACCURACY * self.high

    def is_possible(self, ratio: float) -> bool | None:
        """Whether a ratio is possible; None if it is too close to the bounds."""
        if ratio > self.high * (1.0 + RATIO_ACCURACY):
            return True
        if ratio < self.low * (1.0 - RATIO_ACCURACY):
            return False
        return None


def vertex_ratio(
    job_kinds: JobKinds, remaining: Floats, due: Floats, spent: Floats
) -> tuple[Floats, float]:
    """Shares with the least ratio max_k (spent_k + remaining_k / u_k) / due_k, and the ratio.

    The method is bisection. A ratio is possible if every job reaches the rate
    remaining / (ratio * due - spent). Brent's method bounds the least ratio first, so that few
    ratios of the bisection need a programme.
    """
    from scipy.optimize import brentq

    past = spent / due
    low = float(past.max())
    shares = job_kinds.small_shares
    high = float(((spent + remaining / (shares * job_kinds.value).sum(axis=1)) / due).max())
    matrix, limits, upper, counts = _constraints(job_kinds, np.zeros(len(due)))
    bounds = RatioBounds(float(past.min()), low, low, high)

    def level_of(ratio: float) -> float:
        """Largest z such that all jobs together reach z times the rates of a ratio."""
        rate = remaining / (ratio * due - spent)
        optimum = _optimum(matrix, limits, upper, counts * rate)
        if optimum is None:
            raise PolicyError("HiGHS finds no shares of least ratio; use lp_backend=centre")
        level = float(optimum[-1])
        bounds.narrow(ratio, level)
        return level

    @cache
    def excess(ratio: float) -> float:
        """Excess of the largest z over 1; 0 if the bounds are close, which ends the search."""
        # At ``low`` a job would need an infinite rate.
        level = 0.0 if ratio <= low else level_of(ratio)
        return 0.0 if bounds.are_close else level - 1.0

    if not bounds.are_close and excess(high) > 0:
        brentq(excess, low, high, xtol=RATIO_ACCURACY * high, rtol=RATIO_ACCURACY)
    least_possible = None
    while high - low > RATIO_ACCURACY * high:
        ratio = 0.5 * (low + high)
        is_possible = bounds.is_possible(ratio)
        if is_possible is None:
            is_possible = level_of(ratio) >= 1.0
        if is_possible:
            least_possible = ratio
            high = ratio
        else:
            low = ratio
    if least_possible is not None:
        rate = remaining / (least_possible * due - spent)
        shares, _ = vertex_level(job_kinds, rate)
    return shares, high


def level_shares(
    job_kinds: JobKinds, scale: Floats, backend: Backend = "centre", floor: Floats | None = None
) -> Centre:
    """Shares with the largest z in v_k x_k >= scale_k z + floor_k, by a backend.

    ``scale`` and ``floor`` are as in `central_level`. HiGHS replaces a backend that does not
    converge. A PolicyError names a floor that cannot be met.
    """
    if floor is not None:
        floor = floor * (1.0 - FLOOR_SLACK)
    answer = None
    if backend == "centre":
        answer = central_level(job_kinds, scale, floor)
    elif backend == "ecos":
        fields = ecos_level(job_kinds, scale, floor)
        answer = None if fields is None else Centre(*fields)
    if answer is not None:
        return answer
    shares, level = vertex_level(job_kinds, scale, floor)
    if floor is None:
        zeros = np.zeros(len(scale))
        return Centre(shares, level, zeros, zeros)
    # A slack of 1 and a price of 0 mark a kind that can rise, so that `Centre.tight` is right.
    can_rise = improvable(job_kinds, scale, floor, level).astype(float)
    return Centre(shares, level, can_rise, 1.0 - can_rise)


def bisected_makespan(best: float, tolerance: float) -> float:
    """Makespan (s) that Gavel's bisection returns if the least makespan is ``best`` (s).

    It is the upper end of the last interval. The bisection ends when the upper end is at most
    1 + tolerance times the lower end, or is the next float above the lower end.
    """
    low, high = BISECTION_LOW_S, BISECTION_HIGH_S
    while high < best:
        high *= 10.0
    while (1.0 + tolerance) * low < high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (low, middle) if middle > best else (middle, high)
    return high


def water_filling_shares(
    job_kinds: JobKinds,
    weigh: Callable[[Flags], Floats],
    water_filling: WaterFilling = "exact",
    backend: Backend = "centre",
    constant_weights: bool = False,
) -> Floats:
    """Shares by water filling: raise the least level, fix the kinds that cannot rise, repeat.

    ``weigh`` maps the flags of the fixed kinds to the weights of the others. A weight is the gain
    of a job per unit of level; a kind of weight 0 stays at its level. The filling ends when all
    weights are 0. "published" fixes every kind that rose, as in Gavel's published figures, where
    the search for bottlenecks failed. ``constant_weights`` says that each kind keeps its
    weight until it is fixed. Each pass then ends with one bisection. It fixes the kinds that reach
    their best value before any other kind stops rising. Gavel, section 4.3.
    """
    kind_count = len(job_kinds.value)
    fixed = np.zeros(kind_count, dtype=bool)
    reached = np.zeros(kind_count)
    shares = job_kinds.small_shares
    while not fixed.all():
        weight = weigh(fixed)
        rises = weight > 0
        if not rises.any():
            break
        if backend == "ecos":
            weight = accurate_weights(weight)
        # A kind of weight 0 that has never risen has no floor.
        floor = np.where(rises | (reached > 0), reached, -np.inf)
        answer = level_shares(job_kinds, weight, backend, floor)
        gain = weight * answer.level
        if gain.max() > MIN_GAIN:
            shares = answer.shares
            # Rounding can leave the value of a kind below its new level. The next floor of the kind
            # is the lower of the two.
            value = (job_kinds.value * shares).sum(axis=1)
            reached = np.where(rises, np.minimum(reached + gain, value), reached)
        stuck = rises & (answer.tight | (answer.slack < MIN_GAIN) | (water_filling == "published"))
        if not stuck.any():
            # Every pass fixes a kind, so that the filling ends.
            stuck = rises & (answer.slack == answer.slack[rises].min())
        fixed |= stuck
        if constant_weights and water_filling == "exact" and not fixed.all():
            shares, reached, fixed = _fix_at_best_value(
                job_kinds, weigh(fixed), shares, reached, fixed
            )
    return shares


def _fix_at_best_value(
    job_kinds: JobKinds, weight: Floats, shares: Floats, reached: Floats, fixed: Flags
) -> tuple[Floats, Floats, Flags]:
    """Fix the kinds that reach their best value before any kind stops below its best value.

    A job has its best value with all its time on its best GPU type. The candidates are the levels
    at which some kind reaches its best value. Bisection finds the highest candidate that all kinds
    can reach, each capped at its best value. The results are the new ``shares``, ``reached`` and
    ``fixed``.
    """
    rises = weight > 0
    missing_value = job_kinds.best_value - reached
    # Level at which a kind reaches its best value, (kinds,).
    best_level = np.where(rises, missing_value / np.where(rises, weight, 1.0), 0.0)
    candidates = np.unique(best_level[rises])
    low, high = -1, len(candidates) - 1
    while low < high:
        middle = (low + high + 1) // 2
        capped_level = np.minimum(best_level, candidates[middle])
        answer = central_level(job_kinds, reached + weight * capped_level)
        if answer is None or answer.level < 1.0 - FLOOR_SLACK:
            high = middle - 1
        else:
            low = middle
            shares = answer.shares
    if low >= 0:
        reached = np.minimum(
            reached + weight * np.minimum(best_level, candidates[low]),
            (job_kinds.value * shares).sum(axis=1),
        )
        fixed = fixed | (rises & (best_level <= candidates[low]))
    return shares, reached, fixed


def normalised(
    speeds: Floats, counts: Any, widths: Any, gpus: Floats, name: Callable[[int], str]
) -> JobKinds:
    """`JobKinds` whose values are throughputs (steps/s) relative to those of an equal share."""
    return JobKinds(speeds / (speeds @ gpus / gpus.sum())[:, None], counts, widths, gpus, name)
