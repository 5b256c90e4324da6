"""Rows that break a rule are dropped and counted on request, in every format."""

from __future__ import annotations

import csv
import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.base.errors import TraceError
from repro.trace.formats import FORMATS
from repro.trace.load import load
from repro.trace.schema import validate

SPEEDS = pd.DataFrame(
    {
        "job_type": ["A3C"],
        "scale_factor": [1],
        "gpu_type": ["v100"],
        "steps_per_second": [8.0],
    }
)
NATIVE = "job_id,submit_time,duration,num_gpus"
DAY = "2020-06-09 18:41:01"
LATER = "2020-06-09 18:42:01"
HELIOS = "job_id,gpu_num,submit_time,start_time,end_time"
OPENB = "name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time"
MURI = "job_id,num_gpu,submit_time,duration,iteration_time,resource_time_0,resource_time_1"
ACME = "job_id,gpu_num,type,state,submit_time,start_time,end_time,queue"
#: Delimiters of the formats without a header.
DELIMITERS = {"gavel": "\t", "swf": " "}
#: Of each format its header, a good row, and bad rows with the reason that each is dropped for.
CASES = {
    "repro": (
        NATIVE,
        ["{},0,60,1"],
        {
            "a,5,0,1": "duration: not positive",
            "b,5,-3,1": "duration: not positive",
            "c,5,60,0.5": "num_gpus: not a whole number",
            ",5,60,1": "job_id: missing value",
            "j0,5,60,1": "job_id: duplicate id",
            "d,5,,1": "duration: missing value",
            "e,5,soon,1": "duration: not a number",
            "f,5,60": "wrong number of fields",
            "g,5,60,1,9": "wrong number of fields",
            "h,-5,60,1": "submit_time: negative",
        },
    ),
    "tiresias": (
        "job_id,num_gpu,submit_time,duration",
        ["{},1,0,60"],
        {"a,1,0,0": "duration: not positive", "b,two,0,5": "num_gpu: not a number"},
    ),
    "muri": (
        MURI + ",resource_time_2",
        ["{},1,0,60000,100,50,30,20"],
        {
            "a,1,0,0,100,50,30,20": "duration: not positive",
            "b,1,0,6000,100,0,0,0": "resource_time_0: all stage times are zero",
        },
    ),
    "pcs": (
        "app_id,service,num_jobs,sleep_time",
        ["{},60,1,10"],
        {
            "a,60,1,-1": "sleep_time: negative",
            "b,60,0,10": "num_jobs: too small",
            "c,x,1,10": "service: not a number",
        },
    ),
    "philly": (
        "timestamp,duration,num_gpus",
        [DAY + ",60,1"],
        {
            "x,60,1": "timestamp: not a date",
            ",60,1": "timestamp: missing value",
            DAY + ",0,1": "duration: not positive",
        },
    ),
    "helios": (
        HELIOS,
        [f"{{}},1,{DAY},{DAY},{LATER}"],
        {
            f"a,1,{DAY},{DAY},soon": "end_time: not a date",
            f"b,0.5,{DAY},{DAY},{LATER}": "gpu_num: not a whole number",
            f"c,0,{DAY},{DAY},{LATER}": "no GPU",
            f"j0,1,{DAY},{DAY},{LATER}": "job_id: duplicate id",
        },
    ),
    "alibaba-openb": (
        OPENB + ",pod_phase",
        ["{},1,500,0,60,10,Running"],
        {
            "a,1,500,0,60,-1,Failed": "scheduled_time: negative",
            "b,1,0,0,60,10,Failed": "gpu_milli: not positive",
            "c,1,500,0,60,,Failed": "never ran",
            "d,1,500,0,60,60,Failed": "ran for 0 s",
            "e,x,500,0,60,10,Running": "num_gpu: not a number",
        },
    ),
    "liquid": (
        "job,model,batch_size,num_batches,num_ps,num_workers",
        ["{},vgg16,12,250,1,2"],
        {
            "a,vgg16,12,250,1,0.5": "num_workers: not a whole number",
            "b,cnn,12,250,0,1": "no run time under times=t4",
        },
    ),
    "elasticflow": (
        "job_id,submission_time,duration,num_gpu",
        ["{},0,60,1"],
        {"a,0,0,1": "duration: not positive", "b,0,5,two": "num_gpu: not a number"},
    ),
    "acme": (
        ACME,
        [f"{{}},1,SFT,COMPLETED,{DAY},{DAY},{LATER},0"],
        {
            f"a,1,SFT,FAILED,{DAY},{DAY},soon,0": "end_time: not a date",
            f"b,0,Other,COMPLETED,{DAY},{DAY},{LATER},0": "no GPU",
            f"j0,1,SFT,FAILED,{DAY},{DAY},{LATER},0": "job_id: duplicate id",
        },
    ),
    "alibaba-pai": (
        "job_id,submit_time,duration,num_inst,num_gpu",
        ["{},0,60,1,50"],
        {
            "a,0,0,1,50": "ran for 0 s",
            "b,0,60,1,0": "no GPU",
            "c,0,60,1.5,50": "num_inst: not a whole number",
            "d,0,soon,1,50": "duration: not a number",
        },
    ),
    "slurm": (
        "JobID,Submit,Start,End,State,AllocTRES",
        [f"{{}},{DAY},{DAY},{LATER},COMPLETED,gres/gpu=1"],
        {
            f"a,{DAY},{DAY},soon,COMPLETED,gres/gpu=1": "End: not a date",
            f"b,{DAY},{DAY},{LATER},COMPLETED,gres/gpu=x": "AllocTRES: no whole number of GPUs",
            f"c,{DAY},Unknown,Unknown,PENDING,": "never ran",
            f"j0,{DAY},{DAY},{LATER},FAILED,gres/gpu=1": "JobID: duplicate id",
        },
    ),
    "swf": (
        None,
        ["{0[1]} 0 0 60 1" + " -1" * 13],
        {
            "7 0 0 x 1" + " -1" * 13: "run_time: not a number",
            "8 0 0 60 1": "wrong number of fields",
            "9 0 0 60 1 -1 -1 1.5" + " -1" * 10: "processors: not a whole number",
            "0 0 0 60 1" + " -1" * 13: "job: duplicate id",
        },
    ),
    "gavel": (
        None,
        ["A3C\tmain.py\trl\t--n\t0\t480\t1\t1\t-1\t0"],
        {
            "GPT\tmain.py\trl\t--n\t0\t480\t1\t1\t-1\t0": (
                "job_type: no throughput on v100 for this job type on 1 GPUs"
            ),
            "A3C\tmain.py\trl\t--n\t0\t0\t1\t1\t-1\t0": "steps: too small",
            "A3C\tmain.py": "wrong number of fields",
        },
    ),
}


