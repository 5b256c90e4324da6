"""Which jobs share GPUs without a programme: in order of arrival by gain, or drawn at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

import numpy as np

from repro.core.view import View
from repro.policies.gavel._queue import fastest_with_room
from repro.typing import Floats, Ints


def fifo_pairs(
    speeds: Sequence[Sequence[float]],
    widths: Sequence[int],
    gpus: Floats,
    gain: Callable[[int, int, int], float],
    worth: float = 1.5,
) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the jobs (job, -1) and pairs (job, job that joined it) that run, and their GPU types.

    Jobs are placed by `fastest_with_room`. From the first without room on, each joins the job alone
    on GPUs of its size with which it gains most, until one gains no more than ``worth``. ``gain``
    takes the waiting job, the one with GPUs and the column of their type.

    >>> fast = [1.0, 2.0]
    >>> fifo_pairs([fast] * 3, [1, 1, 1], np.ones(2), lambda a, b, column: 1.6 + 0.1 * b)
    ([(0, -1), (1, 2)], [1, 0])
    """
    place, waiting = fastest_with_room(speeds, widths, gpus)
    joined: dict[int, int] = {}
    for job in range(waiting, len(speeds)):
        best, host = worth, -1
        for other, column in place.items():
            if other not in joined and widths[other] == widths[job]:
                value = gain(job, other, column)
                if value > best:
                    best, host = value, other
        if host < 0:
            break
        joined[host] = job
    return [(job, joined.get(job, -1)) for job in place], list(place.values())


class RandomPairs:
    """Which jobs are packed with which, and the draws that decide it.

    Pairs whose gain (two jobs to their throughput together over that alone, summed; 0 where they
    cannot share) is below ``worth`` are dissolved.
    """

    def __init__(self, seed: int, gain: Callable[[int, int], float], worth: float = 1.0) -> None:
        self._draws = random.Random(seed)
        self._gain, self._worth = gain, worth
        self._mate: dict[int, int] = {}
        #: jobs whose gain beside their mate was found good enough
        self._good: set[int] = set()

    def update(self, jobs: list[int], widths: list[int], gpus: int) -> list[tuple[int, int]]:
        """Return (job, -1) for jobs alone and (job, job) for pairs, after dissolving and drawing.

        ``widths`` are the gang sizes of ``jobs``; all are alone while they fit.
        """
        present = set(jobs)
        mate, good = self._mate, self._good
        for job, other in list(mate.items()):
            stay = job in present and other in present
            if stay and job not in good and self._gain(job, other) >= self._worth:
                good.add(job)
            if not stay or job not in good:
                good.discard(job)
                del mate[job]
        if sum(widths) <= gpus:
            return [(job, -1) for job in jobs]
        width = dict(zip(jobs, widths, strict=True))
        loose = [job for job in jobs if job not in mate]
        for _ in range(len(loose)):
            if len(loose) < 2:
                break
            one, other = self._draws.sample(loose, 2)
            if width[one] != width[other]:
                continue
            loose.remove(one)
            loose.remove(other)
            mate[one], mate[other] = other, one
        return [(job, mate.get(job, -1)) for job in jobs if job < mate.get(job, job + 1)]


def pair_gains(view: View) -> Callable[[int, int], float]:
    """Return the gain of two jobs over all GPU types, remembered by what kinds they are."""
    gains: dict[Hashable, float] = {}

    def gain(one: int, other: int) -> float:
        pair = view.kind(one), view.kind(other)
        if pair not in gains:
            together = view.pair_speeds(one, other)
            alone = np.stack([view.speeds(one), view.speeds(other)])
            gains[pair] = float((together / alone).sum()) if (together > 0).all() else 0.0
        return gains[pair]

    return gain


def other_pairs(jobs: list[int], widths: list[int], members: list[tuple[int, int]]) -> Ints:
    """Return all pairs of jobs of one width but those of ``members``, shape (pairs, 2)."""
    mate = dict(members)
    job, width = np.array(jobs, dtype=np.int64), np.array(widths)
    other = np.array([mate.get(one, -1) for one in jobs], dtype=np.int64)
    one, two = _upper(len(jobs))
    kept = (width[one] == width[two]) & (other[one] != job[two])
    return np.stack([job[one[kept]], job[two[kept]]], axis=1)


@lru_cache(maxsize=64)
def _upper(size: int) -> tuple[Ints, ...]:
    """Return the places above the diagonal, row by row."""
    return np.triu_indices(size, 1)
