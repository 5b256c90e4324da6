"""Groups that take turns next to groups side by side."""

import pytest

from repro.papers.measured.turning import SERIES, break_even_factor, group_speeds


def test_a_short_iteration_waits_for_a_long_one():
    table = group_speeds([(0, 1, 1, 0), (0, 0, 4, 4)], 2, [0.0, 1.0])
    speed = table.set_index(["series", "f"])["speed"]
    # turns: period 8 for iterations of 2 s and 8 s; of equal length, both stages fit beside another
    assert speed["Eq 3 of Muri", 0.0] == speed["Eq 3 of Muri", 1.0] == 1.25
    assert speed["equal iterations", 1.0] == 2.0
    assert speed["side by side", 0.0] == 2.0
    assert 1.0 < speed["side by side", 1.0] < 2.0


def test_every_group_has_every_series():
    table = group_speeds([(1, 1, 1)] * 4, 3, [0.5], merged=True)
    assert table.groupby("series", sort=False)["group"].nunique().to_dict() == dict.fromkeys(
        SERIES, 4
    )


@pytest.mark.parametrize(("interleaved", "factor"), [(1.75, 0.5), (1.0, 2.0), (0.9, float("inf"))])
def test_turning_factor(interleaved, factor):
    assert break_even_factor([2.0, 1.5, 1.0], [0.0, 1.0, 2.0], interleaved) == factor
