"""Max-min programmes over shares of GPU types, for kinds of equal jobs; water filling over levels.

Max-min programmes have many optima. Gavel's own solver follows the central path and stops near the
analytic centre of the optimal face; the centre is unique, treats equal jobs equally, and does not
depend on the order of the jobs. Where it is not found, and on demand, a vertex by HiGHS answers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from repro.base.errors import PolicyError
from repro.base.typing import Flags, Floats
from repro.solve.counted import SOLVED
from repro.solve.ecos import ecos_level
from repro.solve.linear import minimise, time_and_gpus

#: Relative accuracy of the level.
ACCURACY = 1e-10
#: Relative slack given to floors: one that is just met would leave no interior.
ROOM = 1e-7
#: Gains of normalised throughput below this are rounding errors.
LEAST = 1e-6
#: First bracket of the bisection of a makespan (s).
SHORTEST = 100.0
LONGEST = 1e6
Backend = Literal["centre", "highs", "ecos"]
Filling = Literal["exact", "published"]


@dataclass(frozen=True)
class Crowd:
    """Kinds of equal jobs, and the GPUs they share; PolicyError if a kind runs on none of them."""

    value: Floats  #: of all its time to one job, shape (kinds, types); 0 = cannot run there
    counts: npt.NDArray[Any]  #: jobs of each kind
    widths: npt.NDArray[Any]  #: GPUs of one job of each kind
    gpus: npt.NDArray[Any]  #: GPUs of each type
    name: Callable[[int], str] = "row {}".format  #: words for the jobs of a kind in messages

    def __post_init__(self) -> None:
        for row in np.flatnonzero(~self.usable.any(axis=1)).tolist():
            raise PolicyError(
                f"{self.name(row)} can run on no GPU type: it needs {self.widths[row]} GPUs of one "
                f"type, the cluster has {self.gpus.tolist()}, and its speeds are "
                f"{self.value[row].tolist()}"
            )

    @cached_property
    def usable(self) -> Flags:
        """Which kind may use which GPU type, shape (kinds, types)."""
        fits: Flags = self.widths[:, None] <= self.gpus[None, :]
        return (self.value > 0) & fits

    @cached_property
    def usable_value(self) -> Floats:
        """``value``, 0 where the kind may not use the GPU type, shape (kinds, types)."""
        return np.where(self.usable, self.value, 0.0)

    @cached_property
    def best_value(self) -> Floats:
        """Value to one job of all its time on its best GPU type, shape (kinds,)."""
        best: Floats = self.usable_value.max(axis=1)
        return best

    @cached_property
    def small_shares(self) -> Floats:
        """Half of what an equal division would give, shape (kinds, types): all have room."""
        usable = self.usable
        load = (self.counts * self.widths) @ usable
        fair = np.where(usable, self.gpus / np.maximum(load, 1e-300), np.inf)
        limit = np.minimum(1.0 / usable.sum(axis=1), fair.min(axis=1))
        return np.where(usable, 0.5 * limit[:, None], 0.0)

    @cached_property
    def _relative(self) -> Floats:
        """Values as parts of the best, and those of idle time, shape (types + 1, kinds)."""
        kinds, types = self.value.shape
        lines = np.zeros((types + 1, kinds))
        lines[:types] = self.usable_value.T / self.best_value
        return lines


@dataclass(frozen=True)
class Centre:
    """Central shares, and what bounds the level."""

    shares: Floats  #: of the time of one job of each kind, shape (kinds, types)
    level: float  #: largest z
    slack: Floats  #: of each kind's constraint, as a share of the kind's value
    price: Floats  #: relative gain of the level per relative cut of the kind's value

    @property
    def tight(self) -> Flags:
        """Kinds whose constraint holds with equality in all optima (strict complementarity)."""
        return self.slack < self.price


def central_level(crowd: Crowd, scale: Floats, floor: Floats | None = None) -> Centre | None:
    """Return the centre of the shares that maximise z in v_k x_k >= scale_k z + floor_k.

    A kind of scale 0 has only its floor, one of floor -inf no constraint. None if the method did
    not converge, above all for floors that cannot be met (Gavel, OSDI 2020, section 4.1).
    """
    SOLVED["LP"] += 1
    floor = np.zeros(len(crowd.value)) if floor is None else floor
    start = crowd.small_shares
    value = (crowd.usable_value * start).sum(axis=1)
    led = scale > 0
    unit = float((value[led] / scale[led]).min())
    first = float(((value - floor)[led] / (scale[led] * unit)).min()) - 0.5
    return _run(crowd, scale, floor, start, first, unit)


def central_point(crowd: Crowd, floor: Floats, best: Centre) -> Floats:
    """Return the centre of all shares that give every kind at least its floor, which is positive.

    ``best`` is the answer of `central_level` for ``scale=floor``; its level must exceed 1.
    """
    # between the best shares, which use all there is, and shares that leave room everywhere
    part = 0.5 * min(1.0, (best.level - 1.0) / best.level)
    start = (1.0 - part) * best.shares + part * crowd.small_shares
    found = _run(crowd, np.zeros(len(floor)), floor, start, 0.0)
    return start if found is None else found.shares


def central_ratio(
    crowd: Crowd, left: Floats, due: Floats, spent: Floats
) -> tuple[Floats, float] | None:
    """Return the centre of the shares with the least max_k (spent_k + left_k / u_k) / due_k.

    Also return that ratio; None if the method did not find it. u_k = v_k x_k is the speed (1/s) at
    which the work ``left`` is done (Gavel, OSDI 2020, section 4.2; Themis, NSDI 2020).
    """
    SOLVED["convex"] += 1
    start = crowd.small_shares
    value = (crowd.usable_value * start).sum(axis=1)
    worst = float(((spent + left / value) / due).max())
    found = _run(crowd, due, spent, start, -1.5 * worst, curve=left)
    if found is None:
        return None
    # next to no speed, if it is all a job needs, may come out wrong in relative terms
    speed = np.maximum((crowd.usable_value * found.shares).sum(axis=1), 1e-300)
    reached = ((spent + left / speed) / due).max() <= -found.level * (1 + 1e-6)
    return (found.shares, -found.level) if reached else None


def _run(
    crowd: Crowd,
    scale: Floats,
    floor: Floats,
    start: Floats,
    level: float,
    unit: float = 1.0,
    curve: Floats | None = None,
) -> Centre | None:
    """Normalise every row to a largest value of 1, follow the path, and translate back."""
    from repro.solve.interior import Kinds, follow

    kinds, types = crowd.value.shape
    free = bool(scale.any())  # else only a point amid the floors is asked for
    counts = crowd.counts.astype(float)
    widths = crowd.widths.astype(float)
    v = crowd._relative
    top = crowd.best_value
    zero = np.zeros(kinds)
    one = np.ones(kinds)
    if curve is None:
        s = scale * (unit / top)
        g = floor / top
        h = zero
        linear = one
    else:
        # seconds, in units of the time due
        s = one
        g = floor / scale
        h = curve / (top * scale)
        linear = zero
    bound = g > -np.inf
    if not bound.all():
        s, g, h = (np.where(bound, part, 0.0) for part in (s, g, h))
    barrier = np.ones((types + 3, kinds))
    barrier[:types] = crowd.usable.T
    # u x >= 1 as a second-order cone weighs half; eliminating its variable leaves these weights
    barrier[types + 1] = bound if curve is None else 1.5
    barrier[types + 2] = 0.0 if curve is None else 0.5
    slacks = np.empty((types + 3, kinds))
    slacks[:types] = start.T * crowd.usable.T
    slacks[types] = 1.0 - start.sum(axis=1)
    slacks[types + 2] = u = (v[:types] * slacks[:types]).sum(axis=0)
    room = linear * u - h / u - s * level - g
    slacks[types + 1] = np.where(bound, np.maximum(room, 1e-3 * (1e-3 + np.abs(g))), 0.0)
    total = float(barrier.sum(axis=0) @ counts) + types
    # in the order of COUNT to INVERSE
    job = np.array([counts, counts * widths, counts * s, widths, s, g, linear, h])
    each = Kinds(v, job, barrier, crowd.gpus.astype(float))
    end = ACCURACY / total if free else 1.0
    z, duals, _, ended = follow(each, slacks, level, free, end)
    if not ended:
        return None
    shares = slacks[:types].T.copy()
    if free:
        # off the optimal face a share only tends to 0; strict complementarity tells which
        shares[shares * (1.0 + abs(z)) < duals[:types].T] = 0.0
        # so that equal priorities of rounds are equal
        shares = np.round(shares, 12)
        if curve is not None:
            # a job that needs next to no time would lose it to both
            lost = (v[:types].T * shares).sum(axis=1) < (1.0 - 1e-6) * slacks[types + 2]
            shares[lost] = slacks[:types].T[lost]
    u = slacks[types + 2]
    price = duals[types + 1] * u / (1.0 + abs(z))
    return Centre(shares, float(z) * unit, np.where(bound, slacks[types + 1], 1.0) / u, price)


def vertex_level(crowd: Crowd, scale: Floats, floor: Floats | None = None) -> tuple[Floats, float]:
    """Return shares with the largest z in v_k x_k >= scale_k z + floor_k, and z.

    Of the best shares those with the largest sum of values. If the floors cannot be met, a
    PolicyError names the row that is to blame.
    """
    from scipy.sparse import csr_array, hstack

    kinds, types = crowd.value.shape
    size = kinds * types
    floor = np.zeros(kinds) if floor is None else floor
    matrix, limits, upper, need = _constraints(crowd, floor)
    column = csr_array(np.append(np.zeros(kinds + types), need * scale)[:, None])
    lower = np.append(np.zeros(size), -np.inf)
    goal = np.append(np.zeros(size), -1.0)
    bounds = np.append(upper, np.inf)
    first = minimise(goal, hstack([matrix, column]), limits, lower=lower, upper=bounds).x
    if first is None:
        raise PolicyError(blame(crowd, floor))
    level = float(first[-1])
    limits[kinds + types :] -= need * scale * level
    second = minimise(-crowd.usable_value.ravel(), matrix, limits, upper=upper).x
    # rounding may leave the second pass without any room; the first answer is optimal too
    shares = first[:-1] if second is None else second
    each = crowd.counts[:, None].astype(float)
    return np.clip(shares.reshape(kinds, types) / each, 0.0, 1.0), level


def improvable(crowd: Crowd, scale: Floats, floor: Floats, level: float) -> Flags:
    """Tell which rows can exceed scale_k z + floor_k at level z while all others reach it.

    The set of such shares is convex: rows that can improve one at a time can improve together.
    """
    from scipy.sparse import csr_array, hstack

    kinds, types = crowd.value.shape
    size = kinds * types
    matrix, limits, upper, need = _constraints(crowd, floor)
    goal = np.where(need > 0, floor, 0.0) + scale * level
    limits[kinds + types :] = -need * (goal - 1e-9 * np.abs(goal))
    gain = 1e-5 * np.maximum(goal, 1e-3)
    place = np.arange(kinds)
    extra = csr_array((need, (kinds + types + place, place)), shape=(2 * kinds + types, kinds))
    cost = np.append(np.zeros(size), -1.0 / gain)
    bounds = np.append(upper, gain)
    found = minimise(cost, hstack([matrix, extra]), limits, upper=bounds).x
    if found is None:
        return np.zeros(kinds, dtype=bool)
    better: Flags = found[size:] > 0.5 * gain
    return better


def blame(crowd: Crowd, floor: Floats) -> str:
    """Say which constraint family and which row make the floors impossible."""
    alone = crowd.best_value
    for row in np.flatnonzero(floor > alone * (1 + 1e-9)).tolist():
        return (
            f"time of one job: {crowd.name(row)} must reach {floor[row]:.6g} but all its time on "
            f"its best GPU type gives {alone[row]:.6g}; lower what it is promised"
        )
    real = floor > 0
    best = central_level(crowd, np.where(real, floor, 0.0), np.where(real, 0.0, -np.inf))
    row = int(np.argmax(floor / alone if best is None else best.price))
    return (
        f"GPUs of each type: {crowd.gpus.tolist()} GPUs cannot give every job what it is promised; "
        f"{crowd.name(row)} weighs most; use more GPUs or lower the promises"
    )


def _constraints(crowd: Crowd, floor: Floats) -> tuple[Any, Floats, Floats, Floats]:
    """Return rows (time of kinds, GPUs of types, floors), limits, bounds and kinds' multipliers."""
    from scipy.sparse import csr_array, vstack

    kinds, types = crowd.value.shape
    each = crowd.counts.astype(float)
    bound = floor > -np.inf
    need = np.where(bound, each, 0.0)
    kept = np.where(bound[:, None], crowd.usable_value, 0.0)
    time, used = time_and_gpus(kinds, crowd.widths.astype(float), types)
    ends = np.arange(0, kinds * types + 1, types)
    value = csr_array((-kept.ravel(), np.arange(kinds * types), ends), shape=time.shape)
    least = need * np.where(bound, floor, 0.0)
    limits = np.concatenate([each, crowd.gpus.astype(float), -least])
    upper = np.where(crowd.usable, each[:, None], 0.0).ravel()
    return vstack([time, used, value]), limits, upper, need


