from __future__ import annotations

import pytest

from repro.files.guess import rename_hint, renames

JOB = ["job_id", "submit_time", "duration", "num_gpus"]


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("num_gpus", "num_cpus"),
        ("gpu_num", "cpu_num"),
        ("num_ps", "num_gpus"),
        ("num_gpus", "num_tpus"),
        ("num_gpus", "num_jobs"),
        ("num_gpus", "max_gpus"),
        ("num_gpus", "gpu_hours"),
        ("duration", "gpu_duration"),
        ("duration", "est_duration"),
        ("duration", "queue_duration"),
        ("submit_time", "submit_date"),
        ("submit_time", "wait_time"),
        ("start_time", "submit_time2"),
        ("job_id", "user_id"),
        ("job_id", "node"),
        ("gpu_mem_mb", "gpu_mem_gb"),
        ("resource_time_0", "resource_time_1"),
    ],
)
def test_another_thing_is_no_other_spelling(wanted, name):
    assert renames([wanted], [name]) == {}
    assert "rename" not in rename_hint([wanted], [name])


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("num_gpus", "NumGPUs"),
        ("num_gpus", "num_gpu"),
        ("submit_time", "submt_time"),
        ("submit_time", "Submission Time"),
        ("duration", "duratoin"),
        ("duration", "duration (s)"),
        ("duration", "elapsed"),
        ("batch_size", "batch size"),
    ],
)
def test_other_spellings_are_to_be_renamed(wanted, name):
    assert rename_hint([wanted], [name]).startswith(f"{name} looks like {wanted}: rename it")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("duration_ms", "in milliseconds: divide by 1000 and rename it"),
        ("duration (us)", "in microseconds: divide by 1000000 and rename it"),
        ("durationNs", "in nanoseconds: divide by 1000000000 and rename it"),
        ("duration_min", "in minutes: multiply by 60 and rename it"),
        ("run_time_hours", "in hours: multiply by 3600 and rename it"),
        ("runtime[days]", "in days: multiply by 86400 and rename it"),
    ],
)
def test_another_unit_is_to_be_converted(name, advice):
    assert rename_hint(["duration"], [name]) == f"{name} looks like duration {advice}"
    assert renames(["duration"], [name]) == {}


def test_a_minimum_is_no_number_of_minutes():
    assert "rename" not in rename_hint(["duration"], ["duration_min", "duration_max"])


def test_a_unit_is_that_of_the_format():
    hint = rename_hint(["submit_time"], ["submit_time_ms"], units={"submit_time": "ms"})
    assert hint == "submit_time_ms looks like submit_time: rename it"
    hint = rename_hint(["submit_time"], ["submit_time_ms"], units={"submit_time": "date"})
    assert hint.endswith("in milliseconds: write dates as 2020-06-09 18:00:00 and rename it")


def test_a_column_is_suggested_once():
    hint = rename_hint(JOB, ["id", "time", "time_ms", "gpus"])
    assert hint.startswith("id looks like job_id, time looks like submit_time, gpus looks like ")
    assert "time_ms" not in hint
