"""The linear layer and highest total throughput, against programmes with a row per job."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from repro import simulate
from repro.perf.throughput import ThroughputTable
from repro.policies.gavel.max_throughput import GavelMaxThroughput
from repro.solve.linear import best_shares


def instance(seed):
    rng = np.random.default_rng(seed)
    kinds = int(rng.integers(1, 6))
    counts = rng.integers(1, 5, kinds)
    widths = rng.choice([1, 2, 4], kinds)
    capacity = rng.integers(1, 9, 3)
    speeds = np.where(widths[:, None] <= capacity, rng.uniform(0.5, 9, (kinds, 3)), 0.0)
    return speeds, counts, widths, capacity


def best_total_by_job(values, counts, widths, capacity):
    """Highest total value of a programme with three variables per job."""
    kind_of_job = np.repeat(np.arange(len(counts)), counts)
    jobs = len(kind_of_job)
    rows = np.zeros((jobs + 3, jobs * 3))
    for job, gpu_type in itertools.product(range(jobs), range(3)):
        variable = 3 * job + gpu_type
        rows[job, variable] = 1
        rows[jobs + gpu_type, variable] = widths[kind_of_job[job]]
    bounds = [(0, 1 if v > 0 else 0) for v in values[kind_of_job].ravel()]
    limits = np.concatenate([np.ones(jobs), capacity])
    return -linprog(-values[kind_of_job].ravel(), A_ub=rows, b_ub=limits, bounds=bounds).fun


@pytest.mark.parametrize("seed", range(30))
def test_a_row_per_kind_reaches_the_total_of_a_row_per_job(seed):
    values, counts, widths, capacity = instance(seed)
    shares = best_shares(values, counts, widths, capacity)
    assert (counts[:, None] * values * shares).sum() == pytest.approx(
        best_total_by_job(values, counts, widths, capacity), rel=1e-6
    )
    assert ((counts * widths) @ shares <= capacity * (1 + 1e-6)).all()


def test_among_optima_the_least_share_is_largest():
    shares = best_shares(np.ones((2, 2)), [1, 1], [1, 1], [1, 0])
    assert shares.sum(axis=1) == pytest.approx([0.5, 0.5], abs=1e-6)


def test_floors_are_kept_or_refused():
    values = np.array([[9.0], [1.0]])
    shares = best_shares(values, [1, 1], [1, 1], [1], speeds=values, floors=np.array([0, 0.25]))
    assert shares[:, 0] == pytest.approx([0.75, 0.25], abs=1e-6)
    floors = np.array([8.0, 0.25])
    assert best_shares(values, [1, 1], [1, 1], [1], speeds=values, floors=floors) is None


SPEEDS = {"slow": {"k80": 1.0, "v100": 2.0}, "fast": {"k80": 10.0, "v100": 90.0}}


@pytest.mark.parametrize("order", [("slow", "fast", "slow"), ("fast", "slow", "slow")])
def test_the_fast_model_has_the_gpu_and_order_does_not_matter(order):
    trace = pd.DataFrame(
        {
            "job_id": range(3),
            "submit_time": [0.0] * 3,
            "duration": [3600.0] * 3,
            "num_gpus": [1] * 3,
            "model": order,
        }
    )
    table = ThroughputTable.of(SPEEDS, "v100")
    run = simulate(trace, "1xk80,1xv100", GavelMaxThroughput(), perf=table)
    ends = run.jobs.set_index("job_id")["end_time"]
    assert ends[order.index("fast")] == pytest.approx(3600.0)
    assert run.summary()["n_finished"] == 3


def test_ecos_gets_a_row_per_job():
    assert not GavelMaxThroughput().jobs_are_kinds()
    assert GavelMaxThroughput(lp_backend="ecos").jobs_are_kinds()
