"""Where taking turns on resources starts to do more work than running side by side."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from repro.perf.contention import Contention
from repro.perf.stages import Stages, interleaving_time

#: Ways to run a group: without locks; in turns with the period T of Muri; in turns with stages
#: scaled so that the iterations of all members have the same length.
SERIES = ("side by side", "Eq 3 of Muri", "equal iterations")


def group_speeds(
    jobs: Sequence[Stages], size: int, factors: Sequence[float], *, merged: bool = False
) -> pd.DataFrame:
    """Speed of every group that takes turns, and of every group side by side.

    Parameters
    ----------
    jobs : sequence of tuple of float
        Stage times of each job alone (s per iteration).
    size : int
        Jobs in a group.
    factors : sequence of float
        Contention factors (`repro.perf.contention`), each for all resources.
    merged : bool
        Whether jobs have three stages (data, GPU, network) instead of four.

    Returns
    -------
    DataFrame
        A row per series (of `SERIES`), group and factor. Columns ``series``, ``group`` (a number),
        ``f`` and ``speed``. The speed is the sum of the members' rates, each relative to the rate
        alone; 1 is the speed of one job alone. Only the speed side by side depends on the factor.

    Examples
    --------
    >>> group_speeds([(0, 1, 1, 0), (0, 1, 1, 0)], 2, [1.0])["speed"].round(3).tolist()
    [1.333, 1.333, 1.333]
    """
    models = {factor: Contention((factor,) * len(jobs[0])) for factor in factors}
    rows = []
    for number, group in enumerate(combinations(jobs, size)):
        stretched = [tuple(time / sum(stages) for time in stages) for stages in group]
        turns = sum(map(sum, group)) / interleaving_time(group, merged=merged)
        equal = size / interleaving_time(stretched, merged=merged)
        for factor, model in models.items():
            speeds = (sum(model.rates_of(group)), turns, equal)
            rows += [
                (series, number, factor, speed)
                for series, speed in zip(SERIES, speeds, strict=True)
            ]
    return pd.DataFrame(rows, columns=["series", "group", "f", "speed"])


def break_even_factor(
    shared: Sequence[float], factors: Sequence[float], interleaved: float
) -> float:
    """Contention factor from which on jobs side by side are slower than those that take turns.

    Infinite if they are faster at every factor.

    Parameters
    ----------
    shared : sequence of float
        Speed of jobs side by side at each factor, falling.
    factors : sequence of float
        The factors, rising.
    interleaved : float
        Speed of jobs that take turns.

    Examples
    --------
    >>> break_even_factor([2.0, 1.5, 1.0], [0.0, 1.0, 2.0], 1.25)
    1.5
    >>> break_even_factor([2.0, 1.5, 1.0], [0.0, 1.0, 2.0], 0.5)
    inf
    """
    if min(shared) > interleaved:
        return float("inf")
    return float(np.interp(interleaved, shared[::-1], factors[::-1]))