def vertex_ratio(crowd: Crowd, left: Floats, due: Floats, spent: Floats) -> tuple[Floats, float]:
    """Return shares with the least ratio max_k (spent_k + left_k / u_k) / due_k, and the ratio.

    Bisection: a ratio is possible if every job reaches the speed left / (ratio due - spent).
    """
    low = float((spent / due).max())
    shares = crowd.small_shares
    high = float(((spent + left / (shares * crowd.value).sum(axis=1)) / due).max())
    while high - low > 1e-9 * high:
        ratio = 0.5 * (low + high)
        found, level = vertex_level(crowd, left / (ratio * due - spent))
        if level >= 1.0:
            shares = found
            high = ratio
        else:
            low = ratio
    return shares, high


def level_shares(
    crowd: Crowd, scale: Floats, backend: Backend = "centre", floor: Floats | None = None
) -> Centre:
    """Return shares with the largest z in v_k x_k >= scale_k z + floor_k.

    ``scale`` and ``floor`` are those of `central_level`; "highs" also steps in where the other
    backends do not converge. A PolicyError says whose floor cannot be met.
    """
    if floor is not None:
        floor = floor * (1.0 - ROOM)
    answer = None
    if backend == "centre":
        answer = central_level(crowd, scale, floor)
    elif backend == "ecos":
        found = ecos_level(crowd, scale, floor)
        answer = None if found is None else Centre(*found)
    if answer is not None:
        return answer
    shares, level = vertex_level(crowd, scale, floor)
    if floor is None:
        nothing = np.zeros(len(scale))
        return Centre(shares, level, nothing, nothing)
    free = improvable(crowd, scale, floor, level).astype(float)
    return Centre(shares, level, free, 1.0 - free)


