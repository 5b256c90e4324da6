"""Conformal intervals: their promise counted out, and what is known at each arrival."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.engine.conformal import bounds_at_arrival, factors

LEVELS = st.floats(0.05, 0.99)


@given(st.sets(st.floats(0.1, 10), min_size=1, max_size=60), LEVELS)
@settings(max_examples=200)
def test_the_promise_holds_whoever_comes_last(ratios, level):
    """Of exchangeable jobs each is equally likely to be the new one: count over all of them."""
    values = np.array(sorted(ratios))
    held = 0
    for place, new in enumerate(values):
        low, high = factors(np.delete(values, place), level)
        held += low <= new <= high
    share = held / len(values)
    n = len(values)
    assert level - 1e-9 <= share
    # and no more than it has to: at most one more on either side
    assert share <= level + 2 / n + 1e-9


@pytest.mark.parametrize(("level", "fewest"), [(0.9, 19), (0.8, 9), (0.95, 39), (0.5, 3)])
def test_too_few_jobs_bound_nothing(level, fewest):
    assert factors(np.arange(1.0, fewest), level) == (0.0, math.inf)
    assert factors(np.arange(1.0, fewest + 1), level) == (1.0, fewest)


@given(st.integers(0, 2**32), LEVELS)
@settings(max_examples=60)
def test_online_knows_its_class_up_to_the_arrival(seed, level):
    rng = np.random.default_rng(seed)
    submit = rng.integers(0, 40, 30).astype(float)
    jct = rng.integers(1, 30, 30).astype(float)
    predicted = np.where(rng.random(30) < 0.8, rng.integers(1, 30, 30), math.nan)
    group = rng.integers(0, 2, 30)
    low, high = bounds_at_arrival(submit, jct, predicted, group, level)
    for job in range(30):
        before = (submit + jct <= submit[job]) & (group == group[job]) & ~np.isnan(predicted)
        below, above = factors((jct / predicted)[before], level)
        if above == math.inf or np.isnan(predicted[job]):
            assert np.isnan(low[job]) and np.isnan(high[job])
        else:
            assert (low[job], high[job]) == (below * predicted[job], above * predicted[job])


def test_unfinished_jobs_hide_no_ended_job():
    submit = np.arange(0.0, 100.0, 10.0)
    jct = np.array([np.nan, 2.0, np.nan, 3.0, 4.0, np.nan, 5.0, 6.0, 7.0, np.nan])
    predicted = np.ones(10)
    job_class = np.zeros(10, int)
    ended = ~np.isnan(jct)
    low, high = bounds_at_arrival(submit, jct, predicted, job_class, 0.3)
    only_ended = bounds_at_arrival(
        submit[ended], jct[ended], predicted[ended], job_class[ended], 0.3
    )
    np.testing.assert_array_equal((low[ended], high[ended]), only_ended)
    # an unfinished job has bounds by the jobs that ended before its arrival, too
    assert (low[9], high[9]) == (3.0, 6.0)
