"""Jobs with measured marginal distributions: quantiles of durations by GPU count, and of gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from repro.base.typing import Floats, Ints
from repro.trace.synth.draws import inverse_cdf, proportional_counts, ranked_probabilities

#: Levels (0 to 1) of the quantiles in the measured tables.
LEVELS = (
    0.0,
    0.01,
    0.02,
    0.035,
    *np.arange(1, 19) / 20,
    0.925,
    0.95,
    0.965,
    0.975,
    0.985,
    0.99,
    0.995,
    1.0,
)
#: Columns of these quantiles.
QUANTILES = [f"q{round(100 * level, 1):g}" for level in LEVELS]


def sample(
    rng: np.random.Generator,
    table: pd.DataFrame,
    gaps: pd.Series[Any],
    jobs: int | None,
) -> tuple[Ints, Floats, Floats]:
    """Sample GPU counts, durations (s) and submit times (s), each (jobs,).

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of randomness.
    table : DataFrame
        A row per GPU count: ``num_gpus``, ``jobs``, ``total_s``, and quantiles of the duration (s).
    gaps : Series
        Span of the submissions ``span_s``, and quantiles of the gaps between them (s).
    jobs : int, optional
        Number of jobs, at the proportions and the arrival rate of the table. By default the number
        of jobs of the table.
    """
    published_jobs = int(table["jobs"].sum())
    total = published_jobs if jobs is None else int(jobs)
    counts = proportional_counts(table["jobs"].to_numpy(np.int64), total)
    num_gpus = rng.permutation(np.repeat(table["num_gpus"].to_numpy(np.int64), counts))
    duration = np.empty(total)
    for _, row in table.iterrows():
        rows = np.flatnonzero(num_gpus == row["num_gpus"])
        duration[rows] = _durations(rng, row, rows.size)
    return num_gpus, duration, _submissions(rng, gaps, total, total / published_jobs)


def _durations(rng: np.random.Generator, row: pd.Series[Any], size: int) -> Floats:
    """Durations (whole s) of ``size`` jobs of one GPU count.

    The measured total is scaled by ``size`` over the measured number of jobs. The longest tenth of
    the durations is then scaled so that their sum is near this total.
    """
    quantiles = row[QUANTILES].to_numpy(float)
    u = ranked_probabilities(rng, rng.permutation(size))
    sampled = inverse_cdf(u, np.asarray(LEVELS), quantiles)
    return _to_total(sampled, row["total_s"] * size / row["jobs"], quantiles[-1])


def _submissions(rng: np.random.Generator, row: pd.Series[Any], jobs: int, share: float) -> Floats:
    """Submit times (s) over ``share`` of the measured span, (jobs,)."""
    quantiles = row[QUANTILES].to_numpy(float)
    u = ranked_probabilities(rng, rng.permutation(jobs - 1))
    # `inverse_cdf` interpolates the logarithm, and a gap may be 0 s.
    sampled = inverse_cdf(u, np.asarray(LEVELS), quantiles + 1) - 1
    gaps = _to_total(sampled, row["span_s"] * share, quantiles[-1])
    return np.concatenate([[0.0], np.cumsum(gaps)])


def _to_total(values: Floats, total: float, longest: float) -> Floats:
    """Whole numbers: the upper tenth of ``values`` is scaled so that the sum is near ``total``."""
    if values.size == 0:
        return values
    tail = values >= np.quantile(values, 0.9)
    tail_sum = values[tail].sum()
    factor = (total - values[~tail].sum()) / tail_sum if tail_sum else 1.0
    stretched = np.where(tail, values * np.clip(factor, 0.5, 2.0), values)
    return np.asarray(np.clip(np.round(stretched), 0, longest))
