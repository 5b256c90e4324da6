"""Rounds in which all jobs restart, solved by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from repro.engine.simulate import simulate
from repro.model.policy import make
from repro.perf.overhead import RoundRestarts

#: 17 s before a job progresses: launch 10, model 5, warm-up of 2 s of work
RESTARTS = RoundRestarts(launch=10.0, warm_up=2.0, start={"bert": 5.0})


def trace(*jobs):
    """Trace of jobs with one GPU: submission and duration (s)."""
    frame = pd.DataFrame(jobs, columns=["submit_time", "duration"])
    return frame.assign(job_id=range(len(frame)), num_gpus=1, model="bert")


def run(jobs, cluster, policy="yarn-cs", interval=100.0):
    return simulate(jobs, cluster, policy, interval=interval, overhead=RESTARTS)


def test_all_jobs_restart_after_an_arrival_and_after_a_completion():
    result = run(trace((0.0, 300.0), (130.0, 20.0)), "1x2")
    # at 200 s the arrival: 183 s are done, 117 s left; B works from 217 s to 237 s
    # at 300 s the completion: 83 s more are done, 34 s left; A works from 317 s
    assert result.jobs["start_time"].tolist() == [0.0, 200.0]
    assert result.jobs["end_time"].tolist() == [351.0, 237.0]


def test_no_job_restarts_in_a_round_without_a_change():
    # B waits from 130 s. Its arrival restarts A at 200 s; at 300 s nothing has changed.
    result = run(trace((0.0, 300.0), (130.0, 20.0)), "1x1")
    assert result.jobs["end_time"].tolist() == [334.0, 437.0]
    assert result.jobs["start_time"].tolist() == [0.0, 400.0]


def test_a_restart_is_charged_in_the_interval_in_which_a_job_ends():
    result = run(trace((0.0, 50.0)), "1x1")
    assert result.jobs["end_time"].tolist() == [67.0]
    assert result.meta["overhead_s"] == 17.0


def test_gpus_of_a_job_that_ended_stay_idle_until_the_round_is_over():
    result = run(trace((0.0, 50.0), (0.0, 10.0)), "1x1")
    assert result.jobs["start_time"].tolist() == [0.0, 100.0]
    assert result.jobs["end_time"].tolist() == [67.0, 127.0]


def test_a_round_shorter_than_a_restart_has_no_progress():
    # the arrivals at 1 s and 11 s restart A in the first two rounds of 10 s
    result = run(trace((0.0, 30.0), (1.0, 100.0), (11.0, 100.0)), "1x1", interval=10.0)
    assert result.jobs["end_time"][0] == 20.0 + 17.0 + 30.0


@pytest.mark.parametrize(("limit", "end"), [(150.0, 334.0), (200.0, 334.0), (1000.0, 317.0)])
def test_a_demotion_restarts_all_jobs_in_the_next_round(limit, end):
    policy = make("tiresias-l", thresholds=(limit,))
    assert run(trace((0.0, 300.0)), "1x1", policy).jobs["end_time"].tolist() == [end]


@pytest.mark.parametrize(("skips", "end"), [(True, 334.0), (False, 351.0)])
def test_a_job_beyond_several_limits_may_skip_queues(skips, end):
    # at 100 s the job is beyond both limits; one queue at a time takes another restart at 200 s
    policy = make("tiresias-l", "muri", thresholds=(50.0, 100.0), skip_queues=skips)
    assert run(trace((0.0, 300.0)), "1x1", policy).jobs["end_time"].tolist() == [end]
