from __future__ import annotations

import json

import pytest

from repro.base.errors import TraceError
from repro.trace.load import load


def attempt(start, end, *gpus):
    detail = [
        {"ip": f"m{n}", "gpus": [f"gpu{g}" for g in range(held)]} for n, held in enumerate(gpus)
    ]
    return {"start_time": start, "end_time": end, "detail": detail}


def job(name, *attempts, submitted="2017-10-07 01:11:39", **more):
    held = {"status": "Pass", "vc": "ee9e8c", "jobid": name, "attempts": list(attempts)}
    return held | {"submitted_time": submitted, "user": "ce2f4c"} | more


@pytest.fixture
def read(tmp_path):
    def _read(content):
        path = tmp_path / "cluster_job_log"
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
        return load(path, "philly-json")

    return _read


ONE = attempt("2017-10-07 01:12:09", "2017-10-07 01:13:23", 8)
TWO = attempt("2017-10-07 01:13:30", "2017-10-07 01:14:30", 8)


def test_attempts_are_summed(read):
    frame = read([job("a", ONE, TWO)])
    assert frame["duration"].tolist() == [74.0 + 60.0]
    assert frame["num_gpus"].tolist() == [8]
    assert frame[["job_id", "vc", "user"]].iloc[0].tolist() == ["a", "ee9e8c", "ce2f4c"]


def test_gpus_over_several_machines(read):
    wide = attempt("2017-10-07 01:12:09", "2017-10-07 01:13:09", 8, 8)
    assert read([job("a", wide)])["num_gpus"].tolist() == [16]


def test_an_attempt_without_gpus_is_no_work(read):
    bare = attempt("2017-10-07 01:12:09", "2017-10-07 01:13:09")
    frame = read([job("a", bare, ONE)])
    assert frame["num_gpus"].tolist() == [8]
    assert frame["duration"].tolist() == [74.0]
    assert frame.attrs["notes"] == ["1 attempt without GPUs left out"]


def test_attempts_of_several_widths_keep_their_gpu_seconds(read):
    narrow = attempt("2017-10-07 02:00:00", "2017-10-07 02:01:00", 2)
    wide = attempt("2017-10-07 02:05:00", "2017-10-07 04:05:00", 8)
    frame = read([job("a", narrow, wide)])
    assert frame["num_gpus"].tolist() == [8]
    assert frame["duration"].tolist() == [(2 * 60 + 8 * 7200) / 8]
    assert "1 job with attempts on different numbers of GPUs" in frame.attrs["notes"][0]


def test_the_width_is_the_one_held_longest(read):
    long = attempt("2017-10-07 02:00:00", "2017-10-07 12:00:00", 1)
    short = attempt("2017-10-07 13:00:00", "2017-10-07 13:00:10", 16)
    frame = read([job("a", long, short)])
    assert frame["num_gpus"].tolist() == [1]
    assert frame["duration"].tolist() == [36_000.0 + 160.0]


def test_overlapping_attempts_are_merged_gpu_by_gpu(read):
    first = attempt("2017-10-07 10:00:00", "2017-10-07 11:00:00", 1)
    again = attempt("2017-10-07 10:30:00", "2017-10-07 11:30:00", 1)
    elsewhere = again | {"detail": [{"ip": "other", "gpus": ["gpu0"]}]}
    frame = read([job("same GPU", first, again), job("two GPUs", first, elsewhere)])
    assert frame["duration"].tolist() == [5400.0, 7200.0]
    assert frame["num_gpus"].tolist() == [1, 1]
    assert "2 jobs with overlapping attempts: these are merged" in frame.attrs["notes"][0]


def test_two_attempts_at_once_are_one_of_twice_the_width(read):
    first = attempt("2017-10-07 10:00:00", "2017-10-07 11:00:00", 1)
    frame = read([job("a", first, first | {"detail": [{"ip": "other", "gpus": ["gpu0"]}]})])
    assert frame[["num_gpus", "duration"]].iloc[0].tolist() == [2, 3600.0]


def test_a_job_whose_last_attempt_has_no_end_still_runs(read):
    running = attempt("2017-10-07 02:00:00", None, 8)
    frame = read([job("done", ONE), job("running", ONE, running)])
    assert frame["job_id"].tolist() == ["done"]
    assert frame.attrs["dropped"] == {"still running": 1}


