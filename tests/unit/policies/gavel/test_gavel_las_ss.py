"""Gavel's policies with space sharing in whole runs: LAS, makespan and FIFO."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from repro import make, simulate
from repro.base.errors import ParamError
from repro.perf.throughput import ThroughputTable
from repro.policies.gavel._pair_table import EstimatedPairs, PairTable
from repro.policies.gavel.fifo_ss import fifo_pairs

MODELS = ("a", "b", "c")
GPU_TYPES = ("k80", "p100", "v100")
CLUSTER = "2xv100,2xp100,2xk80"


def table(together=0.8):
    """Three models; ``together`` is the fraction of its throughput that a job retains in a pair."""
    rng = np.random.default_rng(1)
    rows = {
        (model, width): dict(zip(GPU_TYPES, np.sort(rng.uniform(1, 9, 3)) * width, strict=True))
        for model in MODELS
        for width in (1, 2)
    }
    pairs = {
        (one, two, width): {
            gpu_type: (together * rows[one, width][gpu_type], together * rows[two, width][gpu_type])
            for gpu_type in GPU_TYPES
        }
        for one in MODELS
        for two in MODELS
        for width in (1, 2)
    }
    return ThroughputTable(rows, "v100", pairs)


def jobs(count=24, gap=60.0, wide=0.3):
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "job_id": np.arange(count),
            "submit_time": gap * np.arange(count),
            "duration": rng.uniform(2_000, 20_000, count),
            "num_gpus": np.where(rng.random(count) < wide, 2, 1),
            "model": rng.choice(MODELS, count),
            "iterations": rng.uniform(10_000, 100_000, count),
        }
    )


def mean_jct(result):
    return float((result.jobs["end_time"] - result.jobs["submit_time"]).mean())


@pytest.mark.parametrize("rules", ["paper", "gavel"])
@pytest.mark.parametrize(
    ("shared", "alone"),
    [("gavel-las-ss", "gavel-las"), ("gavel-fifo-ss", "gavel-fifo"), ("gandiva-ss", "isolated")],
)
def test_sharing_helps_when_it_pays(rules, shared, alone):
    perf = table(0.95)
    with_pairs = simulate(jobs(), CLUSTER, shared, rules=rules, perf=perf)
    assert with_pairs.summary()["n_finished"] == 24
    assert mean_jct(with_pairs) < mean_jct(simulate(jobs(), CLUSTER, alone, rules=rules, perf=perf))


@pytest.mark.parametrize(
    "settings", [{"spread": "few"}, {"pairs": "useful"}, {"optimum": "vertex"}]
)
def test_variants_end_near_each_other(settings):
    perf = table(0.9)
    default = mean_jct(simulate(jobs(), CLUSTER, "gavel-las-ss", perf=perf))
    variant = mean_jct(simulate(jobs(), CLUSTER, make("gavel-las-ss", **settings), perf=perf))
    assert variant == pytest.approx(default, rel=0.2)


def test_without_useful_pairs_no_jobs_share():
    perf = table(0.3)
    policy = make("gavel-las-ss", pairs="useful")
    # a cluster in demand from the first round on
    trace = jobs(gap=0.0, wide=0.0)
    shared = simulate(trace, CLUSTER, policy, perf=perf)
    assert mean_jct(shared) == pytest.approx(
        mean_jct(simulate(trace, CLUSTER, "gavel-las", perf=perf)), rel=0.05
    )


def test_full_profiling_changes_no_result():
    perf = table(0.9)
    known = simulate(jobs(12), CLUSTER, "gavel-las-ss", perf=perf).jobs
    policy = make("gavel-las-ss", profiled=1.0, references=3)
    profiled = simulate(jobs(12), CLUSTER, policy, perf=perf).jobs
    assert profiled["end_time"].tolist() == pytest.approx(known["end_time"].tolist())


def test_profiling_needs_a_throughput_table():
    with pytest.raises(ParamError, match="profiled: the run has no throughput table"):
        simulate(jobs(2), "1x2", make("gavel-las-ss", profiled=0.5))


def view_of(perf, models, types):
    """View of one-GPU jobs, each of a kind of its own."""
    pairs = [[perf.pair_speeds(one, 1, other, 1, types) for other in models] for one in models]
    return SimpleNamespace(
        throughputs=perf,
        gpu_types=types,
        seed=0,
        kind=lambda job: (models[job], 1),
        kind_codes=np.arange(len(models)),
        pairs=np.array(pairs),
    )


def test_estimates_of_models_under_further_names_have_their_speed():
    """A ResNet-50 and a language model, under the names of the map and of Gavel's table."""
    own = ("ResNet-50 (batch size 32)", "LM (batch size 20)")
    types = ("k80", "v100")
    rows = {(own[0], 1): {"k80": 1.0, "v100": 3.0}, (own[1], 1): {"k80": 2.0, "v100": 5.0}}
    pairs = {(*own, 1): {"k80": (0.5, 0.25), "v100": (0.0, 0.0)}}
    perf = ThroughputTable(rows, "v100", pairs)
    models = ("resnet50", "lm")
    estimates = EstimatedPairs(view_of(perf, models, types), 1.0, 2, False)
    speeds = estimates.pairs_with([0], 1)[0]
    faster = perf.scale("resnet50", 1)
    assert faster != 1
    assert speeds == pytest.approx(np.array([[0.5 * faster, 0], [0.25, 0]]))


