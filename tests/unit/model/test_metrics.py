"""Metrics from records one can add up by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import ParamError
from repro.model.metrics import (
    bins,
    busy_gpus,
    improvement,
    statistics,
    time_by_type,
    unfairness,
)
from repro.model.records import Result, durations, makespan
from repro.perf import ThroughputTable
from repro.testing import small_trace


def trace(*rows):
    submits, lengths, widths = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "job_id": range(len(rows)),
            "submit_time": np.array(submits, float),
            "duration": np.array(lengths, float),
            "num_gpus": widths,
        }
    )


@pytest.fixture
def two_jobs():
    """2 GPUs: job 0 from 10 to 20 s on one, job 1 from 20 to 30 s on both (it waited 5 s)."""
    return simulate(trace((10, 10, 1), (15, 10, 2)), "1x2", "yarn-cs")


def test_summary(two_jobs):
    summary = two_jobs.summary()
    assert list(summary) == [
        "policy",
        "trace",
        "cluster",
        "n_jobs",
        "n_finished",
        "avg_jct",
        "median_jct",
        "p95_jct",
        "p99_jct",
        "makespan",
        "avg_queueing",
        "preemptions",
        "utilisation",
        "wall_s",
        "ignored",
        "notes",
        "stand_in",
    ]
    assert (summary["policy"], summary["trace"], summary["cluster"]) == ("yarn-cs", "trace", "1x2")
    assert (summary["n_jobs"], summary["n_finished"], summary["preemptions"]) == (2, 2, 0)
    assert summary["avg_jct"] == 12.5
    assert summary["avg_queueing"] == 2.5
    assert summary["makespan"] == 20  # from the first submission
    assert summary["utilisation"] == (10 * 1 + 10 * 2) / (2 * 20)
    assert summary["wall_s"] > 0


def test_percentiles_interpolate_linearly():
    """JCTs 1, 2, ..., 100 s."""
    frame = trace(*[(1000 * n, n + 1, 1) for n in range(100)])
    summary = simulate(frame, "1x1", "yarn-cs").summary()
    assert summary["median_jct"] == 50.5
    assert summary["p95_jct"] == pytest.approx(95.05)
    assert summary["p99_jct"] == pytest.approx(99.01)


def test_the_name_of_the_trace_is_kept():
    frame = small_trace()
    frame.attrs["name"] = "six jobs"
    assert simulate(frame, "1x4", "srtf").summary()["trace"] == "six jobs"


def test_preemptions_are_counted_over_all_jobs():
    result = simulate(trace((0, 20, 1), (5, 2, 1), (9, 2, 1)), "1x1", "srtf")
    assert result.summary()["preemptions"] == 2


def test_unfinished_jobs_are_left_out_of_the_averages(two_jobs):
    jobs = two_jobs.jobs.copy()
    jobs.loc[1, ["end_time", "jct", "queueing"]] = np.nan
    summary = Result(jobs, two_jobs.intervals, two_jobs.meta).summary()
    assert (summary["n_jobs"], summary["n_finished"], summary["avg_jct"]) == (2, 1, 10)
    jobs[["end_time", "jct", "queueing"]] = np.nan
    summary = Result(jobs, two_jobs.intervals, two_jobs.meta).summary()
    assert summary["n_finished"] == 0
    assert math.isnan(summary["avg_jct"])
    assert math.isnan(summary["utilisation"])


def test_durations_and_makespan(two_jobs):
    assert durations(two_jobs).tolist() == [10, 10]
    assert makespan(two_jobs) == 20


def test_statistics():
    assert statistics(pd.Series([1.0, 2.0, 3.0, 10.0])) == {
        "avg": 4.0,
        "median": 2.5,
        "p95": pytest.approx(8.95),
    }


def test_improvement_is_x_over_the_reference():
    frame = trace((0, 10, 1), (0, 2, 1))
    slow = simulate(frame, "1x1", "yarn-cs")
    fast = simulate(frame, "1x1", "srtf")
    factors = improvement(slow, fast)
    assert factors["avg"] == (10 + 12) / (2 + 12)
    assert factors["median"] == 11 / 7
    assert factors["makespan"] == 1
    assert set(improvement(slow, fast, "queueing")) == {"avg", "median", "p95", "makespan"}


def test_improvement_of_unfinished_jobs_is_undefined():
    frame = trace((0, 10, 1), (0, 2, 1))
    whole, stopped = (simulate(frame, "1x1", "srtf", stop_time=time) for time in (20, 5))
    for factors in (improvement(whole, stopped), improvement(stopped, whole)):
        assert all(math.isnan(factor) for factor in factors.values())


def test_improvement_over_nothing_is_undefined():
    frame = trace((0, 10, 1), (50, 2, 1))
    result = simulate(frame, "1x1", "yarn-cs")
    assert math.isnan(improvement(result, result, "queueing")["avg"])
    at_once = replace(result, jobs=result.jobs.assign(submit_time=0.0, end_time=0.0))
    assert math.isnan(improvement(result, at_once)["makespan"])


def test_bins_at_their_limits():
    frame = pd.DataFrame({"num_gpus": [4, 4, 5, 5], "duration": [799.0, 800.0, 799.0, 800.0]})
    assert bins(frame, 4, 800).tolist() == ["SS", "SL", "LS", "LL"]
    frame.index = [4, 3, 2, 1]
    assert bins(frame, 4, 800).index.tolist() == [4, 3, 2, 1]


def test_busy_gpus():
    """One GPU from 0 to 15 s, a second from 10 to 20 s."""
    result = simulate(trace((0, 15, 1), (10, 10, 1)), "1x2", "yarn-cs")
    assert busy_gpus(result, 10.0).tolist() == [1.0, 1.5]
    assert busy_gpus(result, 5.0).tolist() == [1, 1, 2, 1]
    assert busy_gpus(result, 5.0).index.tolist() == [0, 5, 10, 15]


def test_busy_gpus_has_no_empty_last_step():
    busy = busy_gpus(simulate(trace((0, 1.1, 1)), "1x1", "yarn-cs"), 0.1)
    assert busy.tolist() == pytest.approx([1.0] * 11)


def test_no_gpu_is_busy_if_the_run_stops_before_the_first_submission():
    result = simulate(trace((10, 15, 1)), "1x2", "yarn-cs", stop_time=5.0)
    busy = busy_gpus(result, 10.0)
    assert busy.empty and busy.dtype == float and busy.index.name == "time_s"


def test_busy_gpus_begin_with_the_first_submission():
    """One GPU from 1,600,015 to 1,600,035 s."""
    busy = busy_gpus(simulate(trace((1_600_015, 20, 1)), "1x2", "yarn-cs"), 10.0)
    assert busy.tolist() == [0.5, 1, 0.5]
    assert busy.index.tolist() == [1_600_010, 1_600_020, 1_600_030]


@pytest.mark.parametrize("metric", [time_by_type, lambda result: busy_gpus(result, 10.0)])
def test_metrics_of_held_gpus_need_intervals(metric):
    result = simulate(trace((10, 15, 1)), "1x2", "yarn-cs", keep_intervals=False)
    with pytest.raises(ParamError, match="the run kept no intervals; simulate with keep_intervals"):
        metric(result)


@pytest.mark.parametrize("step", [0, -1, 0.0, math.nan, math.inf, "10", None])
def test_a_time_step_is_a_finite_number_above_0(step):
    result = simulate(trace((0, 15, 1)), "1x2", "yarn-cs")
    with pytest.raises(ParamError, match=r"^step=.*: give a finite number of seconds above 0$"):
        busy_gpus(result, step)


def test_busy_gpus_add_up_to_the_work():
    result = simulate(small_trace(), "1x4", "srtf")
    work = float((small_trace()["duration"] * small_trace()["num_gpus"]).sum())
    for step in (1.0, 2.5, 7.0):
        assert busy_gpus(result, step).sum() * step == pytest.approx(work)


def test_muri_reads_the_99th_percentile_by_index_and_makespan_from_time_0():
    """JCTs 1.015, 2.03, ... s of 150 jobs; index floor(0.99 * 150) = 148 is the last but one."""
    submits = [1000.0 * (n + 1) for n in range(150)]
    frame = trace(*[(submit, n + 1, 1) for n, submit in enumerate(submits)])
    frame = frame.assign(iterations=frame["duration"], iteration_time=1.0, model="bert")
    result = simulate(frame, "1x1", "srtf", rules="muri")
    summary = result.summary()
    assert summary["p99_jct"] == pytest.approx(149 * 1.015)
    assert summary["makespan"] == result.jobs["end_time"].max() == pytest.approx(150000 + 152.25)
    assert summary["median_jct"] == pytest.approx(75.5 * 1.015)
    plain = simulate(frame, "1x1", "srtf").summary()
    assert plain["p99_jct"] == pytest.approx(1 + 0.99 * 149)
    assert plain["makespan"] == pytest.approx(149000 + 150)


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ("1x4", "the run has no GPU types; simulate on a cluster such as"),
        ("1x4:v100,1x4:k80", "of .* intervals have no GPU type; use a policy that runs"),
    ],
)
def test_time_by_type_needs_the_type_of_each_interval(cluster, message):
    with pytest.raises(ParamError, match=message):
        time_by_type(simulate(small_trace(), cluster, "srtf"))


def test_time_by_type_ends_at_the_instant():
    spans = pd.DataFrame(
        {
            "job_id": [0, 0, 1, 1],
            "gpu_type": ["v100", "k80", "v100", "v100"],
            "start": [0.0, 10.0, 2.0, 20.0],
            "end": [10.0, 15.0, 4.0, 30.0],
        }
    )
    result = Result(pd.DataFrame({"job_id": [1, 0, 2]}), spans)
    # job 2 held no GPU
    whole = pd.DataFrame({"k80": [0.0, 5.0, 0.0], "v100": [12.0, 10.0, 0.0]}, index=[1, 0, 2])
    assert time_by_type(result).to_dict() == whole.to_dict()
    cut = pd.DataFrame({"k80": [0.0, 2.0, 0.0], "v100": [2.0, 10.0, 0.0]}, index=[1, 0, 2])
    assert time_by_type(result, until=12.0).to_dict() == cut.to_dict()
    # an interval that begins later counts nothing, however late it begins
    assert time_by_type(result, until=3.0).to_dict("list") == {
        "k80": [0.0, 0.0, 0.0],
        "v100": [1.0, 3.0, 0.0],
    }


def test_a_job_that_ends_before_its_fair_run_has_no_unfairness():
    """SRTF delays the long job from 10 s to 12 s, and advances the short one from 12 s to 2 s."""
    frame = trace((0, 10, 1), (0, 2, 1))
    srtf = simulate(frame, "1x1", "srtf")
    fifo = simulate(frame, "1x1", "yarn-cs")
    assert unfairness(srtf, fifo).tolist() == pytest.approx([20.0, 0.0])


def test_unfairness_compares_each_job_with_itself():
    frame = small_trace()
    result = simulate(frame, "1x4", "srtf")
    fair = simulate(frame.iloc[::-1], "1x4", "srtf")
    assert fair.jobs["job_id"].tolist() == frame["job_id"].tolist()[::-1]
    assert unfairness(result, fair).tolist() == [0.0] * 6
    assert unfairness(result, fair).index.equals(result.jobs.index)


def test_unfairness_needs_a_fair_run_of_every_job():
    frame = small_trace()
    result = simulate(frame, "1x4", "srtf")
    with pytest.raises(ParamError, match="fair run lacks job 5; run both on the same trace"):
        unfairness(result, simulate(frame.head(5), "1x4", "srtf"))


def test_names_of_gpu_types_are_objects_under_any_version_of_pandas():
    speeds = ThroughputTable.of({"a": {"v100": 2.0, "k80": 1.0}}, "v100")
    jobs = trace((0, 10, 1), (0, 10, 1)).assign(model="a")
    gpu_type = simulate(jobs, "1x1:v100,1x1:k80", "srtf", perf=speeds).intervals["gpu_type"]
    assert {*gpu_type} == {"v100", "k80"} and gpu_type.dtype == object
