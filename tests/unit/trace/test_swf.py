from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from repro.base.errors import InputWarning, ParamError, TraceError
from repro.trace.load import load, write

#: Job, submit, wait, run, allocated, -, -, requested, limit, -, status, user, -, -, queue, -, -, -.
FIVE = """\
; Version: 2.2
; Computer: demo
; MaxProcs: 8
; Queue: 1 short
1 0 10 100 4 -1 -1 8 200 -1 1 3 1 -1 1 -1 -1 -1
2 5 -1 -1 -1 -1 -1 4 200 -1 5 3 1 -1 1 -1 -1 -1

3 6 0 0 2 -1 -1 2 60 -1 0 3 1 -1 1 -1 -1 -1
  4 7.5 0 50 2 -1 -1 -1 -1 -1 0 -1 1 -1 2 -1 -1 -1
4 7 0 20 2 -1 -1 2 -1 -1 2 -1 1 -1 2 -1 -1 -1
5 9 0 50 -1 -1 -1 -1 -1 -1 1 4 1 -1 2 -1 -1 -1
"""
JOBS = pd.DataFrame(
    {
        "job_id": [3, 1],
        "submit_time": [0.0, 2.0],
        "duration": [10.0, 4.0],
        "num_gpus": [2, 1],
        "user": ["bob", "ann"],
        "vc": ["night jobs", "day"],
        "time_limit": [60.0, np.nan],
    }
)


@pytest.fixture
def read(tmp_path):
    def _read(text: str, **options):
        path = tmp_path / "log.swf"
        path.write_text(text)
        return load(path, "swf", **options)

    return _read


def test_five_jobs_by_hand(read):
    frame = read(FIVE)
    assert frame["job_id"].tolist() == [1, 4]
    assert frame["submit_time"].tolist() == [0.0, 7.5]
    assert frame["duration"].tolist() == [100.0, 50.0]
    # 8 requested processors count although 4 were allocated; job 4 requests none
    assert frame["num_gpus"].tolist() == [8, 2]
    assert frame["time_limit"].tolist()[0] == 200.0
    assert frame["time_limit"].isna().tolist() == [False, True]
    assert frame["user"].tolist()[0] == "3"
    assert frame["user"].isna().tolist() == [False, True]
    assert frame["vc"].tolist() == ["short", "2"]
    assert frame.attrs["dropped"] == {
        "part of a job that was swapped out (status 2 to 4)": 1,
        "no GPU": 1,
        "never ran": 1,
        "ran for 0 s": 1,
    }
    assert frame.attrs["header"] == [
        "Version: 2.2",
        "Computer: demo",
        "MaxProcs: 8",
        "Queue: 1 short",
    ]
    assert frame.attrs["notes"] == [
        "processors are read as GPUs",
        "jobs kept by status: completed 1, failed 1",
        "header: Computer: demo; MaxProcs: 8",
    ]


LINE = FIVE.splitlines()[4].split()


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, "a", "2:job: not a number (a)"),
        (0, "-1", "2:job: no job number (-1)"),
        (1, "-7", "2:submit: negative (-7); a field is a number, -1 if unknown"),
        (3, "x", "2:run_time: not a number (x)"),
        (7, "1.5", "2:processors: not a whole number (1.5)"),
        (10, "9", "2:status: unknown status (9); a status is -1 to 5"),
    ],
)
def test_bad_fields_are_one_line(read, position, value, message):
    fields = list(LINE)
    fields[position] = value
    with pytest.raises(TraceError) as caught:
        read("; x\n" + " ".join(fields) + "\n")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("; Computer: x\n", "comments only"),
        ("1 2 3\n", "log.swf:1: 3 fields where 18 are expected"),
        (
            " ".join(LINE) + "\n1 2\n3\n",
            "2: 2 fields where 18 are expected; a job has 18 numbers (1",
        ),
        ('{"nb_res": 4, "jobs": []}\n', "1: JSON, not a table"),
    ],
)
def test_unreadable_files_are_one_line(read, text, message):
    with pytest.raises(TraceError) as caught:
        read(text)
    assert message in str(caught.value)


def test_bad_lines_are_left_out_on_demand(read):
    frame = read(" ".join(LINE) + "\n1 2\n", drop_bad_rows=True)
    assert frame["job_id"].tolist() == [1]
    assert frame.attrs["dropped"] == {"wrong number of fields": 1}


