"""`TypedShares`: the base of policies that share out time by kind of job and GPU type."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.kinds import Key, Kinds, KindTable, SpeedsOf, WeightOf
from repro.core.policy import Policy
from repro.core.view import View
from repro.errors import PolicyError
from repro.typing import Floats, Ints

T = TypeVar("T")


class Solved(dict[tuple[bytes, bytes], T]):
    """Answers by mix of kinds; those not asked for longest are forgotten beyond ``limit``."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __call__(self, numbers: Ints, counts: Floats, solve: Callable[[], T]) -> T:
        """Return the answer for these kinds and jobs of each, solved only if it is not known."""
        mix = numbers.tobytes(), counts.tobytes()
        self[mix] = answer = self.pop(mix) if mix in self else solve()
        if len(self) > self._limit:
            del self[next(iter(self))]
        return answer


@dataclass(frozen=True)
class TypedShares(Policy):
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

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers solved mixes of kinds."""
        formula, apart = self.formula(view), self.apart()
        table = KindTable(view, self.key(view), self.speeds(view), self.weight(view))
        solved: Solved[Floats] = Solved(self.remembered)

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
            jobs, types = view.jobs, view.gpu_types
            if not jobs:
                return Shares(jobs, types, np.zeros((0, len(types))))
            if apart:
                every = table.of(table.numbers(jobs), np.ones(len(jobs)), jobs)
                return Shares(jobs, types, checked(every))
            numbers, counts, row = table.present(jobs)
            shares = solved(numbers, counts, lambda: checked(table.of(numbers, counts)))
            return Shares(jobs, types, shares[row])

        return decide
