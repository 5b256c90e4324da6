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
    n = len(weights)
    rows, columns = np.nonzero(np.triu(weights, 1) > 0)
    scaled = np.rint(weights[rows, columns] / RESOLUTION).tolist()
    nearness = (n**2 - (columns - rows) ** 2).tolist()
    # The bonuses of one matching add up to less than one unit of weight.
    unit = n**3 + 1
    values = [int(weight) * unit + near for weight, near in zip(scaled, nearness, strict=True)]
    return heaviest_pairs(n, rows.tolist(), columns.tolist(), values)


def first_pairs(weights: npt.NDArray[np.float64]) -> list[tuple[int, int]]:
    """Return the pairs of a matching of maximum weight, the first one the solver finds.

    Parameters
    ----------
    weights : ndarray, shape (n, n)
        Weight of pairing i with j (symmetric), 0 or less = never pair.

    Returns
    -------
    list of (int, int)
        Pairs (i, j), i < j, ascending.

    Examples
    --------
    >>> gamma = np.array([[0, 1, 0.75, 1], [1, 0, 1, 0.75], [0.75, 1, 0, 1], [1, 0.75, 1, 0]])
    >>> sum(gamma[pair] for pair in first_pairs(gamma))
    np.float64(2.0)
    """
    later, earlier = np.tril_indices(len(weights), -1)
    values = np.rint(weights[later, earlier] / RESOLUTION).astype(np.int64)
    edges = values > 0
    return heaviest_pairs(
        len(weights), earlier[edges].tolist(), later[edges].tolist(), values[edges].tolist()
    )


def heaviest_pairs(
    n: int, rows: list[int], columns: list[int], values: list[int], *, perfect: bool = False
) -> list[tuple[int, int]]:
    """Return a matching of maximum total over edges with whole-number values.

    Parameters
    ----------
    n : int
        Nodes, numbered from 0.
    rows, columns : list of int
        The two ends of each edge.
    values : list of int
        The value of each edge; any size, the sums are exact up to 2**127.
    perfect : bool
        Match as many nodes as possible, whatever the values, and then maximise.

    Returns
    -------
    list of (int, int)
        Pairs (i, j), i < j, ascending.

    Examples
    --------
    >>> heaviest_pairs(4, [0, 1, 2], [1, 2, 3], [2, 5, 2])
    [(1, 2)]
    >>> heaviest_pairs(4, [0, 1, 2], [1, 2, 3], [2, 5, 2], perfect=True)
    [(0, 1), (2, 3)]
    """
    import rustworkx as rx

    graph = rx.PyGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(list(zip(rows, columns, values, strict=True)))
    matched = rx.max_weight_matching(graph, max_cardinality=perfect, weight_fn=int)
    return sorted((min(pair), max(pair)) for pair in matched)
