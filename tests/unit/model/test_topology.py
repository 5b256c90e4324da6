"""The tree of a cluster, and the arrays that network cost and placement read from it."""

import subprocess
import sys
import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.model.cluster import Cluster, Node
from repro.model.cluster.topology import ROOT, nodes_of_kind
from repro.placement.network import NodeResources
from repro.placement.yarn import YarnPlacer

SHAPES = st.tuples(st.integers(1, 4), st.integers(0, 2), st.integers(0, 2))


def cluster_of(shapes):
    return Cluster(tuple(Node(gpus, None, switch, domain) for gpus, switch, domain in shapes))


def test_tree_of_a_spec():
    tree = Cluster.parse("2x3x4:v100").topology
    assert nx.is_arborescence(tree)
    assert tree.nodes[ROOT] == {"kind": "root", "gpus": 24, "nodes": 6}
    assert tree.nodes["rack", 0, 1] == {"kind": "rack", "switch": 1, "gpus": 12, "nodes": 3}
    assert list(tree.successors(("rack", 0, 1))) == [3, 4, 5]
    assert tree.nodes[5]["gpu_type"] == "v100"
    assert tree.nodes[5]["bandwidth_mb_s"] == np.inf


def test_a_file_has_memory_and_bandwidth_at_the_nodes(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("nodes: [{gpus: 4, used: 1, gpu_mem_mb: 16000, bandwidth_mb_s: 1250}]")
    tree = Cluster.parse(path).topology
    assert tree.nodes[0] == {
        "kind": "node",
        "gpus": 3,
        "nodes": 1,
        "gpu_type": None,
        "used": 1,
        "gpu_mem_mb": 16000.0,
        "bandwidth_mb_s": 1250.0,
    }


@given(st.lists(SHAPES, min_size=1, max_size=12))
def test_arrays_are_those_of_the_tree(shapes):
    cluster = cluster_of(shapes)
    tree = cluster.topology
    racks = cluster.racks
    kinds = dict(tree.nodes(data="kind"))
    assert len(nodes_of_kind(tree, "rack")) == len(racks.members)
    assert sorted(node for members in racks.members for node in members) == list(range(len(shapes)))
    for node in range(len(shapes)):
        rack, domain = nx.shortest_path(tree, ROOT, node)[-2], nx.shortest_path(tree, ROOT, node)[1]
        assert racks.rack[node] == nodes_of_kind(tree, "rack").index(rack)
        assert racks.domain[node] == nodes_of_kind(tree, "domain").index(domain)
        leaves = [name for name in nx.descendants(tree, rack) if kinds[name] == "node"]
        assert racks.rack_sizes[node] == len(leaves)


@given(st.lists(SHAPES, min_size=1, max_size=8))
def test_network_cost_is_the_size_of_the_lowest_common_room(shapes):
    cluster = cluster_of(shapes)
    tree = cluster.topology
    site = NodeResources(cluster)
    every = np.arange(len(shapes))
    costs = site.pair_costs(every[:, None], every[None, :])
    pairs = [(a, b) for a in every.tolist() for b in every.tolist()]
    for (a, b), room in nx.tree_all_pairs_lowest_common_ancestor(tree, ROOT, pairs):
        expected = tree.nodes[room]["nodes"]
        if a == b:
            expected = 0
        elif room == ROOT:
            expected = np.inf
        assert costs[a, b] == expected


def test_equal_switches_of_two_domains_are_two_racks():
    cluster = cluster_of([(2, 0, 0), (2, 0, 1)])
    # one switch holds no gang of four
    assert not YarnPlacer(cluster).possible(4)
    assert YarnPlacer(cluster_of([(2, 0, 0), (2, 0, 0)])).possible(4)
    assert cluster.switches == {0: (0, 1)}


def test_arrays_refuse_changes():
    with pytest.raises(ValueError, match="read-only"):
        Cluster.parse("2x2x4").racks.rack[0] = 1
    site = NodeResources(Cluster.parse("2x2x4"))
    site.link_mb_s[0] = 1.0


def test_a_run_in_one_rack_makes_no_tree():
    code = (
        "import sys, repro; from repro.testing import small_trace\n"
        "for placement in ('count', 'yarn'):\n"
        "    repro.simulate(small_trace(), '4x4', 'srtf', placement=placement)\n"
        "repro.simulate(small_trace(), '4x4', 'liquid')\n"
        "print('networkx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_million_nodes_in_one_rack_are_fast():
    cluster = Cluster.parse("1000000x8")
    start = time.process_time()
    assert len(cluster.racks.members[0]) == 1_000_000
    assert time.process_time() - start < 2.0