def bisected(best: float, tolerance: float) -> float:
    """Return where a bisection of the makespan (s), the least of which is ``best``, ends.

    Its upper end, at most 1 + tolerance times the lower.
    """
    low, high = SHORTEST, LONGEST
    while high < best:
        high *= 10.0
    while (1.0 + tolerance) * low < high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if middle > best else (middle, high)
    return high


def fill(
    crowd: Crowd,
    weigh: Callable[[Flags], Floats],
    water_filling: Filling = "exact",
    backend: Backend = "centre",
    steady: bool = False,
) -> Floats:
    """Return shares by water filling: raise the least level, fix who cannot rise, go on.

    ``weigh`` maps the flags of the fixed rows to what every other row gains of a unit of level, per
    job; 0 = it waits, and where all are 0 the filling ends. "published" counts every row that rose
    as fixed, as in the figures Gavel's authors published, where the search for bottlenecks failed.
    ``steady`` rows keep their weight until they are fixed: those that end with the whole time on
    their best GPU type are then found by bisection instead of one by one (Gavel, section 4.3).
    """
    kinds = len(crowd.value)
    fixed = np.zeros(kinds, dtype=bool)
    reached = np.zeros(kinds)
    shares = crowd.small_shares
    while not fixed.all():
        weight = weigh(fixed)
        rises = weight > 0
        if not rises.any():
            break
        # a row that waits is promised nothing
        floor = np.where(rises | (reached > 0), reached, -np.inf)
        answer = level_shares(crowd, weight, backend, floor)
        gain = weight * answer.level
        if gain.max() > LEAST:
            shares = answer.shares
            # what is promised from now on is what these shares give, rounding errors included
            value = (crowd.value * shares).sum(axis=1)
            reached = np.where(rises, np.minimum(reached + gain, value), reached)
        stuck = rises & (answer.tight | (answer.slack < LEAST) | (water_filling == "published"))
        if not stuck.any():
            stuck = rises & (answer.slack == answer.slack[rises].min())
        fixed |= stuck
        if steady and water_filling == "exact" and not fixed.all():
            shares, reached, fixed = _full_time(crowd, weigh(fixed), shares, reached, fixed)
    return shares


