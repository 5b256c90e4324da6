"""How many nodes of one kind to pair with how many of another (Muri's matching on kinds)."""

# Nodes of a kind are interchangeable, so a maximum-weight matching of n nodes of t kinds is a small
# integer programme in the numbers of pairs x_ab: maximise sum w_ab x_ab subject to sum_b x_ab + 2
# x_aa <= n_a. Its cost here does not grow with n.
#
# Why the answer is the optimum, and one answer whatever was solved before:
#
# - Weights are whole multiples of 1e-9; a bonus of each pair, a hash of its two kinds, decides
#   among equal totals and never against weight. The optimum is therefore unique unless two choices
#   of pairs agree in weight and in bonus (20 bits or more for weights up to 1), which is improbable
#   but not excluded. With the optimum unique, memory of former solutions changes speed only.
# - The first way, a basis of the relaxation and the cheapest step from it to whole numbers
#   (`repro.matching.relaxation`), is a proof wherever its result has no number of pairs below zero.
# - The other way is a local search with a proof. Where a matching is not optimal, the nodes of some
#   alternating path or cycle can be paired anew with gain. If it comes through a kind twice over
#   the same sort of pair (old or new), it can be cut there in two, both feasible, and one of them
#   gains; so some gaining path meets each kind at most twice. Such a path takes at most 2 from any
#   x_ab and uses at most 2 idle nodes of a kind. A matching that is best when all but 2 of each
#   x_ab and 2 idle nodes of each kind are left alone is therefore best of all.

from functools import lru_cache

import numpy as np

from repro.matching.jobs import heaviest_pairs
from repro.matching.relaxation import Basis, PairValues, first_basis, pair_values
from repro.typing import Floats, Ints

Counts = tuple[int, ...]
PairCounts = tuple[tuple[int, int, int], ...]

#: Pairs of two kinds, and idle nodes of a kind, that a gaining path can use.
_DEPTH = 2
#: Bases tried after the optimal one of the relaxation before the local search.
_TRIES = 4
#: Answers kept per table of weights.
_MEMORY = 1 << 16
#: Sets of kinds kept per table of weights.
_TABLES = 1 << 10


class KindMatcher:
    """Maximum-weight matching over one table of weights, for many counts of nodes.

    ``weights`` of pairing a node of kind a with one of kind b (upper triangle and diagonal) are
    resolved to 1e-9 and at most 1000; 0 or less = never pair (Muri, SIGCOMM 2022, Algorithm 1).
    """

    def __init__(self, weights: Floats) -> None:
        self._values = pair_values(np.asarray(weights, np.float64))
        #: the table of the kinds that have nodes
        self._table = lru_cache(_TABLES)(lambda kinds: _Table(self._values.among(list(kinds))))
        self._answer = lru_cache(_MEMORY)(self._solve)

    def pairs(self, counts: Counts) -> PairCounts:
        """Return (a, b, number of pairs > 0), a <= b, ascending, for so many nodes of each kind."""
        return self._answer(counts)

    def _solve(self, counts: Counts) -> PairCounts:
        """Return the pairs, in the numbers of all kinds."""
        if len(counts) != self._values.kinds or min(counts, default=0) < 0:
            raise ValueError(f"counts {counts} are not {self._values.kinds} numbers of 0 or more")
        present = tuple(a for a, number in enumerate(counts) if number)
        if not present:
            return ()
        pairs = self._table(present).solve(np.array([counts[a] for a in present], np.float64))
        return tuple(sorted((present[a], present[b], number) for a, b, number in pairs))


class _Table:
    """The kinds that have nodes: bases met so far and small problems solved so far."""

    def __init__(self, values: PairValues) -> None:
        self._values = values
        self._basis = first_basis(values)
        self._bases = {self._basis.ends: self._basis}
        self._small = lru_cache(_MEMORY)(self._by_node)

    def solve(self, nodes: Floats) -> list[tuple[int, int, int]]:
        """Return the pairs of a maximum-weight matching of one node or more of each kind."""
        basis = self._relax(nodes)
        for _ in range(_TRIES):
            change, extra = basis.step(nodes)
            doubled = basis.inverse @ nodes + change
            row = int(doubled.argmin())
            if doubled[row] >= 0:
                numbers = [*zip(basis.ends, doubled.tolist(), strict=True)]
                numbers += ((pair, 2.0) for pair in extra)
                # without the idle nodes, which are paired with nobody
                nobody = self._values.kinds
                return [(a, b, int(n) // 2) for (a, b), n in numbers if n and b != nobody]
            following = basis.neighbour(row, self._bases)
            if following is None:
                break
            basis = following
        return self._search(nodes)

    def _relax(self, nodes: Floats) -> Basis:
        """Return the basis that is optimal for the relaxation (dual simplex from the last one)."""
        basis = self._basis
        while True:
            doubled = basis.inverse @ nodes
            if doubled.min() >= 0:
                self._basis = basis
                return basis
            # the first row below 0, as in Bland's rule: ends even where two costs are equal
            following = basis.neighbour(int((doubled < 0).argmax()), self._bases)
            assert following is not None, "no counts make all numbers of pairs 0 or more"
            basis = following

    def _search(self, nodes: Floats) -> list[tuple[int, int, int]]:
        """Improve the relaxed optimum, rounded down, until nothing in reach is better."""
        kinds = self._values.kinds
        found = np.zeros((kinds + 1, kinds + 1), np.int64)
        for pair, number in zip(self._basis.ends, self._basis.inverse @ nodes, strict=True):
            found[pair] = number // 2
        found = found[:kinds, :kinds]
        counts = nodes.astype(np.int64)
        while True:
            kept = np.maximum(found - _DEPTH, 0)
            idle = counts - found.sum(0) - found.sum(1)
            apart = np.maximum(idle - _DEPTH, 0)
            used = found - kept
            free = used.sum(0) + used.sum(1) + idle - apart
            better = kept + self._small(tuple(free.tolist()))
            idle = counts - better.sum(0) - better.sum(1)
            if (kept <= np.maximum(better - _DEPTH, 0)).all() and (
                apart <= np.maximum(idle - _DEPTH, 0)
            ).all():
                return _listed(better)
            change = better - found
            changed = np.argwhere(change).tolist()
            gains = (int(self._values.value[a, b]) * int(change[a, b]) for a, b in changed)
            if sum(gains) <= 0:
                return _listed(found)
            found = better

    def _by_node(self, counts: Counts) -> Ints:
        """Return the matching of few nodes, node by node."""
        kinds = self._values.kinds
        of_node = np.repeat(np.arange(kinds), counts)
        rows, columns = np.nonzero(np.triu(self._values.allowed[np.ix_(of_node, of_node)], 1))
        values = self._values.value[of_node[rows], of_node[columns]]
        pairs = heaviest_pairs(len(of_node), rows.tolist(), columns.tolist(), values.tolist())
        numbers = np.zeros((kinds, kinds), np.int64)
        for i, j in pairs:
            numbers[of_node[i], of_node[j]] += 1
        return numbers


def _listed(numbers: Ints) -> list[tuple[int, int, int]]:
    """Return the pairs made."""
    return [(a, b, int(numbers[a, b])) for a, b in np.argwhere(numbers).tolist()]
