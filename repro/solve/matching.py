"""Maximum-weight matchings, node by node or as numbers of pairs of kinds (Muri).

A node is a job or a group of jobs that can be paired with another.
"""

# Nodes of a kind are interchangeable, so a maximum-weight matching of n nodes of t kinds is a small
# integer programme in the numbers of pairs x_ab: maximise sum w_ab x_ab subject to
# sum_(b != a) x_ab + 2 x_aa <= n_a. Its cost here does not grow with n.
#
# Why the result is the optimum, and does not depend on what was solved before:
#
# - Weights are whole multiples of 1e-9. Each pair has a bonus, a hash of its two kinds, that
#   decides among equal totals and never against weight. The optimum is therefore unique unless two
#   choices of pairs agree in weight and in bonus. A bonus has 20 bits or more for weights up to 1
#   and up to 63 kinds, so this is improbable but not excluded. As the optimum is unique,
#   remembered solutions change only the time of the computation.
# - The first method takes a basis of the relaxation and the cheapest step from it to whole numbers
#   (see below). Its result is proven wherever no number of pairs is below 0.
# - The second method is a local search with a proof. If a matching is not optimal, the nodes of
#   some alternating path or cycle can be paired anew with a gain. Suppose that the path enters a
#   kind twice over old pairs, or twice over new pairs. It can then be cut at the two visits into
#   two feasible paths, and one of them gains. So some gaining path visits each kind at most twice.
#   It takes at most 2 from any x_ab and uses at most 2 unmatched nodes of a kind. A matching is
#   therefore optimal if it is the best among those that keep all but 2 of each x_ab and all but 2
#   unmatched nodes of each kind.
#
# The relaxation lets the number of pairs of two kinds be a fraction. An unmatched node is a pair
# with one more kind, the *dummy*. A basis has one tight pair per kind. No basis that the dual
# simplex method visits here has a negative reduced cost. A basis is therefore optimal for all
# counts at which its numbers of pairs are 0 or more. The basic pairs join the kinds into
# components. A tree that contains the dummy has whole numbers at any counts. Every other component
# has one odd cycle, and has halves when it has an odd number of nodes.
#
# Gomory's relaxation adds the cheapest non-basic pairs that make all components even, and lets
# basic pairs fall below 0. A non-basic pair changes the parity of the two components that it joins.
# The solution is therefore a shortest set of paths between the odd components, which may pass the
# dummy. If no basic pair falls below 0, the result is an optimal matching.

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from repro.base.typing import Flags, Floats, Ints

#: Nodes of each kind.
Counts = tuple[int, ...]
#: Kinds a and b, and number of their pairs.
PairCounts = tuple[tuple[int, int, int], ...]
Pair = tuple[int, int]

#: Unit of weights; the solver takes whole numbers.
RESOLUTION = 1e-9
#: Largest number of pairs of two kinds, or of unmatched nodes of a kind, that a gaining path uses.
_LOOSE = 2
#: Number of bases that `_KindSolver.solve` tries before the local search. The first is the optimal
#: basis of the relaxation.
_MAX_PIVOTS = 4
#: Largest number of small problems remembered per set of kinds.
_SMALL_CACHE = 1 << 16
#: Largest number of sets of kinds remembered per table of weights.
_KINDS_CACHE = 1 << 10
#: Bits of a value; sums of a few values stay below 2**63.
_VALUE_BITS = 58
#: Fewest bits of a bonus; shorter bonuses would often be equal.
_BONUS_BITS = 8
#: Multipliers of splitmix64.
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def best_pairs(weights: Floats) -> list[tuple[int, int]]:
    """Pairs (i, j), i < j, of a matching of maximum weight, ascending.

    ``weights[i, j]`` (upper triangle) is the weight of pairing i with j; 0 or less: never pair.
    Among matchings of equal weight the result pairs near neighbours. Nodes in order of priority
    therefore form groups of similar priority (Muri, SIGCOMM 2022, Algorithm 1: Blossom).
    """
    n = len(weights)
    rows, columns = np.nonzero(np.triu(weights, 1) > 0)
    scaled = np.rint(weights[rows, columns] / RESOLUTION).tolist()
    nearness = (n**2 - (columns - rows) ** 2).tolist()
    # The bonuses of one matching add up to less than one unit of weight.
    unit = n**3 + 1
    values = [int(weight) * unit + near for weight, near in zip(scaled, nearness, strict=True)]
    return heaviest_pairs(n, rows.tolist(), columns.tolist(), values)


