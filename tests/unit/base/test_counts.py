"""Whole numbers of 0 or more."""

import numpy as np
import pytest

from repro.base.counts import check_seed, is_count, refuse_below
from repro.base.errors import ParamError


@pytest.mark.parametrize("value", [0, 7, np.int64(7), np.uint8(0)])
def test_whole_numbers_from_0_are_counts(value):
    assert is_count(value)
    check_seed(value)


@pytest.mark.parametrize("value", [-1, 1.0, np.float64(1), True, np.True_, "1", None, [1]])
def test_other_values_are_not(value):
    assert not is_count(value)
    with pytest.raises(ParamError, match=r"seed=.*: give a whole number of 0 or more"):
        check_seed(value)


def test_an_option_below_its_least_value_is_named():
    refuse_below("-j", None, 1)
    refuse_below("-j", 1, 1)
    with pytest.raises(ParamError, match=r"^-j 0: give a number of processes of 1 or more$"):
        refuse_below("-j", 0, 1, "a number of processes")
