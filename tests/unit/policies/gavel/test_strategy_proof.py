"""Nash welfare against a general optimiser; no job gains by a wrong report."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from repro.solve.nash import nash_shares, strategy_proof_shares


def instance(seed):
    rng = np.random.default_rng(seed)
    kinds = int(rng.integers(1, 5))
    speeds = rng.uniform(0.2, 10, (kinds, 3)) * (rng.random((kinds, 3)) < 0.8)
    speeds[:, 0] = np.maximum(speeds[:, 0], 0.1)
    counts = rng.integers(1, 5, kinds).astype(float)
    widths = rng.choice([1.0, 2.0, 4.0], kinds)
    return speeds, counts, widths, rng.integers(1, 9, 3).astype(float)


def general_optimum(speeds, counts, widths, capacity):
    shape = speeds.shape

    def loss(y):
        return -(counts * np.log((speeds * y.reshape(shape)).sum(axis=1) / counts)).sum()

    limits = [
        {"type": "ineq", "fun": lambda y: counts - y.reshape(shape).sum(axis=1)},
        {"type": "ineq", "fun": lambda y: capacity - widths @ y.reshape(shape)},
    ]
    start = 0.3 * counts[:, None] * np.minimum(1 / 3, capacity / (counts @ widths))
    bounds = [(1e-9, None)] * speeds.size
    optimum = minimize(loss, start.ravel(), bounds=bounds, constraints=limits, method="SLSQP")
    return -optimum.fun


@pytest.mark.parametrize("seed", range(25))
def test_no_general_optimiser_finds_more_welfare(seed):
    speeds, counts, widths, capacity = instance(seed)
    shares = nash_shares(speeds, counts, widths, capacity)
    welfare = (counts * np.log((speeds * shares).sum(axis=1))).sum()
    assert welfare > general_optimum(speeds, counts, widths, capacity) - 1e-5
    assert ((counts * widths) @ shares <= capacity * (1 + 1e-7)).all()
    assert shares.sum(axis=1).max() <= 1 + 1e-7


@pytest.mark.parametrize("seed", range(25))
def test_the_discount_equals_that_of_separately_solved_problems(seed):
    speeds, counts, widths, capacity = instance(seed)
    nash = nash_shares(speeds, counts, widths, capacity)
    throughputs = (speeds * nash).sum(axis=1)
    discounted = strategy_proof_shares(speeds, counts, widths, capacity)
    for kind in range(len(counts)):
        others = counts.copy()
        others[kind] -= 1
        present = others > 0
        factor = 1.0
        if present.any():
            without = nash_shares(speeds[present], others[present], widths[present], capacity)
            ratio = throughputs[present] / (speeds[present] * without).sum(axis=1)
            factor = np.prod(ratio ** others[present])
        assert discounted[kind] == pytest.approx(nash[kind] * factor, abs=1e-5)


@pytest.mark.parametrize("seed", range(15))
def test_a_job_does_not_gain_by_a_wrong_report(seed):
    rng = np.random.default_rng(100 + seed)
    speeds = rng.uniform(0.5, 9, (4, 3))
    ones = np.ones(4)
    capacity = np.array([1.0, 1.0, 1.0])
    honest = speeds[0] @ strategy_proof_shares(speeds, ones, ones, capacity)[0]
    gains = []
    for _ in range(20):
        reported = speeds.copy()
        reported[0] *= rng.uniform(0.2, 5, 3)
        shares = strategy_proof_shares(reported, ones, ones, capacity)
        gains.append(speeds[0] @ shares[0] - honest)
    assert max(gains) < 1e-6 * honest


def test_without_the_discount_a_wrong_report_pays():
    speeds = np.array([[1.0, 1.2], [1.0, 4.0]])
    ones = np.ones(2)
    honest = speeds[0] @ nash_shares(speeds, ones, ones, ones)[0]
    reported = np.array([[1.0, 3.9], [1.0, 4.0]])
    assert speeds[0] @ nash_shares(reported, ones, ones, ones)[0] > honest * 1.01


def test_order_of_kinds_and_splitting_a_kind_change_nothing():
    speeds, counts, widths, capacity = instance(3)
    shares = strategy_proof_shares(speeds, counts, widths, capacity)
    reversed_shares = strategy_proof_shares(speeds[::-1], counts[::-1], widths[::-1], capacity)
    assert reversed_shares[::-1] == pytest.approx(shares, abs=1e-6)
    kind_of_job = np.repeat(np.arange(len(counts)), counts.astype(int))
    job_speeds = speeds[kind_of_job]
    job_counts = np.ones(len(kind_of_job))
    job_shares = strategy_proof_shares(job_speeds, job_counts, widths[kind_of_job], capacity)
    assert (job_shares * job_speeds).sum(axis=1) == pytest.approx(
        (shares * speeds).sum(axis=1)[kind_of_job], rel=1e-5
    )


def test_as_many_jobs_as_gpus():
    rng = np.random.default_rng(0)
    speeds = rng.uniform(1, 9, (12, 3))
    shares = nash_shares(speeds, np.ones(12), np.ones(12), np.full(3, 4.0))
    assert shares.sum(axis=1) == pytest.approx(np.ones(12), abs=1e-6)
