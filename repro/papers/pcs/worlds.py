"""What a front of configurations is still worth in another world than that of its search."""

import numpy as np
import pandas as pd

from repro.base.typing import Flags, Floats
from repro.papers.pcs.encodings import Configuration, encoding
from repro.papers.pcs.fronts import hypervolume, nondominated

#: Reference point of areas, in ranges of the front beyond its best, so that its ends count, too.
_BEYOND = 1.1


def candidates(
    stored: pd.DataFrame, objectives: list[str], work: Floats, number: int, rivals: Floats
) -> dict[int, Configuration]:
    """Return so many of the stored front, evenly along it, and a rival near each, by number.

    ``rivals`` are their distances in parts of the searched box, shape (number, 4); they are counted
    on from the stored ones. Left out are those with a class without weight among jobs of ``work``.
    """
    front = stored[nondominated(stored[objectives].to_numpy())].sort_values(objectives[0])
    front = front.iloc[np.linspace(0, len(front) - 1, number).astype(int)]
    points = front[["T", "W", "zeta_min", "delta"]].to_numpy()
    how = encoding(work, heuristics=True, linear=False)
    moved = (points + rivals * (how.high - how.low)).clip(how.low, how.high)
    numbers = [*front["solution"], *(len(stored) + np.arange(number))]
    decoded = zip(numbers, map(how.decode, [*points, *moved]), strict=True)
    return {int(one): found for one, found in decoded if found}


def standing(values: Floats, chosen: Flags, near: float) -> dict[str, float]:
    """Return how the chosen among some configurations stand, in percent.

    ``kept``: of the chosen, those that no other chosen one beats. ``near``: of the chosen, those
    within the part ``near``, in every objective, of some point of the front of all. ``lost``: the
    part of the area covered by all that the chosen do not cover, in ranges of the front of all, up
    to a tenth of a range beyond its worst.

    Parameters
    ----------
    values : array, shape (configurations, objectives)
        Objectives of all in the new world, smaller is better.
    chosen : array of bool
        Which were chosen before.
    near : float
        See above.

    Examples
    --------
    >>> values = np.array([[1.0, 3.0], [3.0, 1.0], [3.0, 2.0], [2.0, 2.0]])
    >>> found = standing(values, np.array([True, True, True, False]), 0.1)
    >>> [round(one) for one in found.values()]
    [67, 67, 54]
    """
    ours = values[chosen]
    front = values[nondominated(values)]
    # equal rows are kept together
    kept = (ours[:, None] == ours[nondominated(ours)]).all(axis=2).any(axis=1)
    # an error of nothing but rounding has no relative distance
    away = (np.abs(ours[:, None] - front) / np.maximum(front, 1e-9)).max(axis=2).min(axis=1)
    least = front.min(axis=0)
    wide = np.ptp(front, axis=0)
    scaled = (values - least) / np.where(wide > 0, wide, 1.0)
    reference = np.full(values.shape[1], _BEYOND)
    lost = 1 - hypervolume(scaled[chosen], reference) / hypervolume(scaled, reference)
    return {"kept": 100 * kept.mean(), "near": 100 * (away <= near).mean(), "lost": 100 * lost}
