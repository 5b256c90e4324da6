"""Slow-down of spread gangs: factors, topology, other performance models below it."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pandas as pd
import pytest

from repro import Cluster, Policy, RunSet, make, simulate
from repro.base.errors import ParamError, PolicyError, TraceError
from repro.model.cluster import Node
from repro.model.decision import Run
from repro.perf import Interleaving, SpeedUp, ThroughputTable
from repro.perf.slowdown import Slowdown, slowed, tiresias_slowdown


def jobs(*rows, **columns):
    """Trace of rows (submit time, duration, GPUs)."""
    submit, duration, gpus = zip(*rows, strict=True)
    times = {"submit_time": submit, "duration": duration, "num_gpus": gpus}
    return pd.DataFrame({"job_id": range(len(rows)), **times, **columns}).astype(
        {"submit_time": float, "duration": float}
    )


#: Two jobs of 3 GPUs on nodes of 4 leave 1 + 1 idle, where the job of 2 GPUs is spread.
SPREAD = ((0, 100, 3), (0, 100, 3), (1, 50, 2))


def ends(*args, **options):
    return simulate(*args, **options).jobs["end_time"].tolist()


@pytest.mark.parametrize("value", [1.5, "1.5", "node=1.5", Slowdown(node=1.5)])
def test_a_spread_gang_takes_longer_by_hand(value):
    assert ends(jobs(*SPREAD), "2x4", "srtf", slowdown=value) == pytest.approx([100, 100, 76])


def test_consolidated_gangs_keep_their_times():
    trace = jobs((0, 100, 4), (0, 100, 8), (200, 10, 1))
    assert ends(trace, "4x4", "srtf", slowdown=3) == ends(trace, "4x4", "srtf")


def test_racks_count_where_nodes_are_as_many_as_needed():
    # 8 GPUs need two nodes, which are in two racks after job 0 took one of rack 0
    trace = jobs((0, 300, 4), (0, 300, 4), (1, 100, 8))
    cluster = "2x2x4"
    busy = {"placement": "random", "seed": 0}
    near = simulate(trace, cluster, "srtf", slowdown="node=2,rack=1.5")
    assert near.jobs["end_time"].tolist() == [300, 300, 101]
    far = simulate(trace, cluster, "srtf", slowdown="rack=1.5", **busy)
    spans = far.intervals
    racks = [len({node // 2 for node, _ in nodes}) for nodes in spans["nodes"]]
    expected = {job: 1.5 if racks[job] > 1 else 1.0 for job in range(3)}
    assert expected[2] == 1.5
    times = (far.jobs["end_time"] - far.jobs["start_time"]) / trace["duration"]
    assert times.tolist() == pytest.approx(list(expected.values()))


def test_the_larger_factor_counts_on_more_racks():
    slowdown = Slowdown(node=2.0, rack=1.5)
    assert slowdown.speed(None, more_nodes=True, more_racks=True) == 0.5
    assert slowdown.speed(None, more_nodes=False, more_racks=True) == 1 / 1.5
    assert Slowdown(node=1.2, rack=1.5).speed(None, more_nodes=True, more_racks=True) == 1 / 1.5
    assert Slowdown(node=1.2).speed(None, more_nodes=False, more_racks=True) == 1.0


def test_needed_nodes_and_racks_of_unequal_nodes():
    nodes = (Node(8, "v100"), Node(4, "v100"), Node(4, "k80", 1), Node(4, "k80", 2))
    model = slowed(None, Slowdown(), Cluster(nodes))
    assert [model.needed(gpus, None)[0] for gpus in (1, 8, 9, 12, 13, 17)] == [1, 1, 2, 2, 3, 4]
    assert [model.needed(gpus, None)[1] for gpus in (12, 13, 17)] == [1, 2, 3]
    assert [model.needed(gpus, "k80") for gpus in (4, 5)] == [(1, 1), (2, 2)]


def test_models_of_tiresias():
    trace = jobs(*SPREAD, model=["x", "x", "VGG16"])
    result = simulate(trace, "2x4", "srtf", slowdown="tiresias")
    assert result.jobs["end_time"].tolist() == pytest.approx([100, 100, 1 + 50 / 0.73])
    assert result.summary()["notes"] == [
        "slowdown: 2 of 3 jobs have a model without a measured slow-down (x) and run at the same "
        "speed on any nodes"
    ]
    balanced = jobs(*SPREAD, model=["resnet50"] * 3)
    result = simulate(balanced, "2x4", "srtf", slowdown=tiresias_slowdown())
    assert result.jobs["end_time"].tolist() == pytest.approx([100, 100, 1 + 50 / 1.08])
    assert result.summary()["notes"] == []


def test_models_with_skew_suffer_less_under_their_own_placement():
    rows = ((0, 100, 3), (0, 100, 3), (0, 100, 2), (110, 100, 6))
    trace = jobs(*rows, model=["resnet50", "resnet50", "vgg16", "vgg16"])
    times = {
        rule: simulate(trace, "3x4", "srtf", placement=rule, slowdown="tiresias", seed=1)
        .jobs["jct"]
        .sum()
        for rule in ("skew", "random")
    }
    assert times["skew"] < times["random"]


def test_speed_up_curves_below():
    perf = SpeedUp({"m": (1.0, 1.5)})
    trace = jobs(*SPREAD, model=["", "", "m"])
    policy = make("fifo-elastic")
    # elastic policies divide GPUs; the job of two is spread at the end of the first two
    nominal = simulate(trace, "2x4", policy, perf=perf, placement="yarn")
    slow = simulate(trace, "2x4", policy, perf=perf, placement="yarn", slowdown=2.0)
    assert slow.jobs["end_time"].iloc[2] > nominal.jobs["end_time"].iloc[2]
    assert slow.jobs["end_time"].iloc[:2].tolist() == nominal.jobs["end_time"].iloc[:2].tolist()


def test_throughputs_below():
    table = ThroughputTable(
        {("m", 3): {"k80": 1.0, "v100": 4.0}, ("m", 2): {"k80": 1.0, "v100": 2.0}}, "v100"
    )
    trace = jobs(*SPREAD, model=["m"] * 3)
    options = {"perf": table, "rounds": {"round_s": 1000.0}}
    assert ends(trace, "2x4:v100", "gavel-las", **options) == [100, 100, 1050]
    spread = jobs((0, 100, 3), (0, 100, 3), (0, 50, 2), model=["m"] * 3)
    # jobs 0 and 2 have a node each, and job 1 gets the GPU and the two GPUs that are left
    assert ends(spread, "2x4:v100", "gavel-las", slowdown=2.0, **options) == [100, 200, 50]


def test_interleaving_below():
    stages = dict.fromkeys(("stage_storage", "stage_cpu", "stage_gpu", "stage_network"), 0.25)
    trace = jobs(*SPREAD, iteration_time=1.0, iterations=[100, 100, 50], **stages)
    result = simulate(trace, "2x4", "srtf", perf=Interleaving(), slowdown=1.5)
    assert result.jobs["end_time"].tolist() == pytest.approx([100, 100, 76])
    grouped = {
        factor: simulate(trace, "1x4,4x1", "muri-s", slowdown=factor, placement="random", seed=3)
        for factor in (1, 4)
    }
    assert grouped[4].summary()["avg_jct"] > grouped[1].summary()["avg_jct"]


def test_exact_paces_of_muri_below():
    stages = dict.fromkeys(("stage_storage", "stage_cpu", "stage_gpu", "stage_network"), 0.25)
    trace = jobs((0, 1000, 4), iteration_time=1.0, iterations=1000, model="vgg16", **stages)
    options = {"rules": "muri", "perf": Interleaving(), "placement": "random"}
    times = [
        simulate(trace, "2x4", "srtf", slowdown=factor, **options).jobs["end_time"].to_numpy()
        for factor in (1, 2)
    ]
    # Muri's simulator multiplies the time of a lone job by 1.015
    assert (times[1] - times[0]).tolist() == pytest.approx([1015])


def test_a_factor_of_one_changes_nothing():
    trace = jobs(*SPREAD, (2, 30, 4), (3, 60, 1))
    for policy in ("srtf", "las-2d", "yarn-cs", "gavel-las", "max-min", "gandiva"):
        plain = simulate(trace, "2x4", policy, placement="yarn")
        same = simulate(trace, "2x4", policy, placement="yarn", slowdown=1)
        pd.testing.assert_frame_equal(plain.jobs, same.jobs, check_exact=True)


def test_the_default_placement_then_chooses_nodes():
    trace = jobs(*SPREAD)
    assert simulate(trace, "2x4", "srtf", slowdown=2).meta["placement"].startswith("Yarn")
    assert simulate(trace, "2x4", "srtf").meta["placement"].startswith("Count")
    assert simulate(trace, "2x4", "liquid", slowdown=2).meta["placement"].startswith("Wished")


def test_liquid_under_a_slow_down_is_not_called_its_baseline():
    trace = jobs(*SPREAD)
    assert "liquid-pack" in simulate(trace, "2x4", "liquid").summary()["notes"][0]
    assert simulate(trace, "2x4", "liquid", slowdown=2).summary()["notes"] == []


def test_it_can_be_sent_to_other_processes():
    model = slowed(Interleaving(), Slowdown(node=2.0), Cluster.parse("2x4"))
    again = pickle.loads(pickle.dumps(model))
    assert repr(again) == repr(model)
    assert hasattr(again, "paces") and not hasattr(again, "renew")


def test_groups_need_a_base():
    @dataclass(frozen=True)
    class Pair(Policy):
        def decide(self, view):
            return RunSet([Run(tuple(view.jobs), 1)])

    trace = jobs((0, 10, 1), (0, 10, 1))
    with pytest.raises((ParamError, PolicyError), match="no rates of grouped jobs"):
        simulate(trace, "2x4", Pair(), slowdown=2)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (0.5, "node is 0.5; give a factor from 1 to 1000"),
        ("0.5", "node is 0.5"),
        ("nan", "node is nan"),
        ("1e9", "node is 1000000000.0"),
        ("fast", "'fast' is no number; give a factor such as 1.3"),
        ("node=x", "'x' is no number"),
        ("nodes=1.2", "'nodes' is no level; did you mean 'node'"),
        ("node=1.2,node=1.3", "'node' is given twice; give a factor"),
        ("", "is no number"),
        (True, "slowdown is True; give a factor"),
        ([1.3], "slowdown is"),
    ],
)
def test_bad_values_are_one_line(value, line):
    with pytest.raises(ParamError, match=line) as caught:
        simulate(jobs(*SPREAD), "2x4", "srtf", slowdown=value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("cluster", "value", "levels"),
    [
        ("1x4", "1.3", ["node"]),
        ("1x4", "node=1.3,rack=2", ["node", "rack"]),
        ("2x4", "rack=2", ["rack"]),
        ("2x4", "1.3", []),
        ("2x2x4", "node=1.3,rack=2", []),
        ("1x4", "1", []),
    ],
)
def test_a_note_names_levels_without_effect(cluster, value, levels):
    notes = simulate(jobs(*SPREAD), cluster, "srtf", slowdown=value).summary()["notes"]
    assert notes == [
        f"slowdown: {cluster} has one {level}, so no gang spans more {level}s than it needs"
        for level in levels
    ]


def test_what_has_no_nodes_is_refused():
    trace = jobs(*SPREAD)
    with pytest.raises(ParamError, match="placement 'count' chooses no nodes"):
        simulate(trace, "2x4", "srtf", slowdown=2, placement="count")
    with pytest.raises(TraceError, match="no job of the trace has a model with a measured"):
        simulate(trace, "2x4", "srtf", slowdown="tiresias")
    with pytest.raises(ParamError, match="the placement rule chooses nodes"):
        simulate(trace, "2x4", "max-min", rules="pcs", slowdown=2)
    with pytest.raises(ParamError, match="ideal execution has no nodes"):
        simulate(trace, "2x4", "gavel-las", rounds={"ideal": "fluid"}, slowdown=2)
