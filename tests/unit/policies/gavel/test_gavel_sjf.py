"""Shortest job first on unequal GPU types, against an exhaustive search of the programme."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from repro.model.typed_shares import Kinds
from repro.policies.gavel._single_type import remaining_durations
from repro.policies.gavel.sjf import GavelSjf


def shares(speeds, steps_left, widths=None):
    """Allocation X on a K80 and a V100, one row per job."""
    ones = np.ones(len(steps_left))
    job_widths = np.array(widths or [1] * len(steps_left), float)
    view = SimpleNamespace(work_left=lambda jobs: np.asarray(steps_left))
    jobs = Kinds(np.asarray(speeds, float), np.ones(2), ones, job_widths, ones, view=view)
    return GavelSjf().shares(jobs)


def test_the_shortest_job_has_the_type_that_ends_it_soonest():
    allocation = shares([[1, 4], [1, 4], [1, 4]], [80.0, 20.0, 40.0])
    assert allocation.tolist() == [[0, 0], [0, 1], [1, 0]]


def test_a_wide_gang_is_skipped_and_a_type_it_cannot_run_on_is_not_used():
    allocation = shares([[1, 4], [0, 4]], [1.0, 50.0], widths=[2, 1])
    assert allocation.tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize("seed", range(20))
def test_the_first_two_jobs_are_optima_of_the_programme(seed):
    rng = np.random.default_rng(seed)
    speeds = rng.uniform(1, 9, (5, 2))
    steps_left = rng.uniform(10, 99, 5)
    allocation = shares(speeds, steps_left)
    durations = steps_left / np.maximum((speeds * allocation).sum(axis=1), 1e-12)
    best = min(steps_left[i] / speeds[i, j] for i, j in itertools.product(range(5), range(2)))
    assert durations.min() == pytest.approx(best)
    # the second job is the optimum among the others on the idle type
    first_job = int(durations.argmin())
    idle_type = 1 - int(allocation[first_job].argmax())
    other_jobs = [job for job in range(5) if job != first_job]
    second_best = min(steps_left[job] / speeds[job, idle_type] for job in other_jobs)
    assert sorted(durations)[1] == pytest.approx(second_best)


@pytest.mark.filterwarnings("error")
def test_a_job_never_ends_on_a_type_it_cannot_run_on():
    durations = remaining_durations(np.array([60.0, 0.0]), np.array([[3.0, 0.0], [0.0, 2.0]]))
    assert durations.tolist() == [[20, np.inf], [np.inf, 0]]
