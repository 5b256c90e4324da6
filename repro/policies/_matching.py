"""Which jobs to pair: matchings of maximum weight, one answer whatever the ties (Muri)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: The solver takes whole numbers; weights are resolved to this part of 1.
RESOLUTION = 1e-9


def best_pairs(weights: npt.NDArray[np.float64]) -> list[tuple[int, int]]:
    """Return the pairs of a matching of maximum weight.

    Parameters
    ----------
    weights : ndarray, shape (n, n)
        Weight of pairing i with j (upper triangle), 0 or less = never pair.

    Returns
    -------
    list of (int, int)
        Pairs (i, j), i < j, ascending. Among equal totals the one that pairs near neighbours, so
        that rows in order of priority give groups of like priority.

    References
    ----------
    Muri, SIGCOMM 2022, Algorithm 1 (Blossom).

    Examples
    --------
    >>> gamma = np.array([[0, 1, 0.75, 1], [0, 0, 1, 0.75], [0, 0, 0, 1], [0, 0, 0, 0]])
    >>> best_pairs(gamma)
    [(0, 1), (2, 3)]
    """
    import rustworkx as rx

    n = len(weights)
    rows, columns = np.nonzero(np.triu(weights, 1) > 0)
    # The bonuses of one matching add up to less than one unit of weight.
    unit = n**3 + 1
    edges = []
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        bonus = n**2 - (j - i) ** 2
        edges.append((i, j, round(float(weights[i, j]) / RESOLUTION) * unit + bonus))
    graph = rx.PyGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(edges)
    matched = rx.max_weight_matching(graph, weight_fn=int)
    return sorted((min(pair), max(pair)) for pair in matched)
