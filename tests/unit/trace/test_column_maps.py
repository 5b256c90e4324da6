from __future__ import annotations

import pytest

from repro.base.errors import ParamError, TraceError
from repro.trace.load import load

HOURS = "name,arrival,runtime,gpus,owner,extra\n7,0,0.25,2,ann,x\n8,1.5,1,1,bob,y\n"
HOUR_MAP = "job_id=name,submit_time=arrival_h,duration=run_time_h,num_gpus=gpus"
MAP = "job_id=name,submit_time=arrival,duration=runtime,num_gpus=gpus,user=owner"


@pytest.fixture
def read(tmp_path):
    def _read(text: str, **options):
        path = tmp_path / "jobs.csv"
        path.write_text(text)
        return load(path, **options)

    return _read


def test_columns_are_renamed_and_times_scaled(read):
    frame = read(HOURS, map=MAP, unit="h")
    assert frame["job_id"].tolist() == [7, 8]
    assert frame["submit_time"].tolist() == [0.0, 5400.0]
    assert frame["duration"].tolist() == [900.0, 3600.0]
    assert frame["num_gpus"].tolist() == [2, 1]
    assert frame["user"].tolist() == ["ann", "bob"]
    assert frame.attrs["format"] == "repro"
    assert frame.attrs["unread"] == ["extra"]
    assert frame.attrs["notes"] == []


def test_a_map_may_be_a_dict_or_a_list(read):
    pairs = dict(pair.split("=") for pair in MAP.split(","))
    for columns in (pairs, MAP.split(",")):
        assert read(HOURS, map=columns)["duration"].tolist() == [0.25, 1.0]


def test_milliseconds_scale_every_time_and_nothing_else(read):
    text = "job_id,submit_time,duration,num_gpus,time_limit,iterations\n0,100,1600,1,,7\n"
    frame = read(text, unit="ms")
    assert frame["submit_time"].tolist() == [0.1]
    assert frame["duration"].tolist() == [1.6]
    assert frame["time_limit"].isna().all()
    assert frame["iterations"].tolist() == [7.0]


def test_two_columns_may_exchange_their_names(read):
    text = "job_id,submit_time,num_gpus,duration\n0,60,1,5\n"
    frame = read(text, map="submit_time=duration,duration=submit_time")
    assert frame["submit_time"].tolist() == [5.0]
    assert frame["duration"].tolist() == [60.0]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("submit_time", r"map=submit_time: expected COLUMN=NAME, such as submit_time=arrival"),
        (None, "map=None: expected COLUMN=NAME"),
        (3, "map=3: expected COLUMN=NAME"),
        (["submit_time=arrival", 3], "map=.*: expected COLUMN=NAME"),
        ("submit_time=", "map=submit_time=: expected COLUMN=NAME"),
        ("submitted=arrival", "a trace has no column 'submitted'"),
        ("duration=runtime,duration=gpus", "the column duration is given twice"),
        ("duration=runtime,num_gpus=runtime", "the name runtime is given twice"),
    ],
)
def test_wrong_maps_are_one_line(read, columns, message):
    with pytest.raises(ParamError, match=message):
        read(HOURS, map=columns)


def test_names_outside_the_file_are_one_line(read):
    with pytest.raises(TraceError) as caught:
        read(HOURS, map="duration=run")
    assert "jobs.csv:1:run: no such column (found name, arrival, runtime, gpus" in str(caught.value)
    text = "job_id,submit_time,duration,num_gpus,runtime\n0,0,60,1,5\n"
    with pytest.raises(TraceError) as caught:
        read(text, map="duration=runtime")
    assert (
        "jobs.csv:1:runtime: mapped to duration, which is a column of the file as well; leave it "
        "out of the map, or map duration to another column"
    ) in str(caught.value)


def test_units_and_bad_cells_are_one_line(read):
    with pytest.raises(ParamError, match="unit=week: give s, ms, us, ns, min, h, d"):
        read(HOURS, map=MAP, unit="week")
    with pytest.raises(TraceError) as caught:
        read(HOURS.replace("0.25", "soon"), map=MAP, unit="h")
    assert "jobs.csv:2:runtime: not a number (soon); a time of the file is a number of hours" in (
        str(caught.value)
    )
    with pytest.raises(TraceError) as caught:
        read(HOURS.replace("0.25", "-1"), map=MAP, unit="h")
    assert "jobs.csv:2:runtime: not positive (-1)" in str(caught.value)


def test_other_formats_have_their_own_columns(read):
    with pytest.raises(ParamError, match="format 'tiresias' has no option 'map'"):
        read(HOURS, format="tiresias", map=MAP)


def test_a_file_without_a_format_gets_the_map_that_reads_it(read):
    text = "name,arrival,runtime,gpus\n7,0,60,2\n"
    with pytest.raises(TraceError) as caught:
        read(text)
    hint = str(caught.value).rpartition("--map ")[2]
    assert hint == "job_id=name,submit_time=arrival,duration=runtime,num_gpus=gpus"
    assert read(text, map=hint)["duration"].tolist() == [60.0]


