"""What every rule must keep, on random clusters and random sequences of take and give back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.model.cluster import Cluster, Node
from repro.placement import make
from repro.placement.idle_nodes import NodeSet

MODELS = {"big": 500.0, "small": 90.0}
SKEWS = {"big": 0.7, "small": 0.05}
SETTINGS = {
    "count": {},
    "yarn": {},
    "random": {},
    "skew": {"skew": SKEWS},
    "ilp": {"skew": SKEWS, "model_mb": MODELS},
    "liquid": {"lambda": 0.3},
}

clusters = st.one_of(
    st.builds(
        lambda nodes, gpus: Cluster((Node(gpus),) * nodes), st.integers(1, 9), st.integers(1, 8)
    ),
    st.lists(st.builds(Node, st.integers(1, 6), st.none(), st.integers(0, 2)), min_size=1).map(
        lambda nodes: Cluster(tuple(nodes))
    ),
)
# Each step frees the job at this place among the live ones (if any) or takes this many GPUs.
steps = st.lists(
    st.tuples(st.booleans(), st.integers(0, 40), st.sampled_from(["big", "small", "other", None])),
    min_size=12,
    max_size=60,
)


def run(placer, cluster, script, check):
    live = {}
    number = 0
    idle = [node.gpus for node in cluster.nodes]
    for frees, amount, model in script:
        if frees and live:
            job = list(live)[amount % len(live)]
            placer.give_back(job)
            for node, gpus in live.pop(job):
                idle[node] += gpus
        elif placer.free:
            gpus = amount % placer.free + 1
            before = list(idle)
            allocation = placer.take(number, gpus, model)
            for node, share in allocation:
                idle[node] -= share
            live[number] = allocation
            check(gpus, model, allocation, before)
            number += 1
        if placer.tracks_nodes:
            assert placer.free == sum(idle)
            assert min(idle) >= 0
    for job in live:
        placer.give_back(job)
    assert placer.free == cluster.num_gpus
    return placer


@pytest.mark.parametrize("name", ["count", "yarn", "random", "skew"])
@settings(max_examples=60)
@given(cluster=clusters, script=steps)
def test_capacity_gangs_and_inverse(name, cluster, script):
    def check(gpus, model, allocation, before):
        if placer.tracks_nodes:
            assert sum(share for _, share in allocation) == gpus
            nodes = [node for node, _ in allocation]
            assert nodes == sorted(set(nodes))
            assert all(0 < share <= before[node] for node, share in allocation)

    placer = make(name, **SETTINGS[name]).bind(cluster, np.random.default_rng(1))
    run(placer, cluster, script, check)
    # Everything given back: the placer answers as a fresh one does.
    for gpus in range(1, cluster.num_gpus + 2):
        assert placer.fits(gpus) == placer.possible(gpus)


@pytest.mark.slow
@settings(max_examples=8)
@given(cluster=clusters, script=steps.map(lambda script: script[:12]))
def test_ilp_capacity_and_traffic(cluster, script):
    def check(gpus, model, allocation, before):
        assert sum(share for _, share in allocation) == gpus
        assert all(0 < share <= before[node] for node, share in allocation)

    placer = make("ilp", **SETTINGS["ilp"]).bind(cluster, np.random.default_rng(1))
    run(placer, cluster, script, check)
    assert placer.traffic == [{} for _ in cluster.nodes]


@settings(max_examples=60)
@given(cluster=clusters, script=steps, seed=st.integers(0, 3))
def test_random_is_the_same_for_the_same_seed(cluster, script, seed):
    seen = []
    for _ in range(2):
        kept = []
        placer = make("random").bind(cluster, np.random.default_rng(seed))
        run(placer, cluster, script, lambda *step, kept=kept: kept.append(step[2]))
        seen.append(kept)
    assert seen[0] == seen[1]


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=8),
    moves=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5)), max_size=200),
)
def test_node_set_answers_as_a_walk_would(sizes, moves):
    idle = list(sizes)
    group = NodeSet(range(len(sizes)), idle)
    for place, amount in moves:
        node = place % len(sizes)
        group.set_idle(node, amount % (sizes[node] + 1))
        gpus = amount % group.size + 1
        enough = [i for i, free in enumerate(idle) if free >= gpus]
        assert group.first_fit(gpus) == min(enough, default=None)
        some = [i for i, free in enumerate(idle) if free]
        tightest = min(enough, key=lambda i: (idle[i], i), default=None)
        if tightest is None:
            tightest = min(some, key=lambda i: (-idle[i], i), default=None)
        assert group.tightest(gpus) == tightest
        assert group.counts == [idle.count(level) for level in range(group.size + 1)]
        # Stale entries are bounded: a node is in a bucket once at most.
        assert all(len(bucket) == len(set(bucket)) for bucket in group._buckets)
