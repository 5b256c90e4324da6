"""How many JCTs bounds around predictions hold, and how wide they are, by the jobs that tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from repro.base.typing import Flags, Floats, Ints
from repro.engine.conformal import factors


def ways(jobs: pd.DataFrame, level: float, draws: list[Flags]) -> dict[str, dict[str, float]]:
    """Return `_measure` by how the jobs that tell are chosen.

    Those of each of ``draws`` tell the others (mean), the first half of the arrivals tells the
    second, and those that had ended at its arrival tell each job.
    """
    names = ["predicted_jct_low", "predicted_jct_high"]
    low, high = jobs[names].div(jobs["predicted_jct"], axis=0).to_numpy(float).T
    random = [_measure(jobs, *_told(jobs, classes(jobs), one, level), ~one) for one in draws]
    return {
        "random halves": {key: float(np.mean([one[key] for one in random])) for key in random[0]},
        "first half": second_half(jobs, classes(jobs), level),
        "online": _measure(jobs, low, high, np.ones(len(jobs), np.bool_)),
    }


def second_half(
    jobs: pd.DataFrame, group: Ints, level: float, tested: Flags | bool = True
) -> dict[str, float]:
    """Return `_measure` of those tested in the second half of the arrivals, told from the first."""
    first = np.arange(len(jobs)) < len(jobs) // 2
    return _measure(jobs, *_told(jobs, group, first, level), ~first & tested)


def by_class(jobs: pd.DataFrame, level: float) -> Iterator[dict[str, Any]]:
    """Yield `second_half` of each class, told by class and as one class."""
    own = classes(jobs)
    for known, group in (("by class", own), ("one class", np.zeros_like(own))):
        for one in np.unique(own[len(own) // 2 :]):
            found = second_half(jobs, group, level, own == one)
            yield {"known": known, "class": f"class {one + 1}", **found}


def classes(jobs: pd.DataFrame) -> Ints:
    """Return the class of every job, 0 under a policy without classes."""
    return np.asarray(jobs.get("job_class", np.zeros(len(jobs))), np.int64)


def _told(jobs: pd.DataFrame, group: Ints, known: Flags, level: float) -> tuple[Floats, Floats]:
    """Return the factors between which each job is to end, from the known jobs of its group."""
    ratio = (jobs["jct"] / jobs["predicted_jct"]).to_numpy()
    low, high = np.zeros(len(jobs)), np.full(len(jobs), np.inf)
    for one in np.unique(group):
        low[group == one], high[group == one] = factors(ratio[known & (group == one)], level)
    return low, high


def _measure(jobs: pd.DataFrame, low: Floats, high: Floats, tested: Flags) -> dict[str, float]:
    """Return coverage, widths over predictions and share without bounds of those tested (%)."""
    ratio = (jobs["jct"] / jobs["predicted_jct"]).to_numpy()
    has = tested & np.isfinite(high)
    # rounding may make 1e-9 of a prediction
    held = (low - 1e-9 <= ratio) & (ratio <= high + 1e-9)
    wide = (high - low)[has]
    found = {"coverage": held[has].mean(), "none": 1 - has.sum() / tested.sum()}
    found |= {"mean_width": wide.mean(), "median_width": np.median(wide)}
    return {name: 100 * float(value) for name, value in found.items()}
