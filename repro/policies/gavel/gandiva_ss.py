"""Gandiva-style packing: random pairs share GPUs while more are asked for than there are."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.optimise.pairs.programme import Array
from repro.optimise.pairs.rows import Rows


class Groupings:
    """Which jobs are packed with which, and the draws that decide it.

    Parameters
    ----------
    seed : int
        Seed of the draws.
    gain : callable
        Throughput of two jobs relative to running alone, summed over members and GPU types; 0 if
        one of them cannot run on some type.
    worth : float
        Pairs with less gain are dissolved.
    """

    def __init__(self, seed: int, gain: Callable[[int, int], float], worth: float = 1.0) -> None:
        self._draws = random.Random(seed)
        self._gain, self._worth = gain, worth
        self._mate: dict[int, int] = {}
        #: jobs whose gain beside their mate was found good enough
        self._good: set[int] = set()

    def update(self, jobs: list[int], widths: list[int], gpus: int) -> list[tuple[int, int]]:
        """Return (job, -1) for jobs alone and (job, job) for pairs, after dissolving and drawing.

        All are alone while they fit.

        Parameters
        ----------
        jobs : list of int
            Unfinished jobs in order of arrival.
        widths : list of int
            Gang size of each.
        gpus : int
            GPUs of the cluster.
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


def equal_time(widths: Array, capacity: Array) -> Array:
    """Return the shares of combinations that each get as much of every GPU type.

    Parameters
    ----------
    widths : ndarray, shape (combinations,)
        Gang sizes.
    capacity : ndarray, shape (GPU types,)
        GPUs of each type.

    Examples
    --------
    >>> equal_time(np.array([1.0, 2.0]), np.array([1.0, 1.0])).tolist()
    [[0.5, 0.5], [0.25, 0.25]]
    """
    shares = capacity / (len(widths) * widths[:, None])
    fair: Array = shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True))
    return fair


@lru_cache(maxsize=64)
def _upper(size: int) -> tuple[npt.NDArray[np.int64], ...]:
    """Return the places above the diagonal, row by row."""
    return np.triu_indices(size, 1)


def _other_pairs(
    jobs: list[int], widths: list[int], members: list[tuple[int, int]]
) -> npt.NDArray[np.int64]:
    """Return all pairs of jobs of one width but those of ``members``, shape (pairs, 2)."""
    mate = dict(members)
    job, width = np.array(jobs, dtype=np.int64), np.array(widths)
    other = np.array([mate.get(one, -1) for one in jobs], dtype=np.int64)
    one, two = _upper(len(jobs))
    kept = (width[one] == width[two]) & (other[one] != job[two])
    return np.stack([job[one[kept]], job[two[kept]]], axis=1)


@register("gandiva-ss")
@dataclass(frozen=True)
class GandivaSS(Policy):
    """Pack random pairs of jobs of equal gang size; time is divided equally, whatever the GPU type.

    Pairs last until a member leaves or together they are slower than one alone. While all jobs find
    GPUs of their own each has its own, and the pairs are only remembered.

    Parameters
    ----------
    worth : float
        Least gain of a pair, see `Groupings`.
    any_pair : bool, optional
        Any two jobs, not only each alone, may take GPUs that are left over, as in the public
        simulator; a row per pair of jobs. Default: under Gavel's rules.

    References
    ----------
    Gavel, OSDI 2020, section 7.1 (LAS with Gandiva-style space sharing); Gandiva, OSDI 2018.

    Examples
    --------
    >>> GandivaSS().worth
    1.0
    """

    worth: float = 1.0
    any_pair: bool | None = None

    rule_values: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"any_pair": False},
        "gavel": {"any_pair": True},
    }
    needs: ClassVar[frozenset[str]] = frozenset({"throughput"})

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs_up", bool(self.any_pair))

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers the pairs."""
        capacity = np.asarray(view.gpu_counts, dtype=float)
        kinds: dict[int, object] = {}
        gains: dict[object, float] = {}

        def gain(one: int, other: int) -> float:
            pair = kinds[one], kinds[other]
            if pair not in gains:
                together = view.pair_speeds(one, other)
                alone = np.stack([view.speeds(one), view.speeds(other)])
                gains[pair] = float((together / alone).sum()) if (together > 0).all() else 0.0
            return gains[pair]

        groups = Groupings(view.seed, gain, self.worth)

        def decide(view: View) -> Shares:
            jobs = view.jobs
            if not jobs:
                return Shares((), view.gpu_types, np.zeros((0, len(capacity))))
            kinds.update((job, view.kind(job)) for job in jobs if job not in kinds)
            widths = [view.gpus(job) for job in jobs]
            members = groups.update(jobs, widths, int(capacity.sum()))
            wide = np.array([view.gpus(job) for job, _ in members], dtype=float)
            shares = equal_time(wide, capacity)
            # who is packed may still run alone on GPUs that are left over
            packed = [(job, -1) for pair in members if pair[1] >= 0 for job in pair]
            rows = np.array(members + packed, dtype=np.int64)
            if self.any_pair:
                rows = np.concatenate([rows, _other_pairs(jobs, widths, members)])
            shares = np.concatenate([shares, np.zeros((len(rows) - len(members), len(capacity)))])
            return Rows(rows, shares).shares(view.gpu_types)

        return decide
