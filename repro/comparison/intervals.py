"""Bootstrap intervals of means and of paired differences over samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from repro.base.typing import Floats
from repro.figures.data import stream

RESAMPLES = 10_000
#: Probability of an interval.
LEVEL = 0.95
#: Levels of the ends of an interval.
_ENDS = ((1 - LEVEL) / 2, 1 - (1 - LEVEL) / 2)


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
    has_gap = np.isnan(values).any(axis=0)
    means = _resampled_means(np.where(has_gap, 0.0, values), seed)
    low, high = np.quantile(means, _ENDS, axis=0)
    return np.where(has_gap, np.nan, low), np.where(has_gap, np.nan, high)


def interval_table(frame: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """Means of a column by group of rows, each with its 95 % interval.

    Parameters
    ----------
    frame : DataFrame
        A row per sample.
    by : sequence of str
        Columns that name the groups, which keep their order of appearance.
    value : str
        Column of the numbers.

    Returns
    -------
    DataFrame
        Columns ``by``, ``mean``, ``low`` and ``high`` (both ends of the interval, as in
        `mean_intervals`) and ``n``, the number of rows.

    Examples
    --------
    >>> rows = pd.DataFrame({"policy": ["a", "a", "b"], "jct": [0.0, 2.0, 5.0]})
    >>> interval_table(rows, ["policy"], "jct").to_dict("records")[0]
    {'policy': 'a', 'mean': 1.0, 'low': 0.0, 'high': 2.0, 'n': 2}
    """
    rows = []
    for names, group in frame.groupby(list(by), sort=False, dropna=False):
        values = group[value].to_numpy(float)
        low, high = mean_intervals(values[:, None])
        row = dict(zip(by, names, strict=True))
        rows.append(
            {**row, "mean": values.mean(), "low": low[0], "high": high[0], "n": len(values)}
        )
    return pd.DataFrame(rows)


def ratio_interval(values: Floats, reference: Floats, seed: int = 0) -> tuple[float, float, float]:
    """Ratio of two means over the same samples, and both ends of its 95 % interval.

    The resamples are those of `mean_intervals`. A ratio over 0 is infinite, or NaN if both means
    are 0. The ends are NaN with fewer than two samples, or without a finite ratio of the means.

    Parameters
    ----------
    values, reference : array of float, shape (samples,)
        Numbers of 0 or more, with an entry per sample.
    seed : int
        Seed of the resamples.

    Examples
    --------
    >>> ratio_interval(np.array([2.0, 6.0]), np.array([1.0, 2.0])) == (8 / 3, 2.0, 3.0)
    True
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(np.divide(values.mean(), reference.mean()))
        if len(values) < 2:
            return ratio, np.nan, np.nan
        means = _resampled_means(np.column_stack([values, reference]), seed)
        ratios = means[:, 0] / means[:, 1]
        if not np.isfinite(ratio):
            return ratio, np.nan, np.nan
        defined = ratios[~np.isnan(ratios)]
        interpolated = np.quantile(defined, _ENDS)
        # interpolation towards an infinite ratio may give NaN
        higher = np.quantile(defined, _ENDS, method="higher")
        low, high = np.where(np.isnan(interpolated), higher, interpolated)
    return ratio, float(low), float(high)


def ratio_text(ratio: float, low: float, high: float) -> str:
    """Ratio with two decimals, marked ``≈`` if its interval contains 1.

    Without an interval (NaN ends) it is in brackets.

    >>> ratio_text(1.5, 1.2, 1.9), ratio_text(1.5, 0.9, 1.9), ratio_text(1.5, np.nan, np.nan)
    ('1.50', '1.50≈', '(1.50)')
    """
    if np.isnan(low) or np.isnan(high):
        return f"({ratio:.2f})"
    return f"{ratio:.2f}{'≈' if low <= 1 <= high else ''}"


def _resampled_means(values: Floats, seed: int) -> Floats:
    """Column means of each resample, (resamples, columns)."""
    num_samples = len(values)
    rng = stream("compare", seed)
    # how often each sample is in each resample, (resamples, samples)
    counts = rng.multinomial(num_samples, np.full(num_samples, 1 / num_samples), size=RESAMPLES)
    means: Floats = counts.astype(float) @ values / num_samples
    return means
