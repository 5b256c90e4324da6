from __future__ import annotations

import csv
import hashlib
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.base.errors import InputWarning, ParamError, TraceError
from repro.files.table import Table
from repro.trace.formats import FORMATS
from repro.trace.load import describe, detect, load, write
from repro.trace.schema import COLUMNS, REQUIRED, STAGES, Column, validate

JOBS = pd.DataFrame(
    {
        "job_id": [0, 1, 2],
        "submit_time": [0.0, 60.0, 100.0],
        "duration": [60.0, 30.0, 90.0],
        "num_gpus": [1, 2, 4],
    }
)

WORDS = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Cf", "Zl", "Zp")) | st.sampled_from('",;'),
    min_size=1,
    max_size=6,
).filter(str.strip)
INT64 = st.integers(-(2**63), 2**63 - 1)


def values(column: Column) -> st.SearchStrategy[object]:
    """Return what one cell of the column may hold."""
    if column.value_type == "text":
        return st.none() | WORDS
    if column.value_type == "int":
        return st.integers(int(max(column.low, -(2**53))), int(min(column.high, 2**53)))
    top = column.high if np.isfinite(column.high) else None
    number = st.floats(
        max(column.low, 0.0), top, exclude_min=column.low_excluded, allow_infinity=False
    )
    return number if column.required else st.none() | number


@st.composite
def traces(draw):
    rows = draw(st.integers(1, 6))
    optional = [name for name, column in COLUMNS.items() if not column.required]
    held = {*REQUIRED, *draw(st.sets(st.sampled_from(optional)))}
    ids = draw(st.sampled_from([INT64, WORDS.map("j{}".format)]))
    columns = {"job_id": draw(st.lists(ids, min_size=rows, max_size=rows, unique=True))}
    for name in sorted(held - {"job_id"}):
        columns[name] = draw(st.lists(values(COLUMNS[name]), min_size=rows, max_size=rows))
    if {"min_gpus", "max_gpus"} <= held:
        pairs = zip(columns["min_gpus"], columns["max_gpus"], strict=True)
        columns["min_gpus"] = [min(pair) for pair in pairs]
    if stages := [name for name in STAGES if name in held]:
        # no job spends its time in no stage
        columns[stages[0]] = [time or 1.0 for time in columns[stages[0]]]
    if "predicted_duration" in held:
        # all jobs have a prediction, or none
        predicted = columns["predicted_duration"]
        columns["predicted_duration"] = [60.0 if pd.isna(time) else time for time in predicted]
    # longer than a million steps of a float64 at the end of any accepted job
    columns["duration"] = [max(time, 2.0) for time in columns["duration"]]
    return validate(pd.DataFrame(columns))


@settings(max_examples=60)
@given(frame=traces())
def test_written_traces_come_back(frame, tmp_path_factory):
    path = write(frame, tmp_path_factory.mktemp("round") / "jobs.csv")
    again = load(path, "repro")
    text = [n for n, column in COLUMNS.items() if column.value_type == "text" and n in frame]
    for name in text:
        assert frame[name].fillna("").tolist() == again[name].fillna("").tolist()
    kept = [name for name in frame if name not in text]
    pd.testing.assert_frame_equal(frame[kept], again[kept], check_exact=True)