def counted_pairs(weights: Floats, counts: Counts) -> PairCounts:
    """Pairs in the form of `KindMatcher.pairs`, but matched node by node by `best_pairs`."""
    kind_of_node = np.repeat(np.arange(len(counts)), counts)
    pairs = best_pairs(weights[np.ix_(kind_of_node, kind_of_node)])
    numbers = Counter((int(kind_of_node[a]), int(kind_of_node[b])) for a, b in pairs)
    return tuple((a, b, number) for (a, b), number in sorted(numbers.items()))


def any_best_pairs(n: int, values: Ints) -> list[tuple[int, int]]:
    """Pairs of a maximum-weight matching, in any order.

    Among matchings of equal weight the result is the matching that rustworkx finds, which
    depends on the order of the nodes. ``values`` has the weight of each pair of n nodes, in units
    of `RESOLUTION` and in the order of `below_diagonal`.
    """
    import rustworkx as rx

    graph = _graph(n, (values > 0).tobytes())
    value = values.tolist().__getitem__
    return list(rx.max_weight_matching(graph, weight_fn=value))


@lru_cache
def below_diagonal(n: int) -> tuple[Ints, Ints]:
    """Rows and columns of the pairs of n nodes. Row i pairs i with every node before it."""
    rows, columns = np.tril_indices(n, -1)
    return rows, columns


@lru_cache(maxsize=256)
def _graph(n: int, edges: bytes) -> Any:
    """Graph of n nodes. ``edges`` has a flag (byte) per pair of `below_diagonal`: joined or not."""
    import rustworkx as rx

    graph = rx.PyGraph()
    joined = np.flatnonzero(np.frombuffer(edges, np.bool_))
    later, earlier = (ends[joined].tolist() for ends in below_diagonal(n))
    graph.add_nodes_from(range(n))
    graph.add_edges_from([*zip(earlier, later, joined.tolist(), strict=True)])
    return graph


def heaviest_pairs(
    n: int, rows: list[int], columns: list[int], values: list[int], *, perfect: bool = False
) -> list[tuple[int, int]]:
    """Pairs of a matching of the largest total value, ascending; values are below 2**127.

    With ``perfect`` the matching is one of those with the most pairs.
    """
    import rustworkx as rx

    graph = rx.PyGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(list(zip(rows, columns, values, strict=True)))
    matched = rx.max_weight_matching(graph, max_cardinality=perfect, weight_fn=int)
    return sorted((min(pair), max(pair)) for pair in matched)


class KindMatcher:
    """Maximum-weight matching over one table of weights, for many counts of nodes.

    ``weights[a, b]`` (upper triangle and diagonal) is the weight of pairing a node of kind a with a
    node of kind b; 0 or less: never pair. Weights are rounded to 1e-9 and at most 1000 (Muri,
    SIGCOMM 2022, Algorithm 1).
    """

    def __init__(self, weights: Floats) -> None:
        self._values = pair_values(np.asarray(weights, np.float64))
        #: Solver for the kinds that have nodes.
        self._solver = lru_cache(_KINDS_CACHE)(
            lambda kinds: _KindSolver(self._values.among(list(kinds)))
        )

    def pairs(self, counts: Counts) -> PairCounts:
        """Pairs (a, b, number > 0), a <= b, ascending; ``counts`` are the nodes of each kind."""
        if len(counts) != self._values.kinds or min(counts, default=0) < 0:
            raise ValueError(f"counts {counts} are not {self._values.kinds} numbers of 0 or more")
        present = tuple(a for a, number in enumerate(counts) if number)
        if not present:
            return ()
        pairs = self._solver(present).solve(np.array([*filter(None, counts), 0.0]))
        return tuple(sorted((present[a], present[b], number) for a, b, number in pairs))


