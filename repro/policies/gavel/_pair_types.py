"""Speeds of the job types of one run, alone and in pairs, gathered as types appear."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from repro.core.view import View
from repro.optimise.pairs.programme import Array, Ints


@dataclass(frozen=True)
class Mix:
    """The job types present, in an order that the order of jobs does not affect.

    Parameters
    ----------
    keys : tuple
        One per type.
    numbers : ndarray of int, shape (types,)
        Types in the order in which the run met them.
    counts, widths : ndarray, shape (types,)
        Jobs of the type, and GPUs of each of them.
    place : ndarray of int, shape (jobs,)
        Type of each job.
    speeds : ndarray, shape (types, GPU types)
        Steps per second alone.
    all_paired : ndarray, shape (all types, all types, GPU types)
        As ``paired``, by number; learning changes it.
    """

    keys: tuple[Any, ...]
    numbers: Ints
    counts: Array
    widths: Array
    place: Ints
    speeds: Array
    all_paired: Array

    @property
    def paired(self) -> Array:
        """Steps per second of a job of type a that shares its GPUs with one of b, at ``[a, b]``."""
        return self.all_paired[self.numbers[:, None], self.numbers]

    @property
    def signature(self) -> tuple[bytes, bytes]:
        """What decides the shares of types within one run."""
        return self.numbers.tobytes(), self.counts.tobytes()


class PairTypes:
    """Groups jobs by a key and knows the speeds of all types seen so far.

    Parameters
    ----------
    view : View
        The run; the policy needs "throughput".
    key : callable
        Row number of a job to a hashable key; jobs of one key have one `View.kind`.
    pair : callable, optional
        Two row numbers to what is believed of their speeds on the same GPUs, shape (2, GPU types);
        the truth by default.
    """

    def __init__(
        self,
        view: View,
        key: Callable[[int], Hashable],
        pair: Callable[[int, int], Array] | None = None,
    ) -> None:
        self._view, self._key, self._pair = view, key, pair or view.pair_speeds
        self._number: dict[Hashable, int] = {}
        self._keys: list[Any] = []
        self._names: list[str] = []
        self._examples: list[int] = []
        kinds = len(view.gpu_types)
        self._speeds, self._paired = np.empty((0, kinds)), np.empty((0, 0, kinds))
        #: type of each job, -1 = not asked for yet; place of each type in the order of all
        self._of_job = np.full(64, -1)
        self._rank = np.empty(0, dtype=np.int64)

    def mix(self, jobs: Sequence[int]) -> Mix:
        """Return the types of these jobs with their speeds."""
        rows = np.array(jobs, dtype=np.int64)
        most = int(rows.max(initial=-1))
        if most >= len(self._of_job):
            more = np.full(2 * most - len(self._of_job), -1)
            self._of_job = np.concatenate([self._of_job, more])
        numbers = self._of_job[rows]
        for n in np.flatnonzero(numbers < 0).tolist():
            numbers[n] = self._of_job[rows[n]] = self._find(jobs[n])
        if len(self._keys) > len(self._speeds):
            self._grow()
        counts = np.bincount(numbers, minlength=len(self._keys))
        present = np.flatnonzero(counts)
        present = present[np.argsort(self._rank[present])]
        place = np.zeros(len(self._keys), dtype=np.int64)
        place[present] = np.arange(len(present))
        return Mix(
            tuple([self._keys[n] for n in present.tolist()]),
            present,
            counts[present].astype(float),
            self._widths[present],
            place[numbers],
            self._speeds[present],
            self._paired,
        )

    def learn(self, one: int, other: int) -> bool:
        """Ask again for the speeds of two jobs on the same GPUs; tell whether they changed."""
        a, b = self.number(one), self.number(other)
        if max(a, b) >= len(self._speeds):
            return False
        found = self._pair(one, other)
        before = self._paired[a, b].copy(), self._paired[b, a].copy()
        self._paired[a, b], self._paired[b, a] = found
        return not (np.array_equal(before[0], found[0]) and np.array_equal(before[1], found[1]))

    def number(self, job: int) -> int:
        """Return the number of the type of a job, in the order in which types appeared."""
        known = self._of_job.item(job) if job < len(self._of_job) else -1
        return known if known >= 0 else self._find(job)

    def _find(self, job: int) -> int:
        key = self._key(job)
        number = self._number.get(key)
        if number is None:
            number = self._number[key] = len(self._keys)
            self._keys.append(key)
            self._examples.append(job)
        return number

    def _grow(self) -> None:
        known, size = len(self._speeds), len(self._keys)
        view, examples = self._view, self._examples
        fresh = [view.speeds(job) for job in examples[known:]]
        paired = np.zeros((size, size, self._speeds.shape[1]))
        paired[:known, :known] = self._paired
        for b in range(known, size):
            for a in range(b + 1):
                paired[a, b], paired[b, a] = self._pair(examples[a], examples[b])
        self._speeds = np.concatenate([self._speeds, np.array(fresh)])
        self._widths = np.array([view.gpus(example) for example in examples], dtype=float)
        self._paired = paired
        self._rank = np.empty(size, dtype=np.int64)
        self._names += [repr(key) for key in self._keys[known:]]
        self._rank[sorted(range(size), key=self._names.__getitem__)] = np.arange(size)
