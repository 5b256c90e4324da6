"""How many nodes of one type to pair with how many of another (Muri's matching on job types).

Nodes of a type are interchangeable, so a maximum-weight matching of n nodes of t types is a small
integer programme in the numbers of pairs x_ab: maximise sum w_ab x_ab subject to
sum_b x_ab + 2 x_aa <= n_a. Its cost here does not grow with n.

Why the answer is the optimum, and one answer whatever was solved before:

- Weights are whole multiples of 1e-9; a bonus of each pair, a hash of its two types, decides among
  equal totals and never against weight. The optimum is therefore unique unless two choices of
  pairs agree in weight and in bonus (20 bits or more for weights up to 1), which is improbable but
  not excluded. With the optimum unique, memory of former solutions changes speed only.
- The first way, a basis of the relaxation and the cheapest step from it to whole numbers
  (`_matching_bases`), is a proof wherever its result has no number of pairs below zero.
- The other way is a local search with a proof. Where a matching is not optimal, the nodes of some
  alternating path or cycle can be paired anew with gain. If it comes through a type twice over the
  same kind of pair (old or new), it can be cut there in two, both feasible, and one of them gains;
  so some gaining path meets each type at most twice. Such a path takes at most 2 from any x_ab and
  uses at most 2 idle nodes of a type. A matching that is best when all but 2 of each x_ab and 2
  idle nodes of each type are left alone is therefore best of all.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from repro.matching.bases import Basis, Pair, first_basis
from repro.matching.jobs import heaviest_pairs
from repro.matching.values import Floats, Ints, PairValues, pair_values

Counts = tuple[int, ...]
PairCounts = tuple[tuple[int, int, int], ...]

#: Pairs of two types, and idle nodes of a type, that a gaining path can use.
_DEPTH = 2
#: Bases tried after the optimal one of the relaxation before the local search.
_TRIES = 4
#: Answers kept per table of weights.
_MEMORY = 1 << 16
#: Sets of types kept per table of weights.
_TABLES = 1 << 10


class TypeMatcher:
    """Maximum-weight matching over one table of weights, for many counts of nodes.

    Parameters
    ----------
    weights : ndarray, shape (t, t)
        Weight of pairing a node of type a with one of type b (upper triangle and diagonal), 0 or
        less = never pair. Resolved to 1e-9; at most 1000.

    Raises
    ------
    ValueError
        Weights not square, not finite, or above 1000.

    References
    ----------
    Muri, SIGCOMM 2022, Algorithm 1 (Blossom).

    Examples
    --------
    >>> matcher = TypeMatcher(np.array([[0.75, 1.0], [0.0, 0.5]]))
    >>> matcher.pairs((5, 2))
    ((0, 0, 1), (0, 1, 2))
    """

    def __init__(self, weights: npt.NDArray[np.float64]) -> None:
        self._values = pair_values(np.asarray(weights, np.float64))
        self._tables: dict[tuple[int, ...], _Table] = {}
        self._answers: dict[Counts, PairCounts] = {}

    def pairs(self, counts: Counts) -> PairCounts:
        """Return the pairs of a maximum-weight matching.

        Parameters
        ----------
        counts : tuple of int
            Nodes of each type.

        Returns
        -------
        tuple of (int, int, int)
            (a, b, number of pairs), a <= b, number > 0, ascending.

        Raises
        ------
        ValueError
            Not one count of 0 or more for each type.
        """
        found = self._answers.get(counts)
        if found is None:
            if len(counts) != self._values.types or min(counts, default=0) < 0:
                raise ValueError(
                    f"counts {counts} are not {self._values.types} numbers of 0 or more"
                )
            if len(self._answers) >= _MEMORY:
                self._answers.clear()
            found = self._answers[counts] = self._solve(counts)
        return found

    def _solve(self, counts: Counts) -> PairCounts:
        present = tuple(a for a, number in enumerate(counts) if number)
        if not present:
            return ()
        table = self._tables.get(present)
        if table is None:
            if len(self._tables) >= _TABLES:
                self._tables.clear()
            table = self._tables[present] = _Table(self._values.among(list(present)))
        pairs = table.solve(np.array([counts[a] for a in present], np.float64))
        return tuple(sorted((present[a], present[b], number) for a, b, number in pairs))


class _Table:
    """The types that have nodes: bases met so far and small problems solved so far."""

    def __init__(self, values: PairValues) -> None:
        self._values = values
        self._basis = first_basis(values)
        self._bases = {self._basis.ends: self._basis}
        self._small: dict[Counts, Ints] = {}

    def solve(self, nodes: Floats) -> list[tuple[int, int, int]]:
        """Return the pairs of a maximum-weight matching of one node or more of each type."""
        basis = self._relax(nodes)
        for _ in range(_TRIES):
            change, extra = basis.step(nodes)
            doubled = basis.inverse @ nodes + change
            row = int(doubled.argmin())
            if doubled[row] >= 0:
                numbers = [*zip(basis.ends, doubled.tolist(), strict=True)]
                return self._answer([*numbers, *((pair, 2.0) for pair in extra)])
            following = basis.neighbour(row, self._bases)
            if following is None:
                break
            basis = following
        return self._search(nodes)

    def _answer(self, doubled: list[tuple[Pair, float]]) -> list[tuple[int, int, int]]:
        """Return the pairs made, without the idle nodes, from twice their numbers."""
        nobody = self._values.types
        return [(a, b, int(number) // 2) for (a, b), number in doubled if number and b != nobody]

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
        types = self._values.types
        found = np.zeros((types + 1, types + 1), np.int64)
        for pair, number in zip(self._basis.ends, self._basis.inverse @ nodes, strict=True):
            found[pair] = number // 2
        found = found[:types, :types]
        counts = nodes.astype(np.int64)
        while True:
            kept = np.maximum(found - _DEPTH, 0)
            idle = counts - found.sum(0) - found.sum(1)
            apart = np.maximum(idle - _DEPTH, 0)
            used = found - kept
            free = used.sum(0) + used.sum(1) + idle - apart
            better = kept + self._expanded(tuple(free.tolist()))
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

    def _expanded(self, counts: Counts) -> Ints:
        """Return the matching of few nodes, node by node."""
        found = self._small.get(counts)
        if found is None:
            if len(self._small) >= _MEMORY:
                self._small.clear()
            found = self._small[counts] = self._by_node(counts)
        return found

    def _by_node(self, counts: Counts) -> Ints:
        types = self._values.types
        kind = np.repeat(np.arange(types), counts)
        rows, columns = np.nonzero(np.triu(self._values.allowed[np.ix_(kind, kind)], 1))
        values = self._values.value[kind[rows], kind[columns]]
        pairs = heaviest_pairs(len(kind), rows.tolist(), columns.tolist(), values.tolist())
        numbers = np.zeros((types, types), np.int64)
        for i, j in pairs:
            numbers[kind[i], kind[j]] += 1
        return numbers


def _listed(numbers: Ints) -> list[tuple[int, int, int]]:
    return [(a, b, int(numbers[a, b])) for a, b in np.argwhere(numbers).tolist()]


@lru_cache(maxsize=256)
def _matcher(types: int, weights: bytes) -> TypeMatcher:
    return TypeMatcher(np.frombuffer(weights).reshape(types, types))


def pair_counts(weights: npt.NDArray[np.float64], counts: Counts) -> list[tuple[int, int, int]]:
    """Return how many nodes of each type to pair with each, for the largest total weight.

    Parameters
    ----------
    weights : ndarray, shape (t, t)
        Weight of pairing a node of type a with one of type b (upper triangle and diagonal), 0 or
        less = never pair. Resolved to 1e-9; at most 1000.
    counts : tuple of int
        Nodes of each type.

    Returns
    -------
    list of (int, int, int)
        (a, b, number of pairs), a <= b, number > 0, ascending. A function of the arguments alone.

    Raises
    ------
    ValueError
        Weights not square, not finite or above 1000, or counts that do not fit them.

    References
    ----------
    Muri, SIGCOMM 2022, Algorithm 1 (Blossom).

    Examples
    --------
    >>> pair_counts(np.array([[0.75, 1.0], [0.0, 0.5]]), (1000, 3))
    [(0, 0, 498), (0, 1, 3)]
    """
    table = np.ascontiguousarray(weights, np.float64)
    return list(_matcher(len(table), table.tobytes()).pairs(tuple(counts)))
