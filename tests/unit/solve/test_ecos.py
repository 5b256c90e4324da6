"""ECOS, the solver of Gavel's public simulator, against our own methods."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest

from repro.base.errors import ExtraMissingError
from repro.model.typed_shares import Kinds
from repro.policies.gavel.las import GavelLas
from repro.policies.gavel.water_filling import GavelWaterFilling
from repro.solve.ecos import (
    _by_job,
    ecos_level,
    ecos_point,
    ecos_ratio,
    ecos_sum,
    simulator_values,
)
from repro.solve.linear import best_shares
from repro.solve.max_min import Centre, JobKinds, central_level, central_ratio

LECTURE = np.array([[40.0, 10.0], [12.0, 4.0], [100.0, 50.0]])
JOBS = Kinds(LECTURE, np.ones(2), np.ones(3), np.ones(3), np.ones(3))


@pytest.fixture
def solver():
    return pytest.importorskip("ecos", reason="the package ecos (extra) is not installed")


def random_kinds(seed, rows=9):
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.5, 5.0, (rows, 3))
    values[0, 0] = 0.0
    widths = rng.choice([1, 2, 4], rows)
    widths[1] = 4
    return JobKinds(values, rng.integers(1, 3, rows), widths, np.array([3.0, 5.0, 8.0]))


def check_feasible(job_kinds, x):
    assert (x >= 0).all() and (x.sum(axis=1) <= 1 + 1e-7).all()
    assert ((job_kinds.counts * job_kinds.widths) @ x <= job_kinds.gpus * (1 + 1e-7)).all()
    assert (x[~job_kinds.usable] == 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_level_is_ours(solver, seed):
    job_kinds = random_kinds(seed)
    scale = np.random.default_rng(seed).uniform(0.5, 2.0, len(job_kinds.value))
    floor = np.where(np.arange(len(scale)) == 2, -np.inf, 0.01)
    ours = central_level(job_kinds, scale, floor)
    by_ecos = Centre(*ecos_level(job_kinds, scale, floor))
    check_feasible(job_kinds, by_ecos.shares)
    assert by_ecos.level == pytest.approx(ours.level, rel=1e-6)
    assert (by_ecos.tight == ours.tight).all()


@pytest.mark.parametrize("weight", [1e-9, 1.0, 1e3, 1e7, 1e9])
def test_a_job_that_can_rise_does_so_also_at_large_weights(solver, weight):
    # two jobs share one GPU, a third has another GPU to itself
    kinds = Kinds(np.eye(2), np.ones(2), np.array([2, 1]), np.ones(2), np.full(2, weight))
    shares = GavelWaterFilling(lp_backend="ecos").shares(kinds)
    np.testing.assert_allclose(shares, [[0.5, 0.0], [0.0, 1.0]], atol=1e-6)


@pytest.mark.parametrize("weight", [1e-9, 1e-4, 1e4, 1e9])
@pytest.mark.parametrize("policy", [GavelLas, GavelWaterFilling])
def test_shares_do_not_depend_on_a_common_factor_of_the_weights(solver, policy, weight):
    def shares(weights):
        return policy(lp_backend="ecos").shares(dataclasses.replace(JOBS, weights=weights))

    ratios = np.array([1.0, 0.5, 0.25])
    np.testing.assert_allclose(shares(weight * ratios), shares(ratios), atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_sum_is_ours(solver, seed):
    job_kinds = random_kinds(seed)
    single = JobKinds(
        job_kinds.value, np.ones(len(job_kinds.value)), job_kinds.widths, job_kinds.gpus
    )
    shares = ecos_sum(single)
    check_feasible(single, shares)
    ours = best_shares(job_kinds.usable_value, single.counts, job_kinds.widths, job_kinds.gpus)
    assert (job_kinds.value * shares).sum() == pytest.approx(
        (job_kinds.value * ours).sum(), rel=1e-6
    )


def test_level_reports_floors_out_of_reach(solver):
    job_kinds = random_kinds(0)
    has_level = np.arange(len(job_kinds.value)) > 0
    assert ecos_level(job_kinds, has_level.astype(float), np.where(has_level, 0.0, 50.0)) is None


def test_point_meets_its_floors_or_is_none(solver):
    job_kinds = JobKinds(LECTURE, np.ones(3), np.ones(3), np.ones(2))
    shares = ecos_point(job_kinds, np.array([10.0, 5.0, 40.0]))
    check_feasible(job_kinds, shares)
    assert ((LECTURE * shares).sum(axis=1) >= np.array([10.0, 5.0, 40.0]) - 1e-5).all()
    assert ecos_point(job_kinds, np.array([30.0, 11.0, 90.0])) is None


@pytest.mark.parametrize("seed", range(5))
def test_ratio_is_ours(solver, seed):
    job_kinds = random_kinds(seed)
    job_kinds = JobKinds(job_kinds.value, np.ones(9), job_kinds.widths, job_kinds.gpus)
    rng = np.random.default_rng(seed)
    remaining = rng.uniform(100, 900, 9)
    due = rng.uniform(500, 3000, 9)
    spent = rng.uniform(0, 300, 9)
    ours = central_ratio(job_kinds, remaining, due, spent)
    by_ecos = ecos_ratio(job_kinds, remaining, due, spent)
    check_feasible(job_kinds, by_ecos[0])
    assert by_ecos[1] == pytest.approx(ours[1], rel=1e-6)


def test_the_lecture_example(solver):
    shares = GavelLas(lp_backend="ecos").shares(JOBS)
    expected = [[5 / 11, 0], [5 / 11, 1 / 11], [1 / 11, 10 / 11]]
    np.testing.assert_allclose(shares, expected, atol=1e-6)


def test_order_of_operations_changes_no_more_than_rounding():
    values = simulator_values(LECTURE, np.array([1, 2, 4]), np.array([1.0, 5.0, 1.0]), np.ones(2))
    expected = LECTURE / LECTURE.mean(axis=1)[:, None] * np.array([[1.0], [0.4], [4.0]])
    np.testing.assert_allclose(values, expected, rtol=1e-14)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ecos", None)
    with pytest.raises(ExtraMissingError, match=r'needs ecos.*pip install .*\[ecos\]"$'):
        GavelLas(lp_backend="ecos").shares(JOBS)


def test_shares_beyond_the_gpus_are_scaled():
    """An answer of reduced accuracy is scaled to the GPUs."""
    job_kinds = JobKinds(np.ones((2, 1)), np.ones(2), np.ones(2), np.ones(1))
    shares = _by_job(np.array([0.75, 0.5]), job_kinds, np.arange(2))
    np.testing.assert_allclose(shares, [[0.6], [0.4]])
    np.testing.assert_array_equal(
        _by_job(np.array([0.5, 0.25]), job_kinds, np.arange(2)), [[0.5], [0.25]]
    )


def test_an_answer_of_reduced_accuracy_is_no_point(monkeypatch):
    job_kinds = JobKinds(np.ones((1, 1)), np.ones(1), np.ones(1), np.ones(1))
    answer = {"x": np.array([0.5]), "info": {"exitFlag": 10}}
    monkeypatch.setattr("repro.solve.ecos._solve", lambda *arguments: answer)
    assert ecos_point(job_kinds, np.array([0.1])) is None
    answer["info"]["exitFlag"] = 0
    assert ecos_point(job_kinds, np.array([0.1])).tolist() == [[0.5]]