def test_a_written_trace_is_read_again(tmp_path):
    path = tmp_path / "jobs.swf"
    with pytest.warns(InputWarning, match="users written as numbers"):
        write(JOBS, path)
    lines = path.read_text().splitlines()
    assert lines[0] == "; Version: 2.2"
    # jobs 3 and 1, users ann 1 and bob 2, queues day 1 and night_jobs 2
    assert lines[-2:] == [
        "3 0 -1 10 2 -1 -1 2 60 -1 -1 2 -1 -1 2 -1 -1 -1",
        "1 2 -1 4 1 -1 -1 1 -1 -1 -1 1 -1 -1 1 -1 -1 -1",
    ]
    frame = load(path, "swf")
    for column in ("job_id", "submit_time", "duration", "num_gpus"):
        assert frame[column].tolist() == JOBS[column].tolist()
    assert frame["vc"].tolist() == ["night_jobs", "day"]


def test_the_header_is_written_again(read, tmp_path):
    frame = read(FIVE)
    with pytest.warns(InputWarning, match="times of 1 job rounded"):
        write(frame, tmp_path / "again.swf")
    again = load(tmp_path / "again.swf", "swf")
    for column in ("job_id", "duration", "num_gpus", "user"):
        assert again[column].fillna("").tolist() == frame[column].fillna("").tolist()
    assert again.attrs["header"][:3] == ["Version: 2.2", "Computer: demo", "MaxProcs: 8"]


def test_what_swf_cannot_hold_is_said(tmp_path):
    jobs = JOBS.assign(job_id=["a", "b"], duration=[10.4, 0.2], gpu_share=[0.5, 1.0], model="vgg16")
    with pytest.warns(InputWarning) as caught:
        write(jobs, tmp_path / "jobs.swf")
    assert [str(warning.message) for warning in caught] == [
        "times of 2 jobs rounded to whole seconds",
        "jobs numbered from 1, in order of submission: SWF has no names of jobs",
        "1 job with a part of a GPU written with whole GPUs",
        "not written, as SWF has no field for them: model",
        "users written as numbers: SWF has no names of users",
        "names of 1 queue changed: SWF has no names with blanks, and _ replaces them",
    ]
    frame = load(tmp_path / "jobs.swf", "swf")
    assert frame["job_id"].tolist() == [1, 2]
    assert frame["duration"].tolist() == [10.0, 1.0]


@pytest.mark.parametrize(
    ("queues", "written"),
    [
        (["q 1", "q_1"], ["q_1_2", "q_1"]),
        (["q  1", "q 1"], ["q__1", "q_1"]),
        (["  ", " a"], ["__", "_a"]),
        (["a", "b"], ["a", "b"]),
    ],
)
def test_queues_stay_apart_without_their_blanks(tmp_path, queues, written):
    jobs = JOBS.drop(columns="user").assign(vc=queues)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write(jobs, tmp_path / "jobs.swf")
    assert load(tmp_path / "jobs.swf", "swf")["vc"].tolist() == written
    changed = sum(name != text for name, text in zip(queues, written, strict=True))
    assert any("_ replaces them" in str(warning.message) for warning in caught) == (changed > 0)


def test_a_format_to_write_is_named_or_follows_the_ending(tmp_path):
    jobs = JOBS.drop(columns=["user", "vc"])
    write(jobs, tmp_path / "jobs.txt", "swf")
    assert load(tmp_path / "jobs.txt", "swf")["duration"].tolist() == [10.0, 4.0]
    write(jobs, tmp_path / "jobs.swf", "repro")
    assert load(tmp_path / "jobs.swf", "repro")["time_limit"].tolist()[0] == 60.0
    with pytest.raises(ParamError, match="xml"):
        write(jobs, tmp_path / "jobs.xml", "xml")


@pytest.mark.filterwarnings("ignore::repro.base.errors.InputWarning")
@pytest.mark.parametrize(
    ("ids", "kept"),
    [([20171009123456, 3], [20171009123456, 3]), ([2**60, 3], [1, 2])],
    ids=["a date", "not exact as a float"],
)
def test_written_ids_are_read_again(tmp_path, ids, kept):
    jobs = JOBS.assign(job_id=ids, submit_time=[0.0, 1.0])
    write(jobs, tmp_path / "jobs.swf")
    assert load(tmp_path / "jobs.swf", "swf")["job_id"].tolist() == kept


def test_rounded_limits_count_as_rounded_times(tmp_path):
    jobs = JOBS.drop(columns=["user", "vc"]).assign(time_limit=[90.4, np.nan])
    with pytest.warns(InputWarning, match="^times of 1 job rounded to whole seconds$"):
        write(jobs, tmp_path / "jobs.swf")
    assert load(tmp_path / "jobs.swf", "swf")["time_limit"].tolist()[0] == 91.0