def test_attrs(tmp_path):
    path = write(JOBS, tmp_path / "jobs.csv")
    attrs = load(path, "repro").attrs
    assert attrs["name"] == "jobs.csv"
    assert attrs["format"] == "repro"
    assert attrs["synthetic"] is False
    assert attrs["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert attrs["dropped"] == {}


def test_write_keeps_to_the_schema(tmp_path):
    path = write(JOBS.assign(comment="x"), tmp_path / "jobs.csv")
    assert path.read_text().splitlines()[0] == "job_id,submit_time,duration,num_gpus"
    assert [entry.name for entry in path.parent.iterdir()] == ["jobs.csv"]


def test_write_refuses_a_missing_folder(tmp_path):
    with pytest.raises(TraceError, match=r"jobs\.csv: no folder .*new; make it first"):
        write(JOBS, tmp_path / "new" / "jobs.csv")
    assert not list(tmp_path.iterdir())


def test_ids_that_a_spreadsheet_would_run_are_quoted_and_come_back(tmp_path):
    ids = ["=HYPERLINK(1)", "@SUM(1)", "-2+3", "'=1", "-7", "'a"]
    frame = pd.concat([JOBS, JOBS], ignore_index=True).assign(job_id=ids, user="=1+1")
    path = write(frame, tmp_path / "jobs.csv")
    rows = list(csv.reader(path.read_text().splitlines()[1:]))
    assert not [cell for row in rows for cell in row if cell[0] in "=@"]
    again = load(path, "repro")
    assert sorted(again["job_id"]) == sorted(ids) and set(again["user"]) == {"=1+1"}


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = write(JOBS, tmp_path / "jobs.csv")
    before = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("repro.files.whole.os.replace", full)
    with pytest.raises(
        TraceError, match=r"jobs\.csv: cannot be written \(No space left on device\)"
    ):
        write(JOBS.assign(duration=1.0), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["jobs.csv"]


def test_write_refuses_what_is_no_trace(tmp_path):
    with pytest.raises(TraceError, match="not positive"):
        write(JOBS.assign(duration=-1.0), tmp_path / "jobs.csv")
    assert not list(tmp_path.iterdir())


def test_format_is_needed_for_a_file(tmp_path):
    path = write(JOBS, tmp_path / "jobs.csv")
    assert load(path).attrs["format"] == "repro"
    path.write_text(f"{TWO_FORMATS}\n0,4,0,0,60\n")
    with pytest.raises(
        TraceError,
        match=r"1: needs a format, looks like elasticflow or tiresias; add --format elasticflow or "
        "add --format tiresias$",
    ):
        load(path)
    assert detect(path) is None


#: Header with the columns of two formats.
TWO_FORMATS = "job_id,num_gpu,submit_time,submission_time,duration"
HELIOS = "job_id,gpu_num,submit_time,start_time,end_time,state\n"
SPEEDS = pd.DataFrame(
    {"job_type": ["A3C"], "scale_factor": 1, "gpu_type": "v100", "steps_per_second": 8.0}
)
MURI = "job_id,num_gpu,submit_time,duration,iteration_time,resource_time_0,resource_time_1,"


DATES = "2020-06-09 18:00:00,2020-06-09 18:00:00,2020-06-09 18:01:00"
SACCT = "JobIDRaw|Submit|Start|End|State|AllocTRES\n"
SACCT_ROW = f"1|{DATES.replace(',', '|')}|COMPLETED|gres/gpu=1\n"


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("job_id,num_gpu,submit_time,duration\n0,4,0,60\n", "tiresias"),
        (f"{HELIOS}0,1,{DATES},COMPLETED\n", "helios"),
        (f"\n{HELIOS}0,1,{DATES},COMPLETED\n", "helios"),
        (f"{MURI}resource_time_2\n0,1,0,60000,100,1,1,1\n", "muri"),
        ("A3C\tmain.py\trl\t--n\t0\t480\t1\t1\t-1\t0\n", "gavel"),
        (SACCT + SACCT_ROW, "slurm"),
        ("; Computer: x\n1 0 0 60 1" + " -1" * 13 + "\n", "swf"),
    ],
)
def test_the_format_follows_from_the_contents(tmp_path, text, format):
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    assert detect(path) == format
    options = {"throughputs": SPEEDS} if format == "gavel" else {}
    frame = load(path, **options)
    assert frame["duration"].tolist() == [60.0]
    assert frame.attrs["format"] == format
    note = f"read in format {format}, by the contents of the file"
    assert frame.attrs["notes"][0] == note
    named = load(path, format, **options)
    assert [note, *named.attrs["notes"]] == frame.attrs["notes"]


