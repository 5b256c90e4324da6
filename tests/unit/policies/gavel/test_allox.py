"""AlloX: the reduced matching against the full matrix, and the public simulator's figure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment

from repro import simulate
from repro.base.errors import PolicyError
from repro.perf.throughput_files import load_throughputs
from repro.solve.slots import jobs_to_start
from repro.trace.synth.gavel import PUBLIC, gavel_single


def full_matrix(durations, free, waited):
    """Jobs that start, by the matrix of all jobs and all positions of all free GPUs."""
    gpu_type = np.repeat(np.arange(len(free)), free)
    jobs = len(durations)
    gpus = len(gpu_type)
    cost = np.concatenate([k * durations[:, gpu_type] for k in range(1, jobs + 1)], axis=1)
    cost += waited[:, None]
    rows, slots = linear_sum_assignment(cost)
    queues = {}
    for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
        queues.setdefault(slot % gpus, []).append((slot // gpus, row))
    return [(max(queue)[1], int(gpu_type[gpu])) for gpu, queue in sorted(queues.items())]


@pytest.mark.parametrize("seed", range(150))
def test_same_start_as_the_full_matrix(seed):
    rng = np.random.default_rng(seed)
    free = rng.integers(0, 6, 3)
    free[rng.integers(3)] += 1
    jobs = int(rng.integers(1, 40))
    durations = rng.lognormal(0, 1.5, (jobs, 1)) * rng.uniform(1, 8, (jobs, 3))
    waited = np.sort(rng.uniform(0, 30, jobs))[::-1]
    assert jobs_to_start(durations, free, waited) == full_matrix(durations, free, waited)


@pytest.mark.parametrize("equal_arrivals", [True, False])
@pytest.mark.parametrize("seed", range(150))
def test_same_start_where_durations_tie(seed, equal_arrivals):
    rng = np.random.default_rng(seed)
    free = rng.integers(0, 5, 3)
    free[rng.integers(3)] += 1
    jobs = int(rng.integers(1, 30))
    durations = rng.integers(1, 6, (jobs, 3)).astype(float) / 3.0
    waited = np.full(jobs, 1e5) if equal_arrivals else rng.integers(0, 9, jobs) * 1e5 / 7.0
    assert jobs_to_start(durations, free, waited) == full_matrix(durations, free, waited)


def test_one_free_gpu_takes_the_shortest_job():
    durations = np.array([[5.0], [3.0], [2.0]])
    assert jobs_to_start(durations, np.array([1]), np.zeros(3)) == [(2, 0)]


def test_a_job_that_cannot_run_on_a_free_type_waits():
    durations = np.array([[np.inf, np.inf], [2.0, np.inf], [3.0, 1.0]])
    waited = np.zeros(3)
    assert jobs_to_start(durations, np.array([1, 1]), waited) == [(1, 0), (2, 1)]
    assert jobs_to_start(durations[:1], np.array([1, 1]), waited[:1]) == []


def test_gangs_are_refused_by_job():
    trace = pd.DataFrame(
        {"job_id": [0, 1], "submit_time": [0.0, 0.0], "duration": [9.0, 9.0], "num_gpus": [1, 2]}
    )
    with pytest.raises(PolicyError, match="job 1 asks for 2 GPUs; AlloX places jobs of one GPU"):
        simulate(trace, "1x4", "allox")


def test_jobs_are_never_preempted_and_average_jct_is_that_of_the_public_simulator(
    mirror, monkeypatch
):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    trace = gavel_single(0, jobs=400, rate=1.0)
    table = load_throughputs(PUBLIC)
    run = simulate(trace, "4xk80,4xp100,4xv100", "allox", rules="gavel", perf=table)
    jct = run.jobs.sort_values("job_id")["jct"]
    assert jct.iloc[20:60].mean() == pytest.approx(77193.595, abs=1e-3)
    paper = simulate(trace, "4xk80,4xp100,4xv100", "allox", perf=table)
    assert paper.jobs["preemptions"].sum() == 0
