"""Bootstrap intervals of means, against cases one can work out."""

import numpy as np
import pytest

from repro.comparison.intervals import mean_intervals


def test_two_samples_give_their_own_values():
    """A quarter of the resamples has one sample alone, so both ends are values of a sample."""
    low, high = mean_intervals(np.array([[3.0, -1.0], [5.0, 7.0]]))
    assert low.tolist() == [3.0, -1.0] and high.tolist() == [5.0, 7.0]


def test_many_samples_agree_with_the_normal_interval():
    values = np.random.default_rng(4).normal(10.0, 2.0, (400, 1))
    low, high = mean_intervals(values)
    error = 1.96 * values.std() / 20
    assert low[0] == pytest.approx(values.mean() - error, abs=0.02)
    assert high[0] == pytest.approx(values.mean() + error, abs=0.02)


def test_one_sample_has_no_interval_and_a_gap_spoils_its_column_alone():
    assert np.isnan(mean_intervals(np.array([[3.0]]))).all()
    low, high = mean_intervals(np.array([[3.0, np.nan], [5.0, 1.0]]))
    assert low[0] == 3.0 and high[0] == 5.0
    assert np.isnan([low[1], high[1]]).all()


def test_the_seed_decides():
    values = np.random.default_rng(4).normal(10.0, 2.0, (20, 1))
    assert mean_intervals(values, 1) == mean_intervals(values, 1)
    assert mean_intervals(values, 1) != mean_intervals(values, 2)
