"""Liquid and the schedulers it is compared with: published replays, plans, bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro import make, simulate
from repro.base.errors import InputWarning, ParamError, PolicyError, TraceError
from repro.model.cluster import Cluster, Node
from repro.placement.network import Gang, NodeResources
from repro.policies.liquid.grouping import GeneticSettings

#: the batch of Fig 19: model, batch size, batches
JOBS = [
    ("inception3", 12, 250),
    ("resnet50", 28, 850),
    ("resnet50", 4, 950),
    ("vgg16", 32, 1000),
    ("resnet50", 4, 850),
    ("inception3", 4, 1000),
    ("resnet50", 16, 750),
    ("vgg16", 20, 750),
]


def batch(times=1):
    """The jobs of Fig 19; N of Eq 1 has ten warm-up batches."""
    model, size, batches = zip(*JOBS * times, strict=True)
    rows = range(len(model))
    return pd.DataFrame(
        {"job_id": rows, "submit_time": 0.0, "duration": 1.0, "num_gpus": 3, "model": model}
        | {"num_ps": 1, "batch_size": size, "iterations": np.array(batches) + 10.0}
    )


def both(nodes, policy, seed=0):
    done = simulate(batch(nodes // 5), f"{nodes}x2", policy, seed=seed).summary()
    return round(done["avg_jct"]), round(done["makespan"])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # exact replays
        ({}, [(1033, 2747), (1296, 3998), (1209, 4054), (1067, 3523)]),
        ({"score": "artifact"}, [(795, 2073), (801, 2320), (770, 2360), (779, 2413)]),
    ],
)
def test_first_in_first_out_on_t4_nodes(settings, expected):
    policy = make("liquid", times="t4", **settings)
    assert [both(nodes, policy) for nodes in (5, 10, 15, 20)] == expected


@pytest.mark.parametrize("weight", [0.1, 0.5, 0.9])
def test_lambda_hardly_matters_under_the_printed_score(weight):
    assert both(5, make("liquid", times="t4", **{"lambda": weight})) == (1033, 2747)


@pytest.mark.parametrize(
    "name", ["liquid-random", "liquid-even", "kubernetes", "kubeflow", "hived"]
)
def test_means_over_seeds_are_near_the_expected_values(name):
    expected = {"liquid-random": 1043, "liquid-even": 1006, "hived": 1217}.get(name, 1041)
    mean = np.mean([both(10, make(name, times="t4"), seed)[0] for seed in range(20)])
    assert mean == pytest.approx(expected, rel=0.03)


def rng():
    return np.random.default_rng(1)


def test_nodes_of_containers():
    gang = Gang(1, 2)

    def nodes(name, **settings):
        site = NodeResources(Cluster.parse("4x3"), idle=[3, 1, 2, 3])
        return make(name, **settings).place(site, [gang], rng())[0]

    assert sorted(nodes("liquid-even")) in ([0, 2, 3], [0, 0, 3], [0, 3, 3])
    assert nodes("liquid-pack") == (1, 2, 2)
    assert nodes("hived") == (2, 1, 2)
    assert sorted(nodes("kubernetes")) in ([0, 2, 3], [0, 0, 3], [0, 3, 3])


def test_a_job_starts_with_its_last_pod():
    trace = batch().iloc[:2].assign(num_gpus=[3, 2], submit_time=[0.0, 1.0])
    done = simulate(trace, "2x2", make("kubernetes", times="t4"))
    first, second = done.jobs["start_time"]
    assert (first, second) == (0, done.jobs["end_time"][0])
    interval = done.intervals.query("job_id == 1")
    assert interval[["gpus", "rate"]].to_numpy()[0].tolist() == [1, 0]


def test_kubernetes_and_kubeflow_have_different_samples():
    sampled = [make(name).generator(0).integers(1 << 30) for name in ("kubernetes", "kubeflow")]
    assert sampled[0] != sampled[1]


def test_a_batch_ends_before_the_first_job_that_does_not_fit():
    site = NodeResources(Cluster((Node(2, gpu_mem_mb=12000.0),)))
    plans = make("liquid-batch").place(site, [Gang(0, 1), Gang(0, 1, 16000.0)], rng())
    assert plans == [(0,), None]
    assert site.idle.tolist() == [1]


def test_the_generator_decides_the_plan_of_a_batch():
    policy = make("liquid-batch", generations=1, best_fit=False)

    def plan(seed):
        site = NodeResources(Cluster.parse("6x3"))
        return policy.place(site, [Gang(1, 2)] * 3, np.random.default_rng(seed))

    assert plan(0) == plan(0)
    assert len({tuple(plan(seed)) for seed in range(6)}) > 1


def test_a_batch_has_the_settings_of_the_search_by_default():
    assert make("liquid-batch").genetic() == GeneticSettings()
    other = {"generations": 5, "near": 0.25, "elitist": False, "best_fit": False}
    assert make("liquid-batch", **other).genetic() == GeneticSettings(**other)


def test_the_head_blocks():
    trace = batch().iloc[:3].assign(num_gpus=[2, 4, 1], num_ps=[1, 1, 0], duration=10.0)
    starts = simulate(trace, "2x2", "liquid").jobs["start_time"]
    assert starts.tolist() == [0, 10, 20]


def test_a_job_gets_another_domain_if_the_greedy_choice_is_too_small():
    cluster = Cluster((Node(1, None, 0, 0), Node(2, None, 0, 1), Node(2, None, 0, 1)))
    trace = batch().iloc[:1]
    # the printed score prefers the smallest node, whose domain is too small for the job
    assert make("liquid").place(NodeResources(cluster), [Gang(1, 2)], rng()) == [None]
    nodes = simulate(trace, cluster, "liquid").intervals["tasks"][0]
    assert set(nodes) <= {1, 2}


@pytest.mark.parametrize("policy", ["kubernetes", "kubeflow", "hived"])
def test_the_first_pod_avoids_a_domain_that_is_too_small_for_its_job(policy):
    cluster = Cluster((Node(2, None, 0, 0), Node(4, None, 0, 1)))
    trace = batch().iloc[:2].assign(num_gpus=[2, 4], duration=10.0)
    for seed in range(6):
        intervals = simulate(trace, cluster, policy, seed=seed).intervals
        plans = intervals.loc[intervals["job_id"] == 1, "tasks"]
        assert {node for plan in plans for node in plan} == {1}


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"lambda": 2}, "lambda is 2; give a number from 0 to 1"),
        ({"lambda": "much"}, "lambda"),
        ({"times": "v100"}, r"times cannot be 'v100' \(accepted: measured, k80, t4"),
        ({"score": "best"}, "give paper or artifact"),
    ],
)
def test_bad_settings(settings, line):
    with pytest.raises(ParamError, match=line):
        make("liquid", **settings)


@pytest.mark.parametrize(
    ("change", "settings", "line"),
    [
        ({"num_gpus": 9}, {}, "can never run"),
        ({"num_gpus": 4}, {"drop": "always"}, "can never be placed by 'liquid': 4 containers"),
        ({"gpu_mem_mb": 16000.0}, {}, "3 containers of 16000 MB of GPU memory"),
        ({"num_ps": 5}, {}, "num_ps is 5, but it asks for 3 GPUs"),
        ({"model": "alexnet"}, {"times": "t4"}, "no iteration model for 'alexnet'"),
    ],
)
def test_jobs_that_can_never_be_placed(change, settings, line):
    cluster = Cluster(tuple(Node(2, gpu_mem_mb=11439.0) for _ in range(3)))
    with pytest.raises((PolicyError, TraceError, ParamError), match=line):
        simulate(batch().iloc[:1].assign(**change), cluster, make("liquid", **settings))


def test_gpus_held_while_waiting_count_as_attained_service():
    service = []

    def watch(engine):
        yield engine.env.timeout(12.0)
        service.append(float(engine.table.earlier_service[1]))

    # job 1 holds one GPU from 1 to 10 s, when job 0 ends
    trace = pd.DataFrame(
        {"job_id": [0, 1], "submit_time": [0.0, 1.0], "duration": [10.0, 5.0], "num_gpus": [1, 2]}
    )
    result = simulate(trace, "1x2", "kubernetes", processes=[watch])
    assert result.jobs["start_time"].tolist() == [0.0, 10.0]
    assert service == [9.0]


def test_pods_that_wait_make_no_progress_under_costs_of_every_interval():
    trace = pd.DataFrame(
        {
            "job_id": [0, 1],
            "submit_time": [0.0, 0.0],
            "duration": [1000.0, 1000.0],
            "num_gpus": [3, 3],
            "model": "vgg16",
            "iteration_time": 1.0,
            "iterations": 1000.0,
        }
    )
    with pytest.warns(InputWarning, match="liquid-pack"):
        result = simulate(trace, "1x4", "kubernetes", rules="muri")
    first, second = result.jobs["end_time"]
    # an iteration takes 1.015 s, and a start some seconds
    assert first >= 1014
    assert second >= first + 1014


def test_a_job_of_servers_alone_is_named():
    jobs = pd.DataFrame(
        {
            "job_id": ["alone", "servers"],
            "submit_time": 0.0,
            "duration": 600.0,
            "num_gpus": [1, 2],
            "num_ps": [0, 2],
            "model": "vgg16",
            "batch_size": 32,
            "iterations": 100.0,
        }
    )
    message = (
        r"^job 'servers': 2 parameter servers and 0 workers: give at least one of each \(num_ps "
        r"from 1 to num_gpus - 1\)$"
    )
    with pytest.raises(ParamError, match=message):
        simulate(jobs, "2x4", make("liquid", times="t4"))


@pytest.mark.parametrize("placement", ["count", "yarn", "liquid"])
@pytest.mark.parametrize("policy", ["liquid", "kubernetes"])
def test_a_placement_is_refused_if_the_policy_names_nodes(policy, placement):
    message = f"placement '{placement}': policy '{policy}' names the nodes of its jobs itself"
    with pytest.raises(ParamError, match=message):
        simulate(batch(), "5x2", policy, placement=placement)
