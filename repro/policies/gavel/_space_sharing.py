"""`SpaceSharing`: the base of share policies whose jobs may run in pairs on the same GPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.typed_shares import Kinds, KindTable, Solved, TypedShares
from repro.core.view import View
from repro.errors import PolicyError
from repro.optimise.pairs.programme import KindShares
from repro.optimise.pairs.rows import Rows, spread_evenly
from repro.policies.gavel._estimated_pairs import EstimatedPairs
from repro.typing import Floats, Ints


class PairTable(KindTable):
    """A `KindTable` that also has the speeds of two kinds on the same GPUs, or estimates of them.

    With estimates, jobs that resemble unlike reference models are of different kinds.
    """

    def __init__(
        self, policy: TypedShares, view: View, estimates: EstimatedPairs | None = None
    ) -> None:
        key = policy.key(view)
        if estimates:
            like = estimates.likeness
            super().__init__(policy, view, lambda job: (key(job), like(job)))
        else:
            super().__init__(policy, view, key)
        self._estimates = estimates
        self._pair = estimates.speeds if estimates else view.pair_speeds
        self._paired = np.empty((0, 0, len(view.gpu_types)))
        self._seen: set[tuple[int, int, str | None]] = set()

    def paired(self, numbers: Ints) -> Floats:
        """Return steps per second of a job of kind a that shares its GPUs with one of b, at [a, b].

        Shape (kinds, kinds, GPU types).
        """
        self.learn_new()
        found: Floats = self._paired[numbers[:, None], numbers]
        return found

    def learn_new(self) -> list[int]:
        """Look up new kinds, alone and beside all others."""
        fresh = super().learn_new()
        known, size = len(self._paired), len(self.keys)
        if size > known:
            paired = np.zeros((size, size, self._paired.shape[2]))
            paired[:known, :known] = self._paired
            for b in range(known, size):
                for a in range(b + 1):
                    paired[a, b], paired[b, a] = self._pair(self.examples[a], self.examples[b])
            self._paired = paired
        return fresh

    def observe(self, one: int, other: int, gpu_type: str | None) -> bool:
        """Note that two jobs have shared GPUs; tell whether that changed the speeds of pairs."""
        a, b = self.numbers([one, other]).tolist()
        if not self._estimates or (a, b, gpu_type) in self._seen:
            return False
        self._seen.add((a, b, gpu_type))
        if not self._estimates.observe(one, other, gpu_type) or max(a, b) >= len(self._paired):
            return False
        before = self._paired[[a, b], [b, a]]
        self._paired[a, b], self._paired[b, a] = self._pair(one, other)
        return not np.array_equal(before, self._paired[[a, b], [b, a]])


@dataclass(frozen=True)
class SpaceSharing(TypedShares):
    """A policy that gives kinds of jobs, and pairs of kinds, a share of time on each GPU type.

    A subclass writes `pair_shares`, its formula, and `rows` if not all pairs of two kinds' jobs
    are to have the same time.
    """

    pairs_up: ClassVar[bool] = True
    remembered: ClassVar[int] = 256

    def pair_shares(self, kinds: Kinds, paired: Floats) -> KindShares:
        """Return the time of kinds and of pairs of kinds; ``paired`` as `PairTable.paired`."""
        raise PolicyError(f"policy {self.name!r} defines no `pair_shares`")

    def estimates(self, view: View) -> EstimatedPairs | None:
        """Return the estimates of one run; None: the speeds of pairs are known."""
        return None

    def rows(self, jobs: Ints, row: Ints, counts: Floats, given: KindShares) -> Rows:
        """Return the shares of jobs and pairs of jobs, given the kind of each job and its count."""
        return spread_evenly(jobs, row, counts, given)

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers solved mixes of kinds."""
        table = PairTable(self, view, self.estimates(view))
        solved: Solved[KindShares] = Solved(self.remembered)

        def decide(view: View) -> Shares:
            changed = [table.observe(*seen) for seen in view.together]
            if any(changed):
                solved.clear()
            jobs = view.jobs
            numbers, counts, row = table.present(jobs)

            def solve() -> KindShares:
                return self.pair_shares(table.of(numbers, counts), table.paired(numbers))

            given = solved(numbers, counts, solve)
            return self.rows(np.array(jobs), row, counts, given).shares(view.gpu_types)

        return decide
