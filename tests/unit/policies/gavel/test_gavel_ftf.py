"""Finish-time fairness: the programme, the memory of isolated time, whole runs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from repro import make, simulate
from repro.perf import ThroughputTable
from repro.policies.gavel.ftf import ftf_shares
from repro.policies.gavel.isolated import isolated_shares
from repro.solve.max_min import JobKinds

TABLE = ThroughputTable.of(
    {"a": {"v100": 8.0, "k80": 1.0}, "b": {"v100": 3.0, "k80": 2.0}}, reference="v100"
)


def test_backends_agree_on_the_ratio():
    rng = np.random.default_rng(0)
    problem = JobKinds(
        rng.uniform(1, 9, (9, 3)), np.ones(9), rng.choice([1, 2], 9), np.full(3, 2.0)
    )
    steps_left = rng.uniform(1e2, 1e5, 9)
    isolated_s = rng.uniform(1e3, 1e5, 9)
    elapsed_s = rng.uniform(0, 1e4, 9)
    ratios = [
        ftf_shares(problem, steps_left, isolated_s, elapsed_s, backend)[1]
        for backend in ("centre", "highs")
    ]
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("backend", ["centre", "highs"])
def test_jobs_without_work_or_isolated_time_have_shares(backend):
    ones = np.ones(2)
    problem = JobKinds(np.full((2, 1), 2.0), ones, ones, ones[:1])
    shares, ratio = ftf_shares(problem, 0 * ones, 0 * ones, 0 * ones, backend)
    assert shares.ravel() == pytest.approx([0.5, 0.5])
    assert np.isfinite(ratio)


def test_isolated_shares():
    shares = isolated_shares(np.array([1, 2, 1]), np.array([6.0, 3.0]))
    np.testing.assert_allclose(shares, [[2 / 3, 1 / 3], [2 / 3, 1 / 3], [2 / 3, 1 / 3]])


def test_progress_counts_as_its_time_under_isolated_shares():
    # two one-GPU jobs on one GPU; the test sets their progress
    steps_left = np.array([400.0, 400.0])
    view = SimpleNamespace(
        now=0.0,
        jobs=[0, 1],
        gpu_types=("v100",),
        gpu_counts=np.array([1.0]),
        kind=lambda job: ("m", 1),
        kind_codes=np.zeros(2, dtype=int),
        speeds=lambda job: np.array([2.0]),
        gpus=lambda job: 1,
        submit=lambda job: 0.0,
        work_left=lambda jobs: steps_left[jobs],
        work_per_step=lambda jobs: 1.0,
    )
    decide = make("gavel-ftf").session(view)
    np.testing.assert_allclose(decide(view).fractions.ravel(), 0.5, atol=1e-9)
    # in 200 s job 0 did 300 steps, which take 300 s if isolated, and job 1 did 100 steps
    view.now = 200.0
    steps_left = np.array([100.0, 300.0])
    second = decide(view).fractions.ravel()
    problem = JobKinds(np.full((2, 1), 2.0), np.ones(2), np.ones(2), np.ones(1))
    isolated_s = np.array([300.0 + 100.0, 100.0 + 300.0])
    expected, _ = ftf_shares(problem, np.array([100.0, 300.0]), isolated_s, np.full(2, 200.0))
    np.testing.assert_allclose(second, expected.ravel(), atol=1e-9)
    assert second[1] == pytest.approx(0.75, abs=1e-6)


@pytest.mark.filterwarnings("error::repro.base.errors.InputWarning")
@pytest.mark.parametrize("name", ["gavel-ftf", "ftf-agnostic"])
def test_whole_run(name):
    count = 10
    trace = pd.DataFrame(
        {
            "job_id": np.arange(count),
            "submit_time": 900.0 * np.arange(count),
            "duration": 2000.0 + 500 * np.arange(count),
            "num_gpus": 1,
            "model": ["a", "b"] * (count // 2),
        }
    )
    summary = simulate(trace, "1xv100,2xk80", make(name), perf=TABLE).summary()
    assert summary["n_finished"] == count


def test_knowing_speeds_lowers_the_worst_ratio():
    speeds = np.array([[1.0, 8.0], [2.0, 3.0]] * 2)
    steps_left = np.full(4, 1e4)
    gpus = np.ones(2)
    isolated_s = steps_left / (speeds * isolated_shares(np.ones(4), gpus)).sum(axis=1)

    def worst_ratio(policy_speeds):
        problem = JobKinds(policy_speeds, np.ones(4), np.ones(4), gpus)
        shares, _ = ftf_shares(problem, steps_left, isolated_s, np.zeros(4))
        return (steps_left / (speeds * shares).sum(axis=1) / isolated_s).max()

    agnostic = np.repeat(speeds[:, 1:], 2, axis=1)
    assert worst_ratio(speeds) < worst_ratio(agnostic) - 0.05
