"""`TypedShares`: base of policies that give each kind of job a share of each GPU type."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from repro.base.errors import PolicyError
from repro.base.outside import place_note
from repro.base.typing import Floats, Ints
from repro.model.decision import Shares
from repro.model.policy import is_latest_definition
from repro.model.share_policy import SharePolicy
from repro.model.view import View

T = TypeVar("T")

#: Functions of the row number of a job: key of its kind, throughput (steps/s), priority weight.
KeyOf = Callable[[int], Hashable]
SpeedsOf = Callable[[int], Floats]
WeightOf = Callable[[int], float]


class KindNumbers:
    """Gives each kind of job a number. Jobs of a kind have equal keys.

    `present` sorts the kinds by the text of their keys, so the order of the jobs has no effect.
    ``codes``, if given, has a number for each job of the run. Jobs with equal numbers have equal
    keys.
    """

    def __init__(self, key: KeyOf, codes: Ints | None = None) -> None:
        self._key = key
        #: key and first job of each kind, by number of the kind, in order of first appearance
        self.keys: list[Any] = []
        self.first_jobs: list[int] = []
        #: numbers of all kinds, sorted by the text of their keys
        self._sorted_numbers: Ints = np.empty(0, dtype=np.int64)
        self._number_of_key: dict[Hashable, int] = {}
        #: number of the kind of each job; -1: not known yet
        self._kind_of_job: Ints = np.full(64, -1)
        if codes is not None:
            _, first_jobs, code_ranks = np.unique(codes, return_index=True, return_inverse=True)
            self.first_jobs = np.sort(first_jobs).tolist()
            self.keys = list(map(key, self.first_jobs))
            # kinds are numbered in order of their first jobs
            number_of_code = np.argsort(np.argsort(first_jobs))
            self._kind_of_job = number_of_code[code_ranks]

    def numbers(self, jobs: Sequence[int] | Ints) -> Ints:
        """Kind of each job as a number, (jobs,). The key of a job is computed only once."""
        rows = np.array(jobs, dtype=np.int64)
        try:
            numbers: Ints = self._kind_of_job.take(rows)
        except IndexError:
            self._kind_of_job = np.append(self._kind_of_job, np.full(rows.max() + 1, -1))
            numbers = self._kind_of_job.take(rows)
        if numbers.min(initial=0) < 0:
            for index in np.flatnonzero(numbers < 0).tolist():
                job = int(rows[index])
                key = self._key(job)
                number = self._number_of_key.setdefault(key, len(self.keys))
                if number == len(self.keys):
                    self.keys.append(key)
                    self.first_jobs.append(job)
                self._kind_of_job[job] = number
                numbers[index] = number
        return numbers

    def present(self, jobs: Sequence[int] | Ints) -> tuple[Ints, Floats, Ints]:
        """Numbers of the kinds of ``jobs``, number of jobs of each kind, and row of each job.

        The first two arrays are (kinds,), and the third is (jobs,). The row of a job is the
        position of its kind in the first two.
        """
        numbers = self.numbers(jobs)
        if len(self._sorted_numbers) < len(self.keys):
            texts = list(map(repr, self.keys))
            self._sorted_numbers = np.array(sorted(range(len(texts)), key=texts.__getitem__))
        counts = np.bincount(numbers, minlength=len(self.keys))
        present = self._sorted_numbers[counts[self._sorted_numbers] > 0]
        row = np.empty(len(self.keys), dtype=np.int64)
        row[present] = np.arange(len(present))
        return present, counts[present].astype(float), row[numbers]


@dataclass
class Kinds:
    """Kinds of jobs at a decision, the argument of `TypedShares.shares`."""

    #: throughput of a job (steps/s), (kinds, GPU types); 0 if it cannot run there
    speeds: Floats
    #: GPUs of each type, (GPU types,)
    gpus: Floats
    #: number of jobs of each kind, (kinds,)
    counts: Floats
    #: demand of a job (GPUs), (kinds,)
    widths: Floats
    #: priority weight of a job, (kinds,)
    weights: Floats
    #: row number of a job of each kind
    jobs: Sequence[int] = ()
    #: maps the row of a kind to its key
    key: Callable[[int], Any] = int
    #: view of the run, for `work_left`
    view: View | None = field(default=None, repr=False)

    @cached_property
    def equal_speeds(self) -> Floats:
        """Throughput of each kind under an equal split of time over all GPUs, (kinds,) steps/s."""
        equal: Floats = self.speeds @ self.gpus / self.gpus.sum()
        return equal

    @cached_property
    def work_left(self) -> Floats:
        """Remaining work of `jobs`, (kinds,), as `View.work_left`; input "duration"."""
        assert self.view is not None
        return self.view.work_left(self.jobs)

    def name(self, row: int) -> str:
        """Name of a kind, for messages."""
        return f"job kind {self.key(row)}"

    def merged(self, keys: Sequence[Hashable]) -> tuple[Kinds, Ints]:
        """Kinds merged where ``keys`` are equal, and the new row of each old row."""
        by_key = KindNumbers(keys.__getitem__)
        numbers, _, row = by_key.present(range(len(keys)))
        first_rows = [by_key.first_jobs[number] for number in numbers.tolist()]
        kinds = Kinds(
            speeds=self.speeds[first_rows],
            gpus=self.gpus,
            counts=np.bincount(row, weights=self.counts).astype(float),
            widths=self.widths[first_rows],
            weights=self.weights[first_rows],
            jobs=[self.jobs[index] for index in first_rows],
            key=lambda kind: keys[first_rows[kind]],
            view=self.view,
        )
        return kinds, row


class KindTable(KindNumbers):
    """Kinds of jobs of one run, with their speeds, demands and weights.

    ``second_key``, if given, splits the kinds further: jobs of a kind are equal in both keys.
    """

    def __init__(self, policy: TypedShares, view: View, second_key: KeyOf | None = None) -> None:
        key = policy.key(view)
        if second_key is None:
            # a subclass may override the key or its parts without these numbers
            has_codes = is_latest_definition(policy, "codes", ("key", "weight"))
            super().__init__(key, policy.codes(view) if has_codes else None)
        else:
            super().__init__(lambda job: (key(job), second_key(job)))
        self._view = view
        self._widths = np.empty(0)
        self._weights = np.empty(0)
        self._speeds_of = policy.speeds(view)
        self._weight_of = policy.weight(view)
        self._speeds = np.empty((0, len(view.gpu_types)))
        self.add_new_kinds()

    def kinds(self, numbers: Ints, counts: Floats, jobs: Sequence[int] = ()) -> Kinds:
        """Kinds with these numbers. ``jobs`` are by default the first jobs of the kinds."""
        self.add_new_kinds()
        return Kinds(
            speeds=self._speeds.take(numbers, axis=0),
            gpus=self._view.gpu_counts,
            counts=counts,
            widths=self._widths.take(numbers),
            weights=self._weights.take(numbers),
            jobs=jobs or [self.first_jobs[number] for number in numbers.tolist()],
            key=lambda row: self.keys[numbers[row]],
            view=self._view,
        )

    def add_new_kinds(self) -> None:
        """Add speeds, demands and weights of new kinds."""
        new = self.first_jobs[len(self._widths) :]
        if new:
            self._speeds = np.append(self._speeds, [self._speeds_of(job) for job in new], axis=0)
            self._widths = np.append(self._widths, list(map(self._view.gpus, new)))
            self._weights = np.append(self._weights, list(map(self._weight_of, new)))


class SolutionCache(Generic[T]):
    """Cache of the ``limit`` most recently used solutions, by kinds and number of jobs of each."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._solved: dict[tuple[bytes, bytes], T] = {}

    def __call__(self, numbers: Ints, counts: Floats, solve: Callable[[], T]) -> T:
        """Solution for these kinds and counts; ``solve`` computes it if it is not cached."""
        key = (numbers.tobytes(), counts.tobytes())
        cache = self._solved
        solution = cache.pop(key) if key in cache else solve()
        # the most recently used solution is the last
        cache[key] = solution
        if len(cache) > self._limit:
            del cache[next(iter(cache))]
        return solution

    def clear(self) -> None:
        """Remove all solutions."""
        self._solved.clear()


