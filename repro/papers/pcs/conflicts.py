"""Groups of jobs with different preferences: four ways to choose a configuration."""

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Flags, Floats
from repro.papers.pcs.fronts import nondominated
from repro.papers.pcs.objectives import Objective

#: Value of the column ``prefers`` -> objective of that group of jobs.
GROUP_OBJECTIVES = {
    "fast": Objective("jct", among="fast"),
    "sure": Objective("pred_err", among="sure"),
}

#: Columns of a table of choices: the case, the rule of choice (series), means of both groups, and
#: the best value of each group's objective over all configurations.
COLUMNS = (
    "trace",
    "sure_pct",
    "seed",
    "series",
    "fast_jct_s",
    "sure_jct_s",
    "fast_pred_err_pct",
    "sure_pred_err_pct",
    "fast_best_jct_s",
    "sure_best_pred_err_pct",
)


def objectives(jobs: pd.DataFrame) -> list[float]:
    """Value of each group's objective from records; 0 for a group without jobs."""
    present = set(jobs["prefers"])
    return [
        objective.of(jobs) if group in present else 0.0
        for group, objective in GROUP_OBJECTIVES.items()
    ]


def choices(values: Floats, sure: Flags) -> dict[str, int]:
    """Row chosen by each of four rules.

    ``fast`` and ``sure`` take the best row for that group; ties go to the better row for the other
    group. ``majority`` takes the choice of the larger group. ``compromise`` minimises the larger of
    the two losses. A loss is the distance of an objective from its least value, as a fraction of
    its range on the front.

    Parameters
    ----------
    values : array, shape (configurations, 2)
        Objectives of fast and sure jobs.
    sure : array of bool
        Whether each job is of the group sure.

    Examples
    --------
    >>> values = np.array([[1.0, 9.0], [2.0, 4.0], [6.0, 3.0], [9.0, 1.0]])
    >>> choices(values, np.array([True, True, False]))
    {'fast': 0, 'sure': 3, 'compromise': 1, 'majority': 3}
    """
    front = values[nondominated(values)]
    lowest = front.min(axis=0)
    ranges = np.ptp(front, axis=0)
    losses = (values - lowest) / np.where(ranges > 0, ranges, 1.0)
    best = {
        name: int(np.lexsort((values[:, 1 - k], values[:, k]))[0])
        for k, name in enumerate(GROUP_OBJECTIVES)
    }
    compromise = int(np.lexsort((losses.sum(axis=1), losses.max(axis=1)))[0])
    majority = best["sure" if sure.mean() > 0.5 else "fast"]
    return {**best, "compromise": compromise, "majority": majority}


def split_gpus(jobs: pd.DataFrame, gpus: int) -> dict[str, int]:
    """GPUs of each group that has jobs, in proportion to its work, at least one."""
    work = jobs.groupby("prefers")["service"].sum()
    if len(work) == 1:
        return {str(work.index[0]): gpus}
    if gpus < len(work):
        raise ParamError(f"cluster: {gpus} GPU for two groups of users; give at least 2")
    sure = int(np.clip(round(gpus * work["sure"] / work.sum()), 1, gpus - 1))
    return {"fast": gpus - sure, "sure": sure}
