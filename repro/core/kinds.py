"""Kinds of jobs: jobs that a policy cannot tell apart, numbered by one table for each run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from repro.core.view import View
from repro.typing import Floats, Ints

#: Of the row number of a job: what its kind has in common, steps per second, priority weight.
Key = Callable[[int], Hashable]
SpeedsOf = Callable[[int], Floats]
WeightOf = Callable[[int], float]


class Collapse:
    """Numbers jobs by kind; the order of kinds does not depend on the order of jobs."""

    def __init__(self, key: Key) -> None:
        self._key = key
        #: by number, in the order in which kinds were first seen: key, and the first job of it
        self.keys: list[Any] = []
        self.examples: list[int] = []
        self._number: dict[Hashable, int] = {}
        self._of_job: Ints = np.full(64, -1)
        self._order: Ints = np.empty(0, dtype=np.int64)

    def numbers(self, jobs: Sequence[int]) -> Ints:
        """Return the number of the kind of each job; a key is asked for once per job."""
        rows = np.array(jobs, dtype=np.int64)
        try:
            numbers: Ints = self._of_job.take(rows)
        except IndexError:
            self._of_job = np.append(self._of_job, np.full(rows.max() + 1, -1))
            numbers = self._of_job.take(rows)
        if numbers.min(initial=0) < 0:
            for place in np.flatnonzero(numbers < 0).tolist():
                key = self._key(jobs[place])
                number = self._number.setdefault(key, len(self.keys))
                if number == len(self.keys):
                    self.keys.append(key)
                    self.examples.append(jobs[place])
                numbers[place] = self._of_job[rows[place]] = number
        return numbers

    def present(self, jobs: Sequence[int]) -> tuple[Ints, Floats, Ints]:
        """Return the numbers of the kinds present, the jobs of each, and the row of each job."""
        numbers = self.numbers(jobs)
        if len(self._order) < len(self.keys):
            names = list(map(repr, self.keys))
            self._order = np.array(sorted(range(len(names)), key=names.__getitem__))
        counts = np.bincount(numbers, minlength=len(self.keys))
        found = self._order[counts[self._order] > 0]
        row = np.empty(len(self.keys), dtype=np.int64)
        row[found] = np.arange(len(found))
        return found, counts[found].astype(float), row[numbers]


@dataclass
class Kinds:
    """Kinds of equal jobs at one decision: what a formula of shares is given.

    Parameters
    ----------
    speeds : ndarray, shape (kinds, GPU types)
        Steps per second of a job on each GPU type, 0 = cannot run there.
    gpus : ndarray, shape (GPU types,)
        GPUs of each type.
    counts, widths, weights : ndarray, shape (kinds,)
        Jobs of each kind, GPUs of each of these jobs, and its priority weight.
    jobs : sequence of int
        Row number of one job of each kind.
    key : callable
        Row of a kind to what its jobs have in common, see `TypedShares.key`.
    view : View, optional
        The run, for `steps_left`.
    """

    speeds: Floats
    gpus: Floats
    counts: Floats
    widths: Floats
    weights: Floats
    jobs: Sequence[int] = ()
    key: Callable[[int], Any] = int
    view: View | None = field(default=None, repr=False)

    @cached_property
    def steps_left(self) -> Floats:
        """Training steps left of each of `jobs`; needs "duration"."""
        assert self.view is not None
        return self.view.steps_left(self.jobs)

    def name(self, row: int) -> str:
        """Return words for a kind, for messages."""
        return f"job kind {self.key(row)}"

    def merged(self, keys: Sequence[Hashable]) -> tuple[Kinds, Ints]:
        """Return kinds made of the rows with equal keys, and the kind of each row."""
        collapse = Collapse(keys.__getitem__)
        numbers, counts, row = collapse.present(range(len(keys)))
        first = [collapse.examples[number] for number in numbers.tolist()]
        speeds, widths, weights = self.speeds[first], self.widths[first], self.weights[first]
        jobs, key = [self.jobs[place] for place in first], lambda kind: keys[first[kind]]
        return Kinds(speeds, self.gpus, counts, widths, weights, jobs, key, self.view), row


class KindTable(Collapse):
    """The kinds of jobs of one run with what a policy sees of them: functions of a row number."""

    def __init__(self, view: View, key: Key, speeds: SpeedsOf, weight: WeightOf) -> None:
        super().__init__(key)
        self._view, self._speeds_of, self._weight_of = view, speeds, weight
        self._widths, self._weights = np.empty(0), np.empty(0)
        self._speeds = np.empty((0, len(view.gpu_types)))

    def of(self, numbers: Ints, counts: Floats, jobs: Sequence[int] = ()) -> Kinds:
        """Return kinds by number, with the first job seen of each unless others are given."""
        self.learn()
        return Kinds(
            self._speeds.take(numbers, axis=0),
            self._view.gpu_counts,
            counts,
            self._widths.take(numbers),
            self._weights.take(numbers),
            jobs or [self.examples[number] for number in numbers.tolist()],
            lambda row: self.keys[numbers[row]],
            self._view,
        )

    def learn(self) -> None:
        """Look up what kinds are like that were not asked for before."""
        for job in self.examples[len(self._widths) :]:
            self._speeds = np.append(self._speeds, self._speeds_of(job)[None, :], axis=0)
            self._widths = np.append(self._widths, self._view.gpus(job))
            self._weights = np.append(self._weights, self._weight_of(job))
