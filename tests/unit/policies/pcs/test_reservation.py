"""Reservations by hand, against a search for the earliest interval, and with wrong sizes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro import make, simulate

GPUS = 5


def jobs_of(*rows):
    frame = pd.DataFrame(rows, columns=["submit_time", "duration", "num_gpus"], dtype=float)
    return frame.assign(job_id=range(len(rows)), num_gpus=frame["num_gpus"].astype(int))


def run(trace, cluster="1x5", **more):
    return simulate(trace, cluster, "reservation", predict=len(trace), **more)


def test_a_later_job_fills_a_gap_and_delays_no_job():
    """Three of four GPUs are reserved until 10, all four until 20.

    The third job fits before 10, the fourth starts at 20.
    """
    result = run(jobs_of((0, 10, 3), (0, 10, 4), (1, 5, 1), (2, 9, 1)), "1x4")
    assert result.jobs["start_time"].tolist() == [0, 10, 1, 20]
    assert result.jobs["predicted_jct"].tolist() == result.jobs["jct"].tolist()
    assert result.summary()["utilisation"] == pytest.approx((30 + 40 + 5 + 9) / (4 * 29))


def test_a_job_may_fill_a_gap_to_its_end():
    result = run(jobs_of((0, 10, 3), (0, 10, 4), (1, 9, 1)), "1x4")
    assert result.jobs["start_time"].tolist() == [0, 10, 1]


def test_a_job_that_starts_on_time_keeps_the_end_of_its_interval():
    """The third job arrives while the second one runs, from 10 s to 20 s."""
    result = run(jobs_of((0, 10, 1), (1, 10, 1), (12, 10, 1)), "1x1")
    assert result.jobs["start_time"].tolist() == [0, 10, 20]


def test_a_start_late_by_less_than_a_millisecond_does_not_move_the_interval():
    """The first job takes 0.5 ms longer than it reserved, so that the second starts late."""
    trace = jobs_of((0, 10.0005, 1), (1, 10, 1), (12, 10, 1))
    jobs = run(trace.assign(predicted_duration=10.0), "1x1").jobs
    assert jobs["start_time"].tolist() == pytest.approx([0, 10.0005, 20.0005], abs=1e-9)
    assert jobs["predicted_jct"].tolist() == pytest.approx([10, 19, 18], abs=1e-9)


@st.composite
def traces(draw):
    count = draw(st.integers(1, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = rng.integers(0, 12, count).cumsum(), rng.uniform(1, 40, count), rng.integers(1, 8, count)
    return jobs_of(*zip(*rows, strict=True))


@given(traces())
@settings(max_examples=60)
def test_every_job_gets_the_earliest_free_interval(trace):
    jobs = run(trace, rules="pcs").jobs
    reserved = []
    for job in trace.itertuples():
        gpus = min(job.num_gpus, GPUS)
        length = round(job.duration * job.num_gpus / gpus, 6)
        starts = [job.submit_time, *(end for _, end, _ in reserved if end > job.submit_time)]
        start = next(time for time in sorted(starts) if fits(reserved, time, time + length, gpus))
        reserved.append((start, start + length, gpus))
    expected = [start for start, *_ in reserved]
    assert jobs["start_time"].tolist() == pytest.approx(expected, abs=1e-4)
    assert jobs["predicted_jct"].to_numpy() == pytest.approx(jobs["jct"].to_numpy(), abs=1e-4)


def fits(reserved, start, end, gpus):
    """Whether so many GPUs are free at the start, and whenever an interval starts until the end."""
    instants = [start, *(begin for begin, _, _ in reserved if start < begin < end - 1e-5)]
    return all(gpus + reserved_gpus(reserved, instant + 1e-5) <= GPUS for instant in instants)


def reserved_gpus(reserved, instant):
    """Sum of the GPUs whose intervals contain an instant."""
    return sum(gpus for start, end, gpus in reserved if start <= instant < end)


@pytest.mark.parametrize("seed", range(8))
def test_with_wrong_sizes_intervals_stay_and_late_jobs_delay_the_next(seed):
    """On one GPU, a job starts at its interval, or when the job before ends."""
    trace = jobs_of((0, 10, 1), (1, 20, 1), (2, 5, 1))
    result = simulate(trace, "1x1", make("reservation", size_error=0.5), predict=3, seed=seed).jobs
    ends = trace["submit_time"] + result["predicted_jct"]
    predicted_s = np.diff(ends, prepend=0.0)
    assert (np.abs(predicted_s / trace["duration"] - 1) <= 0.5).all()
    expected = []
    free = 0.0
    for planned, duration in zip(ends - predicted_s, trace["duration"], strict=True):
        expected.append(max(planned, free))
        free = expected[-1] + duration
    assert result["start_time"].tolist() == pytest.approx(expected)


def test_gpus_of_a_job_that_ended_early_go_to_later_arrivals():
    """A job that arrives after the early end of the first runs before the second, on one GPU."""
    early_ends = 0
    for seed in range(40):
        trace = jobs_of((0, 100, 1), (1, 100, 1), (101, 1, 1))
        policy = make("reservation", size_error=0.9)
        jobs = simulate(trace, "1x1", policy, predict=3, seed=seed).jobs
        if jobs["start_time"][1] > 103:
            assert jobs["start_time"][2] == 101
            early_ends += 1
    assert early_ends > 5
