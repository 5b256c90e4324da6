"""Outline of a cluster: its tree with equal nodes and equal racks counted instead of listed."""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from repro.base.counts import quantity
from repro.model.cluster.spec import Cluster
from repro.model.cluster.topology import ROOT, nodes_of_kind

#: Largest number of racks of a domain that are listed one by one. In a domain with more racks,
#: neighbours with equal nodes become one entry, unless the nodes are listed one by one.
MAX_LISTED_RACKS = 16
#: Largest number of entries of racks in a domain, and of equal nodes in a rack. If there are more,
#: a further entry has the number of racks, or of nodes, that are not listed. Domains, and nodes
#: that are listed one by one, have no such limit.
MAX_LISTED_ENTRIES = 40


class EqualNodes(NamedTuple):
    """A number of equal nodes of a rack. Memory and link of a node may be infinite."""

    number: int
    gpus: int
    gpu_type: str | None
    used: int
    gpu_mem_mb: float
    bandwidth_mb_s: float

    @property
    def label(self) -> str:
        """Such as ``8 nodes x 4 v100``."""
        return f"{quantity(self.number, 'node')} x {self.node_label}"

    @property
    def node_label(self) -> str:
        """GPUs and limits of one node, such as ``4 v100, 16,000 MB per GPU``."""
        unit = "GPU" if self.gpus == 1 else "GPUs"
        text = f"{self.gpus} {self.gpu_type or unit}"
        if self.used:
            text += f" ({self.used} more in use)"
        if self.gpu_mem_mb < math.inf:
            text += f", {self.gpu_mem_mb:,.0f} MB per GPU"
        if self.bandwidth_mb_s < math.inf:
            text += f", {self.bandwidth_mb_s:,.0f} MB/s"
        return text


class Rack(NamedTuple):
    """Nodes under one switch, with the number of the switch."""

    switch: int
    nodes: tuple[EqualNodes, ...]


class Domain(NamedTuple):
    """Racks of a domain."""

    number: int
    racks: tuple[Rack, ...]


def domains_of(cluster: Cluster) -> tuple[Domain, ...]:
    """Domains of a cluster with their racks and equal nodes, read from `Cluster.topology`."""
    tree = cluster.topology
    return tuple(
        Domain(
            tree.nodes[domain]["number"],
            tuple(_rack(tree, rack) for rack in tree.successors(domain)),
        )
        for domain in nodes_of_kind(tree, "domain")
    )


def _rack(tree: Any, rack: Any) -> Rack:
    """Switch of a rack and its nodes, equal nodes counted."""
    counts = Counter(
        tuple(tree.nodes[node][name] for name in EqualNodes._fields[1:])
        for node in tree.successors(rack)
    )
    nodes = tuple(EqualNodes(number, *values) for values, number in counts.items())
    return Rack(tree.nodes[rack]["switch"], nodes)


def outline_of(
    cluster: Cluster, *, max_listed_nodes: int = 0, merge_equal_nodes: bool = False
) -> Any:
    """Outline of a cluster as a tree of a few labelled entries, a `networkx.DiGraph`.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    max_listed_nodes : int
        Largest number of nodes that are listed one by one. In a larger cluster, each rack has
        one entry per set of equal nodes, with their count.
    merge_equal_nodes : bool
        Give a rack of equal nodes one entry, such as ``rack 0: 8 nodes x 4 v100``.

    Returns
    -------
    networkx.DiGraph
        The root is `ROOT`, other entries are numbers. Attributes: ``label``, ``kind`` (root,
        domain, rack, node) and ``gpu_type`` of nodes. A cluster with only one domain has no entry
        for it.
    """
    tree = cluster.topology
    outline = tree.__class__()
    total = f"{cluster}: {quantity(cluster.num_nodes, 'node')}, {quantity(cluster.num_gpus, 'GPU')}"
    outline.add_node(ROOT, kind="root", label=total, gpu_type=None)
    numbers = itertools.count()

    def add(parent: Any, kind: str, label: str, gpu_type: str | None = None) -> int:
        number = next(numbers)
        outline.add_node(number, kind=kind, label=label, gpu_type=gpu_type)
        outline.add_edge(parent, number)
        return number

    def add_nodes(entry: int, nodes: Sequence[EqualNodes]) -> None:
        for equal_nodes in nodes[:MAX_LISTED_ENTRIES]:
            add(entry, "node", equal_nodes.label, equal_nodes.gpu_type)
        if hidden := sum(equal_nodes.number for equal_nodes in nodes[MAX_LISTED_ENTRIES:]):
            add(entry, "node", f"{quantity(hidden, 'node')} more")

    one_by_one = cluster.num_nodes <= max_listed_nodes
    domains = domains_of(cluster)
    for domain in domains:
        parent: Any = ROOT
        if len(domains) > 1:
            size = quantity(tree.nodes["domain", domain.number]["gpus"], "GPU")
            parent = add(ROOT, "domain", f"domain {domain.number}: {size}")
        ranges = [[rack] for rack in domain.racks] if one_by_one else _ranges_of(domain.racks)
        for rack_range in ranges[:MAX_LISTED_ENTRIES]:
            name = f"rack {rack_range[0].switch}"
            each = ""
            if len(rack_range) > 1:
                name = f"racks {rack_range[0].switch} to {rack_range[-1].switch}"
                each = "each "
            nodes = rack_range[0].nodes
            if merge_equal_nodes and len(nodes) == 1:
                add(parent, "rack", f"{name}: {each}{nodes[0].label}", nodes[0].gpu_type)
                continue
            size = f": {each}{quantity(sum(equal_nodes.number for equal_nodes in nodes), 'node')}"
            # the only entry of this rack already shows the number of nodes
            if len(nodes) == 1 and not one_by_one:
                size = f", {each}".rstrip(" ,")
            entry = add(parent, "rack", f"{name}{size}")
            if not one_by_one:
                add_nodes(entry, nodes)
                continue
            for index in tree.successors(("rack", domain.number, rack_range[0].switch)):
                values = (tree.nodes[index][field] for field in EqualNodes._fields[1:])
                node = EqualNodes(1, *values)
                add(entry, "node", f"node {index}: {node.node_label}", node.gpu_type)
        if hidden := sum(map(len, ranges[MAX_LISTED_ENTRIES:])):
            add(parent, "rack", f"{quantity(hidden, 'rack')} more")
    return outline


def _ranges_of(racks: Sequence[Rack]) -> list[list[Rack]]:
    """Racks of a domain, divided into ranges that get one entry each.

    If there are at most `MAX_LISTED_RACKS` racks, each rack is a range of its own. Otherwise a
    range has neighbours with equal nodes and successive switches.
    """
    if len(racks) <= MAX_LISTED_RACKS:
        return [[rack] for rack in racks]
    ranges: list[list[Rack]] = []
    for rack in racks:
        last = ranges[-1][-1] if ranges else None
        if last and last.nodes == rack.nodes and last.switch + 1 == rack.switch:
            ranges[-1].append(rack)
        else:
            ranges.append([rack])
    return ranges