def read(path, format, **more):
    options = {"throughputs": SPEEDS} if format == "gavel" else {}
    return load(path, format, **options, **more)


@pytest.mark.parametrize("format", list(CASES))
def test_bad_rows_are_dropped_and_counted(tmp_path, format):
    head, (good,), bad = CASES[format]
    path = tmp_path / "jobs"
    first = [good.format("j0"), good.format("j1")]
    rows = [*first, *bad, good.format("j2")]
    path.write_text("\n".join([head, *rows] if head else rows) + "\n")
    with pytest.raises(TraceError, match=r"--drop-bad-rows \(drop_bad_rows=True\) leaves such"):
        read(path, format)
    frame = read(path, format, drop_bad_rows=True)
    assert len(frame) == 3
    expected: dict[str, int] = {}
    for reason in bad.values():
        expected[reason] = expected.get(reason, 0) + 1
    assert frame.attrs["dropped"] == expected


@pytest.mark.parametrize("format", [name for name, case in CASES.items() if case[0]])
def test_a_header_repeated_inside_the_file_is_a_bad_row(tmp_path, format):
    head, (good,), _ = CASES[format]
    path = tmp_path / "jobs"
    path.write_text("\n".join([head, good.format("j0"), head, good.format("j1")]) + "\n")
    frame = read(path, format, drop_bad_rows=True)
    assert len(frame) == 2
    assert sum(frame.attrs["dropped"].values()) == 1


def test_every_format_has_its_cases():
    assert {*CASES, "philly-json", "batsim"} == set(FORMATS)


def test_bad_jobs_of_the_philly_log(tmp_path):
    attempt = {"start_time": DAY, "end_time": LATER, "detail": [{"ip": "m", "gpus": ["g"]}]}
    good = {"jobid": "a", "submitted_time": DAY, "attempts": [attempt]}
    jobs = [
        good,
        7,
        good | {"jobid": 1.5},
        good | {"jobid": "b", "submitted_time": "soon"},
        good | {"jobid": "c", "attempts": [3]},
        good,
        good | {"jobid": "d"},
    ]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(jobs))
    frame = load(path, "philly-json", drop_bad_rows=True)
    assert frame["job_id"].tolist() == ["a", "d"]
    assert sum(frame.attrs["dropped"].values()) == 5
    assert frame.attrs["dropped"]["jobid: duplicate id"] == 1