@pytest.mark.parametrize(
    "text",
    [
        '[{"job_id": 0}]',
        "apiVersion: batch/v1\nkind: Job\n",
        "job_id;submit_time;duration;num_gpus\n0;0;1;1\n",
        "job_id,submit_time,duration,gpus\n0,0,1,1\n",
        "job_id,submit_time_ms,duration,num_gpus\n0,0,1,1\n",
    ],
)
def test_a_file_without_a_format_gets_the_diagnosis_of_format_repro(tmp_path, text):
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    messages = []
    for options in ({}, {"format": "repro"}):
        with pytest.raises(TraceError) as caught:
            load(path, **options)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("mark", ["", "\ufeff", "sep=,\r\n", "\n\n", "\ufeffsep=,\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_the_own_format_is_known_in_every_dress(tmp_path, mark, end, quote):
    header = ",".join(f"{quote}{name}{quote}" for name in REQUIRED)
    path = tmp_path / "jobs.csv"
    path.write_bytes(f"{mark}{header}{end}0,0,60,1{end}".encode())
    assert load(path)["duration"].tolist() == [60.0]


def test_a_generator_is_no_file():
    with pytest.raises(TraceError, match="philly-like: is a generator of traces") as caught:
        load("philly-like")
    assert "repro simulate --trace philly-like" in str(caught.value)


def test_table_is_not_a_trace():
    with pytest.raises(
        TraceError, match=r"tiresias-history-1000: a table \(history\), not a trace"
    ):
        load("tiresias-history-1000")


def test_misspelt_name():
    with pytest.raises(
        TraceError, match=r"tiresias-6: no such file, nor .*did you mean 'tiresias-60'"
    ):
        load("tiresias-6")


def test_describe():
    facts = describe(JOBS, 8)
    work = 60 + 60 + 360
    assert facts["jobs"] == 3
    assert facts["span_s"] == 100
    assert facts["gpus"] == {1: 1, 2: 1, 4: 1}
    assert facts["duration_s"] == {
        "mean": 60.0,
        "min": 30.0,
        "p10": 36.0,
        "p25": 45.0,
        "p50": 60.0,
        "p75": 75.0,
        "p90": 84.0,
        "p95": 87.0,
        "p99": pytest.approx(89.4),
        "max": 90.0,
    }
    assert facts["mean_interarrival_s"] == 50
    assert facts["gpu_seconds"] == work
    assert facts["mean_gpus_demanded"] == work / 100
    assert facts["offered_load"] == work / 100 / 8


def test_describe_counts_whole_gpus_and_notes_the_part_in_use():
    facts = describe(JOBS.assign(gpu_share=[0.5, np.nan, 1.0]), 8)
    assert facts["gpu_seconds"] == 60 + 60 + 360
    assert facts["offered_load"] == 0.6
    # 450 of 480 GPU-seconds
    (note,) = facts["notes"]
    assert note.startswith("1 of 3 jobs use a part of a GPU (gpu_share)")
    assert note.endswith("and the jobs use 93.8% of these GPU-seconds")
    assert describe(JOBS.assign(gpu_share=1.0))["notes"] == []


def test_describe_leaves_the_undefined_open():
    assert describe(JOBS)["offered_load"] is None
    at_once = describe(JOBS.assign(submit_time=0.0), 8)
    assert (at_once["mean_gpus_demanded"], at_once["offered_load"]) == (None, None)
    assert describe(JOBS.iloc[:1], 8)["mean_interarrival_s"] is None


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (JOBS.iloc[:0], "^trace: no jobs; a trace holds at least one row$"),
        (pd.DataFrame({"num_gpus": [1]}), "^trace:job_id,submit_time,duration: missing column"),
        (JOBS.assign(duration=pd.to_timedelta([60, 60, 60], unit="s")), "holds timedelta64"),
        (JOBS.assign(submit_time=pd.to_datetime([0, 60, 100], unit="s")), "holds datetime64"),
        (JOBS.assign(duration=[60.0, -60.0, 1.0]), "row 1:duration: not positive"),
        (JOBS.assign(num_gpus=[1, -3, 1]), "row 1:num_gpus: too small"),
    ],
)
def test_describe_refuses_what_is_no_trace(frame, message):
    with pytest.raises(TraceError, match=message):
        describe(frame, 4)


def test_describe_reads_numbers_in_text_and_keeps_the_order_of_rows():
    texts = JOBS.assign(num_gpus=["1", "2", "4"])
    assert describe(texts, 8) == describe(JOBS, 8)
    assert describe(JOBS.iloc[::-1], 8) == describe(JOBS, 8)


