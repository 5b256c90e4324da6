"""Max-min shares: optimal, independent of the order of jobs, equal for jobs of a kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from repro import make, simulate
from repro.base.errors import ParamError
from repro.model.policy import Policy
from repro.perf import ThroughputTable
from repro.solve.max_min import JobKinds, vertex_level

GPU_TYPES = ["v100", "p100", "k80"]


def level_by_dense_programme(values, widths, capacity):
    """Largest minimum of the values of all jobs, by a dense linear programme."""
    n, m = values.shape
    cost = np.append(np.zeros(n * m), -1.0)
    rows = []
    limits = []
    for i in range(n):
        rows.append(np.append(np.kron(np.eye(n)[i], np.ones(m)), 0))
        limits.append(1)
        rows.append(np.append(-np.kron(np.eye(n)[i], values[i]), 1))
        limits.append(0)
    for j in range(m):
        rows.append(np.append(np.kron(widths, np.eye(m)[j]), 0))
        limits.append(capacity[j])
    return -linprog(cost, A_ub=np.array(rows), b_ub=limits, method="highs").fun


@pytest.mark.parametrize("seed", range(6))
def test_shares_by_kind_reach_the_level_of_shares_by_job(seed):
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.2, 5, (4, 3))
    counts = rng.integers(1, 5, 4)
    widths = rng.choice([1, 2, 4], 4)
    capacity = np.array([4, 4, 6])
    x = vertex_level(JobKinds(values, counts, widths, capacity), np.ones(4))[0]
    assert (x >= 0).all() and (x.sum(axis=1) <= 1 + 1e-9).all()
    assert ((counts * widths) @ x <= capacity * (1 + 1e-9)).all()
    level = level_by_dense_programme(
        np.repeat(values, counts, axis=0), np.repeat(widths, counts), capacity
    )
    assert (values * x).sum(axis=1).min() == pytest.approx(level)


def test_a_job_gets_no_share_of_a_gpu_type_without_speed():
    values = np.array([[1.0, 9.0], [1.0, 0.0]])
    crowd = JobKinds(values, np.ones(2), np.array([4, 1]), np.array([8, 2]))
    x = vertex_level(crowd, np.ones(2))[0]
    assert x[0, 1] == 0 and x[1, 1] == 0


def table(rng):
    speeds = {
        (f"m{i}", w): dict(zip(GPU_TYPES, rng.uniform(1, 9, 3) * w, strict=True))
        for i in range(4)
        for w in (1, 2)
    }
    return ThroughputTable(speeds, "v100")


@dataclass(frozen=True)
class Spy(Policy):
    """The shares of another policy, recorded at every decision."""

    inner: Policy
    seen: list

    @property
    def needs(self):
        return self.inner.needs

    def session(self, view):
        decide = self.inner.session(view)
        ids = view._table.ids

        def record(view):
            shares = decide(view)
            self.seen.append(
                {ids[j]: r for j, r in zip(shares.jobs, shares.fractions, strict=True)}
            )
            return shares

        return record


@pytest.mark.parametrize("name", ["gavel-las", "las-agnostic"])
def test_permuting_jobs_changes_nothing(name):
    rng = np.random.default_rng(3)
    speeds = table(rng)
    settings = {"throughputs": speeds} if name == "gavel-las" else {}
    n = 24
    jobs = pd.DataFrame(
        {
            "job_id": np.arange(n),
            "submit_time": 0.0,
            "duration": 500.0,
            "num_gpus": rng.choice([1, 2], n),
            "model": [f"m{i % 4}" for i in range(n)],
            "priority_weight": rng.choice([1.0, 5.0], n),
        }
    )
    shuffled = jobs.assign(job_id=rng.permutation(n))
    answers = []
    for trace in (jobs, shuffled):
        seen = []
        policy = Spy(make(name, **settings), seen)
        simulate(trace, "4xv100,4xp100,4xk80", policy, perf=speeds)
        answers.append([seen[0][job].tolist() for job in trace["job_id"]])
    assert answers[0] == answers[1]


def test_weights_scale_throughput():
    jobs = pd.DataFrame(
        {
            "job_id": [0, 1],
            "submit_time": 0.0,
            "duration": 60.0,
            "num_gpus": 1,
            "priority_weight": [1.0, 2.0],
        }
    )
    for name in ("gavel-las", "las-agnostic"):
        seen = []
        simulate(jobs, "1xv100", Spy(make(name), seen), rounds={"ideal": "fluid"})
        assert seen[0][1].tolist() == pytest.approx([2 / 3])
        assert seen[0][0].tolist() == pytest.approx([1 / 3])


def test_a_job_that_runs_nowhere_is_named():
    speeds = ThroughputTable.of({"m": {"v100": 0.0}}, "v100")
    jobs = pd.DataFrame(
        {"job_id": [0], "submit_time": 0.0, "duration": 1.0, "num_gpus": 1, "model": "m"}
    )
    with pytest.raises(ParamError, match="'m' on 1 GPUs runs on none"):
        simulate(jobs, "1xv100", make("gavel-las", throughputs=speeds))