def test_the_gap_of_a_dropped_row_goes_by(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("app_id,service,num_jobs,sleep_time\n0,60,1,10\n1,0,1,10\n2,60,1,10\n")
    frame = load(path, "pcs", drop_bad_rows=True)
    assert frame["submit_time"].tolist() == [10.0, 30.0]


def test_ids_of_a_format_without_ids_stay_those_of_the_file(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(f"timestamp,duration,num_gpus\n{DAY},0,1\n{DAY},60,1\n")
    assert load(path, "philly", drop_bad_rows=True)["job_id"].tolist() == [1]


def test_jobs_too_wide_for_the_cluster_are_dropped(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(f"{NATIVE}\na,0,60,8\nb,0,60,1\n")
    frame = load(path, "repro", cluster_gpus=4, drop_bad_rows=True)
    assert frame["job_id"].tolist() == ["b"]
    assert frame.attrs["dropped"] == {"num_gpus: more GPUs than the cluster has": 1}


def test_a_file_of_bad_rows_only_has_no_job(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(f"{NATIVE}\na,0,0,8\nb,0,60,0\n")
    with pytest.raises(TraceError, match=r"no job left \(duration: not positive: 1, num_gpus: too"):
        load(path, "repro", drop_bad_rows=True)


def test_bad_rows_of_a_table_beside_the_trace_are_refused(tmp_path):
    speeds = tmp_path / "speeds.csv"
    path = tmp_path / "jobs.trace"
    SPEEDS.assign(steps_per_second=-1.0).to_csv(speeds, index=False)
    path.write_text("".join(row + "\n" for row in CASES["gavel"][1]))
    with pytest.raises(TraceError, match=r"speeds\.csv:2:steps_per_second: neg") as caught:
        load(path, "gavel", throughputs=speeds, drop_bad_rows=True)
    assert "drop" not in str(caught.value)


def test_a_quote_that_is_not_closed_is_no_bad_row(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(f'{NATIVE}\na,0,60,1\nb,"0,60,1\nc,0,60,1\n')
    with pytest.raises(TraceError, match=r"jobs.csv:3: not a readable row"):
        load(path, "repro", drop_bad_rows=True)


NUMBERS = ["0", "1", "60", "007", "7", "-1", "0.5", "1e999", "nan", "9" * 25]
WORDS = ["", " ", "x", "é", "None", "Unknown", "v100", "\u202e", "RUNNING"]
CELLS = st.sampled_from([*NUMBERS, *WORDS, DAY, LATER, "2020-06-09 18:42:01+08:00"])


@settings(max_examples=150)
@given(
    format=st.sampled_from(list(CASES)),
    changes=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), CELLS), max_size=8),
    more=st.lists(st.lists(CELLS, max_size=6), max_size=3),
)
def test_rows_are_kept_or_dropped(tmp_path_factory, format, changes, more):
    head, (good,), _ = CASES[format]
    delimiter = DELIMITERS.get(format, ",")
    rows = [good.format(f"j{n}").split(delimiter) for n in range(6)]
    for row, column, cell in changes:
        rows[row][column % len(rows[row])] = cell
    # the reader tells the sort of a gavel file by its first line
    rows += [row for row in more if len(row) > 1]
    if format == "swf":
        # a line of blanks is no row
        rows = [row for row in rows if any(map(str.strip, row))]
    path = tmp_path_factory.mktemp("rows") / "jobs"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        if head:
            writer.writerow(head.split(","))
        writer.writerows(rows)
    try:
        frame = read(path, format, drop_bad_rows=True)
    except TraceError as error:
        assert "no job left" in str(error)
        assert "\n" not in str(error)
        return
    assert len(frame) + sum(frame.attrs["dropped"].values()) == len(rows)
    validate(frame)


@settings(max_examples=100)
@given(format=st.sampled_from([*CASES, "philly-json", "batsim"]), raw=st.binary(max_size=200))
def test_random_bytes_are_refused_in_one_line(tmp_path_factory, format, raw):
    path = tmp_path_factory.mktemp("bytes") / "jobs"
    head = CASES[format][0] if format in CASES else "["
    for content in (raw, f"{head or ''}\n".encode() + raw):
        path.write_bytes(content)
        try:
            validate(read(path, format, drop_bad_rows=True))
        except TraceError as error:
            assert "\n" not in str(error)
