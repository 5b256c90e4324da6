"""Water filling: every level is the best, bottlenecks as by linear programmes, complete runs."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from repro import make, simulate
from repro.perf import ThroughputTable
from repro.solve.max_min import JobKinds, water_filling_shares

TABLE = ThroughputTable.of(
    {"a": {"v100": 8.0, "k80": 1.0}, "b": {"v100": 3.0, "k80": 2.0}}, reference="v100"
)


def unweighted(bottlenecked):
    return np.where(bottlenecked, 0.0, 1.0)


def problem_of(seed, rows=8):
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.3, 3, (rows, 3))
    values[rng.random((rows, 3)) < 0.4] = 0.0
    values[:, 0] = np.maximum(values[:, 0], 0.2)
    return JobKinds(values, rng.integers(1, 3, rows), np.ones(rows), np.array([3.0, 4.0, 5.0]))


@pytest.mark.parametrize("seed", range(12))
def test_levels_are_those_found_by_linear_programmes(seed):
    problem = problem_of(seed)
    levels = [
        np.sort(
            (problem.value * water_filling_shares(problem, unweighted, backend=backend)).sum(axis=1)
        )
        for backend in ("centre", "highs")
    ]
    np.testing.assert_allclose(levels[0], levels[1], atol=2e-4)


@pytest.mark.parametrize("seed", range(6))
def test_no_job_can_rise_without_lowering_a_job_that_is_no_better_off(seed):
    problem = problem_of(seed)
    shares = water_filling_shares(problem, unweighted)
    value = (problem.value * shares).sum(axis=1)
    assert (shares.sum(axis=1) <= 1 + 1e-7).all()
    assert (problem.counts @ shares <= problem.gpus * (1 + 1e-6)).all()
    least = water_filling_shares(problem, unweighted, "published")
    assert value.min() == pytest.approx((problem.value * least).sum(axis=1).min(), rel=1e-5)
    # the second level: the jobs above the lowest cannot all be raised together
    from scipy.optimize import linprog

    rows, types = problem.value.shape
    above = value > value.min() * (1 + 1e-4)
    if not above.any():
        return
    cost = np.append(np.zeros(rows * types), -1.0)
    matrix = []
    limits = []
    for row in range(rows):
        time = np.zeros((rows, types))
        time[row] = 1.0
        matrix.append(np.append(time.ravel(), 0.0))
        limits.append(1.0)
        values = np.zeros((rows, types))
        values[row] = -np.where(problem.usable[row], problem.value[row], 0.0)
        matrix.append(np.append(values.ravel(), 1.0 if above[row] else 0.0))
        limits.append(0.0 if above[row] else -value[row] * (1 - 1e-7))
    for gpu_type in range(types):
        used = np.zeros((rows, types))
        used[:, gpu_type] = problem.counts
        matrix.append(np.append(used.ravel(), 0.0))
        limits.append(problem.gpus[gpu_type])
    best = -linprog(cost, A_ub=np.array(matrix), b_ub=limits).fun
    assert value[above].min() == pytest.approx(best, rel=1e-3)


def jobs(count=12):
    return pd.DataFrame(
        {
            "job_id": np.arange(count),
            "submit_time": 600.0 * np.arange(count),
            "duration": 3000.0,
            "num_gpus": [1, 1, 2] * (count // 3),
            "model": ["a", "b", "a"] * (count // 3),
            "priority_weight": [1.0, 5.0] * (count // 2),
        }
    )


GANGS = ThroughputTable(
    {
        (model, width): {gpu_type: speed * width for gpu_type, speed in row.items()}
        for (model, _), row in TABLE.rows.items()
        for width in (1, 2)
    },
    "v100",
)


@pytest.mark.parametrize("aware", [True, False])
def test_whole_run(aware):
    policy = make("gavel-water-filling", heterogeneity_aware=aware)
    summary = simulate(jobs(), "2xv100,2xk80", policy, perf=GANGS).summary()
    assert summary["n_finished"] == 12


def test_a_job_alone_runs_on_every_gpu_type_if_all_count_as_equally_fast():
    trace = jobs().assign(submit_time=lambda t: 6000.0 * t["job_id"], num_gpus=1)
    run = {"trace": trace, "cluster": "2xv100,2xk80", "perf": GANGS}
    runs = {
        name: simulate(policy=make(name, "gavel", **settings), **run).summary()["avg_jct"]
        for name, settings in (
            ("gavel-las", {}),
            ("las-agnostic", {}),
            ("gavel-water-filling", {"heterogeneity_aware": False}),
        )
    }
    assert runs["gavel-water-filling"] == pytest.approx(runs["las-agnostic"], rel=1e-6)
    assert runs["gavel-water-filling"] > 1.1 * runs["gavel-las"]


@pytest.mark.parametrize("name", ["gavel-water-filling", "gavel-hierarchical"])
@pytest.mark.parametrize("aware", [True, False])
def test_rounds_tell_gpu_types_apart_as_the_shares_do(name, aware):
    policy = make(name, heterogeneity_aware=aware)
    assert policy.tells_types is aware
    assert replace(policy, heterogeneity_aware=not aware).tells_types is not aware
    assert pickle.loads(pickle.dumps(policy)).tells_types is aware


def test_published_variant_is_one_max_min_programme():
    run = {"trace": jobs(), "cluster": "2xv100,2xk80", "perf": GANGS}
    policy = make("gavel-water-filling", water_filling="published")
    published = simulate(policy=policy, **run).summary()
    las = simulate(policy=make("gavel-las"), **run).summary()
    assert published["avg_jct"] == pytest.approx(las["avg_jct"], rel=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_bisection_ends_with_the_shares_of_a_step_by_step_filling(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 12))
    values = rng.uniform(0.2, 3.0, (rows, 3)) * (rng.random((rows, 3)) < 0.9)
    values[:, 0] += 0.1
    problem = JobKinds(
        values, rng.integers(1, 4, rows), rng.choice([1, 1, 2, 4], rows), np.array([4.0, 6.0, 8.0])
    )
    weight = rng.choice([1.0, 5.0], rows) / problem.widths

    def weigh(bottlenecked):
        return np.where(bottlenecked, 0.0, weight)

    step_by_step = (values * water_filling_shares(problem, weigh)).sum(axis=1)
    bisected = (values * water_filling_shares(problem, weigh, steady=True)).sum(axis=1)
    assert bisected == pytest.approx(step_by_step, abs=1e-5)
