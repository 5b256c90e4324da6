"""Helpers of several generators: proportions, stratified sampling, arrivals."""

from typing import Any

import numpy as np
import pandas as pd

from repro.base.typing import Floats, Ints


def proportional_counts(counts: Ints, total: int) -> Ints:
    """Whole numbers that add up to ``total`` in these proportions, by largest remainder."""
    exact = counts * total / counts.sum()
    rounded = np.floor(exact).astype(np.int64)
    order = np.argsort(rounded - exact, kind="stable")
    rounded[order[: total - rounded.sum()]] += 1
    return np.asarray(rounded)


def strata(rng: np.random.Generator, size: int) -> Floats:
    """Uniform numbers from [0, 1), one in each of ``size`` equal strata, in random order."""
    return np.asarray((rng.permutation(size) + rng.random(size)) / max(size, 1))


def ranked_probabilities(rng: np.random.Generator, ranks: Ints) -> Floats:
    """Probabilities evenly spaced from 0 to 1, with noise of up to half a step.

    ``ranks`` has the rank of each probability, from 0.
    """
    last = max(ranks.size - 1, 1)
    return np.asarray(np.clip((ranks + rng.random(ranks.size) - 0.5) / last, 0, 1))


def inverse_cdf(u: Floats, levels: Floats, values: Floats) -> Floats:
    """Quantiles at probabilities ``u``, from positive tabulated values interpolated in the log."""
    return np.asarray(np.exp(np.interp(u, levels, np.log(values))))


def jobs_with_gaps(gaps: Floats | Ints, **columns: Any) -> pd.DataFrame:
    """Jobs with these columns: the first submitted at 0, each further job a gap (s) later."""
    submit = np.concatenate([[0.0], np.cumsum(gaps)])
    return pd.DataFrame({"job_id": np.arange(submit.size), "submit_time": submit, **columns})
