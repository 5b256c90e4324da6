"""`TypedShares`: the base of policies that share out time by kind of job and GPU type."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy
from repro.core.view import View
from repro.errors import PolicyError
from repro.typing import Floats, Ints

T = TypeVar("T")


class Collapse:
    """Numbers jobs by kind and lists the kinds present, in an order that no order of jobs changes.

    >>> collapse = Collapse(lambda job: ("b", "a", "b")[job])
    >>> numbers, counts, row = collapse.present([0, 1, 2])
    >>> [collapse.keys[number] for number in numbers], counts.tolist(), row.tolist()
    (['a', 'b'], [1.0, 2.0], [1, 0, 1])
    """

    def __init__(self, key: Callable[[int], Hashable]) -> None:
        self._key = key
        self._number: dict[Hashable, int] = {}
        #: by number, in the order in which kinds were first seen: key, and the first job of it
        self.keys: list[Any] = []
        self.examples: list[int] = []
        self._of_job: Ints = np.full(64, -1)
        self._order: Ints = np.empty(0, dtype=np.int64)

    def numbers(self, jobs: Sequence[int]) -> Ints:
        """Return the number of the kind of each job; a key is asked for once per job."""
        rows = np.array(jobs, dtype=np.int64)
        highest = int(rows.max(initial=-1))
        if highest >= len(self._of_job):
            self._of_job = np.append(self._of_job, np.full(highest + 1, -1))
        numbers: Ints = self._of_job[rows]
        for place in np.flatnonzero(numbers < 0).tolist():
            numbers[place] = self._of_job[rows[place]] = self._find(jobs[place])
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

    def _find(self, job: int) -> int:
        """Return the number of a job's kind, a new one if it was never seen."""
        key = self._key(job)
        number = self._number.setdefault(key, len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
            self.examples.append(job)
        return number


@dataclass(frozen=True)
class Kinds:
    """Kinds of equal jobs at one decision: all that a formula of shares is given.

    Parameters
    ----------
    speeds : ndarray, shape (kinds, GPU types)
        Steps per second of a job on each GPU type, 0 = cannot run there.
    gpus : ndarray, shape (GPU types,)
        GPUs of each type.
    counts, widths, weights : ndarray, shape (kinds,)
        Jobs of each kind, GPUs of each of these jobs, and its priority weight.
    keys : sequence
        What the jobs of each kind have in common, see `TypedShares.key`.
    jobs : sequence of int
        Row number of one job of each kind.
    view : View, optional
        The run, for `steps_left`.
    """

    speeds: Floats
    gpus: Floats
    counts: Floats
    widths: Floats
    weights: Floats
    keys: Sequence[Any] = ()
    jobs: Sequence[int] = ()
    view: View | None = field(default=None, repr=False)

    @cached_property
    def steps_left(self) -> Floats:
        """Training steps left of each of `jobs`; needs "duration"."""
        assert self.view is not None
        return self.view.steps_left(self.jobs)

    def name(self, row: int) -> str:
        """Return words for a kind, for messages."""
        return f"job kind {self.keys[row] if self.keys else row}"

    def merged(self, keys: Sequence[Hashable]) -> tuple[Kinds, Ints]:
        """Return kinds made of the rows with equal keys, and the kind of each row."""
        collapse = Collapse(keys.__getitem__)
        numbers, counts, row = collapse.present(range(len(keys)))
        first = np.array(collapse.examples)[numbers]
        jobs = [self.jobs[place] for place in first]
        speeds, widths, weights = self.speeds[first], self.widths[first], self.weights[first]
        names = [keys[place] for place in first]
        return Kinds(speeds, self.gpus, counts, widths, weights, names, jobs, self.view), row


class KindTable(Collapse):
    """The kinds of jobs of one run with what a policy sees of them: speeds, widths, weights."""

    def __init__(
        self, policy: TypedShares, view: View, key: Callable[[int], Hashable] | None = None
    ) -> None:
        super().__init__(key or policy.key(view))
        self._policy, self._view = policy, view
        weighs = "priority_weight" in policy.needs
        self._weight_of = view.column("priority_weight", 1.0).astype(float) if weighs else None
        self._widths, self._weights = np.empty(0), np.empty(0)
        self._speeds = np.empty((0, len(view.gpu_types)))

    def of(self, numbers: Ints, counts: Floats, jobs: Sequence[int] | None = None) -> Kinds:
        """Return kinds by number, with the first job seen of each unless others are given."""
        self.learn_new()
        if jobs is None:
            jobs = [self.examples[number] for number in numbers.tolist()]
        keys = [self.keys[number] for number in numbers.tolist()]
        known = self._speeds[numbers], self._view.gpu_counts, counts
        return Kinds(*known, self._widths[numbers], self._weights[numbers], keys, jobs, self._view)

    def learn_new(self) -> list[int]:
        """Look up what kinds are like that were never asked for; return their first jobs."""
        fresh = self.examples[len(self._widths) :]
        for job in fresh:
            weight = 1.0 if self._weight_of is None else self._weight_of[job]
            speeds = self._policy.job_speeds(self._view, job)
            self._widths = np.append(self._widths, self._view.gpus(job))
            self._weights = np.append(self._weights, weight)
            self._speeds = np.append(self._speeds, speeds[None, :], axis=0)
        return fresh


class Solved(Generic[T]):
    """Answers by mix of kinds; those not asked for longest are forgotten beyond ``limit``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._answers: dict[tuple[bytes, bytes], T] = {}

    def __call__(self, numbers: Ints, counts: Floats, solve: Callable[[], T]) -> T:
        """Return the answer for these kinds and jobs of each, solved only if it is not known."""
        mix = numbers.tobytes(), counts.tobytes()
        answer = self._answers.pop(mix) if mix in self._answers else solve()
        self._answers[mix] = answer
        if len(self._answers) > self._limit:
            del self._answers[next(iter(self._answers))]
        return answer

    def clear(self) -> None:
        """Forget all answers."""
        self._answers.clear()


@dataclass(frozen=True)
class TypedShares(Policy):
    """A policy that gives each kind of job a share of time on each GPU type (Gavel's X).

    A subclass writes `shares`, its formula. This base collects equal jobs into kinds, asks for the
    shares of a mix of kinds once and remembers them, and gives every job those of its kind. What
    kinds have in common is model and gang size where `needs` names "throughput", gang size
    alone otherwise, and the weight where it names "priority_weight".

    References
    ----------
    Gavel, OSDI 2020, section 3.1 (allocation matrix X).

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
    >>> simulate(small_trace(), "2xv100,2xk80", Fastest()).summary()["n_finished"]
    6
    """

    #: mixes of kinds whose shares are remembered
    remembered: ClassVar[int] = 4096

    def shares(self, kinds: Kinds) -> Floats | None:
        """Return the share of time of one job of each kind, shape (kinds, GPU types).

        Parameters
        ----------
        kinds : Kinds
            The kinds present, in an order that does not depend on the order of jobs.

        Returns
        -------
        ndarray or None
            In [0, 1], at most 1 in a row; None, which ends the run, if there are no such shares.
        """
        raise PolicyError(f"policy {self.name!r} defines no `shares`")

    def formula(self, view: View) -> Callable[[Kinds], Floats | None]:
        """Return `shares` for one run; a policy that uses more of the run makes its own here."""
        return self.shares

    def apart(self) -> bool:
        """Tell whether every job is a kind of its own, in order of arrival, solved anew each time.

        So it is by default for formulas of the progress of jobs ("duration").
        """
        return "duration" in self.needs

    def key(self, view: View) -> Callable[[int], Hashable]:
        """Return what tells kinds apart: a function of the row number of a job."""
        kind: Callable[[int], Hashable] = view.kind if "throughput" in self.needs else view.gpus
        if "priority_weight" not in self.needs:
            return kind
        weights = view.column("priority_weight", 1.0).astype(float).tolist()
        return lambda job: (kind(job), weights[job])

    def job_speeds(self, view: View, job: int) -> Floats:
        """Return the steps per second of a job on each GPU type, as the formula sees them."""
        known = "throughput" in self.needs
        return view.speeds(job) if known else np.ones(len(view.gpu_types))

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers solved mixes of kinds."""
        formula, table, apart = self.formula(view), KindTable(self, view), self.apart()
        solved: Solved[Floats] = Solved(self.remembered)

        def checked(kinds: Kinds) -> Floats:
            return self._checked(formula(kinds), kinds)

        def decide(view: View) -> Shares:
            jobs = view.jobs
            if not jobs:
                return Shares(jobs, view.gpu_types, np.zeros((0, len(view.gpu_types))))
            if apart:
                every = table.of(table.numbers(jobs), np.ones(len(jobs)), jobs)
                return Shares(jobs, view.gpu_types, checked(every))
            numbers, counts, row = table.present(jobs)
            shares = solved(numbers, counts, lambda: checked(table.of(numbers, counts)))
            return Shares(jobs, view.gpu_types, shares[row])

        return decide

    def _checked(self, shares: Floats | None, kinds: Kinds) -> Floats:
        """Return shares if there are any, one row per kind."""
        if shares is None:
            raise PolicyError(f"{self.name}: no shares for {kinds.counts.sum():g} jobs were found")
        if shares.shape != kinds.speeds.shape:
            raise PolicyError(
                f"{self.name}: `shares` returned an array of shape {shares.shape}; give one row "
                f"per kind and one column per GPU type, {kinds.speeds.shape}"
            )
        return shares
