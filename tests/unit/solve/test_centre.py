"""The interior-point method: optimal, in the centre, independent of the order of the jobs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from repro.base.errors import PolicyError
from repro.policies.gavel.ftf import ftf_shares
from repro.solve.counted import SOLVED
from repro.solve.max_min import (
    JobKinds,
    RatioBounds,
    central_level,
    central_point,
    central_ratio,
    improvable,
    vertex_level,
    vertex_ratio,
)


def random_kinds(seed, rows=None, most=3):
    rng = np.random.default_rng(seed)
    rows = rows or int(rng.integers(1, 12))
    types = int(rng.integers(1, 5))
    values = 10 ** rng.uniform(-1, 2.5, (rows, types))
    values[rng.random((rows, types)) < 0.15] = 0.0
    values[:, 0] = np.maximum(values[:, 0], 0.05)
    gpus = rng.integers(1, 9, types).astype(float)
    gpus[0] = max(gpus[0], 4.0)
    return JobKinds(values, rng.integers(1, most + 1, rows), rng.choice([1, 2, 4], rows), gpus)


def check_feasible(job_kinds, x):
    assert (x >= 0).all() and (x.sum(axis=1) <= 1 + 1e-8).all()
    assert ((job_kinds.counts * job_kinds.widths) @ x <= job_kinds.gpus * (1 + 1e-7)).all()
    assert (x[~job_kinds.usable] == 0).all()


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_level_is_that_of_the_linear_programme(seed):
    job_kinds = random_kinds(seed)
    scale = np.random.default_rng(seed + 1).uniform(0.2, 5, len(job_kinds.value))
    answer = central_level(job_kinds, scale)
    _, level = vertex_level(job_kinds, scale)
    check_feasible(job_kinds, answer.shares)
    assert answer.level == pytest.approx(level, rel=1e-7)
    reached = (job_kinds.value * answer.shares).sum(axis=1) / scale
    assert reached.min() == pytest.approx(level, rel=1e-6)


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_rows_of_equal_jobs_stand_for_single_jobs(seed):
    job_kinds = random_kinds(seed, rows=4)
    single = JobKinds(
        np.repeat(job_kinds.value, job_kinds.counts, axis=0),
        np.ones(int(job_kinds.counts.sum())),
        np.repeat(job_kinds.widths, job_kinds.counts),
        job_kinds.gpus,
    )
    together = central_level(job_kinds, np.ones(4)).shares
    apart = central_level(single, np.ones(len(single.value))).shares
    np.testing.assert_allclose(np.repeat(together, job_kinds.counts, axis=0), apart, atol=2e-4)


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_order_of_rows_does_not_matter(seed):
    job_kinds = random_kinds(seed, rows=9)
    order = np.random.default_rng(seed).permutation(9)
    mixed = JobKinds(
        job_kinds.value[order], job_kinds.counts[order], job_kinds.widths[order], job_kinds.gpus
    )
    shares = central_level(job_kinds, np.ones(9)).shares
    mixed_shares = central_level(mixed, np.ones(9)).shares
    np.testing.assert_allclose(shares[order], mixed_shares, atol=2e-4)


def test_answer_is_the_analytic_centre():
    # the first job fixes the level; the other two spread over the remaining GPUs
    values = np.array([[1.0, 1.0], [4.0, 5.0], [6.0, 4.0]])
    job_kinds = JobKinds(values, np.ones(3), np.ones(3), np.array([2.0, 2.0]))
    centre = central_level(job_kinds, np.ones(3))
    assert centre.level == pytest.approx(1.0)

    def slacks(x):
        return np.concatenate(
            [
                x.ravel(),
                1 - x.sum(axis=1)[1:],
                2 - x.sum(axis=0),
                (values * x).sum(axis=1)[1:] - 1.0,
            ]
        )

    rng = np.random.default_rng(0)
    best = np.log(slacks(centre.shares)).sum()
    for _ in range(300):
        move = rng.normal(size=(3, 2)) * 0.02
        move[0] -= move[0].mean()  # the first job keeps all its time
        moved = slacks(centre.shares + move)
        if (moved > 0).all():
            assert np.log(moved).sum() <= best + 1e-6


def test_agnostic_programme_is_symmetric():
    job_kinds = JobKinds(np.ones((1, 3)), np.array([7]), np.array([1]), np.array([2.0, 2.0, 2.0]))
    shares = central_level(job_kinds, np.ones(1)).shares
    np.testing.assert_allclose(shares, 2 / 7, atol=1e-9)


def test_bottlenecks_are_those_of_the_linear_programme():
    for seed in range(25):
        job_kinds = random_kinds(seed, rows=6)
        scale = np.ones(6)
        answer = central_level(job_kinds, scale)
        level = vertex_level(job_kinds, scale)[1]
        assert (~answer.tight == improvable(job_kinds, scale, np.zeros(6), level)).all(), seed


def test_centre_of_all_shares_above_floors():
    for seed in range(10):
        job_kinds = random_kinds(seed, rows=8)
        floor = np.full(8, central_level(job_kinds, np.ones(8)).level / 1.03)
        x = central_point(job_kinds, floor, central_level(job_kinds, floor))
        check_feasible(job_kinds, x)
        value = (job_kinds.value * x).sum(axis=1)
        assert (value > floor).all() and (x[job_kinds.usable] > 0).all()


@settings(max_examples=25)
@given(st.integers(0, 10**6))
@example(725979)  # one job needs less time than rounding would leave it
def test_least_ratio_is_that_of_bisection(seed):
    job_kinds = random_kinds(seed, rows=5, most=1)
    rng = np.random.default_rng(seed)
    remaining = rng.uniform(1, 1e4, 5)
    due = rng.uniform(10, 1e4, 5)
    spent = rng.uniform(0, 1e4, 5)
    # bisection replaces a path that does not converge; either result must be optimal
    shares, ratio = ftf_shares(job_kinds, remaining, due, spent)
    check_feasible(job_kinds, shares)
    assert ratio == pytest.approx(vertex_ratio(job_kinds, remaining, due, spent)[1], rel=1e-6)
    speed = (job_kinds.value * shares).sum(axis=1)
    assert ((spent + remaining / speed) / due).max() == pytest.approx(ratio, rel=1e-6)


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_bisection_solves_few_programmes(seed):
    job_kinds = random_kinds(seed, rows=5, most=1)
    rng = np.random.default_rng(seed)
    remaining = rng.uniform(1, 1e4, 5)
    due = rng.uniform(10, 1e4, 5)
    spent = rng.uniform(0, 1e4, 5) * rng.integers(0, 2)
    before = SOLVED["LP"]
    shares, ratio = vertex_ratio(job_kinds, remaining, due, spent)
    # bisection alone solves 30
    assert SOLVED["LP"] - before <= 15
    speed = (job_kinds.value * shares).sum(axis=1)
    assert ((spent + remaining / speed) / due).max() == pytest.approx(ratio, rel=1e-8)
    bounds = RatioBounds(float((spent / due).min()), float((spent / due).max()), 0.0, np.inf)
    for factor in (0.9, 1.1):
        guess = max(factor * ratio, bounds.most_past + 1e-6)
        wanted = remaining / (guess * due - spent)
        bounds.narrow(guess, vertex_level(job_kinds, wanted)[1])
        assert bounds.low <= ratio * (1 + 1e-8) and bounds.high >= ratio * (1 - 1e-8)


def test_the_least_ratio_converges_on_nearly_all_instances():
    converged = 0
    for seed in range(200):
        job_kinds = random_kinds(seed, rows=5, most=1)
        rng = np.random.default_rng(seed)
        remaining = rng.uniform(1, 1e4, 5)
        due = rng.uniform(10, 1e4, 5)
        spent = rng.uniform(0, 1e4, 5)
        converged += central_ratio(job_kinds, remaining, due, spent) is not None
    assert converged >= 190


def test_impossible_floors_name_constraint_and_job():
    job_kinds = JobKinds(
        np.array([[1.0], [2.0]]), np.ones(2), np.ones(2), np.ones(1), "job {}".format
    )
    assert central_level(job_kinds, np.array([1.0, 0.0]), np.array([0.0, 3.0])) is None
    with pytest.raises(PolicyError, match=r"time of one job: job 1 must reach 3 .* gives 2"):
        vertex_level(job_kinds, np.array([1.0, 0.0]), np.array([0.0, 3.0]))
    with pytest.raises(PolicyError, match=r"GPUs of each type: .* floor of job [01] costs most"):
        vertex_level(job_kinds, np.zeros(2), np.array([0.8, 1.9]))


def test_a_job_that_fits_nowhere_is_named():
    with pytest.raises(PolicyError, match="job 0 can run on no GPU type: it needs 8 GPUs"):
        JobKinds(np.ones((1, 2)), np.ones(1), np.array([8]), np.array([4.0, 4.0]), "job {}".format)


def test_floors_out_of_reach_by_rounding_count_as_reached():
    one = np.ones(5, dtype=int)
    job_kinds = JobKinds(np.full((5, 2), 100.0), one, one, np.array([2.01, 1.99]))
    # four kinds have just reached all their value, and the first may rise from 0
    floor = np.array([0.0, *np.full(4, 100.0 * (1 + 5e-8))])
    shares, level = vertex_level(job_kinds, np.array([1.0, 0, 0, 0, 0]), floor)
    assert shares.sum(axis=1) == pytest.approx([0, 1, 1, 1, 1], abs=1e-6)
    assert level == pytest.approx(0.0, abs=1e-3)


def test_the_vertex_of_tiny_scales_is_that_of_large_ones():
    one = np.ones(2, dtype=int)
    job_kinds = JobKinds(np.array([[1.0], [2.0]]), one, one, np.array([1.0]))
    scale = np.array([2.0, 3.0])
    shares, level = vertex_level(job_kinds, scale)
    tiny_shares, tiny_level = vertex_level(job_kinds, scale * 2.0**-45)
    assert tiny_shares.tolist() == shares.tolist()
    assert tiny_level == level * 2.0**45