def test_a_start_before_the_submission_is_noted(read):
    frame = read([job("a", ONE, submitted="2017-10-07 01:12:30")])
    assert frame.attrs["notes"] == [
        "1 job with a start before the submission: submit time as recorded"
    ]


@pytest.mark.parametrize("absent", [None, "", "None"])
def test_missing_times(read, absent):
    open_end = attempt("2017-10-07 02:00:00", absent, 4)
    no_start = attempt(absent, "2017-10-07 02:00:00", 4)
    jobs = [
        job("ran", open_end | {"start_time": "2017-10-07 01:12:00"}, ONE, no_start),
        job("queued"),
        job("running", open_end),
        job("lost", ONE, submitted=absent),
        job("gpuless", attempt("2017-10-07 01:12:09", "2017-10-07 01:13:09")),
        job("instant", attempt("2017-10-07 01:12:09", "2017-10-07 01:12:09", 1)),
    ]
    frame = read(jobs)
    assert frame["job_id"].tolist() == ["ran"]
    assert frame.attrs["dropped"] == {
        "never ran": 1,
        "still running": 1,
        "no GPU": 1,
        "no submit time": 1,
        "ran for 0 s": 1,
    }
    assert frame.attrs["notes"] == [
        "3 attempts without start or end time left out",
        "1 attempt without GPUs left out",
    ]


def test_submit_times_count_from_the_earliest_kept(read):
    jobs = [
        job("late", ONE, submitted="2017-10-07 00:01:00"),
        job("early", ONE, submitted="2017-10-07 00:00:00"),
        job("dropped", submitted="2017-08-01 00:00:00"),
    ]
    frame = read(jobs)
    assert frame["job_id"].tolist() == ["early", "late"]
    assert frame["submit_time"].tolist() == [0.0, 60.0]


def test_clocks_going_back_are_no_negative_run(read):
    night = attempt("2017-11-05 01:50:00", "2017-11-05 01:10:00", 1)
    assert read([job("a", night)])["duration"].tolist() == [1200.0]


def test_times_are_those_of_los_angeles(read):
    jobs = [
        job("a", attempt("2017-11-05 00:30:00", "2017-11-05 03:30:00", 1)),
        job("b", attempt("2018-03-11 01:30:00", "2018-03-11 03:30:00", 1)),
    ]
    jobs[0]["submitted_time"] = "2017-11-05 00:29:00"
    jobs[1]["submitted_time"] = "2018-03-11 01:29:00"
    frame = read(jobs)
    assert frame["duration"].tolist() == [14_400.0, 3600.0]
    assert frame["submit_time"].tolist() == [0.0, 10_893_600.0]


def test_the_hour_that_occurs_twice_follows_the_order_of_attempts(read):
    first = attempt("2017-11-05 01:00:00", "2017-11-05 01:40:00", 1)
    second = attempt("2017-11-05 01:10:00", "2017-11-05 01:20:00", 1)
    frame = read([job("a", first, second, submitted="2017-11-05 00:10:00")])
    assert frame["duration"].tolist() == [2400.0 + 600.0]
    assert frame.attrs["notes"] == []


def test_dates_with_an_offset(read):
    east = attempt("2017-10-07 16:12:09+08:00", "2017-10-07 01:13:09-07:00", 1)
    assert read([job("a", east)])["duration"].tolist() == [60.0]


def test_attempts_that_end_before_they_start_are_left_out(read):
    backwards = attempt("2017-10-07 01:13:23", "2017-10-07 01:12:09", 1)
    frame = read([job("a", ONE, backwards), job("b", backwards)])
    assert frame["duration"].tolist() == [74.0]
    assert frame.attrs["dropped"] == {"ended before it started": 1}
    assert "2 attempts left out because the end is before the start" in frame.attrs["notes"]


def test_duplicate_id(read):
    with pytest.raises(TraceError, match=r":jobid: duplicate id \(a\); .*first used on line 2"):
        read([job("a", ONE), job("a", ONE)])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"jobid": 1}', r"log:1:1: not a JSON list"),
        ("[]", "no jobs"),
        ('[\n{"jobid": "a", "attempts": []}]', r"log:2:submitted_time: missing key"),
        ("[\n3]", r"log:2:jobid,submitted_time,attempts: missing key"),
        ('[\n{"jobid": "a"\n', r"log:3:1: broken JSON"),
        ('[{"jobid": "a", "submitted_time": "", "attempts": {}}]', r"log:1:attempts: missing key"),
        (
            '[{"jobid": "a", "submitted_time": "", "attempts": [7]}]',
            r"log:1:attempts: not an attempt",
        ),
        ('[{"jobid": "a", "submitted_time": "soon", "attempts": []}]', r"not a date \(soon\)"),
    ],
)
def test_broken_logs(read, content, message):
    with pytest.raises(TraceError, match=message):
        read(content)


