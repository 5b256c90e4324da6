"""What several generators need: proportions, stratified draws, arrivals."""

from typing import Any

import numpy as np
import pandas as pd

from repro.base.typing import Floats, Ints


def scaled(counts: Ints, wanted: int) -> Ints:
    """Return ``wanted`` jobs in these proportions, largest remainders first."""
    exact = counts * wanted / counts.sum()
    whole = np.floor(exact).astype(np.int64)
    order = np.argsort(whole - exact, kind="stable")
    whole[order[: wanted - whole.sum()]] += 1
    return np.asarray(whole)


def strata(rng: np.random.Generator, size: int) -> Floats:
    """Return one uniform number in each of ``size`` equal strata, in random order."""
    return np.asarray((rng.permutation(size) + rng.random(size)) / max(size, 1))


def spread(rng: np.random.Generator, order: Ints) -> Floats:
    """Return probabilities spread evenly from 0 to 1, in this order and blurred."""
    last = max(order.size - 1, 1)
    return np.asarray(np.clip((order + rng.random(order.size) - 0.5) / last, 0, 1))


def inverse_cdf(u: Floats, levels: Floats, values: Floats) -> Floats:
    """Return quantiles between tabulated positive ones, interpolated in the logarithm."""
    return np.asarray(np.exp(np.interp(u, levels, np.log(values))))


def jobs_apart(gaps: Floats | Ints, **columns: Any) -> pd.DataFrame:
    """Return jobs with these columns: the first submitted at 0, each next one a gap (s) later."""
    submit = np.concatenate([[0.0], np.cumsum(gaps)])
    return pd.DataFrame({"job_id": np.arange(submit.size), "submit_time": submit, **columns})
