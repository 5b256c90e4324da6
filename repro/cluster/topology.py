"""The network of a cluster as a tree: nodes under switches (racks) under one core."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx

from repro.cluster.spec import Cluster

SAME_NODE, SAME_SWITCH, ACROSS = 0, 1, 2
CORE = "core"


def network(cluster: Cluster) -> nx.Graph:
    """Return the network as a graph.

    Parameters
    ----------
    cluster : Cluster
        The nodes and their switches.

    Returns
    -------
    networkx.Graph
        Vertices ``("node", index)`` with attributes gpus and gpu_type, ``("switch", number)``
        and ``"core"``; edges node-switch and switch-core.

    Examples
    --------
    >>> graph = network(Cluster.parse("2x3x4"))
    >>> graph.number_of_nodes(), graph.nodes["node", 5]["gpus"]
    (9, 4)
    """
    graph = nx.Graph(name=str(cluster))
    graph.add_node(CORE)
    for switch, members in cluster.switches.items():
        graph.add_edge(CORE, ("switch", switch))
        for index in members:
            node = cluster.nodes[index]
            graph.add_node(("node", index), gpus=node.gpus, gpu_type=node.gpu_type)
            graph.add_edge(("switch", switch), ("node", index))
    return graph


def distance(cluster: Cluster, first: int, second: int) -> int:
    """Return how far apart two nodes are: half the edges between them in `network`.

    Parameters
    ----------
    cluster : Cluster
        The nodes and their switches.
    first, second : int
        Node indices.

    Returns
    -------
    int
        0 for the same node, 1 under the same switch, 2 across switches.

    Examples
    --------
    >>> racks = Cluster.parse("2x3x4")
    >>> [distance(racks, 0, other) for other in (0, 2, 3)]
    [0, 1, 2]
    """
    if first == second:
        return SAME_NODE
    same = cluster.nodes[first].switch == cluster.nodes[second].switch
    return SAME_SWITCH if same else ACROSS


def spread(cluster: Cluster, nodes: Iterable[int]) -> int:
    """Return the largest distance between any two of the given nodes.

    Parameters
    ----------
    cluster : Cluster
        The nodes and their switches.
    nodes : iterable of int
        Node indices a job runs on.

    Returns
    -------
    int
        0 on one node (or none), 1 under one switch, 2 across switches.

    Examples
    --------
    >>> spread(Cluster.parse("2x3x4"), [0, 1, 2])
    1
    """
    used = set(nodes)
    if len(used) <= 1:
        return SAME_NODE
    return SAME_SWITCH if len({cluster.nodes[node].switch for node in used}) == 1 else ACROSS
