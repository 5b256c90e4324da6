"""Minimum makespan: the programme, the bisection of the public simulator, complete runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro import make, simulate
from repro.base.errors import InputWarning, ParamError
from repro.perf import ThroughputTable
from repro.policies.gavel.makespan import makespan_shares
from repro.solve.max_min import JobKinds

TABLE = ThroughputTable.of(
    {"a": {"v100": 8.0, "k80": 1.0}, "b": {"v100": 3.0, "k80": 2.0}}, reference="v100"
)


def jobs(count=6, **more_columns):
    columns = {
        "job_id": np.arange(count),
        "submit_time": 0.0,
        "duration": 3600.0 * (1 + np.arange(count)),
        "num_gpus": 1,
        "model": ["a", "b"] * (count // 2),
    }
    return pd.DataFrame(columns | more_columns)


@pytest.mark.parametrize("backend", ["centre", "highs"])
def test_all_jobs_finish_together_at_the_best_makespan(backend):
    rng = np.random.default_rng(0)
    problem = JobKinds(rng.uniform(1, 9, (8, 3)), np.ones(8), np.ones(8), np.full(3, 2.0))
    steps_left = rng.uniform(1e4, 1e6, 8)
    shares, makespan = makespan_shares(problem, steps_left, backend=backend)
    speed = (problem.value * shares).sum(axis=1)
    assert (steps_left / speed).max() == pytest.approx(makespan, rel=1e-6)
    assert makespan == pytest.approx(
        makespan_shares(problem, steps_left, backend="highs")[1], rel=1e-7
    )


@pytest.mark.parametrize("scale", [1.0, 3e3])
def test_bisection_ends_within_its_tolerance_of_the_optimum(scale):
    rng = np.random.default_rng(1)
    problem = JobKinds(rng.uniform(1, 9, (5, 2)), np.ones(5), np.ones(5), np.full(2, 2.0))
    steps_left = rng.uniform(1e4, 1e5, 5) * scale
    best = makespan_shares(problem, steps_left)[1]
    shares, makespan = makespan_shares(problem, steps_left, tolerance=0.05)
    assert best <= makespan <= 1.05 * best * 1.05
    assert ((problem.value * shares).sum(axis=1) >= steps_left / makespan * (1 - 1e-9)).all()
    # the upper end is one of the points that halving [100, 1e6 or ten times more] can reach
    top = 1e6 if best <= 1e6 else 10 ** np.ceil(np.log10(best))
    steps = (makespan - 100) / (top - 100) * 2**20
    assert steps == pytest.approx(round(steps), abs=1e-6)


@pytest.mark.parametrize("scale", [1.0, 3e3])
def test_bisection_by_ecos_ends_within_its_tolerance(scale):
    pytest.importorskip("ecos")
    rng = np.random.default_rng(1)
    problem = JobKinds(rng.uniform(1, 9, (5, 2)), np.ones(5), np.ones(5), np.full(2, 2.0))
    steps_left = rng.uniform(1e4, 1e5, 5) * scale
    best = makespan_shares(problem, steps_left)[1]
    shares, makespan = makespan_shares(problem, steps_left, tolerance=0.05, backend="ecos")
    assert best * (1 - 1e-6) <= makespan <= 1.05 * best
    assert (steps_left / (problem.value * shares).sum(axis=1)).max() <= makespan * (1 + 1e-6)


@pytest.mark.parametrize("backend", ["centre", "ecos"])
def test_bisection_ends_at_neighbouring_floats_where_the_tolerance_is_smaller(backend):
    if backend == "ecos":
        pytest.importorskip("ecos")
    speeds = np.full((3, 1), 1.0)
    problem = JobKinds(speeds, np.ones(3), np.ones(3), np.full(1, 2.0))
    steps_left = np.array([1e4, 2e4, 3e4])
    _, makespan = makespan_shares(problem, steps_left, tolerance=1e-17, backend=backend)
    # ECOS calls a makespan feasible from about 1e-8 below the least one on
    assert makespan == pytest.approx(3e4, rel=1e-6)
    run = {"rounds": {"ideal": "fluid"}}
    policy = make("gavel-makespan", tolerance=1e-17, lp_backend=backend)
    result = simulate(jobs(4).drop(columns="model"), "1x2", policy, **run)
    assert result.summary()["makespan"] == pytest.approx(18_000, rel=1e-6)


def test_fluid_run_reaches_the_optimum():
    trace = jobs()
    steps = trace["duration"].to_numpy() * np.array([8.0, 3.0] * 3)
    speeds = np.array([[1.0, 8.0], [2.0, 3.0]] * 3)
    problem = JobKinds(speeds, np.ones(6), np.ones(6), np.ones(2))
    best = makespan_shares(problem, steps)[1]
    run = {"perf": TABLE, "rounds": {"ideal": "fluid"}}
    result = simulate(trace, "1xv100,1xk80", make("gavel-makespan"), **run)
    assert result.summary()["makespan"] == pytest.approx(best, rel=1e-6)
    agnostic = simulate(trace, "1xv100,1xk80", make("makespan-agnostic"), **run)
    assert agnostic.summary()["makespan"] > best * 1.05


def test_agnostic_takes_the_fastest_type_where_the_reference_is_absent():
    agnostic = simulate(jobs(), "2xk80", make("makespan-agnostic"), perf=TABLE).summary()
    aware = simulate(jobs(), "2xk80", make("gavel-makespan"), perf=TABLE).summary()
    assert agnostic["makespan"] == pytest.approx(aware["makespan"], rel=1e-9)


def test_tolerance_is_checked():
    with pytest.raises(ParamError, match=r"tolerance is 2\.0; give a number from 0 to below 1"):
        make("gavel-makespan", tolerance=2.0)
    assert make("gavel-makespan", rules="gavel").tolerance == 0.05


@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_jobs_without_work_have_shares(tolerance):
    # rules tiresias cut durations to whole seconds
    trace = pd.DataFrame(
        {"job_id": [0, 1], "submit_time": [0.0, 720.0], "duration": [0.5, 5.0], "num_gpus": 1}
    )
    policy = make("gavel-makespan", tolerance=tolerance)
    with pytest.warns(InputWarning, match="0 s"):
        run = simulate(trace, "1x4", policy, rules="tiresias")
    assert run.jobs["end_time"].tolist() == [0.0, 725.0]
