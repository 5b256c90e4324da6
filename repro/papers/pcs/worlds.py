"""Quality of a front of configurations in other workloads than the workload of its search."""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from repro.base.typing import Flags, Floats
from repro.papers.pcs.encodings import Configuration, encoding
from repro.papers.pcs.fronts import hypervolume, nondominated

#: Reference point of hypervolumes, in ranges of the front; above 1 so that the front's ends count.
_REFERENCE = 1.1


def changed(
    trace: pd.DataFrame,
    number: int,
    *,
    errors: Sequence[float],
    seeds: Sequence[int],
    loads: Sequence[float],
    windows: int,
    least: float = 0.2,
) -> dict[tuple[str, float, int], tuple[pd.DataFrame, float]]:
    """Jobs and size error of each workload (world), by kind of change, x and seed.

    The first world is the workload of the search. In the others, x is the bound of the size error,
    the load, or the number of the window.

    Parameters
    ----------
    trace : DataFrame
        Trace whose first ``number`` jobs were searched on.
    number : int
        Number of jobs of a world.
    errors, seeds : sequence
        Bounds of the size error (%), and seeds of the errors.
    loads : sequence of float
        Load over that of the trace.
    windows : int
        How many later windows of ``number`` jobs.
    least : float
        Smallest part of ``number`` that a window has.
    """
    jobs = trace.head(number)
    worlds: dict[tuple[str, float, int], tuple[pd.DataFrame, float]] = {}
    worlds["as searched", 0, 0] = jobs, 0.0
    for bound, seed in itertools.product(errors, seeds):
        worlds["size error", bound, seed] = jobs, bound / 100
    for load in loads:
        worlds["load", load, 0] = jobs.assign(submit_time=jobs["submit_time"] / load), 0.0
    for window in range(1, windows + 1):
        later = trace.iloc[window * number : (window + 1) * number]
        if len(later) >= least * number:
            worlds["later jobs", window, 0] = later, 0.0
    return worlds


def candidates(
    stored: pd.DataFrame, objectives: list[str], work: Floats, number: int, rival_offsets: Floats
) -> dict[int, Configuration]:
    """Configurations spread evenly along the front of ``stored``, and a rival near each of them.

    The keys are the numbers of the configurations. Those of rivals follow those of ``stored``.
    ``number`` is how many configurations of the front are taken. ``rival_offsets`` are the
    distances from these to their rivals, shape (number, 4), as fractions of the searched box. A
    configuration that gives a class no weight is left out.
    """
    front = stored[nondominated(stored[objectives].to_numpy())].sort_values(objectives[0])
    front = front.iloc[np.linspace(0, len(front) - 1, number).astype(int)]
    points = front[["T", "W", "zeta_min", "delta"]].to_numpy()
    code = encoding(work, heuristics=True, linear=False)
    moved = (points + rival_offsets * (code.high - code.low)).clip(code.low, code.high)
    numbers = [*front["solution"], *(len(stored) + np.arange(number))]
    decoded = zip(numbers, map(code.decode, [*points, *moved]), strict=True)
    return {int(solution): configuration for solution, configuration in decoded if configuration}


def front_quality(values: Floats, chosen: Flags, near: float) -> dict[str, float]:
    """Quality of the chosen configurations among all, in percent.

    The front has the nondominated points of all configurations. ``kept``: share of the chosen
    configurations that is nondominated among them. ``near``: share of the chosen configurations
    within the relative distance ``near`` of a point of the front, in every objective. ``lost``:
    share of the hypervolume of all configurations that the chosen configurations do not cover.
    For hypervolumes, each objective is divided by its range on the front. Their reference point is
    a tenth of the range beyond the worst value of the front in each objective.

    Parameters
    ----------
    values : array, shape (configurations, objectives)
        Objectives of all configurations in the new workload, smaller is better.
    chosen : array of bool
        Whether each configuration was chosen before.
    near : float
        Largest relative distance.

    Examples
    --------
    >>> values = np.array([[1.0, 3.0], [3.0, 1.0], [3.0, 2.0], [2.0, 2.0]])
    >>> quality = front_quality(values, np.array([True, True, True, False]), 0.1)
    >>> [round(percent) for percent in quality.values()]
    [67, 67, 54]
    """
    picked = values[chosen]
    front = values[nondominated(values)]
    # all rows equal to a nondominated row count as kept
    kept = (picked[:, None] == picked[nondominated(picked)]).all(axis=2).any(axis=1)
    # the floor avoids a division by 0 or by a rounding error
    distance = (np.abs(picked[:, None] - front) / np.maximum(front, 1e-9)).max(axis=2).min(axis=1)
    lowest = front.min(axis=0)
    ranges = np.ptp(front, axis=0)
    scaled = (values - lowest) / np.where(ranges > 0, ranges, 1.0)
    reference = np.full(values.shape[1], _REFERENCE)
    lost = 1 - hypervolume(scaled[chosen], reference) / hypervolume(scaled, reference)
    return {"kept": 100 * kept.mean(), "near": 100 * (distance <= near).mean(), "lost": 100 * lost}
