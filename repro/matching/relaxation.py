"""Bases of the relaxed matching of kinds, and the exact step from each to whole numbers."""

# The relaxation lets the number of pairs of two kinds be a fraction. A basis is one tight pair, or
# idle place, per kind; those in reach of the dual simplex method here have no negative reduced
# cost, so a basis is optimal for all counts that it serves with numbers of pairs of 0 or more. Idle
# nodes count as pairs with one more kind, *nobody*. The basic pairs join the kinds into components:
# a tree that hangs on nobody serves any counts with whole numbers; every other component has one
# odd cycle and gives halves when it holds an odd number of nodes.
#
# Gomory's relaxation then asks for the cheapest non-basic pairs that make all components even and
# lets basic pairs fall below zero. Such a pair changes the parity of the two components it joins,
# so the answer is a shortest set of paths between the odd components, by way of nobody if need be.
# If no basic pair falls below zero the result is an optimal matching, and that is a proof.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from repro.matching.jobs import RESOLUTION, heaviest_pairs
from repro.typing import Flags, Floats, Ints

Pair = tuple[int, int]

#: Products of the values stay below 2**63.
_VALUE_BITS = 58
#: Bonuses shorter than this would often be equal.
_BONUS_BITS = 8
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


@lru_cache(maxsize=4096)
def _hash64(a: int, b: int) -> int:
    """Return 64 well-mixed bits of a pair of kinds (the finaliser of splitmix64)."""
    z = ((a << 32 | b) + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * _MIX[0] % 2**64
    z = (z ^ z >> 27) * _MIX[1] % 2**64
    return z ^ z >> 31


@dataclass(frozen=True, eq=False)
class PairValues:
    """Which kinds may be paired and at what value; the last row is *nobody*, of value 0."""

    value: Ints  #: symmetric, shape (kinds + 1, kinds + 1)
    allowed: Flags  #: upper triangle, idle nodes (paired with nobody) included

    @property
    def kinds(self) -> int:
        """Number of kinds, which is also the index of nobody."""
        return len(self.value) - 1

    def among(self, present: list[int]) -> PairValues:
        """Return the same values of some of the kinds (ascending), numbered anew."""
        kept = np.ix_([*present, self.kinds], [*present, self.kinds])
        return PairValues(self.value[kept], self.allowed[kept])


def pair_values(weights: Floats) -> PairValues:
    """Return values in the order of the weights (upper triangle); a bonus, a hash, settles ties."""
    kinds = len(weights)
    if weights.shape != (kinds, kinds) or not np.isfinite(weights).all():
        raise ValueError(f"weights of shape {weights.shape} are not a square of finite numbers")
    whole = np.rint(np.triu(weights) / RESOLUTION)
    largest = int(whole.max(initial=1))
    # Two matchings that differ by one augmentation differ in at most 4 t pairs, so bonuses
    # below 1/(4 t) of a unit never outweigh a unit of weight.
    headroom = (4 * kinds).bit_length()
    bonus_bits = min(32, _VALUE_BITS - largest.bit_length() - headroom)
    if bonus_bits < _BONUS_BITS:
        raise ValueError(f"weight {weights.max():g} is too large; weights up to 1000 are accepted")
    allowed = np.zeros((kinds + 1, kinds + 1), bool)
    allowed[:kinds, :kinds] = whole > 0
    allowed[:kinds, kinds] = True
    value = np.zeros((kinds + 1, kinds + 1), np.int64)
    for a, b in np.argwhere(whole > 0).tolist():
        bonus = _hash64(a, b) >> (64 - bonus_bits)
        value[a, b] = value[b, a] = (int(whole[a, b]) << bonus_bits + headroom) + bonus
    return PairValues(value, allowed)


class Basis:
    """One basis without negative reduced cost; neighbours and whole-number steps are kept.

    ``ends`` are the basic pairs, ascending, the lower kind first; ``inverse`` is twice the inverse
    of the basis, a row for each of them: ``inverse @ counts`` is twice the number of each pair.
    """

    def __init__(self, values: PairValues, ends: Sequence[Pair], inverse: Floats) -> None:
        self.values = values
        order = sorted(range(len(ends)), key=ends.__getitem__)
        self.ends = tuple(ends[row] for row in order)
        self.inverse = inverse[order]
        rows, columns = np.array(self.ends).T
        prices = values.value[rows, columns] @ self.inverse.astype(np.int64)
        self._prices = np.append(prices, 0)
        labels = self._components()
        self._labels = labels
        # row of each odd component: its kinds
        self.members = (labels[:-1] == np.arange(labels[-1])[:, None]).astype(np.float64)
        self._next: dict[int, Basis | None] = {}
        self._steps: dict[bytes, tuple[Floats, list[Pair]]] = {}
        self._paths: tuple[Ints, Ints, Ints] | None = None

    def _components(self) -> Ints:
        """Return the component of each kind and of nobody, which has the highest number."""
        nobody = self.values.kinds
        root = list(range(nobody + 1))

        def find(a: int) -> int:
            while root[a] != a:
                a = root[a]
            return a

        for a, b in self.ends:
            root[find(a)] = find(b)
        roots = [find(a) for a in range(nobody + 1)]
        number = {r: i for i, r in enumerate(r for r in dict.fromkeys(roots) if r != roots[-1])}
        number[roots[-1]] = len(number)
        return np.array([number[r] for r in roots])

    def _costs(self) -> Ints:
        """Return twice the reduced cost of every pair."""
        costs: Ints = self._prices[:, None] + self._prices - 2 * self.values.value
        return costs

    def neighbour(self, row: int, bases: dict[tuple[Pair, ...], Basis]) -> Basis | None:
        """Dual simplex pivot: drop the pair in ``row``, below 0; None where no pair can replace it.

        ``bases`` holds all bases met so far, by their pairs; a new one is added.
        """
        if row in self._next:
            return self._next[row]
        line = np.append(self.inverse[row], 0)
        rates = line[:, None] + line
        enters = self.values.allowed & (rates < 0)
        if not enters.any():
            self._next[row] = None
            return None
        a, b = np.nonzero(enters)
        # rates are -1, -2 or -4: compare the quotients as whole numbers
        quotients = self._costs()[a, b] * (-4 // rates[a, b]).astype(np.int64)
        best = int(quotients.argmin())
        pair = int(a[best]), int(b[best])
        ends = (*self.ends[:row], pair, *self.ends[row + 1 :])
        name = tuple(sorted(ends))
        if name not in bases:
            column = self._column(pair)
            inverse = self.inverse - np.outer(column, self.inverse[row] / column[row])
            inverse[row] = 2 * self.inverse[row] / column[row]
            bases[name] = Basis(self.values, ends, inverse)
        self._next[row] = bases[name]
        return bases[name]

    def _column(self, pair: Pair) -> Floats:
        """Return twice what one pair more takes from each basic pair."""
        nobody = self.values.kinds
        return sum((self.inverse[:, a] for a in pair if a != nobody), np.zeros(nobody))

    def step(self, counts: Floats) -> tuple[Floats, list[Pair]]:
        """Return what makes all basic pairs whole: change to twice each, other pairs to make."""
        parity = (self.members @ counts) % 2
        key = parity.tobytes()
        if key not in self._steps:
            self._steps[key] = self._shortest_step(np.flatnonzero(parity).tolist())
        return self._steps[key]

    def _shortest_step(self, odd: list[int]) -> tuple[Floats, list[Pair]]:
        """Join the odd components by the cheapest paths; nobody takes the last one."""
        change = np.zeros(self.values.kinds)
        if not odd:
            return change, []
        distance, hop, link = self._paths = self._paths or self._shortest_paths()
        ends = odd + [len(self.members)] * (len(odd) % 2)
        pairs = [*combinations(range(len(ends)), 2)]
        if len(ends) > 2:
            costs = [-int(distance[ends[i], ends[j]]) for i, j in pairs]
            rows, columns = ([pair[end] for pair in pairs] for end in (0, 1))
            pairs = heaviest_pairs(len(ends), rows, columns, costs, perfect=True)
        used: set[int] = set()
        for i, j in pairs:
            at, goal = ends[i], ends[j]
            while at != goal:
                onward = int(hop[at, goal])
                used ^= {int(link[at, onward])}
                at = onward
        extra = [divmod(index, self.values.kinds + 1) for index in sorted(used)]
        for pair in extra:
            change -= self._column(pair)
        return change, extra

    def _shortest_paths(self) -> tuple[Ints, Ints, Ints]:
        """Return distance, next component on the way, and cheapest pair between components."""
        labels, size = self._labels, len(self.members) + 1
        costs = self._costs()
        a, b = np.nonzero(self.values.allowed & (labels[:, None] != labels))
        start, end = np.append(labels[a], labels[b]), np.append(labels[b], labels[a])
        cost, index = np.tile(costs[a, b], 2), np.tile(a * len(labels) + b, 2)
        # of several pairs between two components the last written, the cheapest, stays
        order = np.argsort(-cost, kind="stable")
        # every component reaches nobody at twice the largest value or less
        distance = np.full((size, size), 5 * int(self.values.value.max(initial=1)))
        link = np.zeros((size, size), np.int64)
        distance[start[order], end[order]] = cost[order]
        link[start[order], end[order]] = index[order]
        hop = np.broadcast_to(np.arange(size), (size, size)).copy()
        for via in range(size):
            through = distance[:, via, None] + distance[via]
            nearer = through < distance
            distance[nearer] = through[nearer]
            hop = np.where(nearer, hop[:, via, None], hop)
        return distance, hop, link


def first_basis(values: PairValues) -> Basis:
    """Return the basis of the lowest prices set kind by kind, each against those before it."""
    prices: list[int] = []
    ends: list[Pair] = []
    for a in range(values.kinds):
        # twice the price, so that half the value of a pair of equals is whole
        needs = {(a, values.kinds): 0}
        if values.allowed[a, a]:
            needs[a, a] = int(values.value[a, a])
        for b in np.flatnonzero(values.allowed[:a, a]).tolist():
            needs[b, a] = 2 * int(values.value[b, a]) - prices[b]
        tight = max(needs, key=needs.__getitem__)
        prices.append(needs[tight])
        ends.append(tight)
    matrix = np.zeros((values.kinds + 1, values.kinds))
    for column, (a, b) in enumerate(ends):
        matrix[a, column] += 1
        matrix[b, column] += 1
    return Basis(values, ends, np.rint(2 * np.linalg.inv(matrix[:-1])))
