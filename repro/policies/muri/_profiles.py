"""Stage profiles of jobs: who is interchangeable with whom, what merging groups is worth."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from repro.core.grouped import Group
from repro.matching.jobs import KindMatcher, best_pairs
from repro.perf.stages import RESOURCES, Interleaving, Stages
from repro.typing import Floats

#: Profiles of the members of a group, ascending: all that its period depends on.
Kind = tuple[int, ...]


class Profiles:
    """The stage times of every job, as the scheduler believes them (Muri, section 4.2).

    Jobs of equal stage times have one profile. With ``merged`` storage and CPU are one stage;
    ``collapse`` matches kinds of groups with their numbers instead of group by group.
    """

    def __init__(
        self,
        stages: Sequence[Stages],
        *,
        merged: bool,
        perf: Interleaving,
        max_group: int,
        collapse: bool,
    ) -> None:
        self._merged, self._perf = merged, perf
        self._max_group, self._collapse = max_group, collapse
        numbers: dict[Stages, int] = {}
        #: profile of each job
        self.of_job = [numbers.setdefault(times, len(numbers)) for times in stages]
        #: kind of each job alone
        self.alone: list[Kind] = [(number,) for number in self.of_job]
        self._stages = list(numbers)
        self._gamma: dict[Kind, float] = {}
        self._tables: dict[tuple[Kind, ...], Floats] = {}
        self._matchers: dict[tuple[Kind, ...], KindMatcher] = {}

    def best_period(self, jobs: Group) -> float:
        """Return the period of a group in its best order (s), whatever order it will run in."""
        group = [self._stages[self.of_job[job]] for job in jobs]
        return replace(self._perf, ordering="best").period(group, self._merged)

    def gamma(self, one: Kind, other: Kind) -> float:
        """Return the efficiency of merging two groups (Eq 4), 0 if they would be too large."""
        if len(one) + len(other) > self._max_group:
            return 0.0
        kind = tuple(sorted(one + other))
        found = self._gamma.get(kind)
        if found is None:
            group = [self._stages[number] for number in kind]
            period = self._perf.period(group, self._merged)
            found = self._gamma[kind] = sum(map(sum, group)) / (RESOURCES * period)
        return found

    def weights(self, present: tuple[Kind, ...]) -> Floats:
        """Return gamma of every pair of kinds, shape (kinds, kinds)."""
        if present not in self._tables:
            rows = [[self.gamma(one, other) for other in present] for one in present]
            self._tables[present] = np.array(rows).reshape(len(present), len(present))
        return self._tables[present]

    def repeats(self, kinds: int, nodes: int) -> bool:
        """Tell whether so many nodes of so many kinds are matched by kind."""
        return self._collapse and 2 * kinds <= nodes

    def matched(
        self, present: tuple[Kind, ...], counts: tuple[int, ...]
    ) -> Sequence[tuple[int, int, int]]:
        """Return a maximum-weight matching of ``counts`` nodes of each kind, ascending.

        As places a <= b in ``present``, and how many such pairs.
        """
        if not self.repeats(len(present), sum(counts)):
            index = np.repeat(np.arange(len(present)), counts)
            pairs = best_pairs(self.weights(present)[np.ix_(index, index)])
            found = Counter((int(index[a]), int(index[b])) for a, b in pairs)
            return [(a, b, number) for (a, b), number in sorted(found.items())]
        if present not in self._matchers:
            self._matchers[present] = KindMatcher(self.weights(present))
        return self._matchers[present].pairs(counts)
