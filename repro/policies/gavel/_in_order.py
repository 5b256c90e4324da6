"""Jobs in order of arrival, each on the fastest GPU type with room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt


def fastest_with_room(
    speeds: Iterable[Sequence[float] | npt.NDArray[np.float64]],
    widths: Iterable[int],
    capacity: Sequence[float] | npt.NDArray[np.float64],
) -> tuple[dict[int, int], int]:
    """Place jobs until one finds no room at all; one that cannot run where there is room waits.

    Parameters
    ----------
    speeds : iterable of arrays, shape (GPU types,)
        Steps per second of each job, in order of arrival; 0 = cannot run.
    widths : iterable of int
        GPUs of each.
    capacity : array, shape (GPU types,)
        GPUs of each type.

    Returns
    -------
    place : dict
        Number of a job to the column of its type, in order of arrival.
    reached : int
        Number of the job that found no room; as many as there are if all did.

    Examples
    --------
    >>> fastest_with_room([[1.0, 2.0]] * 3, [1, 1, 1], [1, 1])
    ({0: 1, 1: 0}, 2)
    """
    free = [int(gpus) for gpus in capacity]
    place: dict[int, int] = {}
    job = -1
    for job, (speed, width) in enumerate(zip(speeds, widths, strict=True)):
        if width > max(free):
            return place, job
        for kind in _fastest_first(tuple(speed)):
            if free[kind] >= width:
                place[job] = kind
                free[kind] -= width
                break
    return place, job + 1


@lru_cache(maxsize=4096)
def _fastest_first(speeds: tuple[float, ...]) -> tuple[int, ...]:
    """Return the types on which a job can run; of equal ones the first comes first."""
    able = [kind for kind, speed in enumerate(speeds) if speed > 0]
    return tuple(sorted(able, key=lambda kind: -speeds[kind]))
