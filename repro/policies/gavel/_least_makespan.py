"""Shares with the least makespan, or with the makespan at which a bisection ends."""

from __future__ import annotations

import numpy as np

from repro.optimise.centre import Crowd, central_point
from repro.optimise.ecos import ecos_point
from repro.optimise.max_min import Backend, level_shares
from repro.typing import Floats

#: First bracket of the bisection (s).
SHORTEST, LONGEST = 100.0, 1e6


def makespan_shares(
    crowd: Crowd, left: Floats, tolerance: float = 0.0, backend: Backend = "centre"
) -> tuple[Floats, float]:
    """Return the shares that minimise max_i left_i / thr_i, and the makespan they reach (s).

    ``left`` is in steps, ``tolerance`` and ``backend`` as for `GavelMakespan`.

    >>> speeds = np.array([[40.0, 10.0], [12.0, 4.0]])
    >>> crowd = Crowd(speeds, np.ones(2), np.ones(2), np.ones(2))
    >>> shares, makespan = makespan_shares(crowd, np.array([1600.0, 480.0]))
    >>> shares.round(3).tolist(), round(makespan, 3)
    ([[0.529, 0.471], [0.471, 0.529]], 61.818)
    """
    left = np.maximum(left, 1e-9 * max(float(left.max()), 1e-300))
    if backend == "ecos" and tolerance > 0:
        return _bisected_by_ecos(crowd, left, tolerance)
    best = level_shares(crowd, left, backend)
    if not tolerance > 0:
        return best.shares, 1.0 / best.level
    low, high = SHORTEST, LONGEST
    while high < 1.0 / best.level:
        high *= 10.0
    while (1.0 + tolerance) * low < high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if middle * best.level > 1.0 else (middle, high)
    needed = level_shares(crowd, left / high, backend)
    return central_point(crowd, left / high, needed), high


def _bisected_by_ecos(crowd: Crowd, left: Floats, tolerance: float) -> tuple[Floats, float]:
    """Return the shares of the last makespan of the bisection that ECOS calls possible, and it."""
    low, high = SHORTEST, LONGEST
    found, limit = None, high
    while found is None:
        while (1.0 + tolerance) * low < high:
            middle = 0.5 * (low + high)
            shares = ecos_point(crowd, left / middle)
            if shares is None:
                low = middle
            else:
                found, high = shares, middle
        if found is None:
            low, high = limit, 10.0 * limit
            limit = high
    return found, high
