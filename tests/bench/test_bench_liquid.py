"""What Liquid's placement costs, in units of a bare event loop measured in the same run."""

from __future__ import annotations

import pytest
from costs import measure

from repro import make, simulate
from repro.model.cluster import Cluster
from repro.placement.network import Gang, NodeResources
from repro.trace import synth

#: 500 containers
JOBS = [Gang(1, 2)] * 166 + [Gang(1, 1)]


@pytest.mark.parametrize(("name", "limit"), [("liquid", 8), ("liquid-batch", 120)])
def test_500_containers_on_200_nodes(benchmark, name, limit):
    policy = make(name)

    def place():
        return policy.place(NodeResources(Cluster.parse("200x4")), JOBS, policy.generator(0))

    # compiles the loops of the search
    policy.place(NodeResources(Cluster.parse("3x2")), JOBS[:2], policy.generator(0))
    cost, plans = measure(benchmark, f"{name}, 500 containers, 200 nodes", 1, place)
    assert all(plan is not None for plan in plans)
    assert cost <= limit


@pytest.mark.parametrize(("name", "limit"), [("liquid", 4), ("liquid-batch", 60)])
def test_batches_on_20_nodes(benchmark, name, limit):
    trace = synth.make("liquid-batch-jobs", 0, jobs=32)
    policy = make(name, times="t4")
    cost, result = measure(
        benchmark, f"{name}, Fig 19 on 20 nodes", 1, simulate, trace, "20x2", policy
    )
    assert result.summary()["n_finished"] == 32
    assert cost <= limit
