"""Group period of jobs profiled in three stages, as Muri's simulator computes it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from repro.errors import ParamError

#: Seconds per iteration of the data (storage and CPU), GPU and network stage.
ThreeStages = tuple[float, float, float]

_SLOTS = 4
_STEADY = 1e-3
_ABSENT = (-math.inf, -math.inf, -math.inf)


def three_stage_time(
    members: Sequence[tuple[float, ...]], ordering: Literal["best", "worst"] = "best"
) -> float:
    """Return the period T in which every member of a group completes one iteration.

    Four slots are passed in turn; the data stage, which is storage read and CPU work in one, may
    last two of them. That is the simulator's rule in place of Eq 3; results are remembered.

    Parameters
    ----------
    members : sequence of tuple of float
        (data, GPU, network) time per iteration of each of 1 to 4 jobs, all in one unit.
    ordering : {"best", "worst"}
        Which of all orders of the members counts: the shortest or the longest period.

    Returns
    -------
    float
        T in that unit; for one job the sum of its stages.

    Raises
    ------
    ParamError
        No member or more than 4, not three stages, a negative or infinite time, or only zeros.

    References
    ----------
    Muri, SIGCOMM 2022; ``calc_iteration_time`` of the authors' simulator.

    Examples
    --------
    >>> bert, vgg16 = (0.5, 160, 0), (117, 68, 0)
    >>> three_stage_time([bert, vgg16]), three_stage_time([bert, vgg16], "worst")
    (228.0, 345.0)
    """
    shortest, longest = _extremes(tuple(sorted(map(tuple, members))))
    if ordering not in ("best", "worst"):
        raise ParamError(f"ordering is {ordering!r}; give 'best' or 'worst'")
    return shortest if ordering == "best" else longest


def three_stage_gamma(
    members: Sequence[ThreeStages],
    ordering: Literal["best", "worst"] = "best",
    factor: float = 1.0,
) -> float:
    """Return the grouping efficiency of jobs profiled in three stages, over four resources.

    Parameters
    ----------
    members, ordering
        As for `three_stage_time`.
    factor : float
        Measured period over T.

    Returns
    -------
    float
        Sum of all stage times over 4 T factor.

    References
    ----------
    Muri, SIGCOMM 2022, Eq 4.

    Examples
    --------
    >>> round(three_stage_gamma([(0.5, 160, 0), (117, 68, 0)], factor=1.31034), 3)
    0.289
    """
    period = three_stage_time(members, ordering) * factor
    return sum(map(sum, sorted(members))) / (_SLOTS * period)


@lru_cache(maxsize=200_000)
def _extremes(group: tuple[tuple[float, ...], ...]) -> tuple[float, float]:
    """Return the shortest and the longest period over all orders of the members."""
    size = len(group)
    if not 1 <= size <= _SLOTS or any(len(stages) != 3 for stages in group):
        raise ParamError(
            f"a group of {size} jobs with stages {list(group)}; give 1 to {_SLOTS} jobs with "
            f"three stages (data, GPU, network) each"
        )
    if not all(0 <= time < math.inf for stages in group for time in stages):
        raise ParamError(f"stage times {list(group)}: each is finite and 0 or more")
    if any(sum(stages) == 0 for stages in group):
        raise ParamError(f"stage times {list(group)}: a job has no stage of any length")
    group = tuple(tuple(map(float, stages)) for stages in group)
    if size == 1:
        return sum(group[0]), sum(group[0])
    padding = (_ABSENT,) * (_SLOTS - size)
    periods = [_period(order + padding) for order in itertools.permutations(group)]
    if size == 2:
        (d0, g0, n0), (d1, g1, n1) = group
        periods.append(max(d0, g1 + n1) + max(d1, g0 + n0))
    return min(periods), max(periods)


def _period(order: tuple[tuple[float, ...], ...]) -> float:
    """Return the period of one order: the steady state of the slots' ends."""
    data = [order[(slot + 3) % _SLOTS][0] for slot in range(_SLOTS)]
    # GPU and network stage start with their slot, the data stage one slot earlier.
    rest = [
        max(order[(slot + 1) % _SLOTS][2], order[(slot + 2) % _SLOTS][1]) for slot in range(_SLOTS)
    ]
    ends = [0.0, max(0.0, rest[0])]
    for slot in range(1, 2 * _SLOTS):
        before, now = ends[-2], ends[-1]
        ends.append(max(0.0, now + rest[slot % _SLOTS], before + data[slot % _SLOTS]))
        if slot >= _SLOTS:
            period, last = ends[-1] - ends[-1 - _SLOTS], now - ends[-2 - _SLOTS]
            if abs(period - last) <= _STEADY * max(abs(period), abs(last)):
                return period
    return ends[2 * _SLOTS] - ends[_SLOTS]
