"""Bootstrap intervals of means and of paired differences over samples."""

from __future__ import annotations

import numpy as np

from repro.base.typing import Floats
from repro.figures.data import stream

RESAMPLES = 10_000
#: Probability of an interval.
LEVEL = 0.95


def mean_intervals(values: Floats, seed: int = 0) -> tuple[Floats, Floats]:
    """Lower and upper ends of the 95 % intervals of column means, each (columns,).

    The percentile bootstrap draws whole samples, so the columns of a resample belong together. An
    interval is NaN with fewer than two samples, and in a column with a NaN.

    Parameters
    ----------
    values : array of float, shape (samples, columns)
        A row per sample.
    seed : int
        Seed of the resamples.

    Examples
    --------
    >>> low, high = mean_intervals(np.array([[0.0], [2.0]]))
    >>> low.tolist(), high.tolist()
    ([0.0], [2.0])
    """
    num_samples, num_columns = values.shape
    if num_samples < 2:
        empty = np.full(num_columns, np.nan)
        return empty, empty
    rng = stream("compare", seed)
    # how often each sample is in each resample, (resamples, samples)
    counts = rng.multinomial(num_samples, np.full(num_samples, 1 / num_samples), size=RESAMPLES)
    has_gap = np.isnan(values).any(axis=0)
    means = counts.astype(float) @ np.where(has_gap, 0.0, values) / num_samples
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return np.where(has_gap, np.nan, low), np.where(has_gap, np.nan, high)
