"""What one allocation of Gavel costs for 2,048 active jobs, in units of a bare event loop."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest
from costs import note
from unit import unit

from repro import make

JOBS = 2048
KINDS = 26


def view(seed=0, jobs=JOBS):
    """A run of single-GPU jobs of 26 types on as many GPUs as a quarter of the jobs per type."""
    rng = np.random.default_rng(seed)
    speeds = 10 ** rng.uniform(-0.3, 1.8, (KINDS, 3))
    codes = rng.integers(0, KINDS, jobs)
    model = codes.tolist()
    left = (10 ** rng.uniform(3, 6.5, jobs)).tolist()
    submit = rng.uniform(0, 1e5, jobs).tolist()
    return SimpleNamespace(
        now=1e5,
        jobs=list(range(jobs)),
        gpu_types=("k80", "p100", "v100"),
        gpu_counts=np.full(3, jobs / 4),
        kind=lambda job: (f"m{model[job]}", 1),
        kind_codes=codes,
        speeds=lambda job: speeds[model[job]],
        gpus=lambda job: 1,
        submit=submit.__getitem__,
        work_left=lambda jobs: np.array([left[job] for job in jobs]),
        work_per_step=lambda jobs: 1.0,
        column=lambda name, default: np.full(jobs, default),
    )


LIMITS = {
    "gavel-las": 0.05,
    "gavel-makespan": 0.2,
    "gavel-ftf": 1.0,
    "gavel-water-filling": 2.0,
}


@pytest.mark.parametrize(("policy", "limit"), LIMITS.items())
def test_one_allocation(benchmark, policy, limit):
    run = view()
    make(policy, rules="paper").session(run)(run)
    decisions = [make(policy, rules="paper").session(run) for _ in range(5)]
    costs = []
    one = unit()

    def allocate():
        decide = decisions[len(costs)]
        start = time.process_time()
        shares = decide(run)
        costs.append((time.process_time() - start) / one)
        return shares

    shares = benchmark.pedantic(allocate, rounds=5, iterations=1)
    assert (shares.fractions.sum(axis=0) <= run.gpu_counts * (1 + 1e-6)).all()
    benchmark.extra_info["units"] = cost = float(np.median(costs))
    note(f"one X for {JOBS} jobs, {policy}", U_s=one, cpu_s=cost * one, cost_U=cost)
    assert cost <= limit
