"""Nash welfare against a general optimiser; nobody gains by a wrong report."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from repro.solve.nash import nash_shares, strategy_proof_shares


def instance(seed):
    rng = np.random.default_rng(seed)
    types = int(rng.integers(1, 5))
    speeds = rng.uniform(0.2, 10, (types, 3)) * (rng.random((types, 3)) < 0.8)
    speeds[:, 0] = np.maximum(speeds[:, 0], 0.1)
    counts = rng.integers(1, 5, types).astype(float)
    widths = rng.choice([1.0, 2.0, 4.0], types)
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
    found = minimize(loss, start.ravel(), bounds=bounds, constraints=limits, method="SLSQP")
    return -found.fun


@pytest.mark.parametrize("seed", range(25))
def test_no_general_optimiser_finds_more_welfare(seed):
    speeds, counts, widths, capacity = instance(seed)
    shares = nash_shares(speeds, counts, widths, capacity)
    welfare = (counts * np.log((speeds * shares).sum(axis=1))).sum()
    assert welfare > general_optimum(speeds, counts, widths, capacity) - 1e-5
    assert ((counts * widths) @ shares <= capacity * (1 + 1e-7)).all()
    assert shares.sum(axis=1).max() <= 1 + 1e-7


@pytest.mark.parametrize("seed", range(25))
def test_the_discount_is_that_of_problems_solved_one_by_one(seed):
    speeds, counts, widths, capacity = instance(seed)
    together = (speeds * nash_shares(speeds, counts, widths, capacity)).sum(axis=1)
    found = strategy_proof_shares(speeds, counts, widths, capacity)
    whole = nash_shares(speeds, counts, widths, capacity)
    for number in range(len(counts)):
        rest = counts.copy()
        rest[number] -= 1
        kept = rest > 0
        factor = 1.0
        if kept.any():
            alone = nash_shares(speeds[kept], rest[kept], widths[kept], capacity)
            ratio = together[kept] / (speeds[kept] * alone).sum(axis=1)
            factor = np.prod(ratio ** rest[kept])
        assert found[number] == pytest.approx(whole[number] * factor, abs=1e-5)


@pytest.mark.parametrize("seed", range(15))
def test_a_job_does_not_gain_by_a_wrong_report(seed):
    rng = np.random.default_rng(100 + seed)
    speeds = rng.uniform(0.5, 9, (4, 3))
    one = np.ones(4)
    capacity = np.array([1.0, 1.0, 1.0])
    honest = speeds[0] @ strategy_proof_shares(speeds, one, one, capacity)[0]
    gains = []
    for _ in range(20):
        told = speeds.copy()
        told[0] *= rng.uniform(0.2, 5, 3)
        gains.append(speeds[0] @ strategy_proof_shares(told, one, one, capacity)[0] - honest)
    assert max(gains) < 1e-6 * honest


def test_without_the_discount_a_wrong_report_pays():
    speeds = np.array([[1.0, 1.2], [1.0, 4.0]])
    one = np.ones(2)
    honest = speeds[0] @ nash_shares(speeds, one, one, one)[0]
    told = np.array([[1.0, 3.9], [1.0, 4.0]])
    assert speeds[0] @ nash_shares(told, one, one, one)[0] > honest * 1.01


def test_order_of_types_and_splitting_a_type_change_nothing():
    speeds, counts, widths, capacity = instance(3)
    whole = strategy_proof_shares(speeds, counts, widths, capacity)
    back = strategy_proof_shares(speeds[::-1], counts[::-1], widths[::-1], capacity)[::-1]
    assert back == pytest.approx(whole, abs=1e-6)
    each = np.repeat(np.arange(len(counts)), counts.astype(int))
    single = strategy_proof_shares(speeds[each], np.ones(len(each)), widths[each], capacity)
    assert (single * speeds[each]).sum(axis=1) == pytest.approx(
        (whole * speeds).sum(axis=1)[each], rel=1e-5
    )


def test_as_many_jobs_as_gpus():
    rng = np.random.default_rng(0)
    speeds = rng.uniform(1, 9, (12, 3))
    shares = nash_shares(speeds, np.ones(12), np.ones(12), np.full(3, 4.0))
    assert shares.sum(axis=1) == pytest.approx(np.ones(12), abs=1e-6)
