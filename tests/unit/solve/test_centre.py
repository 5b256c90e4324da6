"""The interior-point method: optimal, in the centre, independent of the order of the jobs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from repro.base.errors import PolicyError
from repro.policies.gavel.ftf import ftf_shares
from repro.solve.max_min import (
    Crowd,
    central_level,
    central_point,
    central_ratio,
    improvable,
    vertex_level,
    vertex_ratio,
)


def some_crowd(seed, rows=None, most=3):
    rng = np.random.default_rng(seed)
    rows = rows or int(rng.integers(1, 12))
    kinds = int(rng.integers(1, 5))
    values = 10 ** rng.uniform(-1, 2.5, (rows, kinds))
    values[rng.random((rows, kinds)) < 0.15] = 0.0
    values[:, 0] = np.maximum(values[:, 0], 0.05)
    gpus = rng.integers(1, 9, kinds).astype(float)
    gpus[0] = max(gpus[0], 4.0)
    return Crowd(values, rng.integers(1, most + 1, rows), rng.choice([1, 2, 4], rows), gpus)


def check_feasible(crowd, x):
    assert (x >= 0).all() and (x.sum(axis=1) <= 1 + 1e-8).all()
    assert ((crowd.counts * crowd.widths) @ x <= crowd.gpus * (1 + 1e-7)).all()
    assert (x[~crowd.usable] == 0).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_level_is_that_of_the_linear_programme(seed):
    crowd = some_crowd(seed)
    scale = np.random.default_rng(seed + 1).uniform(0.2, 5, len(crowd.value))
    answer = central_level(crowd, scale)
    _, level = vertex_level(crowd, scale)
    check_feasible(crowd, answer.shares)
    assert answer.level == pytest.approx(level, rel=1e-7)
    reached = (crowd.value * answer.shares).sum(axis=1) / scale
    assert reached.min() == pytest.approx(level, rel=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_rows_of_equal_jobs_stand_for_single_jobs(seed):
    crowd = some_crowd(seed, rows=4)
    single = Crowd(
        np.repeat(crowd.value, crowd.counts, axis=0),
        np.ones(int(crowd.counts.sum())),
        np.repeat(crowd.widths, crowd.counts),
        crowd.gpus,
    )
    together = central_level(crowd, np.ones(4)).shares
    apart = central_level(single, np.ones(len(single.value))).shares
    np.testing.assert_allclose(np.repeat(together, crowd.counts, axis=0), apart, atol=2e-4)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_order_of_rows_plays_no_role(seed):
    crowd = some_crowd(seed, rows=9)
    order = np.random.default_rng(seed).permutation(9)
    mixed = Crowd(crowd.value[order], crowd.counts[order], crowd.widths[order], crowd.gpus)
    one = central_level(crowd, np.ones(9)).shares
    other = central_level(mixed, np.ones(9)).shares
    np.testing.assert_allclose(one[order], other, atol=2e-4)


def test_answer_is_the_analytic_centre():
    # a fast job fixes the level; the other two may spread over what is left
    values = np.array([[1.0, 1.0], [4.0, 5.0], [6.0, 4.0]])
    crowd = Crowd(values, np.ones(3), np.ones(3), np.array([2.0, 2.0]))
    centre = central_level(crowd, np.ones(3))
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
        other = slacks(centre.shares + move)
        if (other > 0).all():
            assert np.log(other).sum() <= best + 1e-6


def test_agnostic_programme_is_symmetric():
    crowd = Crowd(np.ones((1, 3)), np.array([7]), np.array([1]), np.array([2.0, 2.0, 2.0]))
    shares = central_level(crowd, np.ones(1)).shares
    np.testing.assert_allclose(shares, 2 / 7, atol=1e-9)


def test_bottlenecks_are_those_of_the_linear_programme():
    for seed in range(25):
        crowd = some_crowd(seed, rows=6)
        one = np.ones(6)
        answer = central_level(crowd, one)
        level = vertex_level(crowd, one)[1]
        assert (~answer.tight == improvable(crowd, one, np.zeros(6), level)).all(), seed


def test_centre_of_all_shares_above_floors():
    for seed in range(10):
        crowd = some_crowd(seed, rows=8)
        floor = np.full(8, central_level(crowd, np.ones(8)).level / 1.03)
        x = central_point(crowd, floor, central_level(crowd, floor))
        check_feasible(crowd, x)
        value = (crowd.value * x).sum(axis=1)
        assert (value > floor).all() and (x[crowd.usable] > 0).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
@example(725979)  # one job needs less time than rounding would leave it
def test_least_ratio_is_that_of_bisection(seed):
    crowd = some_crowd(seed, rows=5, most=1)
    rng = np.random.default_rng(seed)
    left = rng.uniform(1, 1e4, 5)
    due = rng.uniform(10, 1e4, 5)
    spent = rng.uniform(0, 1e4, 5)
    # where the path does not end, bisection answers: what is returned must hold either way
    shares, ratio = ftf_shares(crowd, left, due, spent)
    check_feasible(crowd, shares)
    assert ratio == pytest.approx(vertex_ratio(crowd, left, due, spent)[1], rel=1e-6)
    speed = (crowd.value * shares).sum(axis=1)
    assert ((spent + left / speed) / due).max() == pytest.approx(ratio, rel=1e-6)


def test_the_least_ratio_is_found_on_nearly_all_instances():
    found = 0
    for seed in range(200):
        crowd = some_crowd(seed, rows=5, most=1)
        rng = np.random.default_rng(seed)
        left = rng.uniform(1, 1e4, 5)
        due = rng.uniform(10, 1e4, 5)
        spent = rng.uniform(0, 1e4, 5)
        found += central_ratio(crowd, left, due, spent) is not None
    assert found >= 190


def test_impossible_floors_name_family_and_job():
    crowd = Crowd(np.array([[1.0], [2.0]]), np.ones(2), np.ones(2), np.ones(1), "job {}".format)
    assert central_level(crowd, np.array([1.0, 0.0]), np.array([0.0, 3.0])) is None
    with pytest.raises(PolicyError, match=r"time of one job: job 1 must reach 3 .* gives 2"):
        vertex_level(crowd, np.array([1.0, 0.0]), np.array([0.0, 3.0]))
    with pytest.raises(PolicyError, match=r"GPUs of each type: .* job [01] weighs most"):
        vertex_level(crowd, np.zeros(2), np.array([0.8, 1.9]))


def test_a_job_that_fits_nowhere_is_named():
    with pytest.raises(PolicyError, match="job 0 can run on no GPU type: it needs 8 GPUs"):
        Crowd(np.ones((1, 2)), np.ones(1), np.array([8]), np.array([4.0, 4.0]), "job {}".format)
