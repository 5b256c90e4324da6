"""One worked example of each paper through the same core, with the numbers the papers print."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from repro import make, simulate
from repro.model.decision import Run, Shares
from repro.model.metrics import time_by_type, unfairness
from repro.model.policy import Policy
from repro.model.records import prediction_errors
from repro.papers.gavel.rounds import choose, priorities, received_after
from repro.perf import Interleaving, IterationModel, MeasuredPlans, ThroughputTable, TrainedModel
from repro.perf.stages import efficiency, interleaving_time
from repro.policies.baselines.scripted import Scripted
from repro.solve.matching import best_pairs


def trace(names, submit, duration, gpus=1, **columns):
    """Return a small trace."""
    n = len(names)
    return pd.DataFrame(
        {
            "job_id": names,
            "submit_time": np.broadcast_to(np.asarray(submit, float), n),
            "duration": np.broadcast_to(np.asarray(duration, float), n),
            "num_gpus": np.broadcast_to(np.asarray(gpus, int), n),
            **columns,
        }
    )


# Tiresias Figure 7 -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings", "interval", "drawn", "ends"),
    [
        ("srsf", {}, None, "1122222222333333", [2, 10, 16]),
        ("las-2d", {}, 1.0, "1232123223223233", [5, 14, 16]),
        ("tiresias-l", {"thresholds": (4,)}, None, "1122223322223333", [2, 12, 16]),
        (
            "tiresias-g",
            {"thresholds": (4,), "history": (4, 8, 12)},
            None,
            "1122223322223333",
            [2, 12, 16],
        ),
    ],
)
def test_tiresias_schedules(name, settings, interval, drawn, ends):
    jobs = trace([1, 2, 3], 0, [2, 8, 6], [2, 1, 2])
    result = simulate(jobs, "1x2", make(name, **settings), interval=interval)
    slots = [""] * 16
    for span in result.intervals.itertuples():
        for slot in range(int(span.start), int(span.end)):
            slots[slot] += str(span.job_id)
    assert "".join(slots) == drawn
    assert result.jobs["end_time"].tolist() == ends
    assert result.jobs["jct"].mean() == pytest.approx(sum(ends) / 3)


# Gavel, lecture example ------------------------------------------------------------------------

SPEEDS = ThroughputTable.of(
    {"a": {"v100": 40, "k80": 10}, "b": {"v100": 12, "k80": 4}, "c": {"v100": 100, "k80": 50}},
    reference="v100",
)
LECTURE = trace(["J0", "J1", "J2"], 0, 36000, model=["a", "b", "c"])
V100 = np.array([40, 12, 100])


def test_gavel_shares_realised_by_rounds():
    result = simulate(LECTURE, "1xv100,1xk80", make("gavel-las", throughputs=SPEEDS), perf=SPEEDS)
    received = time_by_type(result, until=11 * 360) / 360
    assert received["v100"].tolist() == [5, 5, 1]
    assert received["k80"].tolist() == [0, 1, 10]


@pytest.mark.parametrize(
    ("name", "settings", "steps"),
    [
        ("gavel-las", {"throughputs": SPEEDS}, [200 / 11, 64 / 11, 600 / 11]),
        ("las-agnostic", {}, [50 / 3, 16 / 3, 50]),
    ],
)
def test_gavel_effective_throughput(name, settings, steps):
    result = simulate(
        LECTURE, "1xv100,1xk80", make(name, **settings), perf=SPEEDS, rounds={"ideal": "fluid"}
    )
    rates = result.intervals.groupby("job_id")["rate"].first().to_numpy()
    np.testing.assert_allclose(rates * V100, steps, rtol=1e-9)


def test_gavel_gain_is_the_same_for_every_job():
    aware = np.array([200 / 11, 64 / 11, 600 / 11])
    agnostic = np.array([50 / 3, 16 / 3, 50])
    np.testing.assert_allclose(aware / agnostic, 12 / 11)


X = np.array([[0.6, 0.4, 0], [0.2, 0.6, 0.2], [0.2, 0, 0.8]])
RECEIVED = np.array([[3, 1, 0], [1, 3, 0], [0, 0, 4]])


def test_gavel_priorities():
    expected = [[0.2, 0.4, 0], [0.2, 0.2, np.inf], [np.inf, 0, 0.2]]
    np.testing.assert_allclose(priorities(X, RECEIVED), expected)
    assert sorted(choose(X, RECEIVED, [1] * 3, [1] * 3)) == [(0, 1), (1, 2), (2, 0)]
    following = received_after(X, RECEIVED, [1] * 3, [1] * 3)
    assert following.tolist() == [[3, 2, 0], [1, 3, 1], [1, 0, 4]]


@dataclass(frozen=True)
class Drawn(Policy):
    """Shares as drawn on the slides."""

    def decide(self, view):
        kinds = ("v100", "p100", "k80")
        return Shares(tuple(view.jobs), kinds, X[: len(view.jobs)])


def test_gavel_ten_rounds_give_ten_times_x():
    assert received_after(X, 0 * X, [1] * 3, [1] * 3, more=10) == pytest.approx(10 * X)
    jobs = trace([0, 1, 2], 0, 3600)
    result = simulate(jobs, "1xv100,1xp100,1xk80", Drawn(), placement="yarn")
    received = time_by_type(result)[["v100", "p100", "k80"]] / 360
    np.testing.assert_allclose(received, 10 * X, atol=1e-9)
    where = result.intervals.groupby("gpu_type")["nodes"].unique()
    assert {kind: nodes.tolist() for kind, nodes in where.items()} == {
        "v100": [((0, 1),)],
        "p100": [((1, 1),)],
        "k80": [((2, 1),)],
    }


# Muri Figure 4 ---------------------------------------------------------------------------------

STAGES = {"stage_cpu": [2.0, 1, 2, 1], "stage_gpu": [1.0, 2, 1, 2]}
TURNS = Interleaving(("stage_cpu", "stage_gpu"))
MURI = trace(["A", "B", "C", "D"], 0, 30, **STAGES)


@pytest.mark.parametrize(
    ("pair", "period", "gamma"),
    [((0, 1), 3, 1), ((2, 3), 3, 1), ((0, 2), 4, 0.75), ((1, 3), 4, 0.75), ((0, 3), 3, 1)],
)
def test_muri_pairs(pair, period, gamma):
    members = [tuple(MURI.loc[job, list(STAGES)]) for job in pair]
    assert (interleaving_time(members), efficiency(members)) == (period, gamma)
    # ten iterations of both members on one GPU
    result = simulate(MURI.loc[list(pair)], "1x1", Scripted((Run((0, 1), 1),)), perf=TURNS)
    assert result.jobs["jct"].tolist() == [10 * period] * 2
    jobs = result.jobs
    assert jobs["duration"].sum() / (2 * jobs["end_time"].max()) == gamma
    assert result.intervals["gpus"].tolist() == [0.5, 0.5]


def test_muri_fused_jobs():
    assert interleaving_time([(4, 2), (2, 4)]) == 6


def test_muri_matching():
    gamma = TURNS.pair_efficiencies(MURI)
    pairs = best_pairs(gamma)
    assert pairs == [(0, 1), (2, 3)]
    assert sum(gamma[pair] for pair in pairs) == 2.0
    plan = Scripted(tuple(Run(pair, 1) for pair in pairs))
    assert simulate(MURI, "1x2", plan, perf=TURNS).jobs["jct"].tolist() == [30] * 4


def test_muri_last_of_a_group_goes_on_alone():
    jobs = trace(["A", "C"], 0, [30, 60], stage_cpu=[2.0, 2], stage_gpu=[1.0, 1])
    result = simulate(jobs, "1x1", Scripted((Run((0, 1), 1),)), perf=TURNS)
    assert result.jobs["jct"].tolist() == [40, 70]
    assert result.jobs["preemptions"].tolist() == [0, 0]
    assert result.summary()["utilisation"] == 1


# Liquid Figure 1b ------------------------------------------------------------------------------

PLANS = {"a": (0, 0, 0), "b": (0, 1, 2), "c": (0, 0, 1), "d": (0, 1, 1)}
MEASURED = {"pww": 510.0, "p_w_w": 810.0, "pw_w": 767.0, "p_ww": 1190.0}
FITTED = IterationModel(
    {"vgg16": TrainedModel(model_mb=553, images_per_s=35.4, fixed_s=30)},
    pair_mb_s=463,
    node_mb_s=798,
    local_mb_s=1487,
)


def liquid_jobs(duration, n=4):
    columns = {"model": ["vgg16"] * n, "num_ps": 1, "batch_size": 32, "iterations": 210.0}
    return trace(list("abcd")[:n], 0, duration, 3, **columns)


def on_own_nodes(plans):
    """Return the plans side by side, each on nodes of its own."""
    gangs = []
    for job, plan in enumerate(plans.values()):
        gangs.append(Run((job,), 3, tasks=tuple(3 * job + node for node in plan)))
    return Scripted(tuple(gangs))


def test_liquid_measured_plans():
    result = simulate(
        liquid_jobs(510),
        "12x4",
        on_own_nodes(PLANS),
        placement="wished",
        perf=MeasuredPlans({"vgg16": MEASURED}),
    )
    assert result.jobs["jct"].tolist() == pytest.approx([510, 810, 767, 1190])
    nodes = result.intervals.set_index("job_id")["nodes"]
    assert nodes["a"] == ((0, 3),) and nodes["c"] == ((6, 2), (7, 1))


def test_liquid_iteration_model():
    alone = FITTED.run_s("vgg16", PLANS["a"], 32, 210)
    result = simulate(
        liquid_jobs(alone), "12x4", on_own_nodes(PLANS), placement="wished", perf=FITTED
    )
    ours = result.jobs["jct"].to_numpy()
    # the fitted bandwidths are published rounded to whole MB/s
    np.testing.assert_allclose(ours, [533, 802, 722, 1224], atol=1)
    np.testing.assert_allclose(ours, [510, 810, 767, 1190], rtol=0.1)


# PCS Figure 1 ----------------------------------------------------------------------------------

TOY = trace(["J1", "J2", "J3", "J4"], [0, 0, 1, 10], [10, 8, 1, 8])
ELASTIC = {
    "srsf-elastic": make("srsf-elastic"),
    "themis": make("themis", lease=1.0),
    "fifo-elastic": make("fifo-elastic"),
}


@pytest.mark.parametrize(
    ("name", "jcts", "errors", "peak", "foreseen"),
    [
        (
            "srsf-elastic",
            [27, 9, 1, 8],
            [170, 12.5, 0, 0],
            27 / 24.5 - 1,
            [{"J1": 10}, {"J1": 18, "J2": 8}, {"J1": 19, "J2": 9, "J3": 2}, {"J1": 27, "J4": 18}],
        ),
        (
            "themis",
            [19, 16, 2, 17],
            [90, 20 / 3, 0, 0],
            0,
            [
                {"J1": 10},
                {"J1": 18, "J2": 15},
                {"J1": 19, "J2": 16, "J3": 3},
                {"J1": 19, "J2": 16, "J4": 27},
            ],
        ),
        (
            "fifo-elastic",
            [10, 18, 18, 17],
            [0, 0, 0, 0],
            5,
            [
                {"J1": 10},
                {"J1": 10, "J2": 18},
                {"J1": 10, "J2": 18, "J3": 19},
                {"J2": 18, "J3": 19, "J4": 27},
            ],
        ),
    ],
)
def test_pcs_toy(name, jcts, errors, peak, foreseen):
    policy = ELASTIC[name]
    result = simulate(TOY, "1x1", policy, predict=len(TOY))
    fair = simulate(TOY, "1x1", "max-min")
    assert result.jobs["jct"].tolist() == pytest.approx(jcts)
    assert prediction_errors(result.jobs).tolist() == pytest.approx(errors)
    assert unfairness(result, fair).max() == pytest.approx(100 * peak)
    told = []
    for seen in range(1, len(TOY) + 1):
        jobs = simulate(TOY.head(seen), "1x1", policy).jobs
        left = jobs[jobs["end_time"] > jobs["submit_time"].max()]
        told.append(dict(zip(left["job_id"], left["end_time"], strict=True)))
    assert told == [pytest.approx(expected) for expected in foreseen]


def test_pcs_averages():
    results = [simulate(TOY, "1x1", policy, predict=len(TOY)) for policy in ELASTIC.values()]
    means = [result.jobs["jct"].mean() for result in results]
    assert means == pytest.approx([11.25, 13.5, 15.75])
    errors = [result.summary()["avg_pred_err"] for result in results]
    assert errors == pytest.approx([45.625, 24 + 1 / 6, 0])


def test_pcs_processor_sharing():
    jcts = simulate(TOY, "1x1", "max-min").jobs["jct"]
    assert jcts.tolist() == pytest.approx([24.5, 20.5, 3, 17])


def test_until_the_next_arrival_a_playout_is_what_happens():
    def until_10(jobs, policy):
        spans = simulate(jobs, "1x1", policy).intervals
        spans = spans[spans["start"] < 10].assign(end=spans["end"].clip(upper=10))
        return spans.sort_values(["start", "job_id"], ignore_index=True)

    for policy in (*ELASTIC.values(), make("tiresias-l", thresholds=(4.0,))):
        pd.testing.assert_frame_equal(until_10(TOY.head(3), policy), until_10(TOY, policy))
