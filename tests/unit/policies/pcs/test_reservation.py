"""Reservations: by hand, against a plain search for the earliest interval, with wrong sizes."""

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


def test_a_later_job_fills_a_gap_and_moves_nobody():
    """Three of four GPUs until 10, all four until 20: the third fits before, the fourth behind."""
    result = run(jobs_of((0, 10, 3), (0, 10, 4), (1, 5, 1), (2, 9, 1)), "1x4")
    assert result.jobs["start_time"].tolist() == [0, 10, 1, 20]
    assert result.jobs["predicted_jct"].tolist() == result.jobs["jct"].tolist()
    assert result.summary()["utilisation"] == pytest.approx((30 + 40 + 5 + 9) / (4 * 29))


@st.composite
def traces(draw):
    count = draw(st.integers(1, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = rng.integers(0, 12, count).cumsum(), rng.uniform(1, 40, count), rng.integers(1, 8, count)
    return jobs_of(*zip(*rows, strict=True))


@given(traces())
@settings(max_examples=60, deadline=None)
def test_everyone_gets_the_earliest_interval_there_is(trace):
    found = run(trace, rules="pcs").jobs
    taken = []
    for job in trace.itertuples():
        gpus = min(job.num_gpus, GPUS)
        length = round(job.duration * job.num_gpus / gpus, 6)
        starts = [job.submit_time, *(end for _, end, _ in taken if end > job.submit_time)]
        start = next(at for at in sorted(starts) if fits(taken, at, at + length, gpus))
        taken.append((start, start + length, gpus))
    assert found["start_time"].tolist() == pytest.approx([start for start, *_ in taken], abs=1e-4)
    assert found["predicted_jct"].to_numpy() == pytest.approx(found["jct"].to_numpy(), abs=1e-4)


def fits(taken, start, end, gpus):
    """Tell whether so many GPUs are free at the start and at every beginning up to the end."""
    moments = [start, *(begin for begin, _, _ in taken if start < begin < end - 1e-5)]
    return all(
        gpus + sum(g for b, e, g in taken if b <= at + 1e-5 and e > at + 1e-5) <= GPUS
        for at in moments
    )


@pytest.mark.parametrize("seed", range(8))
def test_with_wrong_sizes_intervals_stay_and_the_late_push(seed):
    """On one GPU: the second never begins before its interval, nor before the first has ended."""
    trace = jobs_of((0, 10, 1), (1, 20, 1), (2, 5, 1))
    result = simulate(trace, "1x1", make("reservation", size_error=0.5), predict=3, seed=seed).jobs
    ends = trace["submit_time"] + result["predicted_jct"]
    believed = np.diff(ends, prepend=0.0)
    assert (np.abs(believed / trace["duration"] - 1) <= 0.5).all()
    expected = []
    free = 0.0
    for planned, duration in zip(ends - believed, trace["duration"], strict=True):
        expected.append(max(planned, free))
        free = expected[-1] + duration
    assert result["start_time"].tolist() == pytest.approx(expected)


def test_gpus_of_a_job_that_ended_early_go_to_later_arrivals():
    """Two jobs in a row on one GPU; one that comes after the first has ended early goes between."""
    found = 0
    for seed in range(40):
        trace = jobs_of((0, 100, 1), (1, 100, 1), (101, 1, 1))
        policy = make("reservation", size_error=0.9)
        jobs = simulate(trace, "1x1", policy, predict=3, seed=seed).jobs
        if jobs["start_time"][1] > 103:
            assert jobs["start_time"][2] == 101
            found += 1
    assert found > 5
