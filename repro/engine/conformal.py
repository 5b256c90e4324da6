"""Intervals around predictions, by split conformal prediction on what came of earlier ones."""

from bisect import insort
from collections.abc import Sequence
from heapq import heapify, heappop

import numpy as np

from repro.base.typing import Floats, Ints


def factors(ratios: Floats, level: float) -> tuple[float, float]:
    """Return between which factors a new ratio lies with probability ``level`` or more.

    Split conformal prediction, two-sided: of n ratios, the k-th smallest and the k-th largest with
    k = floor((n + 1) (1 - level) / 2). The probability holds if the new ratio is exchangeable with
    them; with fewer than 2 / (1 - level) - 1 of them it cannot: 0 and infinity.

    Parameters
    ----------
    ratios : array of float
        Outcome over prediction of earlier jobs.
    level : float
        Probability, above 0 and below 1.

    Reference: Vovk, Gammerman, Shafer, Algorithmic Learning in a Random World, 2005.

    Examples
    --------
    >>> factors(np.arange(1.0, 20.0), 0.9)
    (1.0, 19.0)
    >>> factors(np.arange(1.0, 19.0), 0.9)
    (0.0, inf)
    """
    return _between(np.sort(ratios), level)


def online(
    submit: Floats, jct: Floats, predicted: Floats, group: Ints, level: float
) -> tuple[Floats, Floats]:
    """Return the bounds of each job's JCT (s), as they can be told at its arrival.

    `factors` of the jobs of its group that had ended by then, times its prediction; NaN where these
    are too few, or where nothing was predicted.

    Parameters
    ----------
    submit, jct, predicted : array of float
        Of every job, in seconds; ``predicted`` NaN: not predicted.
    group : array of int
        Jobs of one group are told from one another's outcomes.
    level : float
        Probability, above 0 and below 1.

    Examples
    --------
    >>> at, ones = np.arange(0.0, 50.0, 10.0), np.ones(5)
    >>> low, high = online(at, np.array([2.0, 3.0, 60.0, 5.0, 6.0]), ones, np.zeros(5, int), 0.3)
    >>> low, high
    (array([nan, nan,  2.,  2.,  2.]), array([nan, nan,  3.,  3.,  5.]))
    """
    low, high = np.full((2, len(submit)), np.nan)
    for one in np.unique(group):
        jobs = np.flatnonzero((group == one) & ~np.isnan(predicted))
        ends = [(submit[job] + jct[job], jct[job] / predicted[job]) for job in jobs]
        heapify(ends)
        known: list[float] = []
        for job in jobs[np.argsort(submit[jobs], kind="stable")]:
            # of events at one instant completions come first
            while ends and ends[0][0] <= submit[job]:
                insort(known, heappop(ends)[1])
            below, above = _between(known, level)
            if above < np.inf:
                low[job] = below * predicted[job]
                high[job] = above * predicted[job]
    return low, high


def _between(ratios: Sequence[float] | Floats, level: float) -> tuple[float, float]:
    """Return the factors that ascending ratios give."""
    # rounding may make a whole number less than it is
    rank = int((len(ratios) + 1) * (1 - level) / 2 + 1e-9)
    if rank == 0:
        return 0.0, np.inf
    return float(ratios[rank - 1]), float(ratios[-rank])
