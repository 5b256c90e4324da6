"""What starts and preemptions cost."""

from __future__ import annotations

import pandas as pd
import pytest

from repro.base.errors import TraceError
from repro.model.jobs import JobTable
from repro.model.performance import Overhead
from repro.perf.muri_models import muri_profiles
from repro.perf.overhead import CheckpointOverhead, RoundRestarts, StartOverhead


def table(models, gpus=1, **columns):
    frame = pd.DataFrame({"job_id": range(len(models)), "submit_time": 0.0, "duration": 10.0})
    return JobTable(frame.assign(num_gpus=gpus, model=models, **columns))


def test_nothing_costs_nothing():
    jobs = table(["bert"])
    free = Overhead()
    assert (free.start_s(jobs, 0), free.pause_s(jobs, 0), free.resume_s(jobs, 0)) == (0, 0, 0)
    assert not free.every_interval


def test_checkpoints_cost_by_model():
    jobs = table(["vgg19", "bert", None])
    cost = CheckpointOverhead({"vgg19": 2.7}, resume=50.0, default_pause=10.0)
    assert [cost.pause_s(jobs, job) for job in range(3)] == [2.7, 10.0, 10.0]
    assert [cost.resume_s(jobs, job) for job in range(3)] == [50.0] * 3
    assert [cost.start_s(jobs, job) for job in range(3)] == [0.0] * 3


def test_every_measured_start_is_found_by_model_and_gang():
    measured = muri_profiles()
    jobs = table(measured["model"].tolist(), measured["num_gpus"].tolist())
    cost = StartOverhead()
    found = [cost.start_s(jobs, job) for job in range(len(measured))]
    assert found == measured["start_overhead"].tolist()
    assert found == [cost.resume_s(jobs, job) for job in range(len(measured))]
    assert min(found) == 4.0 and max(found) == 46.0
    assert cost.pause_s(jobs, 0) == 0.0


@pytest.mark.parametrize(("gpus", "seconds"), [(3, 39.0), (6, 46.0), (64, 46.0), (5, 39.0)])
def test_other_gangs_count_as_the_nearest_measured(gpus, seconds):
    assert StartOverhead().start_s(table(["A2C"], gpus), 0) == seconds


def test_models_that_were_not_measured_are_named_with_their_job():
    with pytest.raises(TraceError, match="job 1: unknown model 'bret'; did you mean 'bert'") as at:
        StartOverhead().start_s(table(["bert", "bret"]), 0)
    assert "\n" not in str(at.value)
    frame = table(["bert"]).frame.drop(columns="model")
    with pytest.raises(TraceError, match="no column 'model'; these rules charge every start"):
        StartOverhead().start_s(JobTable(frame), 0)


def test_a_restart_launches_once_and_loads_the_model_of_every_member():
    jobs = table(["bert", "vgg19"])
    cost = RoundRestarts(launch=8.0, warm_up=5.0, start={"bert": 3.0})
    assert [cost.start_s(jobs, job) for job in range(2)] == [3.0, 0.0]
    assert cost.launch_s([0.2, 0.2]) == 8.0 + 5 * 0.2
    measured = RoundRestarts()
    assert measured.start_s(table(["a2c"], 8), 0) == 46.0
    assert measured.launch_s([0.5]) == 0.0
