"""Bootstrap intervals of means, against cases one can work out."""

import numpy as np
import pytest

from repro.comparison.intervals import mean_intervals, ratio_interval


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


def test_a_ratio_of_means_is_paired():
    values = np.random.default_rng(4).uniform(1.0, 9.0, 50)
    # the same factor in every sample is certain, however much the samples differ
    assert ratio_interval(2 * values, values) == pytest.approx((2.0, 2.0, 2.0))
    ratio, low, high = ratio_interval(values[::-1], values)
    assert ratio == pytest.approx(1.0) and low < 1 < high


def test_a_ratio_over_nothing_has_no_interval():
    assert ratio_interval(np.array([1.0, 2.0]), np.zeros(2))[0] == np.inf
    assert np.isnan(ratio_interval(np.zeros(2), np.zeros(2))).all()
    ratio, low, high = ratio_interval(np.array([3.0]), np.array([2.0]))
    assert ratio == 1.5 and np.isnan([low, high]).all()


@pytest.mark.filterwarnings("error")
def test_a_resample_over_nothing_has_an_infinite_ratio():
    # a quarter of the resamples has only the first sample, and a quarter only the second
    assert ratio_interval(np.array([1.0, 2.0]), np.array([0.0, 1.0])) == (3.0, 2.0, np.inf)
    assert ratio_interval(np.array([0.0, 1.0]), np.array([1.0, 0.0])) == (1.0, 0.0, np.inf)


def test_infinite_ratios_beyond_the_ends_leave_them_alone():
    # 1 of 256 resamples has no sample over more than 0
    reference = np.array([0.0, 1.0, 1.0, 1.0])
    ratio, low, high = ratio_interval(np.array([1.0, 2.0, 3.0, 4.0]), reference)
    assert ratio == pytest.approx(10 / 3) and 2.0 < low < ratio < high < np.inf
