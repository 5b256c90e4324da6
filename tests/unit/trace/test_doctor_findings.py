"""Every finding of the doctor on a small trace, with its count by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro.files.checks import Source
from repro.files.table import Parsed
from repro.model.cluster.spec import Cluster
from repro.trace.doctor import demands, loads, times, values
from repro.trace.doctor.findings import Finding
from repro.trace.load import load_with_rows

HELIOS = "job_id,user,gpu_num,submit_time,start_time,end_time,duration\n"


def jobs(**columns):
    count = len(next(iter(columns.values())))
    default = {
        "job_id": list(range(count)),
        "submit_time": [10.0 * number for number in range(count)],
        "duration": [100.0 + number for number in range(count)],
        "num_gpus": [1] * count,
    }
    return pd.DataFrame(default | columns)


def by_code(findings):
    assert len({finding.code for finding in findings}) == len(findings)
    return {finding.code: finding for finding in findings}


def opened(tmp_path, text, **options):
    path = tmp_path / "log.csv"
    path.write_text(text)
    return load_with_rows(path, **options)


def test_lines_name_the_first_jobs_and_the_advice():
    finding = Finding("warning", "code", "5 jobs are odd", 5, (1, 2, 3), "mend them")
    assert finding.lines() == [
        "warning  code: 5 jobs are odd (jobs 1, 2, 3, …)",
        "         -> mend them",
    ]
    assert Finding("note", "code", "1 job is odd", 1, ("a",)).lines() == [
        "note     code: 1 job is odd (job a)"
    ]


def test_jobs_wider_than_cluster_and_node():
    # GPU-seconds: 9 x 100 + 16 x 100 + 17 x 100 + 1 x 100 = 4,300
    frame = jobs(num_gpus=[9, 16, 17, 1], duration=[100.0] * 4)
    found = by_code(demands.check_demands(frame, Cluster.parse("2x8")))
    assert found.keys() == {"never-fit", "wider-than-node"}
    never = found["never-fit"]
    assert (never.level, never.count, never.jobs) == ("error", 1, (2,))
    assert "39.5% of the GPU-seconds" in never.what
    assert (found["wider-than-node"].level, found["wider-than-node"].jobs) == ("note", (0, 1))


def test_jobs_wider_than_their_type():
    frame = jobs(num_gpus=[5, 4, 5, 2, 9], gpu_type=["a", "a", "a|b", "c", None])
    found = by_code(demands.check_demands(frame, Cluster.parse("4xa,8xb")))
    # job 0: 5 of 4; job 3: no such type; job 2 fits type b; job 4 is wider than each type
    assert found["wished-type"].jobs == (0, 3)
    assert found["wished-type"].level == "warning"
    assert "c not in the cluster" in found["wished-type"].advice
    assert found["wider-than-type"].jobs == (4,)


def test_types_that_differ_in_case_are_named():
    frame = jobs(num_gpus=[1], gpu_type=["V100"])
    (finding,) = demands.check_demands(frame, Cluster.parse("4xv100"))
    assert finding.advice == "write the types alike: V100 differ in upper and lower case alone"


def test_sizes_that_are_no_power_of_two():
    (finding,) = demands.check_sizes(jobs(num_gpus=[1, 3, 8, 3, 12]))
    assert finding.count == 3
    assert "(3: 2, 12: 1)" in finding.what
    assert demands.check_sizes(jobs(num_gpus=[1, 2, 64])) == []


def test_contradictions_of_a_log(tmp_path):
    rows = (
        "1,u,8,2020-06-09 18:00:00,2020-06-09 18:00:10,2020-06-09 18:01:10,6000\n"  # 60 s
        "2,u,8,2020-06-09 18:00:00,2020-06-09 17:00:00,2020-06-09 17:01:00,60\n"  # starts early
        "3,u,8,2020-06-09 18:00:00,2020-06-09 18:05:00,2020-06-09 18:01:00,60\n"  # ends early
        "4,u,8,2020-06-09 18:00:00,2020-06-09 18:05:00,2020-06-09 18:05:00,0\n"  # 0 s
        "5,u,8,2020-06-09 18:00:00,2020-06-09 19:00:00,2020-06-09 21:00:00,3600\n"  # an hour off
    )
    found = by_code(times.check_log(opened(tmp_path, HELIOS + rows).parsed, 8))
    assert found.keys() == {
        "duration-contradicts",
        "clock-change",
        "start-before-submit",
        "end-before-start",
        "left-out",
    }
    named = {code: (finding.level, finding.count, finding.jobs) for code, finding in found.items()}
    assert named["duration-contradicts"] == ("warning", 1, (1,))
    assert named["clock-change"] == ("warning", 1, (5,))
    assert named["start-before-submit"] == ("warning", 1, (2,))
    assert named["end-before-start"] == ("warning", 1, (3,))
    assert named["left-out"] == ("note", 1, (4,))


def test_demand_above_capacity(tmp_path):
    # GPUs held: 8 from 0 s, 12 from 60 s, 4 from 100 s to 120 s; two jobs run at 60 s
    rows = (
        "1,u,8,2020-01-01 00:00:00,2020-01-01 00:00:00,2020-01-01 00:01:40,100\n"
        "2,u,4,2020-01-01 00:00:30,2020-01-01 00:01:00,2020-01-01 00:02:00,60\n"
    )
    loaded = opened(tmp_path, HELIOS + rows)
    (finding,) = times.check_log(loaded.parsed, 8)
    assert (finding.code, finding.level) == ("above-capacity", "warning")
    assert (finding.count, finding.jobs) == (2, (1, 2))
    assert "12 GPUs at once at 60 s, in 2 jobs, where the cluster has 8" in finding.what
    assert finding.what.endswith("it runs more GPUs than the cluster has for 40 s in all")
    assert times.check_log(loaded.parsed, 12) == []


def test_joined_attempts_do_not_count_as_demand(tmp_path):
    # the second attempt begins when the other job has ended, the joined job has 100 s from 0 s on
    rows = (
        "1,u,8,2020-01-01 00:00:00,2020-01-01 00:00:00,2020-01-01 00:00:50,50\n"
        "1,u,8,2020-01-01 00:00:00,2020-01-01 00:02:00,2020-01-01 00:02:50,50\n"
        "2,u,8,2020-01-01 00:00:00,2020-01-01 00:01:00,2020-01-01 00:02:00,60\n"
    )
    assert times.check_log(opened(tmp_path, HELIOS + rows, attempts="join").parsed, 8) == []


def test_gpus_over_time():
    start, end = np.array([0.0, 5.0, 10.0]), np.array([10.0, 7.0, 12.0])
    instants, held = times.gpus_over_time(start, end, np.array([2.0, 3.0, 4.0]))
    assert instants.tolist() == [0, 5, 7, 10, 12]
    assert held.tolist() == [2, 5, 2, 4, 0]


def test_sacct_across_a_change_of_clocks(tmp_path):
    text = (
        "JobID|User|AllocTRES|State|Submit|Start|End|ElapsedRaw\n"
        "101|u|gres/gpu=1|COMPLETED|2024-03-31T01:30:00|2024-03-31T01:30:00|2024-03-31T03:30:00|3600\n"
        "102|u|gres/gpu=1|COMPLETED|2024-04-01T01:30:00|2024-04-01T01:30:00|2024-04-01T03:30:00|7200\n"
    )
    found = by_code(times.check_log(opened(tmp_path, text).parsed, 8))
    assert found.keys() == {"clock-change"}
    assert found["clock-change"].jobs == (101,)


def test_clock_that_goes_back():
    submit = [60.0 * number for number in range(150)]
    submit[100:] = [time - 3600 for time in submit[100:]]
    (finding,) = times.check_order(jobs(submit_time=submit))
    # 60 s pass between the two submissions, so that the step is 3,540 s
    assert (finding.code, finding.level, finding.count) == ("clock-back", "warning", 1)
    assert finding.jobs == (100,)
    assert "largest step 3,540 s" in finding.what


def test_single_steps_back_and_unsorted_files():
    submit = [60.0 * number for number in range(150)]
    submit[50] = 0.0
    (finding,) = times.check_order(jobs(submit_time=submit))
    assert (finding.code, finding.level, finding.jobs) == ("steps-back", "note", (50,))
    (unsorted,) = times.check_order(jobs(submit_time=[5.0, 4.0, 3.0, 6.0]))
    assert (unsorted.code, unsorted.count, unsorted.jobs) == ("unsorted", 2, (1, 2))
    assert times.check_order(jobs(submit_time=[1.0, 1.0, 2.0])) == []


def test_gap_of_an_hour():
    submit = [60.0 * number for number in range(40)]
    submit[20:] = [time + 3600 for time in submit[20:]]
    (finding,) = times.check_order(jobs(submit_time=submit))
    assert (finding.code, finding.count) == ("clock-gap", 1)
    assert "3,660 s between submissions, from 1,140 s" in finding.what
    submit[30:] = [time + 3600 for time in submit[30:]]
    assert times.check_order(jobs(submit_time=submit)) == []


def test_repeated_jobs():
    frame = jobs(
        submit_time=[0.0, 0.0, 0.0, 5.0],
        duration=[60.0] * 4,
        user=["u", "u", "v", "u"],
    )
    (finding,) = times.check_repeats(frame)
    assert (finding.count, finding.jobs) == (1, (1,))
    assert times.check_repeats(frame.drop(index=1)) == []


def test_bad_rows_by_reason(tmp_path):
    text = "job_id,submit_time,duration,num_gpus\n1,0,60,1\n1,5,60,1\n2,6,-3,1\n3,7,-4,1\n4,8,9,1\n"
    loaded = opened(tmp_path, text, drop_bad_rows=True)
    findings = times.bad_rows(loaded.bad_rows, loaded.fault, dropped_by_user=False)
    assert [(finding.level, finding.count) for finding in findings] == [("error", 2), ("error", 1)]
    assert findings[0].what.startswith("2 rows left out: duration: not positive; first: ")
    assert "log.csv:4:duration: not positive (-3)" in findings[0].what
    assert "duplicate id" in findings[1].what
    dropped = times.bad_rows(loaded.bad_rows, loaded.fault, dropped_by_user=True)
    assert {finding.level for finding in dropped} == {"warning"}


def test_durations_in_hours():
    (finding,) = values.check_units(jobs(duration=[0.25, 0.75, 2.0]))
    assert (finding.code, finding.count, finding.jobs) == ("unit-too-large", 2, (0, 1))


@pytest.mark.parametrize(
    ("columns", "code", "count"),
    [
        # 25 jobs of 1 hour in milliseconds, submitted within 4 minutes
        ({"duration": [3.6e6] * 25}, "unit-too-small", 25),
        # half of the jobs take two years
        ({"duration": [6.3e7, 6.3e7, 60.0]}, "unit-too-small", 2),
        ({"submit_time": [0.0, 1e9]}, "unit-of-submit-times", 2),
    ],
)
def test_times_in_a_smaller_unit(columns, code, count):
    (finding,) = values.check_units(jobs(**columns))
    assert (finding.code, finding.level, finding.count) == (code, "warning", count)


def test_first_submission():
    (epoch,) = values.check_units(jobs(submit_time=[1.6e9, 1.6e9 + 10]))
    assert (epoch.code, epoch.level) == ("first-submission", "warning")
    (late,) = values.check_units(jobs(submit_time=[90_000.0, 90_010.0]))
    assert (late.code, late.level, late.jobs) == ("first-submission", "note", (0,))


def test_whole_minutes_and_hours():
    minutes = [60.0 * (number + 1) for number in range(20)]
    assert [f.code for f in values.check_units(jobs(duration=minutes))] == ["whole-minutes"]
    hours = [60 * duration for duration in minutes]
    assert [f.code for f in values.check_units(jobs(duration=hours))] == ["whole-hours"]
    assert values.check_units(jobs(duration=[*minutes, 61.0])) == []


def test_extremes():
    found = by_code(values.check_extremes(jobs(duration=[0.5, 60.0, 60.0, 4e7])))
    assert found.keys() == {"below-one-second", "longer-than-a-year"}
    assert found["below-one-second"].jobs == (0,)
    assert found["longer-than-a-year"].jobs == (3,)
    assert "1.3 years" in found["longer-than-a-year"].what
    # 8 of 28 GPU-seconds
    (dominant,) = values.check_extremes(jobs(duration=[1.0] * 20 + [8.0]))
    assert (dominant.code, dominant.jobs) == ("one-job-dominates", (20,))
    assert "29% of all GPU-seconds" in dominant.what
    (at_once,) = values.check_extremes(jobs(submit_time=[0.0, 0.0]))
    assert at_once.code == "all-at-once"


def test_long_gaps():
    submit = [1000.0 * number for number in range(20)]
    submit[10:] = [time + 1e6 for time in submit[10:]]
    (finding,) = values.check_extremes(jobs(submit_time=submit))
    assert (finding.code, finding.count) == ("long-gap", 1)
    assert "largest 11.6 days, from 9,000 s" in finding.what


def test_loads_over_time():
    # span 100 s, periods of 10 s; 4 GPUs: 40 GPU-seconds are a load of 1 in a period
    frame = jobs(submit_time=[0.0, 55.0, 100.0], duration=[10.0, 20.0, 10.0], num_gpus=[2, 4, 1])
    load = loads.loads_over_time(frame, Cluster.parse("1x4"))[loads.ALL]
    assert load["mean"] == pytest.approx(110 / 400)
    assert (load["highest"], load["highest_from_s"]) == (2.0, 50.0)
    assert load["loads"] == [0.5, 0, 0, 0, 0, 2.0, 0, 0, 0, 0.25]


def test_loads_by_type():
    frame = jobs(submit_time=[0.0, 100.0, 100.0], duration=[10.0] * 3, gpu_type=["a", "a|b", None])
    found = loads.loads_over_time(frame, Cluster.parse("1xa,3xb"))
    assert {name: load["mean"] for name, load in found.items()} == pytest.approx(
        {loads.ALL: 30 / 400, "a": 10 / 100, "a|b": 10 / 400}
    )


def test_a_type_that_is_overloaded():
    # 10 jobs of 200 GPU-seconds in 120 s on 4 GPUs: 417 %
    frame = jobs(
        submit_time=[10.0 * number for number in range(13)],
        duration=[100.0] * 10 + [10.0] * 3,
        num_gpus=[2] * 10 + [1] * 3,
        gpu_type=["A10"] * 10 + ["H800"] * 3,
    )
    (finding,) = loads.check_loads(frame, Cluster.parse("1x4:A10,10x8:H800"))
    assert (finding.code, finding.count) == ("overload-of-type", 10)
    assert "417% of the GPU time of the 4 GPUs of GPU type A10" in finding.what


def test_an_overload_needs_a_queue():
    frame = jobs(submit_time=[0.0, 10.0, 20.0], duration=[100.0] * 3)
    (finding,) = loads.check_loads(frame, Cluster.parse("1x1"))
    assert (finding.code, finding.level, finding.count) == ("overload", "warning", 3)
    # jobs hold whole GPUs, whatever part of them they use
    assert loads.check_loads(frame.assign(gpu_share=0.1), Cluster.parse("1x1")) == [finding]
    # the same load of 5 on three GPUs of each job its own
    frame = jobs(submit_time=[0.0, 10.0, 20.0], duration=[300.0] * 3)
    assert loads.check_loads(frame, Cluster.parse("1x3")) == []


def test_rows_of_a_file_stay_as_they_are(tmp_path):
    loaded = opened(tmp_path, "job_id,submit_time,duration,num_gpus\n1,5,60,1\n2,0,60,1\n")
    assert loaded.frame["job_id"].tolist() == [2, 1]
    assert loaded.parsed.frame["job_id"].tolist() == [1, 2]
    assert (loaded.parsed.log, loaded.fault, loaded.bad_rows) == (None, "", {})
    assert Parsed(loaded.frame, Source("x")).log is None


def test_the_advice_on_types_is_on_the_jobs_of_the_finding():
    frame = jobs(num_gpus=[2, 16], gpu_type=["a100|v100", "v100"])
    found = by_code(demands.check_demands(frame, Cluster.parse("8xv100,16xk80")))
    assert found["wished-type"].jobs == (1,)
    assert found["wished-type"].advice.startswith("take a larger cluster")
