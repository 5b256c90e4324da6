"""Jobs that take turns on several resources: period T and grouping efficiency (Muri, section 4)."""

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from repro.errors import ParamError

#: Time on each resource per iteration, in the order in which an iteration passes them.
Stages = tuple[float, ...]
#: Data (storage and CPU), GPU and network stage.
ThreeStages = tuple[float, float, float]
#: Which order of the members counts: the one of the shortest or of the longest period.
StageOrder = Literal["best", "worst"]

#: Resources of Muri's cluster: storage, CPU, GPU, network.
RESOURCES = 4

_STEADY = 1e-3
_ABSENT = (-math.inf, -math.inf, -math.inf)


def interleaving_time(
    members: Sequence[Stages], ordering: StageOrder = "best", *, merged: bool = False
) -> float:
    """Return the period T (s) in which every one of at most k members completes one iteration.

    Members are at different offsets o, with a barrier after every step, so that no two use one
    resource at once: T = sum over steps j of max over jobs i of t_i[(j + o_i) mod k] (Eq 1 and 3).
    ``merged``: 1 to 4 jobs profiled as (data, GPU, network), as Muri's simulator computes it: jobs
    pass four slots in turn, and the data stage (storage and CPU) may last two of them.
    """
    # equal groups share one entry of the cache
    shortest, longest = _extremes(tuple(sorted(map(tuple, members))), merged)
    if ordering not in ("best", "worst"):
        raise ParamError(f"ordering is {ordering!r}; give 'best' or 'worst'")
    return shortest if ordering == "best" else longest


def efficiency(members: Sequence[Stages]) -> float:
    """Return the grouping efficiency gamma, the mean busy share of the k resources (Eq 2 and 4)."""
    period = interleaving_time(members)
    # summed in sorted order: the same group has the same gamma to the last bit
    return sum(map(sum, sorted(members))) / (len(members[0]) * period)


@lru_cache(maxsize=200_000)
def _extremes(group: tuple[Stages, ...], merged: bool) -> tuple[float, float]:
    """Return the shortest and the longest period over all orders of the members."""
    stages = 3 if merged else len(group[0]) if group else 0
    most = RESOURCES if merged else stages
    if not 1 <= len(group) <= most or any(len(times) != stages for times in group):
        each = "three stages (data, GPU, network)" if merged else "the times of the same resources"
        raise ParamError(
            f"a group of {len(group)} jobs with stages {list(group)}; give 1 to {most or 'k'} jobs "
            f"with {each} each"
        )
    if not all(0 <= time < math.inf for times in group for time in times):
        raise ParamError(f"stage times {list(group)}: each is finite and 0 or more")
    if any(sum(times) == 0 for times in group):
        raise ParamError(f"stage times {list(group)}: a job has no stage of any length")
    group = tuple(tuple(map(float, times)) for times in group)
    periods = _slot_periods(group) if merged else _barrier_periods(group)
    return min(periods), max(periods)


def _barrier_periods(group: tuple[Stages, ...]) -> list[float]:
    """Return T of every assignment of members to offsets, Eq 3."""
    steps = range(len(group[0]))
    periods = []
    # rotating all offsets together changes nothing, so the first member stays at offset 0
    for others in itertools.permutations(steps[1:], len(group) - 1):
        offsets = (0, *others)
        busy = (
            [times[(step + o) % len(steps)] for times, o in zip(group, offsets, strict=True)]
            for step in steps
        )
        periods.append(sum(map(max, busy)))
    return periods


def _slot_periods(group: tuple[Stages, ...]) -> list[float]:
    """Return T of every order of three-stage jobs."""
    if len(group) == 1:
        return [sum(group[0])]
    padding = (_ABSENT,) * (RESOURCES - len(group))
    periods = [_slot_period(order + padding) for order in itertools.permutations(group)]
    if len(group) == 2:
        # the two jobs two slots apart
        (d0, g0, n0), (d1, g1, n1) = group
        periods.append(max(d0, g1 + n1) + max(d1, g0 + n0))
    return periods


def _slot_period(order: tuple[Stages, ...]) -> float:
    """Return T of one order: the steady state of the slots' ends.

    f[s+1] = max(0, f[s] + n_a, f[s] + g_b, f[s-1] + d_c) with a, b, c = s+1, s+2, s+3 mod 4.
    """
    k = RESOURCES
    data = [order[(slot + 3) % k][0] for slot in range(k)]
    # GPU and network stage start with their slot, the data stage one slot earlier
    rest = [max(order[(slot + 1) % k][2], order[(slot + 2) % k][1]) for slot in range(k)]
    ends = [0.0, max(0.0, rest[0])]
    for slot in range(1, 2 * k):
        before, now = ends[-2], ends[-1]
        ends.append(max(0.0, now + rest[slot % k], before + data[slot % k]))
        if slot >= k:
            period, last = ends[-1] - ends[-1 - k], now - ends[-2 - k]
            if abs(period - last) <= _STEADY * max(abs(period), abs(last)):
                return period
    return ends[2 * k] - ends[k]
