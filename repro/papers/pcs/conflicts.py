"""Jobs that prefer different things: which configuration is chosen, and by whom."""

import numpy as np
import pandas as pd

from repro.base.typing import Flags, Floats
from repro.papers.pcs.fronts import nondominated
from repro.papers.pcs.objectives import Objective

#: What jobs may prefer, as the column ``prefers`` says, and what they measure it by.
WISHES = {"fast": Objective("jct", among="fast"), "sure": Objective("pred_err", among="sure")}


def objectives(jobs: pd.DataFrame) -> list[float]:
    """Return the objective of each group from records; 0 for a group without jobs."""
    present = set(jobs["prefers"])
    return [one.of(jobs) if name in present else 0.0 for name, one in WISHES.items()]


def choices(values: Floats, sure: Flags) -> dict[str, int]:
    """Return the row that each way of choosing takes.

    Fast and sure: the best for that group, among equals the better one for the other. Majority:
    that of the larger group. Compromise: where the larger of the two losses is least, each over
    the range of the objective on the front.

    Parameters
    ----------
    values : array, shape (configurations, 2)
        Objectives of fast and sure jobs.
    sure : array of bool
        Which jobs are sure.

    Examples
    --------
    >>> values = np.array([[1.0, 9.0], [2.0, 4.0], [6.0, 3.0], [9.0, 1.0]])
    >>> choices(values, np.array([True, True, False]))
    {'fast': 0, 'sure': 3, 'compromise': 1, 'majority': 3}
    """
    front = values[nondominated(values)]
    least = front.min(axis=0)
    wide = np.ptp(front, axis=0)
    losses = (values - least) / np.where(wide > 0, wide, 1.0)
    best = {
        name: int(np.lexsort((values[:, 1 - k], values[:, k]))[0]) for k, name in enumerate(WISHES)
    }
    middle = int(np.lexsort((losses.sum(axis=1), losses.max(axis=1)))[0])
    return {**best, "compromise": middle, "majority": best["sure" if sure.mean() > 0.5 else "fast"]}


def split_gpus(jobs: pd.DataFrame, gpus: int) -> dict[str, int]:
    """Return GPUs of each group that has jobs, in proportion to its work, one at least."""
    work = jobs.groupby("prefers")["service"].sum()
    if len(work) == 1:
        return {str(work.index[0]): gpus}
    sure = int(np.clip(round(gpus * work["sure"] / work.sum()), 1, gpus - 1))
    return {"fast": gpus - sure, "sure": sure}