@pytest.mark.parametrize("gpus", [0, -4, "8", 2.5, True])
def test_the_gpus_of_a_cluster_are_a_whole_number(tmp_path, gpus):
    path = write(JOBS, tmp_path / "jobs.csv")
    message = "cluster_gpus is .*; give the number of GPUs of the cluster, 1 or more"
    with pytest.raises(ParamError, match=message):
        describe(JOBS, gpus)
    with pytest.raises(ParamError, match=message):
        load(path, cluster_gpus=gpus)


@pytest.mark.parametrize("path", [None, 3, ["jobs.csv"], io.StringIO("job_id\n"), pd.DataFrame()])
def test_a_path_is_a_text_or_a_path(path):
    with pytest.raises(
        TraceError, match=r"the path of a trace is .*; give a text or Path"
    ) as caught:
        load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "words"),
    [("gavel-throughputs", "gavel-throughputs"), ("{}/my speeds.csv", "'my speeds.csv'")],
)
def test_a_file_without_the_throughputs_of_its_trace_names_them(
    tmp_path, monkeypatch, table, words
):
    monkeypatch.chdir(tmp_path)
    jobs = JOBS.assign(model="a3c")
    jobs.attrs = {"throughputs": table.format(tmp_path), "reference_gpu": "k80"}
    with pytest.warns(InputWarning) as caught:
        write(jobs, tmp_path / "jobs.csv")
    (warning,) = caught
    assert str(warning.message) == (
        "throughputs by GPU type are not in the file: runs on GPU types need --throughputs "
        f"{words} --reference-gpu k80"
    )


@pytest.mark.parametrize("name", ["jobs.csv.gz", "jobs.swf.gz", "jobs.json.gz"])
def test_a_compressed_trace_is_written_and_read(tmp_path, name):
    path = write(JOBS, tmp_path / name)
    assert path.read_bytes().startswith(b"\x1f\x8b")
    jobs = load(path)[list(REQUIRED)]
    pd.testing.assert_frame_equal(jobs[["submit_time", "duration", "num_gpus"]], JOBS.iloc[:, 1:])


def _fails(document):
    return {}["hours"]


def _returns_nothing(document):
    Table(document, ("arrival",))


def _returns_the_frame(document):
    return Table(document, ("arrival",)).frame


def _needs_an_option(document, scale):
    return Table(document, ("arrival",)).parsed(submit_time="arrival")


def _drops_other_rows(document):
    parsed = Table(document, ("arrival",)).parsed(submit_time="arrival")
    parsed.drop({"too short": np.array([], dtype=bool)})
    return parsed


def _returns_no_row(document):
    table = Table(document, ("arrival",))
    table.frame = table.frame.head(0)
    return table.parsed(submit_time="arrival")


def _takes_no_document():
    return None


@pytest.mark.parametrize(
    ("read", "error", "says"),
    [
        (
            _fails,
            TraceError,
            r"`_fails` fails: KeyError: 'hours' \(.*:\d+ in _fails",
        ),
        (_returns_nothing, TraceError, r"returns None; return a Parsed.*\(test_trace_load.py:\d+"),
        (
            _returns_the_frame,
            TraceError,
            "returns a DataFrame; return a Parsed, as Table.parsed does",
        ),
        (_needs_an_option, ParamError, "needs option 'scale'; give --set scale=VALUE"),
        (_drops_other_rows, TraceError, r"fails: IndexError: .* \(.*:\d+ in _drops_other_rows"),
        (_returns_no_row, TraceError, r"no job left; a trace holds at least one"),
        (_takes_no_document, TraceError, r"fails: TypeError: .* \(test_trace_load.py:\d+\)$"),
    ],
)
def test_a_format_that_fails_is_one_line(tmp_path, monkeypatch, read, error, says):
    monkeypatch.setitem(FORMATS._items, "mine", read)
    path = tmp_path / "jobs.csv"
    path.write_text("arrival\n0\n")
    with pytest.raises(error, match=says) as caught:
        load(path, "mine")
    assert "\n" not in str(caught.value)
