"""Factors fitted on published numbers, by hand."""

import pytest

from repro.papers.fitted import fitted_factor


def test_one_number_is_met_exactly():
    """One published number: the factor is the ratio."""
    assert fitted_factor([776.0], [800.0]) == pytest.approx(0.97)


def test_two_numbers_give_the_geometric_mean():
    """Half of 100 and twice 100: the two errors cancel in the logarithm."""
    assert fitted_factor([50.0, 200.0], [100.0, 100.0]) == pytest.approx(1.0)


def test_no_number_is_refused():
    """Nothing to fit on is an error, not a factor of 1."""
    with pytest.raises(ValueError, match="no published number"):
        fitted_factor([], [])


def test_unequal_lengths_are_refused():
    """Every published number needs ours."""
    with pytest.raises(ValueError, match="zip"):
        fitted_factor([1.0, 2.0], [1.0])
