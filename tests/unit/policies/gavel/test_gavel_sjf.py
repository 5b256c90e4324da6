"""Shortest job first on unequal GPU types, against the programme solved by trying."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from repro.model.typed_shares import Kinds
from repro.policies.gavel.sjf import GavelSjf


def shares(speeds, left, widths=None):
    """Return X on a K80 and a V100, one row per job."""
    one = np.ones(len(left))
    wide = np.array(widths or [1] * len(left), float)
    progress = SimpleNamespace(steps_left=lambda jobs: np.asarray(left))
    jobs = Kinds(np.asarray(speeds, float), np.ones(2), one, wide, one, view=progress)
    return GavelSjf().shares(jobs)


def test_the_shortest_job_has_the_type_that_ends_it_soonest():
    found = shares([[1, 4], [1, 4], [1, 4]], [80.0, 20.0, 40.0])
    assert found.tolist() == [[0, 0], [0, 1], [1, 0]]


def test_a_wide_gang_is_skipped_and_a_type_it_cannot_run_on_is_not_used():
    found = shares([[1, 4], [0, 4]], [1.0, 50.0], widths=[2, 1])
    assert found.tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize("seed", range(20))
def test_first_choice_is_the_optimum_of_the_programme(seed):
    rng = np.random.default_rng(seed)
    speeds = rng.uniform(1, 9, (5, 2))
    left = rng.uniform(10, 99, 5)
    found = shares(speeds, left)
    reached = left / np.maximum((speeds * found).sum(axis=1), 1e-12)
    best = min(left[i] / speeds[i, j] for i, j in itertools.product(range(5), range(2)))
    assert reached.min() == pytest.approx(best)
    # and once more among the others, on the type left over
    first = int(reached.argmin())
    other = 1 - int(found[first].argmax())
    rest = [left[i] / speeds[i, other] for i in range(5) if i != first]
    assert sorted(reached)[1] == pytest.approx(min(rest))
