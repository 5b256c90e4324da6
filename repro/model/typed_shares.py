"""`TypedShares`: the base of policies that share out time by kind of job and GPU type."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Floats, Ints
from repro.model.decision import Shares
from repro.model.share_policy import SharePolicy
from repro.model.view import View

T = TypeVar("T")

#: Of the row number of a job: what its kind has in common, steps per second, priority weight.
Key = Callable[[int], Hashable]
SpeedsOf = Callable[[int], Floats]
WeightOf = Callable[[int], float]


class Collapse:
    """Numbers jobs by kind; the order of kinds does not depend on the order of jobs.

    ``codes``, if given, has a number for every job of the run, equal where keys are.
    """

    def __init__(self, key: Key, codes: Ints | None = None) -> None:
        self._key = key
        #: by number, in the order in which kinds were first seen: key, and the first job of it
        self.keys: list[Any] = []
        self.examples: list[int] = []
        self._order: Ints = np.empty(0, dtype=np.int64)
        self._number: dict[Hashable, int] = {}
        self._of_job: Ints = np.full(64, -1)
        if codes is not None:
            _, first, found = np.unique(codes, return_index=True, return_inverse=True)
            self.examples = np.sort(first).tolist()
            self.keys = list(map(key, self.examples))
            self._of_job = np.argsort(np.argsort(first))[found]

    def numbers(self, jobs: Sequence[int] | Ints) -> Ints:
        """Return the number of the kind of each job; a key is asked for once per job."""
        rows = np.array(jobs, dtype=np.int64)
        try:
            numbers: Ints = self._of_job.take(rows)
        except IndexError:
            self._of_job = np.append(self._of_job, np.full(rows.max() + 1, -1))
            numbers = self._of_job.take(rows)
        if numbers.min(initial=0) < 0:
            for place in np.flatnonzero(numbers < 0).tolist():
                job = int(rows[place])
                key = self._key(job)
                number = self._number.setdefault(key, len(self.keys))
                if number == len(self.keys):
                    self.keys.append(key)
                    self.examples.append(job)
                numbers[place] = self._of_job[job] = number
        return numbers

    def present(self, jobs: Sequence[int] | Ints) -> tuple[Ints, Floats, Ints]:
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
    """Kinds of equal jobs at one decision: what a formula of shares is given."""

    speeds: Floats  #: steps per second of a job, shape (kinds, GPU types); 0 = cannot run there
    gpus: Floats  #: GPUs of each type
    counts: Floats  #: jobs of each kind
    widths: Floats  #: GPUs of each of these jobs
    weights: Floats  #: priority weight of each of them
    jobs: Sequence[int] = ()  #: row number of one job of each kind
    key: Callable[[int], Any] = int  #: row of a kind to what its jobs have in common
    view: View | None = field(default=None, repr=False)  #: the run, for `steps_left`

    @cached_property
    def equal_speeds(self) -> Floats:
        """Speed of a job of each kind that spends on each GPU type the type's share of all GPUs."""
        equal: Floats = self.speeds @ self.gpus / self.gpus.sum()
        return equal

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
        speeds = self.speeds[first]
        widths = self.widths[first]
        weights = self.weights[first]
        jobs = [self.jobs[place] for place in first]
        kinds = Kinds(
            speeds,
            self.gpus,
            counts,
            widths,
            weights,
            jobs,
            lambda kind: keys[first[kind]],
            self.view,
        )
        return kinds, row


class KindTable(Collapse):
    """The kinds of jobs of one run, with what a policy is told of them."""

    def __init__(self, policy: TypedShares, view: View, like: Key | None = None) -> None:
        plain = policy.key(view)
        if like is None:
            super().__init__(plain, policy.codes(view))
        else:
            super().__init__(lambda job: (plain(job), like(job)))
        self._view = view
        self._widths = np.empty(0)
        self._weights = np.empty(0)
        self._speeds_of = policy.speeds(view)
        self._weight_of = policy.weight(view)
        self._speeds = np.empty((0, len(view.gpu_types)))
        self.learn()

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
        """Look up what kinds are like that were not seen before."""
        new = self.examples[len(self._widths) :]
        if new:
            self._speeds = np.append(self._speeds, [self._speeds_of(job) for job in new], axis=0)
            self._widths = np.append(self._widths, list(map(self._view.gpus, new)))
            self._weights = np.append(self._weights, list(map(self._weight_of, new)))


