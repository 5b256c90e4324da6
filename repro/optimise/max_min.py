"""The largest level of max-min programmes, by the solver asked for; water filling over levels."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from repro.optimise.centre import Centre, Crowd, central_level
from repro.optimise.ecos import ecos_level
from repro.optimise.vertex import improvable, vertex_level
from repro.typing import Flags, Floats

#: Relative slack given to floors: one that is just met would leave no interior.
ROOM = 1e-7
#: Gains of normalised throughput below this are rounding errors.
LEAST = 1e-6
#: First bracket of the bisection of a makespan (s).
SHORTEST, LONGEST = 100.0, 1e6
Backend = Literal["centre", "highs", "ecos"]
Filling = Literal["exact", "published"]


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
        answer = ecos_level(crowd, scale, floor)
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
    fixed, reached = np.zeros(kinds, dtype=bool), np.zeros(kinds)
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
            low, shares = middle, answer.shares
    if low >= 0:
        reached = np.minimum(
            reached + weight * np.minimum(stops, levels[low]), (crowd.value * shares).sum(axis=1)
        )
        fixed = fixed | (rises & (stops <= levels[low]))
    return shares, reached, fixed


def equal_share(speeds: Floats, gpus: Floats) -> Floats:
    """Return the speed of a job that spends on each GPU type the type's share of all GPUs."""
    share: Floats = speeds @ gpus / gpus.sum()
    return share


def normalised(
    speeds: Floats, counts: Any, widths: Any, gpus: Floats, name: Callable[[int], str]
) -> Crowd:
    """Return the `Crowd` whose values are speeds (steps/s) over those of an equal share."""
    return Crowd(speeds / equal_share(speeds, gpus)[:, None], counts, widths, gpus, name)
