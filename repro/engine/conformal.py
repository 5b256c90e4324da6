"""Intervals around predicted JCTs by split conformal prediction."""

from bisect import insort
from collections.abc import Sequence
from heapq import heapify, heappop

import numpy as np

from repro.base.typing import Floats, Ints


def factors(ratios: Floats, level: float) -> tuple[float, float]:
    """Bounds between which a new ratio lies with probability ``level`` or more.

    This is two-sided split conformal prediction. The bounds are the k-th smallest and the k-th
    largest of n ratios, with k = floor((n + 1) (1 - level) / 2). The probability holds if the new
    ratio is exchangeable with the others. For k = 0 the bounds are 0 and infinity.

    Parameters
    ----------
    ratios : array of float
        JCT over predicted JCT of earlier jobs.
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
    return _bounds(np.sort(ratios), level)


def bounds_at_arrival(
    submit: Floats, jct: Floats, predicted: Floats, job_class: Ints, level: float
) -> tuple[Floats, Floats]:
    """Lower and upper bound of each job's JCT (s), from the jobs that ended before its arrival.

    The bounds are the predicted JCT times the `factors` of the ended jobs of its class. They are
    NaN if the job has no prediction, or if too few jobs of its class have ended.

    Parameters
    ----------
    submit : array of float
        Submission of every job (s).
    jct : array of float
        JCT of every job (s); NaN: unfinished.
    predicted : array of float
        Predicted JCT of every job (s); NaN: not predicted.
    job_class : array of int
        Class of every job.
    level : float
        Probability, above 0 and below 1.

    Examples
    --------
    >>> submit = np.arange(0.0, 50.0, 10.0)
    >>> jct = np.array([2.0, 3.0, 60.0, 5.0, 6.0])
    >>> low, high = bounds_at_arrival(submit, jct, np.ones(5), np.zeros(5, int), 0.3)
    >>> low, high
    (array([nan, nan,  2.,  2.,  2.]), array([nan, nan,  3.,  3.,  5.]))
    """
    low, high = np.full((2, len(submit)), np.nan)
    for class_number in np.unique(job_class):
        jobs = np.flatnonzero((job_class == class_number) & ~np.isnan(predicted))
        ended = jobs[~np.isnan(jct[jobs])]
        # heap of (end in s, JCT over predicted JCT)
        ends = [(submit[job] + jct[job], jct[job] / predicted[job]) for job in ended]
        heapify(ends)
        ratios: list[float] = []
        for job in jobs[np.argsort(submit[jobs], kind="stable")]:
            # completions come before arrivals at the same instant
            while ends and ends[0][0] <= submit[job]:
                insort(ratios, heappop(ends)[1])
            below, above = _bounds(ratios, level)
            if above < np.inf:
                low[job] = below * predicted[job]
                high[job] = above * predicted[job]
    return low, high


def _bounds(ratios: Sequence[float] | Floats, level: float) -> tuple[float, float]:
    """k-th smallest and k-th largest of ascending ratios; 0 and infinity for k = 0."""
    # the quotient may be a whole number that rounding makes a little smaller
    k = int((len(ratios) + 1) * (1 - level) / 2 + 1e-9)
    if k == 0:
        return 0.0, np.inf
    return float(ratios[k - 1]), float(ratios[-k])
