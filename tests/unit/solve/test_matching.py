"""Pairs of maximum weight against networkx, and the tie rule."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from repro.solve.matching import best_pairs


@pytest.mark.parametrize("n", [0, 1, 2, 5, 8, 24])
@pytest.mark.parametrize("seed", range(4))
def test_weight_is_maximal(n, seed):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.choice([0, 0.5, 0.75, 1.0, rng.random()], (n, n)), 1)
    pairs = best_pairs(weights)
    graph = nx.Graph()
    for i, j in zip(*np.nonzero(weights), strict=True):
        graph.add_edge(int(i), int(j), weight=weights[i, j])
    best = sum(weights[min(e), max(e)] for e in nx.max_weight_matching(graph))
    assert sum(weights[pair] for pair in pairs) == pytest.approx(best)
    members = [job for pair in pairs for job in pair]
    assert len(members) == len(set(members))


def test_ties_pair_neighbours():
    assert best_pairs(np.ones((6, 6))) == [(0, 1), (2, 3), (4, 5)]


def test_a_tie_never_beats_weight():
    weights = np.zeros((4, 4))
    weights[0, 1] = weights[2, 3] = 0.5
    weights[0, 3] = weights[1, 2] = 0.5 + 2e-9
    assert best_pairs(weights) == [(0, 3), (1, 2)]


def test_order_of_rows_changes_no_total():
    rng = np.random.default_rng(2)
    weights = rng.choice([0, 0.5, 0.75, 1.0], (20, 20))
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    order = rng.permutation(20)
    moved = weights[np.ix_(order, order)]
    assert sum(moved[pair] for pair in best_pairs(moved)) == sum(
        weights[pair] for pair in best_pairs(weights)
    )
