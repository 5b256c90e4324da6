"""Topology of a cluster: a tree of domains, racks and nodes, and arrays that are read from it."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from repro.base.typing import Floats, Ints
from repro.model.cluster.node import Node

#: Node of the tree above all domains.
ROOT = "cluster"


class Racks(NamedTuple):
    """Rack and domain of each node of a cluster.

    Racks are numbered in order of their first node, and so are domains.
    """

    #: rack of each node, (nodes,)
    rack: Ints
    #: domain of each node, (nodes,)
    domain: Ints
    #: number of nodes in the rack of each node, (nodes,)
    rack_sizes: Floats
    #: number of nodes in the domain of each node, (nodes,)
    domain_sizes: Floats
    #: nodes of each rack. The racks are in order of switch and then of domain, not in the order of
    #: the numbers in ``rack``.
    members: tuple[tuple[int, ...], ...]


class NodeLimits(NamedTuple):
    """Limits of each node of a cluster; the arrays refuse changes."""

    #: GPUs that jobs can get, (nodes,)
    gpus: Ints
    #: all GPUs, also those in use by other work, (nodes,)
    total: Floats
    #: memory of a GPU (MB), (nodes,)
    gpu_mem_mb: Floats
    #: link of the node (MB/s), (nodes,)
    bandwidth_mb_s: Floats


def limits_of(nodes: Sequence[Node]) -> NodeLimits:
    """Limits of each node of a cluster."""
    limits = NodeLimits(
        np.array([node.gpus for node in nodes], np.int64),
        np.array([node.total for node in nodes], float),
        np.array([node.gpu_mem_mb for node in nodes], float),
        np.array([node.bandwidth_mb_s for node in nodes], float),
    )
    for values in limits:
        values.setflags(write=False)
    return limits


def tree_of(nodes: Sequence[Node]) -> Any:
    """Tree of a cluster as a directed networkx graph, from the root down to the nodes.

    Parameters
    ----------
    nodes : sequence of Node
        Nodes of the cluster, in order of their index.

    Returns
    -------
    networkx.DiGraph
        The root is `ROOT`, a domain is ``("domain", number)``, a rack is ``("rack", domain,
        switch)``, a node is its index. Attribute ``kind`` is root, domain, rack or node. ``gpus``
        and ``nodes`` count what is below, or the node itself. A node also has ``gpu_type``,
        ``used`` (GPUs), ``gpu_mem_mb`` and ``bandwidth_mb_s``. Equal switches of two domains are
        two racks.
    """
    # most simulations need no tree, and the import takes 0.1 s
    import networkx as nx

    tree = nx.DiGraph()
    tree.add_node(ROOT, kind="root", gpus=0, nodes=0)
    for index, node in enumerate(nodes):
        domain = ("domain", node.domain)
        rack = ("rack", node.domain, node.switch)
        if domain not in tree:
            tree.add_node(domain, kind="domain", number=node.domain, gpus=0, nodes=0)
            tree.add_edge(ROOT, domain)
        if rack not in tree:
            tree.add_node(rack, kind="rack", switch=node.switch, gpus=0, nodes=0)
            tree.add_edge(domain, rack)
        tree.add_node(
            index,
            kind="node",
            gpus=node.gpus,
            nodes=1,
            gpu_type=node.gpu_type,
            used=node.used,
            gpu_mem_mb=node.gpu_mem_mb,
            bandwidth_mb_s=node.bandwidth_mb_s,
        )
        tree.add_edge(rack, index)
        for above in (ROOT, domain, rack):
            tree.nodes[above]["gpus"] += node.gpus
            tree.nodes[above]["nodes"] += 1
    return tree


def nodes_of_kind(tree: Any, kind: str) -> list[Any]:
    """Nodes of the tree of one kind, such as all racks, in the order in which they were added."""
    return [name for name, node_kind in tree.nodes(data="kind") if node_kind == kind]


def racks_of(tree: Any) -> Racks:
    """Racks and domains of the nodes of a cluster, read from its tree."""
    count = tree.nodes[ROOT]["nodes"]
    rack_of = np.empty(count, np.int64)
    domain_of = np.empty(count, np.int64)
    rack_sizes = np.empty(count)
    domain_sizes = np.empty(count)
    domain_number = {domain: number for number, domain in enumerate(nodes_of_kind(tree, "domain"))}
    members: dict[tuple[int, int], tuple[int, ...]] = {}
    for number, rack in enumerate(nodes_of_kind(tree, "rack")):
        indices = list(tree.successors(rack))
        (domain,) = tree.predecessors(rack)
        rack_of[indices] = number
        domain_of[indices] = domain_number[domain]
        rack_sizes[indices] = tree.nodes[rack]["nodes"]
        domain_sizes[indices] = tree.nodes[domain]["nodes"]
        key = tree.nodes[rack]["switch"], tree.nodes[domain]["number"]
        members[key] = tuple(indices)
    in_order = tuple(members[key] for key in sorted(members))
    return _read_only(Racks(rack_of, domain_of, rack_sizes, domain_sizes, in_order))


def one_rack(count: int) -> Racks:
    """Racks of a cluster whose nodes are all in one rack."""
    zeros = np.zeros(count, np.int64)
    sizes = np.full(count, float(count))
    return _read_only(Racks(zeros, zeros, sizes, sizes, (tuple(range(count)),)))


def is_one_rack(nodes: Iterable[Node]) -> bool:
    """Whether all nodes are under one switch of one domain."""
    return len({(node.domain, node.switch) for node in nodes}) == 1


def _read_only(racks: Racks) -> Racks:
    """Racks whose arrays refuse changes, as all placements of a cluster share them."""
    for values in racks[:4]:
        values.setflags(write=False)
    return racks
