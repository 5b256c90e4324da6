"""``--placement liquid``: the best fit of Liquid's policy, for any policy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro import Cluster, simulate
from repro.base.errors import ParamError
from repro.model.cluster import Node
from repro.placement import make
from repro.placement.network import Gang, NodeResources, Scoring
from repro.testing import small_trace
from repro.trace import synth


@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=6),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.2, 0.5, 1.0]),
    st.sampled_from(["paper", "artifact"]),
)
def test_nodes_are_those_of_best_fit(sizes, gangs, weight, score):
    cluster = Cluster(tuple(Node(gpus, None, number % 2) for number, gpus in enumerate(sizes)))
    placer = make("liquid", **{"lambda": weight}, score=score).bind(
        cluster, np.random.default_rng()
    )
    site = NodeResources(cluster)
    for job, gpus in enumerate(gangs):
        if gpus > placer.free:
            continue
        gang = Gang(int(gpus > 1), gpus - (gpus > 1), 0.0, 0.0)
        tasks = site.best_fit(gang, Scoring(weight, score))
        site.allocate(tasks, gang)
        expected = {node: tasks.count(node) for node in set(tasks)}
        assert dict(placer.take(job, gpus)) == expected


def test_nodes_are_those_of_the_policy_where_no_job_waits():
    trace = synth.make("philly-like", 3, jobs=60, load=0.2, num_gpus=32)
    own, other = (
        simulate(trace, "4x4x4", policy, **options)
        for policy, options in (("liquid", {}), ("srtf", {"placement": "liquid"}))
    )
    assert (own.jobs["start_time"] == own.jobs["submit_time"]).all()
    by_job = [run.intervals.set_index("job_id")["nodes"].to_dict() for run in (own, other)]
    assert by_job[0] == by_job[1]
    assert max(map(len, by_job[0].values())) > 1


def test_settings_and_their_names():
    assert make("liquid", **{"lambda": 0.2}) == make("liquid", lambda_=0.2)
    with pytest.raises(ParamError, match="lambda is 2"):
        make("liquid", **{"lambda": 2})
    with pytest.raises(ParamError, match="placement 'liquid' has no setting 'weight'"):
        make("liquid", weight=0.2)


def test_one_node_per_container_and_the_fall_back_of_too_few_nodes():
    cluster = Cluster.parse("3x4")
    placer = make("liquid", drop="always").bind(cluster, np.random.default_rng())
    assert placer.take(0, 3) == ((0, 1), (1, 1), (2, 1))
    assert sum(gpus for _, gpus in placer.take(1, 9)) == 9


def test_gangs_stay_in_a_domain_if_one_has_the_gpus():
    nodes = (Node(1, None, 0, 0), Node(2, None, 0, 1), Node(2, None, 1, 1))
    placer = make("liquid").bind(Cluster(nodes), np.random.default_rng())
    # the least score of the first container is that of the small node, alone in its domain
    assert placer.take(0, 3) in (((1, 2), (2, 1)), ((1, 1), (2, 2)))
    placer.give_back(0)
    assert sum(gpus for _, gpus in placer.take(1, 5)) == 5


@pytest.mark.parametrize("policy", ["srtf", "las-2d", "yarn-cs", "gavel-las", "max-min"])
def test_any_policy_can_use_it(policy):
    result = simulate(small_trace(), "2x2x2", policy, placement="liquid", slowdown="node=2,rack=3")
    assert result.summary()["n_finished"] == 6
    assert result.meta["placement"].startswith("Liquid")
