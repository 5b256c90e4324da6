"""Cost, Fitness, Score and best-fit of Liquid, by hand and against plain sums."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.base.errors import ParamError
from repro.model.cluster import Cluster, Node
from repro.placement.network import Gang, NodeResources, Scoring

RACKS = Cluster(
    (Node(4, None, 0, 0), Node(4, None, 0, 0), Node(4, None, 1, 0), Node(4, None, 0, 1))
)


def test_cost_counts_the_nodes_of_what_two_nodes_share():
    site = NodeResources(RACKS)
    # a rack is a switch of a domain: switch 0 of domain 1 is another
    assert site.cost((0, 0), 1) == 0
    assert site.cost((0, 1), 1) == 2
    assert site.cost((0, 2), 1) == 3
    assert site.cost((0, 3), 1) == np.inf
    assert site.cost((0, 1, 0, 1, 2), 2) == 2 + 0 + 3 + 0 + 2 + 3


def test_the_artifact_counts_1_in_a_rack_and_4_in_a_domain():
    site = NodeResources(RACKS)
    costs = [site.cost((0, node), 1, "artifact") for node in range(4)]
    assert costs == [0, 1, 4, np.inf]


def test_the_artifact_puts_a_server_on_the_node_of_least_load():
    """Loads (used + 2) / total of nodes of 2 and 8 GPUs: 2 / 2, and (4 + 2) / 8."""
    site = NodeResources(Cluster((Node(2), Node(8))), idle=[2, 4])
    assert site.best_fit(Gang(1, 0), Scoring(formula="artifact")) == (1,)


def test_score_by_hand():
    # nodes of 4 GPUs; two are taken on the first, one on the second
    site = NodeResources(Cluster.parse("2x4"), idle=[2, 3])
    gang = Gang(1, 2)
    assert site.score((0, 0, 1), gang, Scoring(0.5)) == 0.5 * 2 + 0.5 * (-(2 + 2) / 4 - (1 + 1) / 4)
    assert site.score((0, 0, 1), gang, Scoring(0.0)) == -1.5
    assert site.score((0, 0, 1), gang, Scoring(1.0)) == 2
    # pair cost 1; loads (2 + 2) / 4, (3 + 2) / 4, (1 + 2) / 4; two nodes
    assert site.score((0, 0, 1), gang, Scoring(0.5, "artifact")) == pytest.approx(1 + (2 - 3) / 3)


def test_printed_score_sends_the_server_to_a_used_node_and_its_workers_elsewhere():
    site = NodeResources(Cluster.parse("3x2"), idle=[2, 1, 2])
    assert site.best_fit(Gang(1, 2), Scoring()) == (1, 0, 0)
    assert site.best_fit(Gang(1, 2), Scoring(formula="artifact")) == (0, 0, 1)


def test_a_node_that_is_dropped_once_chosen_spreads_the_job():
    site = NodeResources(Cluster.parse("3x4"))
    assert site.best_fit(Gang(1, 2), Scoring(), "always") == (0, 1, 2)
    assert site.best_fit(Gang(1, 3), Scoring(), "always") is None
    assert site.best_fit(Gang(1, 3), Scoring()) == (0, 0, 0, 0)
    assert site.idle.tolist() == [4, 4, 4]


def test_memory_and_bandwidth_filter_the_candidates():
    nodes = (Node(4, gpu_mem_mb=6000.0), Node(4, gpu_mem_mb=16000.0, bandwidth_mb_s=250.0), Node(4))
    site = NodeResources(Cluster(nodes))
    assert site.candidates(Gang(1, 1)).tolist() == [False, True, True]
    assert site.candidates(Gang(1, 1, gpu_mem_mb=4096)).tolist() == [True, True, True]
    assert site.best_fit(Gang(1, 3), Scoring(0)) == (1, 1, 2, 2)


def test_bandwidth_and_containers_per_node_limit_the_capacity():
    site = NodeResources(Cluster((Node(4, bandwidth_mb_s=250.0), Node(4))))
    assert site.capacity(Gang(1, 1)) == 2 + 4
    assert site.capacity(Gang(1, 1), per_node=1) == 2
    assert site.capacity(Gang(1, 1, bandwidth_mb_s=300.0)) == 4


@pytest.mark.parametrize(
    ("weight", "formula", "line"),
    [
        (1.5, "paper", "lambda is 1.5"),
        ("a", "paper", "lambda is 'a'"),
        (0.5, "ours", "score cannot"),
    ],
)
def test_scoring_out_of_range(weight, formula, line):
    with pytest.raises(ParamError, match=line):
        Scoring(weight, formula)


def plain_score(cluster, used, tasks, num_ps, weight):
    """Eqs 2 to 6 as they are printed."""
    nodes = cluster.nodes

    def members(test):
        return sum(1 for node in nodes if test(node))

    def cost(a, b):
        one = nodes[a]
        other = nodes[b]
        if a == b:
            return 0
        if one.domain != other.domain:
            return np.inf
        if one.switch == other.switch:
            return members(lambda n: (n.domain, n.switch) == (one.domain, one.switch))
        return members(lambda n: n.domain == one.domain)

    total = sum(cost(a, b) for a, b in itertools.product(tasks[:num_ps], tasks[num_ps:]))
    fitness = sum(-(tasks.count(n) + used[n]) / nodes[n].total for n in set(tasks))
    return weight * total + (1 - weight) * fitness if total < np.inf else np.inf


@given(st.data())
def test_best_fit_is_greedy_on_the_printed_score(data):
    shape = st.tuples(st.integers(1, 4), st.integers(0, 1), st.integers(0, 1))
    cluster = Cluster(
        tuple(
            Node(gpus, None, switch, domain)
            for gpus, switch, domain in data.draw(st.lists(shape, min_size=1, max_size=6))
        )
    )
    used = [data.draw(st.integers(0, node.gpus)) for node in cluster.nodes]
    num_ps = data.draw(st.integers(1, 2))
    workers = data.draw(st.integers(1, 3))
    weight = data.draw(st.sampled_from([0.0, 0.25, 0.5, 1.0]))
    left = [node.gpus - taken for node, taken in zip(cluster.nodes, used, strict=True)]
    tasks = []
    room = list(left)
    for container in range(num_ps + workers):
        same = [
            n
            for n in range(len(room))
            if room[n] and (not tasks or cluster.nodes[n].domain == cluster.nodes[tasks[0]].domain)
        ]
        if not same:
            tasks = None
            break
        scores = [
            plain_score(cluster, used, [*tasks, n], min(num_ps, container + 1), weight)
            for n in same
        ]
        chosen = next(n for n, s in zip(same, scores, strict=True) if s <= min(scores) + 1e-9)
        tasks.append(chosen)
        room[chosen] -= 1
    site = NodeResources(cluster, left)
    gang = Gang(num_ps, workers)
    ours = site.best_fit(gang, Scoring(weight))
    assert ours == (None if tasks is None else tuple(tasks))
    if ours is not None:
        wanted = plain_score(cluster, used, list(ours), num_ps, weight)
        assert site.score(ours, gang, Scoring(weight)) == pytest.approx(wanted)