def _full_time(
    crowd: Crowd, weight: Floats, shares: Floats, reached: Floats, fixed: Flags
) -> tuple[Floats, Floats, Flags]:
    """Let rows rise while only those stop that have all the time of their best type; return state.

    Raising all rows to a level, but none above all its time on its best type, is possible up to
    some level: it is found by bisection over the levels at which a row stops.
    """
    rises = weight > 0
    stops = np.where(rises, (crowd.best_value - reached) / np.where(rises, weight, 1.0), 0.0)
    levels = np.unique(stops[rises])
    low, high = -1, len(levels) - 1
    while low < high:
        middle = (low + high + 1) // 2
        answer = central_level(crowd, reached + weight * np.minimum(stops, levels[middle]))
        if answer is None or answer.level < 1.0 - ROOM:
            high = middle - 1
        else:
            low = middle
            shares = answer.shares
    if low >= 0:
        reached = np.minimum(
            reached + weight * np.minimum(stops, levels[low]), (crowd.value * shares).sum(axis=1)
        )
        fixed = fixed | (rises & (stops <= levels[low]))
    return shares, reached, fixed


def normalised(
    speeds: Floats, counts: Any, widths: Any, gpus: Floats, name: Callable[[int], str]
) -> Crowd:
    """Return the `Crowd` whose values are speeds (steps/s) over those of an equal share."""
    return Crowd(speeds / (speeds @ gpus / gpus.sum())[:, None], counts, widths, gpus, name)
