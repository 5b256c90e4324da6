"""Gandiva-style packing: random pairs share GPUs while more are asked for than there are."""

import random
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np

from repro.base.typing import Ints
from repro.model.decision import Decision, Shares
from repro.model.policy import register
from repro.model.settings import AtLeast
from repro.model.share_policy import SharePolicy
from repro.model.view import View
from repro.policies.gavel.isolated import isolated_shares


@register("gandiva-ss")
@dataclass(frozen=True)
class GandivaSS(SharePolicy):
    """Pack random pairs of jobs of equal gang size; time is divided equally, whatever the GPU type.

    Pairs last until a member leaves or together they are slower than one alone. While all jobs find
    GPUs of their own each has its own, and the pairs are only remembered.

    Parameters
    ----------
    worth : float
        Least gain of a pair: both jobs' throughput relative to running alone, summed over the GPU
        types.
    any_pair : bool, optional
        Any two jobs, not only each alone, may take GPUs that are left over, as in the public
        simulator; a row per pair of jobs. Default: under Gavel's rules.
    stream : int
        Which draw of pairs on the same trace; 0 is that of the public simulator.

    Reference: Gavel, OSDI 2020, section 7.1; Gandiva, OSDI 2018.
    """

    worth: Annotated[float, AtLeast(0)] = 1.0
    any_pair: bool | None = None
    stream: int = 0

    rule_values: ClassVar = {"paper": {"any_pair": False}, "gavel": {"any_pair": True}}
    needs = frozenset({"throughput"})

    @property
    def pairs_up(self) -> bool:
        """Whether any two jobs of one gang size may share GPUs."""
        return bool(self.any_pair)

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers the pairs."""
        gpus = np.asarray(view.gpu_counts, dtype=float)
        kinds: dict[int, Hashable] = {}
        pairs = RandomPairs(view.seed + self.stream, pair_gains(view, kinds), self.worth)

        def decide(view: View) -> Shares:
            jobs = view.jobs
            width = {job: view.gpus(job) for job in jobs}
            kinds.update((job, view.kind(job)) for job in jobs if job not in kinds)
            members = pairs.update(jobs, list(width.values()), int(gpus.sum()))
            wide = np.array([width[job] for job, _ in members], dtype=float)
            # who is packed may still run alone on GPUs that are left over
            packed = [(job, -1) for pair in members if pair[1] >= 0 for job in pair]
            rows = np.array(members + packed, dtype=np.int64)
            if self.any_pair:
                rows = np.concatenate([rows, other_pairs(jobs, list(width.values()), members)])
            shares = np.zeros((len(rows), len(gpus)))
            shares[: len(members)] = isolated_shares(wide, gpus)
            return Shares(rows, view.gpu_types, shares)

        return decide


class RandomPairs:
    """Which jobs are packed with which, and the draws that decide it.

    Pairs whose gain (two jobs to their throughput together over that alone, summed; 0 where they
    cannot share) is below ``worth`` are dissolved.
    """

    def __init__(self, seed: int, gain: Callable[[int, int], float], worth: float = 1.0) -> None:
        self._draws = random.Random(seed)
        self._gain = gain
        self._worth = worth
        self._mate: dict[int, int] = {}
        #: jobs whose gain beside their mate was found good enough
        self._good: set[int] = set()

    def update(self, jobs: list[int], widths: list[int], gpus: int) -> list[tuple[int, int]]:
        """Return (job, -1) for jobs alone and (job, job) for pairs, after dissolving and drawing.

        ``widths`` are the gang sizes of ``jobs``; all are alone while they fit.
        """
        present = set(jobs)
        mate = self._mate
        good = self._good
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
            mate[one] = other
            mate[other] = one
        return [(job, mate.get(job, -1)) for job in jobs if job < mate.get(job, job + 1)]


def pair_gains(view: View, kinds: Mapping[int, Hashable]) -> Callable[[int, int], float]:
    """Return the gain of two jobs over all GPU types, remembered by their kinds."""
    gains: dict[Hashable, float] = {}

    def gain(one: int, other: int) -> float:
        pair = kinds[one], kinds[other]
        if pair not in gains:
            together = view.pair_speeds(one, other)
            alone = np.stack([view.speeds(one), view.speeds(other)])
            gains[pair] = float((together / alone).sum()) if (together > 0).all() else 0.0
        return gains[pair]

    return gain


def other_pairs(jobs: list[int], widths: list[int], members: list[tuple[int, int]]) -> Ints:
    """Return all pairs of jobs of one width but those of ``members``, shape (pairs, 2)."""
    mate = dict(members)
    job = np.array(jobs, dtype=np.int64)
    width = np.array(widths)
    other = np.array([mate.get(one, -1) for one in jobs], dtype=np.int64)
    one, two = _upper(len(jobs))
    kept = (width[one] == width[two]) & (other[one] != job[two])
    return np.stack([job[one[kept]], job[two[kept]]], axis=1)


@lru_cache(maxsize=64)
def _upper(size: int) -> tuple[Ints, ...]:
    """Return the places above the diagonal, row by row."""
    return np.triu_indices(size, 1)