def test_models_that_run_out_of_memory_together_share_nothing():
    """Every job resembles the one reference model, whose pairs run."""
    rows = {(model, 1): {"v100": 4.0} for model in "ab"}
    pairs = {("a", "a", 1): {"v100": (3.0, 3.0)}, ("b", "b", 1): {"v100": (3.0, 3.0)}}
    perf = ThroughputTable(rows, "v100", pairs)
    estimates = EstimatedPairs(view_of(perf, "ab", ("v100",)), 0.0, 1, False)
    assert estimates.pairs_with([0, 1], 0).tolist() == [[[3], [3]], [[0], [0]]]


def test_pairs_that_have_run_change_their_estimates(monkeypatch):
    changes = []
    observe = PairTable.observe

    def recording(table, pairs):
        changes.append(observe(table, pairs))
        return changes[-1]

    monkeypatch.setattr(PairTable, "observe", recording)
    # every job is taken for one of the reference model, with half the throughput in a pair
    perf = table(0.9)
    pairs = {
        names: row
        if names[0] != names[1]
        else {gpu: (0.6 * one, 0.6 * two) for gpu, (one, two) in row.items()}
        for names, row in perf.pairs.items()
    }
    policy = make("gavel-las-ss", profiled=0.0, references=1)
    simulate(jobs(12), CLUSTER, policy, perf=ThroughputTable(perf.rows, "v100", pairs))
    assert changes[0] is False and changes[-1] is False
    assert set(changes) == {False, True}


def test_makespan_with_pairs_is_no_longer():
    trace = jobs(gap=0.0)
    perf = table(0.9)
    alone = simulate(trace, CLUSTER, "gavel-makespan", perf=perf).jobs["end_time"].max()
    shared = simulate(trace, CLUSTER, "gavel-makespan-ss", perf=perf).jobs["end_time"].max()
    assert shared < 0.75 * alone


def test_fifo_stops_at_the_first_job_that_gains_too_little():
    speeds = [np.array([2.0, 1.0])] * 4
    gains = {2: 1.4, 3: 1.9}
    members, columns = fifo_pairs(
        speeds, [1, 1, 1, 1], np.array([1.0, 1.0]), lambda job, host, column: gains[job]
    )
    assert (members, columns) == ([(0, -1), (1, -1)], [0, 1])


@pytest.mark.parametrize(("gain", "partner"), [(1.5, -1), (1.6, 2)])
def test_fifo_pairs_need_more_than_the_least_gain_and_ties_go_to_the_first_host(gain, partner):
    members, _ = fifo_pairs(
        [np.array([1.0])] * 3, [1, 1, 1], np.array([2.0]), lambda job, host, column: gain
    )
    assert members == [(0, partner), (1, -1)]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_fifo_pairs_no_job_with_a_host_on_a_type_it_cannot_run_on():
    rows = {("a", 1): {"k80": 0.0, "v100": 4.0}, ("b", 1): {"k80": 2.0, "v100": 3.0}}
    pairs = {
        ("a", "a", 1): {"v100": (2.5, 2.5)},
        ("a", "b", 1): {"v100": (3.5, 2.5)},
        ("b", "b", 1): {"k80": (1.8, 1.8), "v100": (2.5, 2.5)},
    }
    trace = jobs(3, gap=0.0, wide=0.0).assign(model=["a", "b", "a"])
    perf = ThroughputTable(rows, "v100", pairs)
    run = simulate(trace, "1xk80,1xv100", "gavel-fifo-ss", perf=perf)
    assert run.summary()["n_finished"] == 3


def test_fifo_packs_only_gangs_of_equal_demand_and_each_host_once():
    speeds = [np.array([1.0])] * 4
    members, _ = fifo_pairs(
        speeds, [1, 2, 2, 2], np.array([3.0]), lambda job, host, column: 1.6 + host
    )
    assert members == [(0, -1), (1, 2)]


def test_fifo_lets_jobs_pass_a_job_that_cannot_run_on_the_idle_type():
    large = np.array([0.0, 1.0])
    small = np.array([1.0, 2.0])
    members, columns = fifo_pairs(
        [small, large, small], [1, 1, 1], np.array([1.0, 1.0]), lambda job, host, column: 2.0
    )
    assert (members, columns) == ([(0, -1), (2, -1)], [1, 0])
