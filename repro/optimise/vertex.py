"""The largest level of max-min programmes at a vertex (HiGHS), and what blocks it."""

from typing import Any

import numpy as np

from repro.errors import PolicyError
from repro.optimise.centre import Crowd, central_level
from repro.optimise.linear import minimise, time_and_gpus
from repro.typing import Flags, Floats


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
    goal, bounds = np.append(np.zeros(size), -1.0), np.append(upper, np.inf)
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
    cost, bounds = np.append(np.zeros(size), -1.0 / gain), np.append(upper, gain)
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
    each, bound = crowd.counts.astype(float), floor > -np.inf
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
            shares, high = found, ratio
        else:
            low = ratio
    return shares, high
