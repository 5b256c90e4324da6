"""Multiples of the interval between decisions, after so many intervals that floats are coarse."""

from __future__ import annotations

import math

import numpy as np
import pytest

from repro.engine.event_times import EventTimes
from repro.engine.multiples import is_multiple, next_multiple


@pytest.mark.parametrize("interval", [59.9, 0.1, 10.0, 1 / 3])
@pytest.mark.parametrize("largest", [2**20, 2**24, 2**33, 2**44])
def test_every_multiple_of_the_interval_is_a_decision(interval, largest):
    times = EventTimes(interval=interval)
    for number in np.random.default_rng(largest).integers(1, largest, 200).tolist():
        now = number * interval
        assert times.decides_at(now)
        assert times.first_decision(now) == now
        assert times.next_decision(now) == (number + 1) * interval


def test_an_instant_between_two_multiples_is_no_decision():
    assert not is_multiple(2**24 * 59.9 + 1e-3, 59.9)
    assert next_multiple(2**24 * 59.9 + 1e-3, 59.9) == (2**24 + 1) * 59.9
    assert EventTimes(interval=59.9).first_decision(math.inf) == math.inf
