"""Which jobs to pair: matchings of maximum weight, one answer whatever the ties (Muri)."""

import numpy as np

from repro.typing import Floats

#: The solver takes whole numbers; weights are resolved to this part of 1.
RESOLUTION = 1e-9


def best_pairs(weights: Floats) -> list[tuple[int, int]]:
    """Return the pairs (i, j), i < j, of a matching of maximum weight, ascending.

    ``weights[i, j]`` (upper triangle) is the weight of pairing i with j; 0 or less = never. Among
    equal totals the answer pairs near neighbours, so that rows in order of priority give groups of
    like priority (Muri, SIGCOMM 2022, Algorithm 1: Blossom).
    """
    n = len(weights)
    rows, columns = np.nonzero(np.triu(weights, 1) > 0)
    scaled = np.rint(weights[rows, columns] / RESOLUTION).tolist()
    nearness = (n**2 - (columns - rows) ** 2).tolist()
    # The bonuses of one matching add up to less than one unit of weight.
    unit = n**3 + 1
    values = [int(weight) * unit + near for weight, near in zip(scaled, nearness, strict=True)]
    return heaviest_pairs(n, rows.tolist(), columns.tolist(), values)


def first_pairs(weights: Floats) -> list[tuple[int, int]]:
    """Return a matching as `best_pairs` does, but of equal totals the first the solver finds."""
    later, earlier = np.tril_indices(len(weights), -1)
    values = np.rint(weights[later, earlier] / RESOLUTION).astype(np.int64)
    edges = values > 0
    rows, columns = earlier[edges].tolist(), later[edges].tolist()
    return heaviest_pairs(len(weights), rows, columns, values[edges].tolist())


def heaviest_pairs(
    n: int, rows: list[int], columns: list[int], values: list[int], *, perfect: bool = False
) -> list[tuple[int, int]]:
    """Return pairs (ascending) of maximum total, exact to 2**127; perfect: as many as possible."""
    import rustworkx as rx

    graph = rx.PyGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(list(zip(rows, columns, values, strict=True)))
    matched = rx.max_weight_matching(graph, max_cardinality=perfect, weight_fn=int)
    return sorted((min(pair), max(pair)) for pair in matched)
