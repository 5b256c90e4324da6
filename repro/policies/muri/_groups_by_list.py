"""Muri's groups as its simulator forms them: lists of nodes, matched round by round."""

from collections.abc import Mapping, Sequence

import numpy as np

from repro.core.grouped import Group
from repro.matching.jobs import best_pairs, first_pairs
from repro.policies.muri._profiles import Kind, Profiles

#: A group and its kind.
Node = tuple[Group, Kind]

#: Up to this many nodes are matched one by one: among equal totals the solver then finds, along the
#: list, what that of the simulator would (nearly). More are matched by kind.
NODE_BY_NODE = 32


class GroupsByList:
    """Merge candidates in order of priority until the groups fit; buckets map widths to them."""

    def __init__(self, profiles: Profiles, max_group: int, rounds: int) -> None:
        self._profiles, self._max_group, self._rounds = profiles, max_group, rounds
        #: whom each node was merged with at the last decision, and at this one
        self._mates: dict[Group, Group] = {}
        self._merged_now: dict[Group, Group] = {}

    def match(self, buckets: Mapping[int, list[int]], gpus: int) -> dict[int, list[Group]]:
        """Return the groups of each bucket; merging ends when they need no more than ``gpus``."""
        alone = self._profiles.alone
        nodes: dict[int, list[Node]] = {
            width: [((job,), alone[job]) for job in jobs] for width, jobs in buckets.items()
        }
        lack = sum(width * len(jobs) for width, jobs in buckets.items()) - gpus
        self._mates, self._merged_now = self._merged_now, {}
        for _ in range(self._rounds):
            before = lack
            for width in buckets:
                if lack > 0:
                    nodes[width], lack = self._merged(nodes[width], width, lack)
            if lack == before:
                break
        return {width: [group for group, _ in line] for width, line in nodes.items()}

    def _merged(self, line: list[Node], width: int, lack: int) -> tuple[list[Node], int]:
        """Merge matched nodes of one bucket while GPUs lack; return how many still do, too."""
        partner = self._partners(line)
        merged: list[Node] = []
        for place, (group, kind) in enumerate(line):
            other = partner.get(place)
            if other is None:
                merged.append((group, kind))
            elif other < place:
                # a pair stands where its later node does
                mate, its = line[other]
                if lack > 0:
                    self._merged_now[mate] = group
                    merged.append((mate + group, tuple(sorted(its + kind))))
                    lack -= width
                else:
                    merged += (line[other], line[place])
        return merged, lack

    def _partners(self, line: Sequence[Node]) -> dict[int, int]:
        """Return the partner of each matched node, by place in the bucket's list."""
        places: dict[Kind, list[int]] = {}
        for place, (_, kind) in enumerate(line):
            places.setdefault(kind, []).append(place)
        present = tuple(sorted(places))
        small = len(line) <= NODE_BY_NODE
        if small or not self._profiles.repeats(len(present), len(line)):
            rows = {kind: row for row, kind in enumerate(present)}
            index = [rows[kind] for _, kind in line]
            table = self._profiles.weights(present)[np.ix_(index, index)]
            pairs = first_pairs(table) if small else best_pairs(table)
            return {a: b for one, other in pairs for a, b in ((one, other), (other, one))}
        wanted = self._profiles.matched(present, tuple(len(places[kind]) for kind in present))
        # of equal nodes those merged last time are merged again, then the others by priority
        partner: dict[int, int] = {}
        place_of = {group: place for place, (group, _) in enumerate(line)}
        row_of = {place: row for row, kind in enumerate(present) for place in places[kind]}
        left = {(a, b): number for a, b, number in wanted}
        for one, place in place_of.items():
            other = place_of.get(self._mates.get(one, ()))
            if other is not None:
                a, b = row_of[place], row_of[other]
                pair = (a, b) if a <= b else (b, a)
                if left.get(pair, 0):
                    left[pair] -= 1
                    partner[place], partner[other] = other, place
        queues = [iter([p for p in places[kind] if p not in partner]) for kind in present]
        for (a, b), number in left.items():
            for _ in range(number):
                one_place, other_place = next(queues[a]), next(queues[b])
                partner[one_place], partner[other_place] = other_place, one_place
        return partner

    def blocks(self, buckets: Mapping[int, list[int]], gpus: int) -> dict[int, list[Group]]:
        """Return groups of neighbours in the order of priority, merged while GPUs lack."""
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
