"""Maximum-weight matchings of the groups of a bucket, with the efficiencies as weights.

Muri, SIGCOMM 2022, Algorithm 1, section 4.2 (Blossom). Groups of one kind have equal weights to all
others. A matching is therefore a number of pairs for every two kinds (`repro.solve.matching`).

Ties: among matchings of equal weight, `Matchings.counts` takes the fixed choice of the solver.
`Matchings.partners` takes the first optimum that the solver finds for up to 32 groups. If more
groups are matched by kind, pairs of the last decision come first, then groups in list order. If
they are matched group by group, near neighbours in the list are paired.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from repro.policies.muri._grouping.profiles import Kind, Merge, Profiles
from repro.solve.matching import (
    RESOLUTION,
    KindMatcher,
    any_best_pairs,
    below_diagonal,
    best_pairs,
    counted_pairs,
)

#: Kinds of groups, in list order.
Kinds = tuple[Kind, ...]

#: Up to this many groups are matched one by one. Among matchings of equal weight the solver then
#: usually finds that of the public simulator. More groups are matched by kind.
MAX_ONE_BY_ONE = 32
#: Largest number of matchings in a cache.
_CACHE_SIZE = 1 << 14


class Matchings:
    """Matchings of groups by kind, each solved once.

    With ``collapse``, a matching whose kinds have two groups or more on average is solved as
    numbers of pairs of kinds. All other matchings are solved group by group, and so are `partners`
    of up to `MAX_ONE_BY_ONE` groups.
    """

    def __init__(self, profiles: Profiles, *, collapse: bool) -> None:
        self._profiles = profiles
        self._collapse = collapse
        #: row of each kind in the table of weights
        self._row_of: defaultdict[Kind, int] = defaultdict(itertools.count().__next__)
        #: weight of every two kinds in units of `RESOLUTION`, (rows, rows); -1: not computed
        self._weights = np.full((64, 64), -1)
        self._matchers: dict[Kinds, KindMatcher] = {}
        #: kinds, ascending, and their numbers of groups -> numbers of pairs
        self._counts: dict[tuple[Kinds, tuple[int, ...]], dict[Merge, int]] = {}
        #: kinds in list order -> partner of each position
        self._partners: dict[Kinds, list[int]] = {}

    def counts(self, buckets: Sequence[Mapping[Kind, int]]) -> list[dict[Merge, int]]:
        """Count the pairs of each merge. A bucket maps each kind to its number of groups."""
        if len(self._counts) > _CACHE_SIZE:
            self._counts.clear()
        kind_sets = [tuple(sorted(groups)) for groups in buckets]
        keys = [
            (kinds, tuple(map(groups.__getitem__, kinds)))
            for kinds, groups in zip(kind_sets, buckets, strict=True)
        ]
        new_keys = [key for key in keys if key not in self._counts]
        self._profiles.compute_merges(kinds for kinds, _ in new_keys if kinds not in self._matchers)
        merges = self._profiles.merges
        for kinds, numbers in new_keys:
            # A matching by kind is faster only if a kind has two groups or more on average.
            if not self._collapse or 2 * len(kinds) > sum(numbers):
                pairs = counted_pairs(self._profiles.weights(kinds), numbers)
            else:
                if kinds not in self._matchers:
                    self._matchers[kinds] = KindMatcher(self._profiles.weights(kinds))
                pairs = self._matchers[kinds].pairs(numbers)
            by_merge = {merges[kinds[a]][kinds[b]]: number for a, b, number in pairs}
            self._counts[kinds, numbers] = by_merge
        return [self._counts[key] for key in keys]

    def partners(self, kinds: Kinds, repeated: Sequence[tuple[int, int]]) -> list[int]:
        """Partner of each position in a list of groups. An unmatched position is its own partner.

        ``repeated`` has the pairs of positions that were merged at the last decision.
        """
        is_short = len(kinds) <= MAX_ONE_BY_ONE
        if self._collapse and not is_short and 2 * len(set(kinds)) <= len(kinds):
            return self._partners_by_kind(kinds, repeated)
        partner = self._partners.get(kinds)
        if partner is None:
            if len(self._partners) > _CACHE_SIZE:
                self._partners.clear()
            if is_short:
                pairs = self._first_pairs(kinds)
            else:
                pairs = best_pairs(self._profiles.weights(kinds))
            partner = list(range(len(kinds)))
            for position, other in pairs:
                partner[position] = other
                partner[other] = position
            self._partners[kinds] = partner
        return partner

    def _first_pairs(self, kinds: Kinds) -> list[tuple[int, int]]:
        """Pairs of positions in the first optimum that the solver finds."""
        rows = np.array([*map(self._row_of.__getitem__, kinds)])
        if len(self._row_of) > len(self._weights):
            self._weights = np.pad(self._weights, (0, len(self._weights)), constant_values=-1)
        later, earlier = below_diagonal(len(kinds))
        weights = self._weights[rows[later], rows[earlier]]
        if weights.min(initial=0) < 0:
            self._profiles.compute_merges([kinds])
            merges = self._profiles.merges
            new = np.flatnonzero(weights < 0)
            pairs = zip(later[new].tolist(), earlier[new].tolist(), strict=True)
            gamma = np.array([merges[kinds[a]][kinds[b]][0] for a, b in pairs])
            weights[new] = np.rint(gamma / RESOLUTION)
            self._weights[rows[later[new]], rows[earlier[new]]] = weights[new]
            self._weights[rows[earlier[new]], rows[later[new]]] = weights[new]
        return any_best_pairs(len(kinds), weights)

    def _partners_by_kind(self, kinds: Kinds, repeated: Sequence[tuple[int, int]]) -> list[int]:
        """Partners of a matching that is solved as numbers of pairs of kinds."""
        group_counts = Counter(kinds)
        unassigned = self.counts([group_counts])[0].copy()
        merges = self._profiles.merges
        partner = list(range(len(kinds)))
        for position, other in repeated:
            merge = merges[kinds[position]][kinds[other]]
            if unassigned.get(merge):
                unassigned[merge] -= 1
                partner[position] = other
                partner[other] = position
        # Unmatched positions by kind, the earliest last.
        stacks: dict[Kind, list[int]] = {kind: [] for kind in group_counts}
        for position in reversed(range(len(kinds))):
            if partner[position] == position:
                stacks[kinds[position]].append(position)
        for (_, kind, other_kind, _), number in unassigned.items():
            for _ in range(number):
                position = stacks[kind].pop()
                other = stacks[other_kind].pop()
                partner[position] = other
                partner[other] = position
        return partner
