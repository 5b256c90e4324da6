"""Who of a queue gets which GPU type, and the shares of jobs that have all their time on one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from repro.core.kinds import Kinds
from repro.typing import Floats


def fastest_with_room(
    speeds: Iterable[Sequence[float]], widths: Iterable[float], gpus: Floats
) -> tuple[dict[int, int], int]:
    """Place jobs in order on the fastest GPU type with room, until one finds no room at all.

    Returns the column of each job's type, and the number of the job that found no room (as many
    as there are if all did). A job that cannot run where there is room waits and is passed.

    >>> fastest_with_room([[1.0, 2.0]] * 3, [1, 1, 1], np.ones(2))
    ({0: 1, 1: 0}, 2)
    """
    free = gpus.tolist()
    place: dict[int, int] = {}
    job = -1
    for job, (speed, width) in enumerate(zip(speeds, widths, strict=True)):
        if width > max(free):
            return place, job
        for column in _fastest_first(tuple(speed)):
            if free[column] >= width:
                place[job] = column
                free[column] -= width
                break
    return place, job + 1


@lru_cache(maxsize=4096)
def _fastest_first(speeds: tuple[float, ...]) -> tuple[int, ...]:
    """Return the GPU types on which a job can run; of equal ones the first comes first."""
    able = [column for column, speed in enumerate(speeds) if speed > 0]
    return tuple(sorted(able, key=lambda column: -speeds[column]))


def whole_time(jobs: Kinds, place: Mapping[int, int]) -> Floats:
    """Return X of jobs that have all their time on one GPU type, less where it is given too much.

    ``place`` maps the row of a job to the column of its type; a row of ``jobs`` is one job.
    """
    shares, placed = np.zeros(jobs.speeds.shape), len(place)
    shares[np.fromiter(place, int, placed), np.fromiter(place.values(), int, placed)] = 1.0
    asked = jobs.widths @ shares
    fitted: Floats = shares * np.minimum(1.0, jobs.gpus / np.maximum(asked, 1e-300))
    return fitted


def remaining_s(left: Floats, speeds: Floats) -> Floats:
    """Return the seconds left of each row on each GPU type, infinite where it cannot run."""
    able = speeds > 0
    return np.where(able, left[:, None] / np.where(able, speeds, 1.0), np.inf)
