"""Gandiva-style packing: random pairs of jobs share GPUs (baseline of Gavel, section 7.1).

This rule solves no programme. While the jobs ask for more GPUs than the cluster has, random pairs
of jobs of equal demand (scale_factor) are formed. T_mj is the throughput of job m alone on GPU type
j, and T^m_(m,l)j its throughput there while it shares the GPUs with job l. A pair (m, l) is
dissolved when one of its jobs ends, or when its gain is below ``worth``:

    gain = sum_j (T^m_(m,l)j / T_mj + T^l_(m,l)j / T_lj)

If the pair cannot run on some GPU type, its gain is 0. A combination k is a pair, or a job without
a partner. K combinations divide the cluster equally, as K jobs do in X^isolated:

    X_kj = num_workers_j / (K scale_factor_k)

A row of X whose sum exceeds 1 is divided by its sum.

Ties: the seed of the run and ``stream`` decide the pairs. Combinations of equal demand have equal
shares.
"""

import math
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
    """Let random pairs of jobs of equal demand share GPUs, with equal time on every GPU type.

    While all jobs fit the cluster, every job runs alone. The formed pairs are kept, and share GPUs
    again once the jobs no longer fit.

    Parameters
    ----------
    worth : float
        Least gain of a pair: the sum, over its two jobs and all GPU types, of the throughput in the
        pair divided by the throughput alone.
    any_pair : bool, optional
        Whether any two jobs of equal demand may take GPUs that are left over, as in the public
        simulator. False: only the formed pairs and single jobs may. Default: true under Gavel's
        rules, false under the paper's.
    stream : int
        Number of the random stream; other streams form other pairs on the same trace. 0 is the
        stream of the public simulator.

    Reference: Gavel, OSDI 2020, section 7.1; Gandiva, OSDI 2018.
    """

    worth: Annotated[float, AtLeast(0)] = 1.0
    any_pair: bool | None = None
    stream: int = 0

    rule_values: ClassVar = {"paper": {"any_pair": False}, "gavel": {"any_pair": True}}
    needs = frozenset({"throughput"})
    weighs_types = False

    @property
    def pairs_up(self) -> bool:
        """Whether any two jobs of equal demand may share GPUs, not only the formed pairs."""
        return bool(self.any_pair)

    def session(self, view: View) -> Callable[[View], Decision]:
        """Decision function of one simulation, which keeps the pairs."""
        gpus = np.asarray(view.gpu_counts, dtype=float)
        kind_of_job: dict[int, Hashable] = {}
        gain = pair_gain(view, kind_of_job)
        pairs = RandomPairs(view.seed + self.stream, gain, self.worth)

        def decide(view: View) -> Shares:
            jobs = view.jobs
            widths = [view.gpus(job) for job in jobs]
            width_of_job = dict(zip(jobs, widths, strict=True))
            kind_of_job.update((job, view.kind(job)) for job in jobs if job not in kind_of_job)
            combinations = pairs.update(jobs, widths, int(gpus.sum()))
            combination_widths = np.array(
                [width_of_job[job] for job, _ in combinations], dtype=float
            )
            # A member of a pair may also run alone on GPUs that are left over.
            members_alone = [(job, -1) for pair in combinations if pair[1] >= 0 for job in pair]
            rows = np.array(combinations + members_alone, dtype=np.int64)
            if self.any_pair:
                rows = np.concatenate([rows, other_pairs(jobs, widths, combinations)])
            shares = np.zeros((len(rows), len(gpus)))
            shares[: len(combinations)] = isolated_shares(combination_widths, gpus)
            return Shares(rows, view.gpu_types, shares)

        return decide


class RandomPairs:
    """Pairs of jobs in one simulation of `GandivaSS`, and the random stream that forms them.

    Parameters
    ----------
    seed : int
        Seed of the random stream.
    gain : callable
        Gain of a pair of jobs.
    least_gain : float
        A pair of smaller gain is dissolved.
    """

    def __init__(
        self, seed: int, gain: Callable[[int, int], float], least_gain: float = 1.0
    ) -> None:
        self._rng = random.Random(seed)
        self._gain = gain
        self._least_gain = least_gain
        self._partner: dict[int, int] = {}
        #: jobs whose gain with their partner is large enough
        self._confirmed: set[int] = set()

    def update(self, jobs: list[int], widths: list[int], gpus: int) -> list[tuple[int, int]]:
        """Dissolve pairs, form new ones, and list all combinations.

        Parameters
        ----------
        jobs : list of int
            Unfinished jobs.
        widths : list of int
            GPUs of each job.
        gpus : int
            GPUs of the cluster. All jobs run alone while their demands fit.

        Returns
        -------
        list of tuple of int
            (job, -1) for a job alone, (job, later job) for a pair.
        """
        unfinished = set(jobs)
        partner = self._partner
        confirmed = self._confirmed
        for job, other in list(partner.items()):
            both_unfinished = job in unfinished and other in unfinished
            if both_unfinished and (job in confirmed or self._gains_enough(job, other)):
                confirmed.add(job)
            else:
                confirmed.discard(job)
                del partner[job]
        if sum(widths) <= gpus:
            return [(job, -1) for job in jobs]
        width_of_job = dict(zip(jobs, widths, strict=True))
        single = [job for job in jobs if job not in partner]
        for _ in range(len(single)):
            if len(single) < 2:
                break
            first, second = self._rng.sample(single, 2)
            if width_of_job[first] != width_of_job[second]:
                continue
            single.remove(first)
            single.remove(second)
            partner[first] = second
            partner[second] = first
        return [(job, partner.get(job, -1)) for job in jobs if job < partner.get(job, job + 1)]

    def _gains_enough(self, job: int, other: int) -> bool:
        """Whether a pair is kept."""
        return self._gain(job, other) >= self._least_gain


def pair_gain(view: View, kind_of_job: Mapping[int, Hashable]) -> Callable[[int, int], float]:
    """Gain of a pair as a function of its two jobs, computed once for each pair of kinds."""
    gains: dict[Hashable, float] = {}

    def gain(first: int, second: int) -> float:
        kinds = kind_of_job[first], kind_of_job[second]
        if kinds not in gains:
            together = view.pair_speeds(first, second)
            alone = np.stack([view.speeds(first), view.speeds(second)])
            can_share = bool((together > 0).all())
            # The exact sum, rounded once, is the same whichever job is first.
            gains[kinds] = math.fsum((together / alone).flat) if can_share else 0.0
        return gains[kinds]

    return gain


def other_pairs(jobs: list[int], widths: list[int], combinations: list[tuple[int, int]]) -> Ints:
    """Pairs of jobs of equal demand that are not in ``combinations``, shape (pairs, 2)."""
    partner_of_job = dict(combinations)
    rows = np.array(jobs, dtype=np.int64)
    width = np.array(widths)
    partner = np.array([partner_of_job.get(job, -1) for job in jobs], dtype=np.int64)
    first, second = _upper_triangle(len(jobs))
    selected = (width[first] == width[second]) & (partner[first] != rows[second])
    return np.stack([rows[first[selected]], rows[second[selected]]], axis=1)


@lru_cache(maxsize=64)
def _upper_triangle(size: int) -> tuple[Ints, ...]:
    """Row and column of each entry above the diagonal, row by row."""
    return np.triu_indices(size, 1)