class _KindSolver:
    """Solver for one set of kinds. It remembers bases and small problems."""

    def __init__(self, values: PairValues) -> None:
        self._values = values
        self._basis = first_basis(values)
        self._bases = {self._basis.ends: self._basis}
        self._cached_by_node = lru_cache(_SMALL_CACHE)(self._by_node)

    def solve(self, nodes: Floats) -> list[tuple[int, int, int]]:
        """Pairs of a maximum-weight matching.

        ``nodes`` has the number of nodes of each kind, and a last entry 0 for the dummy.
        """
        basis = self._relax(nodes)
        for _ in range(_MAX_PIVOTS):
            change, extra = basis.step(nodes)
            # Twice the number of each basic pair.
            twice_basic = basis.inverse @ nodes + change
            row = int(twice_basic.argmin())
            if twice_basic[row] >= 0:
                twice_numbers = [*zip(basis.ends, twice_basic.tolist(), strict=True)]
                twice_numbers += ((pair, 2.0) for pair in extra)
                # Pairs with the dummy are unmatched nodes.
                return [
                    (a, b, int(twice / 2))
                    for (a, b), twice in twice_numbers
                    if twice and b < self._values.kinds
                ]
            next_basis = basis.neighbour(row, self._bases)
            if next_basis is None:
                break
            basis = next_basis
        return self._search(nodes)

    def _relax(self, nodes: Floats) -> Basis:
        """Optimal basis of the relaxation, by dual simplex from the last basis."""
        basis = self._basis
        while True:
            twice_basic = basis.inverse @ nodes
            if twice_basic[twice_basic.argmin()] >= 0:
                self._basis = basis
                return basis
            # Bland's rule takes the first row below 0. The loop then ends even if costs are equal.
            next_basis = basis.neighbour(int((twice_basic < 0).argmax()), self._bases)
            # Leaving all nodes unmatched is feasible, so a pair can always enter.
            assert next_basis is not None, "the relaxation has no solution"
            basis = next_basis

    def _search(self, nodes: Floats) -> list[tuple[int, int, int]]:
        """Improve the relaxed optimum, rounded down, by local search until it is proven optimal."""
        kinds = self._values.kinds
        numbers = np.zeros((kinds + 1, kinds + 1), np.int64)
        for pair, twice in zip(self._basis.ends, self._basis.inverse @ nodes, strict=True):
            numbers[pair] = twice // 2
        numbers = numbers[:kinds, :kinds]
        counts = nodes[:-1].astype(np.int64)
        while True:
            fixed = np.maximum(numbers - _LOOSE, 0)
            idle = counts - numbers.sum(0) - numbers.sum(1)
            fixed_idle = np.maximum(idle - _LOOSE, 0)
            loose = numbers - fixed
            loose_nodes = loose.sum(0) + loose.sum(1) + idle - fixed_idle
            better = fixed + self._cached_by_node(tuple(loose_nodes.tolist()))
            idle = counts - better.sum(0) - better.sum(1)
            pairs_proven = (fixed <= np.maximum(better - _LOOSE, 0)).all()
            if pairs_proven and (fixed_idle <= np.maximum(idle - _LOOSE, 0)).all():
                return _listed(better)
            change = better - numbers
            changed = np.argwhere(change).tolist()
            gains = (int(self._values.value[a, b]) * int(change[a, b]) for a, b in changed)
            if sum(gains) <= 0:
                return _listed(numbers)
            numbers = better

    def _by_node(self, counts: Counts) -> Ints:
        """Numbers of pairs of a matching of few nodes, node by node, shape (kinds, kinds)."""
        kinds = self._values.kinds
        kind_of_node = np.repeat(np.arange(kinds), counts)
        allowed = self._values.allowed[np.ix_(kind_of_node, kind_of_node)]
        rows, columns = np.nonzero(np.triu(allowed, 1))
        values = self._values.value[kind_of_node[rows], kind_of_node[columns]]
        pairs = heaviest_pairs(len(kind_of_node), rows.tolist(), columns.tolist(), values.tolist())
        numbers = np.zeros((kinds, kinds), np.int64)
        for i, j in pairs:
            numbers[kind_of_node[i], kind_of_node[j]] += 1
        return numbers


def _listed(numbers: Ints) -> list[tuple[int, int, int]]:
    """Nonzero entries of a matrix of numbers of pairs, as (a, b, number)."""
    return [(a, b, int(numbers[a, b])) for a, b in np.argwhere(numbers).tolist()]