@pytest.mark.parametrize(
    ("header", "options"),
    [
        # no name is recognised
        ("task,came,hours,cards", "job_id=…,submit_time=…,duration=…,num_gpus=… --unit h"),
        ("task,came,took,cards", "job_id=…,submit_time=…,duration=…,num_gpus=…"),
        ("task,came,run minutes,cards", "job_id=…,submit_time=…,duration=…,num_gpus=… --unit min"),
        # recognised names are filled in; columns of the schema need no entry
        ("task,arrival,took,gpus", "job_id=…,submit_time=arrival,duration=…,num_gpus=gpus"),
        (
            "task,arrival (s),took,gpus",
            "'job_id=…,submit_time=arrival (s),duration=…,num_gpus=gpus'",
        ),
        ("job_id,submit_time,took,gpus", "duration=…,num_gpus=gpus"),
        # a unit of all times of the file
        ("name,arrival_h,run_time_h,gpus", f"{HOUR_MAP} --unit h"),
        (
            "task,came,duration_ms,cards",
            "job_id=…,submit_time=…,duration=duration_ms,num_gpus=… --unit ms",
        ),
        # these are no units of a time
        ("task,came,took,gpu_hours", "job_id=…,submit_time=…,duration=…,num_gpus=…"),
        ("task,came,mem_min,mem_max", "job_id=…,submit_time=…,duration=…,num_gpus=…"),
        ("task,came,min_cards,took", "job_id=…,submit_time=…,duration=…,num_gpus=…"),
        # two units are for a person to decide
        ("task,came,run_hours,wait_minutes", "job_id=…,submit_time=…,duration=…,num_gpus=…"),
    ],
)
def test_names_that_are_not_recognised_get_the_map_to_fill_in(read, header, options):
    with pytest.raises(TraceError) as caught:
        read(f"{header}\n0,1,2,3\n")
    assert str(caught.value).endswith(f", or add --map {options}")


def test_the_message_says_that_no_name_looks_like_a_run_time(read):
    with pytest.raises(TraceError, match="; no column name looks like a run time; add the missing"):
        read("task,came,hours,cards\n0,1,2,3\n")


def test_a_time_in_a_unit_next_to_one_in_seconds_is_converted_not_mapped(read):
    with pytest.raises(TraceError) as caught:
        read("task,submit_time,duration_h,cards\n0,1,2,3\n")
    text = str(caught.value)
    assert "duration_h looks like duration in hours: multiply by 3600 and rename it" in text
    assert text.endswith(", or add --map job_id=…,num_gpus=…")
    with pytest.raises(TraceError) as caught:
        read("job_id,submit_time,duration_h,num_gpus\n0,1,2,3\n")
    assert str(caught.value).endswith("in hours: multiply by 3600 and rename it")


@pytest.mark.parametrize(
    ("header", "unit", "ending"),
    [
        (
            "job_id,submit_time,runtime_ms,num_gpus",
            "ms",
            "rename it, or add --map duration=runtime_ms --unit ms",
        ),
        (
            "job_id,arrival_ms,runtime_ms,num_gpus",
            "min",
            "divide by 60000 and rename it, or add --map submit_time=arrival_ms,duration=runtime_ms"
            " --unit ms",
        ),
        (
            "job_id,arrival_ms,runtime_h,num_gpus",
            "h",
            "rename it, or add --map duration=runtime_h --unit h",
        ),
        ("job_id,submit_time,runtime_h,num_gpus", "ms", "multiply by 3600000 and rename it"),
        (
            "job_id,submit_time,runtime_s,num_gpus",
            "s",
            "rename it, or add --map duration=runtime_s",
        ),
    ],
)
def test_the_hint_takes_the_given_unit_for_times_without_one(read, header, unit, ending):
    with pytest.raises(TraceError) as caught:
        read(f"{header}\n0,1,2,3\n", unit=unit)
    assert str(caught.value).endswith(ending)


def test_a_map_that_is_not_complete_is_completed(read):
    with pytest.raises(TraceError) as caught:
        read("task,came,took,cards\n0,1,2,3\n", map="submit_time=came,user=task", unit="min")
    assert str(caught.value).endswith(
        ", or add --map job_id=…,submit_time=came,duration=…,num_gpus=…,user=task --unit min"
    )


@pytest.mark.parametrize(
    "text", ["# mine\ntask,came\n", "{}\n", "a;b;c;d\n1;2;3;4\n", "jobs:\n- {id: 1}\n"]
)
def test_what_is_no_table_of_columns_gets_no_map(read, text):
    with pytest.raises(TraceError) as caught:
        read(text)
    assert "--map" not in str(caught.value)


def test_a_file_of_another_format_is_named(read):
    with pytest.raises(TraceError, match="looks like the output of sacct -P"):
        read("JobID|Submit\n1|2\n", map="duration=End")