class Solved(Generic[T]):
    """Answers by mix of kinds; those not asked for longest are forgotten beyond ``limit``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._solved: dict[tuple[bytes, bytes], T] = {}

    def __call__(self, numbers: Ints, counts: Floats, solve: Callable[[], T]) -> T:
        """Return the answer for these kinds and jobs of each, solved only if it is not known."""
        mix = (numbers.tobytes(), counts.tobytes())
        solved = self._solved
        solved[mix] = answer = solved.pop(mix) if mix in solved else solve()
        if len(solved) > self._limit:
            del solved[next(iter(solved))]
        return answer

    def clear(self) -> None:
        """Forget all."""
        self._solved.clear()


@dataclass(frozen=True)
class TypedShares(SharePolicy):
    """A policy that gives each kind of job a share of time on each GPU type (Gavel's X).

    A subclass writes `shares`, its formula. This base collects equal jobs into kinds, asks for the
    shares of a mix of kinds once and remembers them, and gives every job those of its kind. Jobs
    of a kind have model and gang size in common if `needs` names "throughput", else the gang size,
    and the weight if it names "priority_weight".

    Reference: Gavel, OSDI 2020, section 3.1 (allocation matrix X).

    Examples
    --------
    Every job on its fastest GPU type; a type that is asked for too often is divided equally.

    >>> @dataclass(frozen=True)
    ... class Fastest(TypedShares):
    ...     needs = frozenset({"throughput"})
    ...     def shares(self, kinds):
    ...         wanted = np.eye(len(kinds.gpus))[kinds.speeds.argmax(axis=1)]
    ...         asked = (kinds.counts * kinds.widths) @ wanted
    ...         return wanted * np.minimum(1, kinds.gpus / np.maximum(asked, 1))
    >>> from repro.testing import small_trace
    >>> from repro import simulate
    >>> simulate(small_trace(), "4xv100,4xk80", Fastest()).summary()["n_finished"]
    6
    """

    #: mixes of kinds whose shares are remembered
    remembered: ClassVar[int] = 4096

    def shares(self, kinds: Kinds) -> Floats | None:
        """Return the share of time of one job of each kind, shape (kinds, GPU types), in [0, 1].

        A row sums to at most 1. None, which ends the run, if there are no such shares.
        """
        raise PolicyError(f"policy {self.name!r} defines no `shares`")

    def formula(self, view: View) -> Callable[[Kinds], Floats | None]:
        """Return `shares` for one run; a policy that uses more of the run makes its own here."""
        return self.shares

    def apart(self) -> bool:
        """Tell whether every job is a row of its own, in order of arrival, solved anew each time.

        The default: if `needs` names "duration".
        """
        return "duration" in self.needs

    def key(self, view: View) -> Key:
        """Return what tells kinds apart, as a function of the row number of a job."""
        kind: Key = view.kind if "throughput" in self.needs else view.gpus
        if "priority_weight" not in self.needs:
            return kind
        weight = self.weight(view)
        return lambda job: (kind(job), weight(job))

    def codes(self, view: View) -> Ints | None:
        """Return a number for every job of the run, equal where `key` is; None: `key` is asked."""
        if type(self).key is not TypedShares.key:
            return None
        codes = view.kind_codes if "throughput" in self.needs else view.widths.astype(np.int64)
        if "priority_weight" in self.needs:
            weights = np.unique(view.column("priority_weight", 1.0), return_inverse=True)
            codes = codes * len(weights[0]) + weights[1]
        return codes

    def weight(self, view: View) -> WeightOf:
        """Return the priority weight of a job, 1 where `needs` does not name it."""
        if "priority_weight" not in self.needs:
            return lambda job: 1.0
        weights: list[float] = view.column("priority_weight", 1.0).astype(float).tolist()
        return weights.__getitem__

    def speeds(self, view: View) -> SpeedsOf:
        """Return the steps per second of a job on each GPU type, 1 where `needs` does not ask."""
        if "throughput" in self.needs:
            return view.speeds
        return lambda job: np.ones(len(view.gpu_types))

    def session(self, view: View) -> Callable[[View], Shares]:
        """Return the decision function of one run, which remembers solved mixes of kinds."""
        formula = self.formula(view)
        apart = self.apart()
        table = KindTable(self, view)
        solved = Solved[Floats](self.remembered)

        def checked(kinds: Kinds) -> Floats:
            shares = formula(kinds)
            if shares is None:
                jobs = f"{kinds.counts.sum():g} jobs"
                raise PolicyError(f"{self.name}: no shares for {jobs} were found")
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
            if apart:
                every = table.of(table.numbers(rows), np.ones(len(jobs)), jobs)
                return Shares(rows, types, checked(every))
            numbers, counts, row = table.present(rows)
            shares = solved(numbers, counts, lambda: checked(table.of(numbers, counts)))
            return Shares(rows, types, shares[row])

        return decide
