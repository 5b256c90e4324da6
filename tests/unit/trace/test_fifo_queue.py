"""The queue of a trace under first in, first out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import repro
from repro.trace.doctor.queue import (
    fifo_starts,
    lowest_factor,
    queue_of,
    waiting_periods,
    waiting_share,
)


def trace(rng, count=200, most=8):
    submit = np.sort(rng.integers(0, 40 * count, count)).astype(float)
    return pd.DataFrame(
        {
            "job_id": range(count),
            "submit_time": submit,
            "duration": rng.integers(1, 80, count).astype(float),
            "num_gpus": rng.integers(1, most + 1, count),
        }
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_starts_equal_those_of_the_engine(seed):
    frame = trace(np.random.default_rng(seed))
    result = repro.simulate(frame, "2x4", "yarn-cs", placement="count")
    columns = (frame[name].to_numpy() for name in ("submit_time", "duration", "num_gpus"))
    assert fifo_starts(*columns, 8).tolist() == result.jobs["start_time"].tolist()


def frame_of(submit, duration, gpus):
    columns = {"submit_time": submit, "duration": duration, "num_gpus": gpus}
    return pd.DataFrame({"job_id": range(len(submit)), **columns})


def test_waiting_share_by_hand():
    # one GPU: starts 0, 10, 20; a job waits from 2 to 10, and from 15 to the last submission at 15
    frame = frame_of([0.0, 2.0, 15.0], [10.0] * 3, [1, 1, 1])
    assert waiting_share(frame, 1) == pytest.approx(8 / 15)
    queue = queue_of(frame, 1)
    assert queue.waiting_share == pytest.approx(8 / 15)
    assert queue.longest_wait_s == (2.0, 10.0)
    assert queue.load == 2.0
    # tenths of 1.5 s: those from 3.0 to 9.0 s are full
    assert queue.full_tenths == 4


def test_periods_join_where_a_job_arrives_before_the_last_start():
    begin, end = waiting_periods(np.array([0.0, 1.0, 4.0, 9.0]), np.array([0.0, 5.0, 8.0, 9.0]))
    assert (begin.tolist(), end.tolist()) == ([1.0], [8.0])


def test_loads_by_hand():
    # One GPU, a job of d seconds every 10 s from 0 to 100 s, a load of 11 d / 100. Above 10 s job k
    # waits from 10 k to k d, so that tenth k is full where k d >= 10 (k + 1). The first is tenth 9,
    # from 100 / 9 s on. The second half is full where job 5 waits up to the arrival of job 6.
    frame = frame_of([10.0 * number for number in range(11)], [5.0] * 11, [1] * 11)
    queue = queue_of(frame, 1)
    assert queue.load == pytest.approx(0.55)
    assert (queue.waiting_share, queue.full_tenths) == (0, 0)
    first_full = 11 / 9
    assert first_full / 1.006 <= queue.empties_up_to <= first_full
    never = 11 * 12 / 100
    assert never <= queue.never_empties_from <= never * 1.006


def test_longest_queue_by_hand():
    frame = frame_of([10.0 * number for number in range(11)], [12.0] * 11, [1] * 11)
    queue = queue_of(frame, 1)
    # jobs 1 to 4 start before the next arrives (12, 24, 36, 48 s), jobs 5 to 10 do not
    assert queue.longest_wait_s == (50.0, 100.0)
    assert queue.waiting_share == pytest.approx((2 + 4 + 6 + 8 + 50) / 100)
    assert queue.full_tenths == 5


def test_jobs_that_never_fit_are_left_out():
    queue = queue_of(frame_of([0.0, 5.0, 10.0], [1.0, 1.0, 1.0], [1, 9, 1]), 4)
    assert (queue.jobs, queue.load) == (2, 2 / 40)
    assert queue_of(frame_of([0.0, 0.0], [1.0, 1.0], [1, 1]), 4) is None
    assert waiting_share(frame_of([0.0, 0.0], [1.0, 1.0], [1, 1]), 4) == 0


def test_few_jobs_never_fill_the_cluster():
    queue = queue_of(frame_of([0.0, 5.0, 10.0], [1.0, 1.0, 1.0], [1, 1, 1]), 4)
    assert (queue.empties_up_to, queue.never_empties_from) == (None, None)


def test_lowest_factor():
    for limit in (0.01, 0.9, 1.0, 7.0, 300.0):
        below, above = lowest_factor(lambda factor, limit=limit: factor >= limit)
        assert below < limit <= above <= below * 1.006
    assert lowest_factor(lambda factor: False) is None
    assert lowest_factor(lambda factor: True)[0] == 0


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.floats(1.0, 4.0))
def test_longer_durations_never_shorten_a_wait(seed, factor):
    frame = trace(np.random.default_rng(seed), count=60)
    submit, duration, gpus = (
        frame[name].to_numpy() for name in ("submit_time", "duration", "num_gpus")
    )
    before = fifo_starts(submit, duration, gpus, 8)
    after = fifo_starts(submit, duration * factor, gpus, 8)
    assert (after >= before - 1e-9).all()