@dataclass(frozen=True)
class TypedShares(SharePolicy):
    """A policy that gives each kind of job a share of time on each GPU type (X of Gavel).

    A subclass defines its formula, `shares`. The base collects equal jobs into kinds and caches
    shares by kinds and number of jobs of each. Every job gets the shares of its kind.

    Jobs of a kind have the same demand. If `needs` names "throughput", they also have the same
    model. If it names "priority_weight", they have the same weight.

    In its methods, ``view`` is the `View` of the run. ``kinds`` has the kinds present as arrays:
    ``counts`` (jobs of each kind) and ``widths`` (GPUs of a job), both (kinds,), ``speeds``
    (steps/s), (kinds, GPU types), and ``gpus`` of the cluster, (GPU types,).

    References
    ----------
    Gavel, OSDI 2020, section 3.1 (allocation matrix X).

    Examples
    --------
    Every job on its fastest GPU type. Jobs share a type equally if their demand exceeds its GPUs.

    >>> @dataclass(frozen=True)
    ... class Fastest(TypedShares):
    ...     needs = frozenset({"throughput"})
    ...     def shares(self, kinds):
    ...         fastest = np.eye(len(kinds.gpus))[kinds.speeds.argmax(axis=1)]
    ...         demand = (kinds.counts * kinds.widths) @ fastest
    ...         return fastest * np.minimum(1, kinds.gpus / np.maximum(demand, 1))
    >>> from repro.testing import small_trace
    >>> from repro import simulate
    >>> simulate(small_trace(), "4xv100,4xk80", Fastest()).summary()["n_finished"]
    6
    """

    #: largest number of solutions in the cache
    cache_size: ClassVar[int] = 4096

    def shares(self, kinds: Kinds) -> Floats | None:
        """Share of time of a job of each kind in [0, 1], (kinds, GPU types).

        A row sums to at most 1. If no feasible shares exist, the result is None, and the run ends
        with a PolicyError.
        """
        raise PolicyError(f"policy {self.name!r} defines no `shares`")

    def formula(self, view: View) -> Callable[[Kinds], Floats | None]:
        """`shares` as a function for one run. A policy that reads the view overrides it."""
        return self.shares

    def jobs_are_kinds(self) -> bool:
        """Whether every job is a kind of its own.

        The kinds are then in order of arrival, and their shares are not cached. By default this
        holds if `needs` has "duration".
        """
        return "duration" in self.needs

    def key(self, view: View) -> KeyOf:
        """Key of the kind of a job, as a function of its row number."""
        kind: KeyOf = view.kind if "throughput" in self.needs else view.gpus
        if "priority_weight" not in self.needs:
            return kind
        weight = self.weight(view)
        return lambda job: (kind(job), weight(job))

    def codes(self, view: View) -> Ints | None:
        """Kind of each job of the run as a number, (jobs,), or None.

        Jobs with equal numbers have equal keys. A subclass that overrides `key` or `weight`, but
        not this method, is asked for the keys alone.
        """
        codes = view.kind_codes if "throughput" in self.needs else view.widths.astype(np.int64)
        if "priority_weight" in self.needs:
            weights = np.unique(view.column("priority_weight", 1.0), return_inverse=True)
            codes = codes * len(weights[0]) + weights[1]
        return codes

    def weight(self, view: View) -> WeightOf:
        """Priority weight of a job, as a function of its row number; 1 unless `needs` names it."""
        if "priority_weight" not in self.needs:
            return lambda job: 1.0
        weights: list[float] = view.column("priority_weight", 1.0).astype(float).tolist()
        return weights.__getitem__

    def speeds(self, view: View) -> SpeedsOf:
        """Throughput of a job by GPU type (steps/s), as a function of its row number.

        It is 1 unless `needs` names "throughput".
        """
        if "throughput" in self.needs:
            return view.speeds
        return lambda job: np.ones(len(view.gpu_types))

    def session(self, view: View) -> Callable[[View], Shares]:
        """Decision function of one run, with a cache of shares."""
        formula = self.formula(view)
        jobs_are_kinds = self.jobs_are_kinds()
        table = KindTable(self, view)
        solved = SolutionCache[Floats](self.cache_size)

        def checked(kinds: Kinds) -> Floats:
            shares = formula(kinds)
            if shares is None:
                jobs = f"{kinds.counts.sum():g} jobs"
                raise PolicyError(
                    f"{self.name}: no feasible shares for {jobs}; relax the constraints of the "
                    f"policy"
                )
            try:
                # a list of lists is accepted, too
                shares = np.asarray(shares, dtype=float)
            except (TypeError, ValueError):
                raise PolicyError(
                    f"policy {self.name!r}: `shares` returned a {type(shares).__name__} that is no "
                    f"array of numbers{place_note(formula)}; give one row per kind and one column "
                    f"per GPU type, {kinds.speeds.shape}"
                ) from None
            if shares.shape != kinds.speeds.shape:
                raise PolicyError(
                    f"{self.name}: `shares` returned an array of shape {shares.shape}; give one "
                    f"row per kind and one column per GPU type, {kinds.speeds.shape}"
                )
            return shares

        def decide(view: View) -> Shares:
            jobs = view.jobs
            types = view.gpu_types
            if not jobs:
                return Shares(jobs, types, np.zeros((0, len(types))))
            rows = np.array(jobs)
            if jobs_are_kinds:
                single_jobs = table.kinds(table.numbers(rows), np.ones(len(jobs)), jobs)
                return Shares(rows, types, checked(single_jobs))
            numbers, counts, row = table.present(rows)
            shares = solved(numbers, counts, lambda: checked(table.kinds(numbers, counts)))
            return Shares(rows, types, shares[row])

        return decide