def changed(**change):
    return json.dumps([job("a", ONE) | change])


def ran(**change):
    return changed(attempts=[ONE | change])


ATTEMPT = r"log:1:attempts: not an attempt \("
ID = r"log:1:jobid: not an id \("


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ran(detail=[{"ip": "m1", "gpus": "gpu0gpu1"}]), ATTEMPT),
        (ran(detail=[{"ip": "m1", "gpus": [0, 1]}]), ATTEMPT),
        (ran(detail=[{"ip": "m1", "gpus": {"gpu0": 1}}]), ATTEMPT),
        (ran(detail=[{"ip": "m1"}]), ATTEMPT),
        (ran(detail={}), ATTEMPT),
        (ran(detail=""), ATTEMPT),
        (ran(detail=0), ATTEMPT),
        (ran(end_time="-1"), r"log:1:attempts: not a date \(-1\)"),
        (ran(end_time="2016"), r"attempts: not a date \(2016\)"),
        (ran(start_time="2017-10-07 01:12:09+0"), r"attempts: not a date"),
        (ran(start_time="1017-10-07 01:12:09"), r"attempts: year before 1970 or after 2100 \(1017"),
        (changed(submitted_time="2999-10-07 01:12:09"), r"submitted_time: year before 1970"),
        (changed(submitted_time="20171007T011209"), r"log:1:submitted_time: not a date"),
        (changed(jobid=True), ID + "True"),
        (changed(jobid=[1]), ID),
        (changed(jobid={}), ID),
        (changed(jobid=1.5), ID + "1.5"),
        (changed(jobid=None), ID + "None"),
        (changed(jobid="a\x1b]0;x\x07"), ID + r"a\\x1b\]0;x\\x07\)"),
        (changed(jobid="\ud800"), ID + r"\\ud800\)"),
        (changed(jobid=7).replace("7", "9" * 5000, 1), ID + "inf"),
        (changed(jobid=7).replace("7", "NaN", 1), ID + "nan"),
        (changed(vc=3), r"log:1:vc: not a name \(3\)"),
        (changed(user=["u"]), r"log:1:user: not a name"),
        (changed(user="a\nb"), r"log:1:user: not a name"),
        (changed() + "garbage", r"log:1:\d+: more text after the JSON"),
        (changed()[:-1] + ",]", r"log:1:\d+: broken JSON"),
        (changed().replace('"vc"', '"user"'), "the key user is twice"),
        ("[" * 100_000, "log:1:2: JSON nested too deeply"),
    ],
)
def test_what_is_no_job(read, content, message):
    with pytest.raises(TraceError, match=message) as caught:
        read(content)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_job_without_vc_and_user_has_none(read):
    frame = read(changed(vc=None, user=None, jobid=7))
    assert frame["job_id"].tolist() == [7]
    assert not {"vc", "user"} & set(frame)


def test_keys_nothing_is_made_from_are_named(read):
    first = job("a", ONE)
    second = job("b", ONE | {"exit": 1}, note="x")
    assert read([first, second]).attrs["unread"] == [
        "status",
        "note",
        "attempts.exit",
    ]


def test_dates_of_both_sorts_are_noted(read):
    frame = read([job("a", ONE, submitted="2017-10-07 08:11:39Z")])
    assert frame.attrs["notes"] == [
        "2 of 3 dates without an offset from UTC, read as local times of Los Angeles"
    ]
    assert read([job("a", ONE)]).attrs["notes"] == []


def test_blanks_beside_a_date_are_no_part_of_it(read):
    assert read([job("a", ONE, submitted=" 2017-10-07 01:11:39")])["duration"].tolist() == [74.0]


def test_the_epoch_is_no_date(read):
    unset = attempt("1970-01-01 00:00:00", "1970-01-01 00:00:00", 8)
    frame = read([job("a", ONE), job("b", unset), job("c", ONE, submitted="1970-01-01 00:00:00")])
    assert frame["job_id"].tolist() == ["a"]
    assert frame.attrs["dropped"] == {"never ran": 1, "no submit time": 1}
    assert "3 dates of 1970-01-01 read as missing" in frame.attrs["notes"]
