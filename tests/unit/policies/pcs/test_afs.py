"""AFS-L against a reference that compares jobs GPU by GPU, and against a schedule by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro import simulate
from repro.perf import SpeedUp

SPEED = {"a": (1.0, 1.9, 2.6, 3.0, 3.1), "b": (1.0, 1.1, 2.2, 2.1, 2.3)}


def reference_gpus(work, demand, model, num_gpus):
    """GPUs of each job: for each GPU, the job preferred so far is compared with the next job."""

    def speed(job, gpus):
        gpus = min(gpus, demand[job])
        return SPEED[model[job]][gpus - 1] if gpus else 0.0

    def remaining_time(job):
        return work[job] / speed(job, gpus[job]) if gpus[job] else math.inf

    def inverse_time(job, gpus):
        return 1 / (work[job] / speed(job, gpus) + 1e-7) if gpus else 0.0

    gpus = [0] * len(work)
    for _ in range(num_gpus):
        if all(number >= limit for number, limit in zip(gpus, demand, strict=True)):
            break
        best = 0
        for job in range(1, len(work)):
            short, long = best, job
            if remaining_time(job) < remaining_time(best):
                short, long = job, best
            short_now = inverse_time(short, gpus[short])
            short_after = inverse_time(short, gpus[short] + 1)
            long_now = inverse_time(long, gpus[long])
            long_after = inverse_time(long, gpus[long] + 1)
            if short_now == 0:
                prefers_short = short_after > long_after
            else:
                short_gain = (short_after - short_now) / short_now
                prefers_short = short_gain > (long_after - long_now) / long_after
            best = short if prefers_short else long
        gpus[best] += 1
    return [min(number, limit) for number, limit in zip(gpus, demand, strict=True)]


@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(1, 9))
@settings(max_examples=60)
def test_every_gpu_goes_to_the_job_of_the_reference(seed, count, gpus):
    rng = np.random.default_rng(seed)
    work = rng.integers(5, 60, count).astype(float)
    model = rng.choice(["a", "b"], count)
    demand = rng.integers(1, 6, count)
    check_first_gpus(work.tolist(), model.tolist(), demand.tolist(), gpus)


@pytest.mark.parametrize(
    ("work", "demand", "gpus"),
    [([10.0, 28.0], [4, 5], 7), ([25.0, 33.0], [5, 4], 9), ([29.0, 48.0], [5, 4], 9)],
)
def test_the_shorter_job_need_not_have_the_smaller_gain(work, demand, gpus):
    check_first_gpus(work, ["b", "b"], demand, gpus)


def check_first_gpus(work, model, demand, gpus):
    """Compare the GPUs of each job at time 0 with the reference."""
    fastest = np.array([SPEED[m][g - 1] for m, g in zip(model, demand, strict=True)])
    trace = pd.DataFrame(
        {
            "job_id": range(len(work)),
            "submit_time": 0.0,
            "duration": work / fastest,
            "num_gpus": demand,
            "model": model,
            "service": work,
        }
    )
    spans = simulate(trace, f"1x{gpus}", "afs", perf=SpeedUp(SPEED)).intervals
    first = spans[spans["start"] == 0].set_index("job_id")["gpus"]
    simulated = first.reindex(range(len(work)), fill_value=0.0).tolist()
    assert simulated == reference_gpus(work, demand, model, gpus)


def test_the_shortest_jobs_get_one_gpu_each_and_of_equal_ones_the_later():
    """Three jobs and two GPUs; of the two jobs of 20 s the later one runs first."""
    trace = pd.DataFrame(
        {"job_id": range(3), "submit_time": 0.0, "duration": [20.0, 5.0, 20.0], "num_gpus": 1}
    )
    assert simulate(trace, "1x2", "afs").jobs["end_time"].tolist() == [25.0, 5.0, 20.0]


def test_a_job_that_loses_its_gpu_to_a_shorter_one_is_preempted():
    jobs = pd.DataFrame(
        {
            "job_id": [0, 1, 2],
            "submit_time": [0.0, 10.0, 12.0],
            "duration": [100.0, 20.0, 5.0],
            "num_gpus": [1, 1, 1],
        }
    )
    result = simulate(jobs, "1x1", "afs")
    assert result.jobs["jct"].tolist() == [125, 25, 5]
    assert result.jobs["preemptions"].tolist() == [1, 1, 0]


def test_of_equal_jobs_the_earlier_gets_the_odd_gpu():
    """Equal remaining times: the job preferred so far counts as the shorter, and gains more."""
    trace = pd.DataFrame(
        {"job_id": range(2), "submit_time": 0.0, "duration": [10.0, 10.0], "num_gpus": 2}
    )
    spans = simulate(trace, "1x3", "afs").intervals
    assert spans[spans["start"] == 0].set_index("job_id")["gpus"].to_dict() == {0: 2, 1: 1}
