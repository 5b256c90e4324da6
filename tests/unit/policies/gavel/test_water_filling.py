"""Water filling: every level is the best, bottlenecks as by linear programmes, whole runs."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from repro import make, simulate
from repro.perf import ThroughputTable
from repro.solve.max_min import Crowd, fill

TABLE = ThroughputTable.of(
    {"a": {"v100": 8.0, "k80": 1.0}, "b": {"v100": 3.0, "k80": 2.0}}, reference="v100"
)


def unweighted(fixed):
    return np.where(fixed, 0.0, 1.0)


def crowd_of(seed, rows=8):
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.3, 3, (rows, 3))
    values[rng.random((rows, 3)) < 0.4] = 0.0
    values[:, 0] = np.maximum(values[:, 0], 0.2)
    return Crowd(values, rng.integers(1, 3, rows), np.ones(rows), np.array([3.0, 4.0, 5.0]))


@pytest.mark.parametrize("seed", range(12))
def test_levels_are_those_found_by_linear_programmes(seed):
    crowd = crowd_of(seed)
    levels = [
        np.sort((crowd.value * fill(crowd, unweighted, backend=backend)).sum(axis=1))
        for backend in ("centre", "highs")
    ]
    np.testing.assert_allclose(levels[0], levels[1], atol=2e-4)


@pytest.mark.parametrize("seed", range(6))
def test_nobody_can_rise_without_one_that_is_no_better_off(seed):
    crowd = crowd_of(seed)
    shares = fill(crowd, unweighted)
    value = (crowd.value * shares).sum(axis=1)
    assert (shares.sum(axis=1) <= 1 + 1e-7).all()
    assert (crowd.counts @ shares <= crowd.gpus * (1 + 1e-6)).all()
    least = fill(crowd, unweighted, "published")
    assert value.min() == pytest.approx((crowd.value * least).sum(axis=1).min(), rel=1e-5)
    # the second level: nobody above the lowest can be raised together with all others above it
    from scipy.optimize import linprog

    rows, kinds = crowd.value.shape
    above = value > value.min() * (1 + 1e-4)
    if not above.any():
        return
    cost = np.append(np.zeros(rows * kinds), -1.0)
    matrix = []
    limits = []
    for row in range(rows):
        time = np.zeros((rows, kinds))
        time[row] = 1.0
        matrix.append(np.append(time.ravel(), 0.0))
        limits.append(1.0)
        worth = np.zeros((rows, kinds))
        worth[row] = -np.where(crowd.usable[row], crowd.value[row], 0.0)
        matrix.append(np.append(worth.ravel(), 1.0 if above[row] else 0.0))
        limits.append(0.0 if above[row] else -value[row] * (1 - 1e-7))
    for kind in range(kinds):
        used = np.zeros((rows, kinds))
        used[:, kind] = crowd.counts
        matrix.append(np.append(used.ravel(), 0.0))
        limits.append(crowd.gpus[kind])
    best = -linprog(cost, A_ub=np.array(matrix), b_ub=limits).fun
    assert value[above].min() == pytest.approx(best, rel=1e-3)


def jobs(n=12):
    return pd.DataFrame(
        {
            "job_id": np.arange(n),
            "submit_time": 600.0 * np.arange(n),
            "duration": 3000.0,
            "num_gpus": [1, 1, 2] * (n // 3),
            "model": ["a", "b", "a"] * (n // 3),
            "priority_weight": [1.0, 5.0] * (n // 2),
        }
    )


GANGS = ThroughputTable(
    {(m, w): {k: v * w for k, v in TABLE.rows[m, 1].items()} for m in "ab" for w in (1, 2)}, "v100"
)


@pytest.mark.parametrize("aware", [True, False])
def test_whole_run(aware):
    policy = make("gavel-water-filling", heterogeneity_aware=aware)
    summary = simulate(jobs(), "2xv100,2xk80", policy, perf=GANGS).summary()
    assert summary["n_finished"] == 12


def test_a_job_alone_meets_every_gpu_type_if_they_count_as_equally_fast():
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
    one = simulate(policy=policy, **run).summary()
    other = simulate(policy=make("gavel-las"), **run).summary()
    assert one["avg_jct"] == pytest.approx(other["avg_jct"], rel=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_bisection_ends_with_the_shares_of_one_stop_after_the_other(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 12))
    worth = rng.uniform(0.2, 3.0, (rows, 3)) * (rng.random((rows, 3)) < 0.9)
    worth[:, 0] += 0.1
    crowd = Crowd(
        worth, rng.integers(1, 4, rows), rng.choice([1, 1, 2, 4], rows), np.array([4.0, 6.0, 8.0])
    )
    weight = rng.choice([1.0, 5.0], rows) / crowd.widths

    def weigh(fixed):
        return np.where(fixed, 0.0, weight)

    slow = fill(crowd, weigh)
    fast = fill(crowd, weigh, steady=True)
    assert (worth * fast).sum(axis=1) == pytest.approx((worth * slow).sum(axis=1), abs=1e-5)