@lru_cache(maxsize=4096)
def _hash64(a: int, b: int) -> int:
    """64 well-mixed bits of a pair of kinds (the finaliser of splitmix64)."""
    z = ((a << 32 | b) + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * _MIX[0] % 2**64
    z = (z ^ z >> 27) * _MIX[1] % 2**64
    return z ^ z >> 31


@dataclass(frozen=True, eq=False)
class PairValues:
    """Values of pairs of kinds, and flags of the pairs allowed. The last kind is the dummy."""

    value: Ints  #: symmetric, 0 for the dummy, shape (kinds + 1, kinds + 1)
    allowed: Flags  #: upper triangle, pairs with the dummy included

    @property
    def kinds(self) -> int:
        """Number of kinds without the dummy, which is the index of the dummy."""
        return len(self.value) - 1

    def among(self, present: list[int]) -> PairValues:
        """Values of some of the kinds (ascending), renumbered."""
        if len(present) == self.kinds:
            return self
        index = np.ix_([*present, self.kinds], [*present, self.kinds])
        return PairValues(self.value[index], self.allowed[index])


def pair_values(weights: Floats) -> PairValues:
    """Whole-number values that order pairs as their weights (upper triangle) do.

    A bonus, a hash of the two kinds, breaks ties.
    """
    kinds = len(weights)
    if weights.shape != (kinds, kinds) or not np.isfinite(weights).all():
        raise ValueError(f"weights of shape {weights.shape} are not a square of finite numbers")
    units = np.rint(np.triu(weights) / RESOLUTION)
    largest = int(units.max(initial=1))
    # Matchings that differ by one augmentation differ in at most 4 t pairs. Bonuses below 1/(4 t)
    # of a unit therefore never outweigh a unit of weight.
    headroom = (4 * kinds).bit_length()
    bonus_bits = min(32, _VALUE_BITS - largest.bit_length() - headroom)
    if bonus_bits < _BONUS_BITS:
        raise ValueError(f"weight {weights.max():g} is too large; weights up to 1000 are accepted")
    allowed = np.zeros((kinds + 1, kinds + 1), bool)
    allowed[:kinds, :kinds] = units > 0
    allowed[:kinds, kinds] = True
    value = np.zeros((kinds + 1, kinds + 1), np.int64)
    rows, columns = np.nonzero(units > 0)
    pairs = zip(rows.tolist(), columns.tolist(), units[rows, columns].tolist(), strict=True)
    value[rows, columns] = value[columns, rows] = [
        (int(weight) << bonus_bits + headroom) + (_hash64(a, b) >> (64 - bonus_bits))
        for a, b, weight in pairs
    ]
    return PairValues(value, allowed)


class Basis:
    """A basis without negative reduced cost. It remembers neighbours and whole-number steps.

    ``ends`` are the basic pairs, ascending, the lower kind first. ``inverse`` is twice the inverse
    of the basis, with a row per basic pair: ``inverse @ counts`` is twice the number of each pair.
    The column of the dummy is 0.
    """

    def __init__(self, values: PairValues, ends: Sequence[Pair], inverse: Floats) -> None:
        self.values = values
        order = sorted(range(len(ends)), key=ends.__getitem__)
        self.ends = tuple(map(ends.__getitem__, order))
        self.inverse = inverse[order]
        basic_values = values.value.take([a * len(values.value) + b for a, b in self.ends])
        #: Twice the price (dual) of a node of each kind.
        self._prices = basic_values @ self.inverse.astype(np.int64)
        #: Basis after a pivot, by the row of the pivot.
        self._next: dict[int, Basis | None] = {}
        #: Steps to whole numbers, by the parities of the components.
        self._steps: dict[bytes, tuple[Floats, list[Pair]]] = {}
        self._paths: tuple[Ints, Ints, Ints] | None = None

    @cached_property
    def _components(self) -> tuple[Ints, Floats]:
        """Component number of each kind, and a row of flags by kind per component.

        The component of the dummy has the last number and no row.
        """
        dummy = self.values.kinds
        root = [*range(dummy + 1)]
        for a, b in self.ends:
            root = [root[b] if label == root[a] else label for label in root]
        other_roots = [r for r in dict.fromkeys(root) if r != root[-1]]
        number_of = {r: number for number, r in enumerate([*other_roots, root[-1]])}
        labels = np.array([number_of[r] for r in root])
        return labels, (labels == np.arange(labels[-1])[:, None]).astype(np.float64)

    def _costs(self) -> Ints:
        """Twice the reduced cost of every pair, shape (kinds + 1, kinds + 1)."""
        costs: Ints = self._prices[:, None] + self._prices - 2 * self.values.value
        return costs

    def neighbour(self, row: int, bases: dict[tuple[Pair, ...], Basis]) -> Basis | None:
        """Basis after a dual simplex pivot on ``row``, which is below 0. None: no pair can enter.

        ``bases`` has all bases so far, by their pairs. A new basis is added to it.
        """
        if row in self._next:
            return self._next[row]
        # Twice the decrease of the basic pair when the number of another pair rises by one.
        decreases = self.inverse[row][:, None] + self.inverse[row]
        a, b = np.nonzero(self.values.allowed & (decreases < 0))
        if not len(a):
            self._next[row] = None
            return None
        # Decreases are -1, -2 or -4, so that the quotients compare as whole numbers.
        quotients = self._costs()[a, b] * (-4 // decreases[a, b]).astype(np.int64)
        best = int(quotients.argmin())
        pair = int(a[best]), int(b[best])
        ends = (*self.ends[:row], pair, *self.ends[row + 1 :])
        key = tuple(sorted(ends))
        if key not in bases:
            column = self._column(*pair)
            inverse = self.inverse - np.outer(column, self.inverse[row] / column[row])
            inverse[row] = 2 * self.inverse[row] / column[row]
            bases[key] = Basis(self.values, ends, inverse)
        self._next[row] = bases[key]
        return bases[key]

    def _column(self, a: int, b: int) -> Floats:
        """Twice the decrease of each basic variable when the number of a pair rises by one."""
        column: Floats = self.inverse[:, a] + self.inverse[:, b]
        return column

    def step(self, counts: Floats) -> tuple[Floats, list[Pair]]:
        """Step to whole numbers: twice the change of each basic pair, non-basic pairs to add."""
        parity = (self._components[1] @ counts) % 2
        key = parity.tobytes()
        if key not in self._steps:
            self._steps[key] = self._shortest_step(np.flatnonzero(parity).tolist())
        return self._steps[key]

    def _shortest_step(self, odd: list[int]) -> tuple[Floats, list[Pair]]:
        """Join the odd components by the cheapest paths.

        If their number is odd, the component of the dummy is added, and one of them joins it.
        """
        change = np.zeros(self.values.kinds)
        if not odd:
            return change, []
        distance, hop, link = self._paths = self._paths or self._shortest_paths()
        ends = odd + [len(self._components[1])] * (len(odd) % 2)
        pairs = [*combinations(range(len(ends)), 2)]
        if len(ends) > 2:
            costs = [-int(distance[ends[i], ends[j]]) for i, j in pairs]
            rows, columns = ([pair[end] for pair in pairs] for end in (0, 1))
            pairs = heaviest_pairs(len(ends), rows, columns, costs, perfect=True)
        used: set[int] = set()
        for i, j in pairs:
            component = ends[i]
            target = ends[j]
            while component != target:
                next_component = int(hop[component, target])
                # A pair on two paths changes both parities twice, so it is not needed.
                used ^= {int(link[component, next_component])}
                component = next_component
        extra = [divmod(index, self.values.kinds + 1) for index in sorted(used)]
        for pair in extra:
            change -= self._column(*pair)
        return change, extra

    def _shortest_paths(self) -> tuple[Ints, Ints, Ints]:
        """Distance, next component on the path, and cheapest pair between any two components."""
        labels, flags = self._components
        size = len(flags) + 1
        costs = self._costs()
        a, b = np.nonzero(self.values.allowed & (labels[:, None] != labels))
        start = np.append(labels[a], labels[b])
        end = np.append(labels[b], labels[a])
        cost = np.tile(costs[a, b], 2)
        index = np.tile(a * len(labels) + b, 2)
        # The last assignment stays: the cheapest pair between two components.
        order = np.argsort(-cost, kind="stable")
        # Larger than the cost of any path: two components can be joined by way of the dummy. The
        # path from each to the dummy costs at most twice the largest value.
        distance = np.full((size, size), 5 * int(self.values.value.max(initial=1)))
        link = np.zeros((size, size), np.int64)
        distance[start[order], end[order]] = cost[order]
        link[start[order], end[order]] = index[order]
        hop = np.broadcast_to(np.arange(size), (size, size)).copy()
        for via in range(size):
            through = distance[:, via, None] + distance[via]
            hop = np.where(through < distance, hop[:, via, None], hop)
            distance = np.minimum(distance, through)
        return distance, hop, link


def first_basis(values: PairValues) -> Basis:
    """Basis to start from, set kind by kind.

    Each kind has the lowest price at which its pairs with the kinds before, with itself and with
    the dummy have no negative reduced cost.
    """
    value = values.value.tolist()
    allowed = values.allowed.tolist()
    prices: list[int] = []
    ends: list[Pair] = []
    for a in range(values.kinds):
        # Prices are doubled to be whole. The price of a kind that is paired with itself is half the
        # value of this pair.
        needs = {(a, values.kinds): 0}
        if allowed[a][a]:
            needs[a, a] = value[a][a]
        needs |= {(b, a): 2 * value[b][a] - prices[b] for b in range(a) if allowed[b][a]}
        tight = max(needs, key=needs.__getitem__)
        prices.append(needs[tight])
        ends.append(tight)
    matrix = np.zeros((values.kinds + 1, values.kinds + 1))
    matrix[-1, -1] = 1.0
    for column, (a, b) in enumerate(ends):
        matrix[a, column] += 1
        matrix[b, column] += 1
    return Basis(values, ends, np.rint(2 * np.linalg.inv(matrix)[:-1]))
