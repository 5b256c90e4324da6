from __future__ import annotations

import json

import pytest

from repro.base.errors import ParamError, TraceError
from repro.trace.load import load

HELIOS = "job_id,gpu_num,state,submit_time,start_time,end_time,duration\n"
NINE, TEN, ELEVEN = (f"2020-06-09 {hour}:00:00" for hour in ("09", "10", "11"))


@pytest.fixture
def helios(tmp_path):
    def _helios(*rows: tuple, **options):
        path = tmp_path / "log.csv"
        lines = (",".join(map(str, row)) for row in rows)
        path.write_text(HELIOS + "\n".join(lines) + "\n")
        return load(path, "helios", **options)

    return _helios


def test_the_run_time_is_end_minus_start(helios):
    frame = helios(
        (1, 8, "FAILED", NINE, TEN, ELEVEN, 7200),
        (2, 8, "FAILED", NINE, TEN, "2020-06-09 10:00:08", 18),
        (3, 8, "FAILED", NINE, TEN, "2020-06-09 10:00:08", 8.9),
        (4, 8, "FAILED", NINE, TEN, "2020-06-09 10:00:09", ""),
    )
    assert frame["duration"].tolist() == [3600.0, 8.0, 8.0, 9.0]
    assert frame.attrs["notes"] == [
        "duration contradicts end - start in 2 of 4 rows: run time is end - start "
        "(1 by one hour, as where clocks change)"
    ]


