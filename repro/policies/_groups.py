"""Muri's groups: rounds of maximum-weight matching inside buckets of equal GPU count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from repro.perf.interleaving import Interleaving
from repro.perf.stages import Stages
from repro.policies._matching import best_pairs
from repro.policies._type_matching import TypeMatcher

Group = tuple[int, ...]
#: Profiles of the members of a node, ascending: all that its weight depends on.
Kind = tuple[int, ...]

#: Resources of the cluster: storage, CPU, GPU, network.
RESOURCES = 4


class Grouping:
    """Merges candidates into groups until they fit the cluster.

    Parameters
    ----------
    stages : sequence of tuple of float
        Stage times the scheduler believes in (s per iteration), by row number.
    merged : bool
        They are data (storage and CPU), GPU and network; otherwise one per resource.
    perf : Interleaving
        Period of a group.
    max_group : int
        Most jobs in a group.
    rounds : int
        Rounds of matching.
    best_first : bool
        While GPUs lack, the most efficient pairs are merged first; otherwise those first in the
        bucket's list.
    collapse : bool
        Match kinds of nodes with their numbers instead of node by node.

    References
    ----------
    Muri, SIGCOMM 2022, section 4.2, Algorithm 1.
    """

    def __init__(
        self,
        stages: Sequence[Stages],
        *,
        merged: bool,
        perf: Interleaving,
        max_group: int,
        rounds: int,
        best_first: bool,
        collapse: bool,
    ) -> None:
        self._merged, self._perf = merged, perf
        self._max_group, self._rounds = max_group, rounds
        self._best_first, self._collapse = best_first, collapse
        numbers: dict[Stages, int] = {}
        #: profile of each job: jobs with equal stage times are interchangeable
        self.profile = [numbers.setdefault(times, len(numbers)) for times in stages]
        self._stages = list(numbers)
        self._single: list[Kind] = [(number,) for number in self.profile]
        self._gamma: dict[Kind, float] = {}
        self._matchers: dict[tuple[Kind, ...], TypeMatcher] = {}
        #: whom each node was merged with at the last decision, and at this one
        self._mates: dict[Group, Group] = {}
        self._merged_now: dict[Group, Group] = {}

    def best_period(self, jobs: Group) -> float:
        """Return the period of a group in its best order (s), whatever order it will run in."""
        group = [self._stages[self.profile[job]] for job in jobs]
        return replace(self._perf, ordering="best").period(group, self._merged)

    def gamma(self, one: Kind, other: Kind) -> float:
        """Return the efficiency of merging two nodes, 0 if the group would be too large."""
        if len(one) + len(other) > self._max_group:
            return 0.0
        kind = tuple(sorted(one + other))
        found = self._gamma.get(kind)
        if found is None:
            group = [self._stages[number] for number in kind]
            period = self._perf.period(group, self._merged)
            found = self._gamma[kind] = sum(map(sum, group)) / (RESOURCES * period)
        return found

    def match(self, buckets: Mapping[int, list[int]], gpus: int) -> dict[int, list[Group]]:
        """Return the groups of each bucket.

        Parameters
        ----------
        buckets : mapping of int to list of int
            GPU count to candidates, best first; buckets in order of priority.
        gpus : int
            GPUs of the cluster; merging ends when the groups need no more.
        """
        single = self._single
        groups = {width: [(job,) for job in jobs] for width, jobs in buckets.items()}
        lack = sum(width * len(jobs) for width, jobs in buckets.items()) - gpus
        self._mates, self._merged_now = self._merged_now, {}
        if lack <= 0:
            return groups
        kinds = {width: [single[job] for job in jobs] for width, jobs in buckets.items()}
        for _ in range(self._rounds):
            before = lack
            for width in buckets:
                if lack <= 0:
                    return groups
                lack = self._merge(width, groups, kinds, lack)
            if lack == before:
                break
        return groups

    def _merge(
        self,
        width: int,
        groups: dict[int, list[Group]],
        kinds: dict[int, list[Kind]],
        lack: int,
    ) -> int:
        """Merge matched nodes of one bucket while GPUs lack; return how many still do."""
        nodes, types = groups[width], kinds[width]
        partner = self._partners(nodes, types)
        if not partner:
            return lack
        allowed = -(-lack // width)
        if self._best_first and 2 * allowed < len(partner):
            partner = self._most_efficient(types, partner, allowed)
        merged: list[Group] = []
        merged_types: list[Kind] = []
        for place, node in enumerate(nodes):
            other = partner.get(place)
            if other is None:
                merged.append(node)
                merged_types.append(types[place])
            elif other < place:
                # a pair sits where its later node is
                if lack > 0:
                    self._merged_now[nodes[other]] = node
                    merged.append(nodes[other] + node)
                    merged_types.append(tuple(sorted(types[other] + types[place])))
                    lack -= width
                else:
                    merged += (nodes[other], node)
                    merged_types += (types[other], types[place])
        groups[width], kinds[width] = merged, merged_types
        return lack

    def _most_efficient(
        self, types: Sequence[Kind], partner: Mapping[int, int], number: int
    ) -> dict[int, int]:
        pairs = [(other, place) for place, other in partner.items() if other < place]
        pairs.sort(key=lambda pair: (-self.gamma(types[pair[0]], types[pair[1]]), pair[1]))
        return {a: b for one, other in pairs[:number] for a, b in ((one, other), (other, one))}

    def _partners(self, nodes: Sequence[Group], types: Sequence[Kind]) -> dict[int, int]:
        """Return the partner of each matched node, by place in the bucket's list."""
        places: dict[Kind, list[int]] = {}
        for place, kind in enumerate(types):
            places.setdefault(kind, []).append(place)
        present = tuple(sorted(places))
        if not self._collapse or 2 * len(present) > len(types):
            table = self._weights(present)
            rows = {kind: row for row, kind in enumerate(present)}
            index = [rows[kind] for kind in types]
            pairs = best_pairs(table[np.ix_(index, index)])
            return {a: b for one, other in pairs for a, b in ((one, other), (other, one))}
        matcher = self._matchers.get(present)
        if matcher is None:
            matcher = self._matchers[present] = TypeMatcher(self._weights(present))
        wanted = matcher.pairs(tuple(len(places[kind]) for kind in present))
        return self._realised(nodes, [places[kind] for kind in present], wanted)

    def _realised(
        self,
        nodes: Sequence[Group],
        places: Sequence[list[int]],
        wanted: Iterable[tuple[int, int, int]],
    ) -> dict[int, int]:
        """Choose the nodes: those merged last time again, then the others by priority."""
        partner: dict[int, int] = {}
        place_of = {node: place for place, node in enumerate(nodes)}
        row_of = {place: row for row, line in enumerate(places) for place in line}
        left = {(a, b): number for a, b, number in wanted}
        for one, place in place_of.items():
            other = place_of.get(self._mates.get(one, ()))
            if other is not None:
                a, b = row_of[place], row_of[other]
                pair = (a, b) if a <= b else (b, a)
                if left.get(pair, 0):
                    left[pair] -= 1
                    partner[place], partner[other] = other, place
        queues = [iter([place for place in line if place not in partner]) for line in places]
        # jobs of a kind are taken in order of priority, pairs of kinds in a fixed order
        for (a, b), number in left.items():
            for _ in range(number):
                one_place, other_place = next(queues[a]), next(queues[b])
                partner[one_place], partner[other_place] = other_place, one_place
        return partner

    def _weights(self, present: Sequence[Kind]) -> npt.NDArray[np.float64]:
        table = np.zeros((len(present), len(present)))
        for row, one in enumerate(present):
            for column in range(row, len(present)):
                table[row, column] = table[column, row] = self.gamma(one, present[column])
        return table

    def blocks(self, buckets: Mapping[int, list[int]], gpus: int) -> dict[int, list[Group]]:
        """Return groups of neighbours in the order of priority, merged while GPUs lack.

        Parameters
        ----------
        buckets, gpus
            As for `match`.
        """
        lack = sum(width * len(jobs) for width, jobs in buckets.items()) - gpus
        groups: dict[int, list[Group]] = {}
        for width, jobs in buckets.items():
            found = groups[width] = []
            for begin in range(0, len(jobs), self._max_group):
                block = jobs[begin : begin + self._max_group]
                joined = max(0, min(len(block) - 1, -(-lack // width)))
                lack -= width * joined
                found += [(job,) for job in block[joined + 1 :]]
                found.append(tuple(block[: joined + 1]))
        return groups
