"""Coverage and width of prediction intervals, by the jobs that calibrate them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from repro.base.typing import Flags, Floats, Ints
from repro.engine.conformal import factors


def by_calibration(
    jobs: pd.DataFrame, level: float, halves: list[Flags]
) -> dict[str, dict[str, float]]:
    """Coverage and widths (`_measure`) by choice of the calibration jobs.

    ``random halves``: the jobs of each mask of ``halves`` calibrate the other jobs; mean over the
    masks. ``first half``: the first half of the arrivals calibrates the second. ``online``: the
    jobs that ended before a job's arrival calibrate it.
    """
    names = ["predicted_jct_low", "predicted_jct_high"]
    low, high = jobs[names].div(jobs["predicted_jct"], axis=0).to_numpy(float).T
    random = [
        _measure(jobs, *_calibrated(jobs, classes(jobs), half, level), ~half) for half in halves
    ]
    return {
        "random halves": {key: float(np.mean([row[key] for row in random])) for key in random[0]},
        "first half": second_half(jobs, classes(jobs), level),
        "online": _measure(jobs, low, high, np.ones(len(jobs), np.bool_)),
    }


def second_half(
    jobs: pd.DataFrame, group: Ints, level: float, tested: Flags | bool = True
) -> dict[str, float]:
    """Coverage and widths on the second half of arrivals, calibrated on the first."""
    first = np.arange(len(jobs)) < len(jobs) // 2
    return _measure(jobs, *_calibrated(jobs, group, first, level), ~first & tested)


def by_class(jobs: pd.DataFrame, level: float) -> Iterator[dict[str, Any]]:
    """Yield `second_half` of each class, calibrated by class and as one class.

    The key ``known`` names the calibration.
    """
    own = classes(jobs)
    for calibration, group in (("by class", own), ("one class", np.zeros_like(own))):
        for number in np.unique(own[len(own) // 2 :]):
            measures = second_half(jobs, group, level, own == number)
            yield {"known": calibration, "class": f"class {number + 1}", **measures}


def classes(jobs: pd.DataFrame) -> Ints:
    """Class of every job, (jobs,); 0 under a policy without classes."""
    if "job_class" not in jobs:
        return np.zeros(len(jobs), np.int64)
    return jobs["job_class"].fillna(0).to_numpy(np.int64)


def _calibrated(
    jobs: pd.DataFrame, group: Ints, calibration: Flags, level: float
) -> tuple[Floats, Floats]:
    """Lower and upper factor of each job's prediction, from the calibration jobs of its group."""
    ratio = (jobs["jct"] / jobs["predicted_jct"]).to_numpy()
    low = np.zeros(len(jobs))
    high = np.full(len(jobs), np.inf)
    for number in np.unique(group):
        members = group == number
        low[members], high[members] = factors(ratio[calibration & members], level)
    return low, high


def _measure(jobs: pd.DataFrame, low: Floats, high: Floats, tested: Flags) -> dict[str, float]:
    """Coverage and widths of the bounded intervals of ``tested`` jobs, all in %.

    Widths are relative to predictions. ``none`` is the part of the jobs without a bounded interval.
    """
    ratio = (jobs["jct"] / jobs["predicted_jct"]).to_numpy()
    bounded = tested & np.isfinite(high)
    # tolerance for rounding
    covered = (low - 1e-9 <= ratio) & (ratio <= high + 1e-9)
    widths = (high - low)[bounded]
    measures = {
        "coverage": covered[bounded].mean(),
        "none": 1 - bounded.sum() / tested.sum(),
        "mean_width": widths.mean(),
        "median_width": np.median(widths),
    }
    return {name: 100 * float(value) for name, value in measures.items()}
