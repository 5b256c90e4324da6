import itertools

import networkx as nx

from repro.cluster import Cluster, Node
from repro.cluster.topology import CORE, distance, network, spread


def test_graph_is_a_tree_with_every_node_and_switch():
    cluster = Cluster.parse("2x4:v100,3x2x8:a100")
    graph = network(cluster)
    assert nx.is_tree(graph)
    assert graph.number_of_nodes() == 1 + len(cluster.switches) + cluster.num_nodes
    assert graph.nodes["node", 2] == {"gpus": 8, "gpu_type": "a100"}
    assert graph.degree[CORE] == 4


def test_distance_is_half_the_hops():
    cluster = Cluster((Node(4, switch=1), Node(4), Node(4, switch=1), Node(2), Node(1, switch=7)))
    graph = network(cluster)
    for first, second in itertools.product(range(cluster.num_nodes), repeat=2):
        hops = nx.shortest_path_length(graph, ("node", first), ("node", second))
        assert distance(cluster, first, second) * 2 == hops


def test_spread_is_the_largest_distance():
    cluster = Cluster.parse("3x2x4")
    for count in range(4):
        for nodes in itertools.combinations(range(cluster.num_nodes), count):
            pairs = itertools.combinations_with_replacement(nodes, 2)
            assert spread(cluster, nodes) == max((distance(cluster, *p) for p in pairs), default=0)
    assert spread(cluster, [3, 3, 3]) == 0