def test_a_log_needs_no_duration(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(f"job_id,gpu_num,submit_time,start_time,end_time\n1,1,{NINE},{TEN},{ELEVEN}\n")
    assert load(path, "helios")["duration"].tolist() == [3600.0]


def test_rows_without_a_run_are_dropped_by_reason(helios):
    frame = helios(
        (1, 1, "COMPLETED", NINE, TEN, ELEVEN, 3600),
        (2, 0, "COMPLETED", NINE, TEN, ELEVEN, 3600),
        (3, 1, "COMPLETED", "Unknown", TEN, ELEVEN, 3600),
        (4, 1, "CANCELLED by 1000", NINE, "None", ELEVEN, 0),
        (5, 1, "FAILED", NINE, "", "", 0),
        (6, 1, "PENDING", NINE, TEN, "Unknown", 0),
        (7, 1, "RUNNING", NINE, TEN, ELEVEN, 3600),
        (8, 1, "COMPLETED", NINE, TEN, "N/A", 3600),
        (9, 1, "COMPLETED", NINE, ELEVEN, TEN, 3600),
        (10, 1, "COMPLETED", NINE, TEN, TEN, 0),
    )
    assert frame["job_id"].tolist() == [1]
    assert frame.attrs["dropped"] == {
        "no GPU": 1,
        "no submit time": 1,
        "never ran": 3,
        "still running": 2,
        "ended before it started": 1,
        "ran for 0 s": 1,
    }


def test_starts_before_the_submission_are_noted(helios):
    frame = helios((1, 1, "COMPLETED", TEN, NINE, ELEVEN, 7200))
    assert frame["duration"].tolist() == [7200.0]
    assert frame.attrs["notes"] == [
        "1 job with a start before the submission: submit time as recorded"
    ]


REQUEUED = [
    (5, 1, "REQUEUED", NINE, NINE, TEN, 3600),
    (6, 1, "COMPLETED", NINE, NINE, TEN, 3600),
    (5, 1, "COMPLETED", TEN, ELEVEN, "2020-06-09 11:30:00", 1800),
]


def test_a_requeued_job_is_refused_or_joined(helios):
    with pytest.raises(TraceError, match=r"log.csv:4:job_id: duplicate id \(5\).*attempts=join"):
        helios(*REQUEUED)
    frame = helios(*REQUEUED, attempts="join")
    assert frame["job_id"].tolist() == [5, 6]
    assert frame["duration"].tolist() == [5400.0, 3600.0]
    assert frame["submit_time"].tolist() == [0.0, 0.0]
    assert frame.attrs["notes"] == ["2 records joined into 1 job"]
    with pytest.raises(ParamError, match="attempts=merge: give refuse or join"):
        helios(*REQUEUED, attempts="merge")


def test_a_requeued_job_that_runs_again_still_runs(helios):
    again = (5, 1, "RUNNING", NINE, ELEVEN, "Unknown", 60)
    frame = helios(*REQUEUED[:2], again, attempts="join")
    assert frame["job_id"].tolist() == [6]
    assert frame.attrs["dropped"] == {"still running": 1}


def test_a_requeued_job_that_waits_has_not_ended(helios):
    waiting = (5, 1, "PENDING", NINE, "Unknown", "Unknown", 0)
    frame = helios(*REQUEUED[:2], waiting, attempts="join")
    assert frame["job_id"].tolist() == [6]
    assert frame.attrs["dropped"] == {"still running": 1}
    ended = helios(REQUEUED[0], waiting, *REQUEUED[1:], attempts="join")
    assert ended["duration"].tolist() == [5400.0, 3600.0]


def test_joined_records_keep_their_gpu_seconds(helios):
    wide = (5, 4, "COMPLETED", NINE, ELEVEN, "2020-06-09 13:00:00", 7200)
    frame = helios(REQUEUED[0], wide, attempts="join")
    assert frame["num_gpus"].tolist() == [4]
    assert frame["duration"].tolist() == [(3600 + 4 * 7200) / 4]
    assert "different numbers of GPUs" in frame.attrs["notes"][1]


OPENB = "name,num_gpu,gpu_milli,pod_phase,creation_time,deletion_time,scheduled_time\n"


def test_pods_deleted_while_running(tmp_path):
    path = tmp_path / "pods.csv"
    rows = ["a,1,500,Running,0,300,0", "b,1,1000,Succeeded,5,60,10", "c,1,1000,Failed,5,6,9"]
    path.write_text(OPENB + "\n".join(rows) + "\n")
    frame = load(path, "alibaba-openb")
    assert frame["duration"].tolist() == [300.0, 50.0]
    assert frame.attrs["notes"] == [
        "1 of 2 pods (75% of the GPU-seconds) are Running at the end of the record, which stands "
        "in for their completion; running=drop (--set running=drop) leaves them out"
    ]
    assert frame.attrs["dropped"] == {"ended before it started": 1}
    frame = load(path, "alibaba-openb", running="drop")
    assert frame["job_id"].tolist() == ["b"]
    assert frame.attrs["dropped"] == {"ended before it started": 1, "no completion: Running": 1}
    with pytest.raises(ParamError, match="running=x: give keep or drop"):
        load(path, "alibaba-openb", running="x")


def test_the_work_of_a_job_is_that_of_its_attempts(tmp_path):
    """GPU-seconds by attempt, on 1 and 1 overlapping, 1, then 2 and 8 GPUs."""

    def attempt(start: str, end: str, machine: str, gpus: int) -> dict:
        detail = [{"ip": machine, "gpus": [f"gpu{n}" for n in range(gpus)]}]
        return {"start_time": f"2017-10-06 {start}", "end_time": f"2017-10-06 {end}"} | {
            "detail": detail
        }

    attempts = [
        [attempt("10:00:00", "11:00:00", "m1", 1), attempt("10:30:00", "11:30:00", "m2", 1)],
        [attempt("09:00:00", "09:30:00", "m1", 1)],
        [attempt("10:00:00", "10:01:00", "m1", 2), attempt("10:05:00", "12:05:00", "m1", 8)],
    ]
    log = [
        {"jobid": f"j{n}", "submitted_time": "2017-10-06 09:59:00", "attempts": held}
        for n, held in enumerate(attempts)
    ]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    frame = load(path, "philly-json")
    assert (frame["duration"] * frame["num_gpus"]).sum() == 66_720
    assert len(frame.attrs["notes"]) == 3


EPOCH = "1970-01-01 08:00:00"


def test_the_epoch_is_no_date_in_a_log_of_other_decades(helios):
    frame = helios(
        (1, 8, "CANCELLED", NINE, EPOCH, EPOCH, ""),
        (2, 8, "COMPLETED", EPOCH, TEN, ELEVEN, ""),
        (3, 8, "COMPLETED", NINE, TEN, ELEVEN, ""),
    )
    assert frame["submit_time"].tolist() == [0.0]
    assert frame.attrs["dropped"] == {"never ran": 1, "no submit time": 1}
    assert frame.attrs["notes"] == ["3 dates of 1970-01-01 read as missing"]


def test_a_log_of_1970_is_read(helios):
    frame = helios((3, 8, "COMPLETED", EPOCH, EPOCH, "1970-01-02 08:00:00", ""))
    assert frame["duration"].tolist() == [86_400.0]
    assert frame.attrs["notes"] == []


def test_the_epoch_is_no_submission_of_the_flat_philly_trace(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(f"timestamp,duration,num_gpus\n{NINE},6,1\n{EPOCH},6,1\n")
    with pytest.raises(TraceError, match=r"log\.csv:3:timestamp: a date that is not set \(1970"):
        load(path, "philly")
    assert load(path, "philly", drop_bad_rows=True)["submit_time"].tolist() == [0.0]


def test_a_blank_duration_contradicts_nothing(helios):
    assert helios((1, 8, "FAILED", NINE, TEN, ELEVEN, " ")).attrs["notes"] == []


def test_the_phase_of_a_pod_is_read_in_any_case(tmp_path):
    path = tmp_path / "pods.csv"
    head = "name,num_gpu,gpu_milli,pod_phase,creation_time,deletion_time,scheduled_time"
    path.write_text(f"{head}\np0,1,1000,RUNNING,0,9,1\np1,1,1000,succeeded,0,9,1\n")
    assert load(path, "alibaba-openb", running="drop")["job_id"].tolist() == ["p1"]
