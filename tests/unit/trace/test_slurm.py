from __future__ import annotations

import numpy as np
import pytest

from repro.base.errors import ParamError, TraceError
from repro.trace.load import load

HEADER = "JobID|User|Partition|AllocTRES|State|Submit|Start|End|ElapsedRaw|Timelimit"
GPU = "billing=8,cpu=8,gres/gpu=1,node=1"
TYPED = "cpu=16,gres/gpu:a100=2,gres/gpu=2"
DAY = "2024-02-01T"
#: Five jobs and a step. 7 ran one minute on one GPU, 8 was cancelled after two, 9 waits, 10 has no
#: GPU, 11 still runs.
FIVE = f"""\
{HEADER}
7|ann|gpu|{GPU}|COMPLETED|{DAY}10:00:00|{DAY}10:00:30|{DAY}10:01:30|60|01:00:00
7.batch|||cpu=8|COMPLETED|{DAY}10:00:30|{DAY}10:00:30|{DAY}10:01:30|60|
8|bob|big|{TYPED}|CANCELLED by 1000|{DAY}10:00:10|{DAY}10:00:10|{DAY}10:02:10|120|2-00:00:00
9_[1-3]|bob|big||PENDING|{DAY}10:01:00|Unknown|Unknown|0|UNLIMITED
10|ann|cpu|cpu=4,mem=8G|COMPLETED|{DAY}10:01:00|{DAY}10:01:00|{DAY}10:02:00|60|10:00
11|ann|gpu|{GPU}|RUNNING|{DAY}10:02:00|{DAY}10:02:00|Unknown|90|UNLIMITED
"""


@pytest.fixture
def read(tmp_path):
    def _read(text: str, **options):
        path = tmp_path / "sacct.txt"
        path.write_text(text)
        return load(path, "slurm", **options)

    return _read


def rows(*fields: str, header: str = HEADER) -> str:
    return "\n".join([header, *fields]) + "\n"


def test_five_jobs_by_hand(read):
    frame = read(FIVE)
    assert frame["job_id"].tolist() == ["7", "8"]
    assert frame["submit_time"].tolist() == [0.0, 10.0]
    assert frame["duration"].tolist() == [60.0, 120.0]
    assert frame["num_gpus"].tolist() == [1, 2]
    assert frame["gpu_type"].tolist()[1] == "a100"
    assert frame["gpu_type"].isna().tolist() == [True, False]
    assert frame["user"].tolist() == ["ann", "bob"]
    assert frame["vc"].tolist() == ["gpu", "big"]
    assert frame["num_cpus"].tolist() == [8.0, 16.0]
    assert frame["time_limit"].tolist() == [3600.0, 172_800.0]
    assert frame.attrs["dropped"] == {
        "job step": 1,
        "no GPU": 1,
        "never ran": 1,
        "still running": 1,
    }
    assert frame.attrs["notes"] == ["jobs kept by state: COMPLETED 1, CANCELLED 1"]
    assert frame.attrs["unread"] == []


def test_columns_come_in_any_order_and_ids_without_steps_are_numbers(read):
    header = "State|End|Start|ReqTRES|Elapsed|JobIDRaw|Submit|Account|NNodes"
    fields = f"FAILED|{DAY}11:00:01|{DAY}10:00:00|gres/gpu:v100=4|1-01:00:01|12|{DAY}09:00:00|lab|2"
    frame = read(rows(fields, header=header))
    assert frame["job_id"].tolist() == [12]
    assert frame["duration"].tolist() == [90_001.0]
    assert frame["num_gpus"].tolist() == [4]
    assert frame["gpu_type"].tolist() == ["v100"]
    assert frame["vc"].tolist() == ["lab"]
    assert frame.attrs["unread"] == ["NNodes"]
    assert "Elapsed contradicts End - Start in 1 of 1 jobs" in frame.attrs["notes"][1]


def test_without_elapsed_the_run_time_is_end_minus_start(read):
    header = "JobID|AllocTRES|State|Submit|Start|End"
    frame = read(rows(f"1|{GPU}|TIMEOUT|{DAY}10:00:00|{DAY}10:00:05|{DAY}10:01:00", header=header))
    assert frame["duration"].tolist() == [55.0]
    assert frame.attrs["notes"] == ["jobs kept by state: TIMEOUT 1"]


def test_the_line_ends_of_sacct_p_with_a_small_letter(read):
    text = "\n".join(f"{line}|" for line in FIVE.splitlines()) + "\n"
    assert read(text)["duration"].tolist() == [60.0, 120.0]


def test_elapsed_counts_where_clocks_change(read):
    fields = (
        f"1|u|gpu|{GPU}|COMPLETED|2024-03-31T01:30:00|2024-03-31T01:30:00|2024-03-31T03:30:00|"
        "3600|UNLIMITED"
    )
    frame = read(rows(fields))
    assert frame["duration"].tolist() == [3600.0]
    assert np.isnan(frame["time_limit"]).all()
    assert frame.attrs["notes"][-1] == (
        "ElapsedRaw contradicts End - Start in 1 of 1 jobs: run time is ElapsedRaw (1 by one hour, "
        "as where clocks change)"
    )


REQUEUED = rows(
    f"5|u|gpu|{GPU}|REQUEUED|{DAY}10:00:00|{DAY}10:00:00|{DAY}10:10:00|600|UNLIMITED",
    f"5|u|gpu|{GPU}|COMPLETED|{DAY}10:10:00|{DAY}10:20:00|{DAY}10:25:00|300|UNLIMITED",
)


def test_requeued_jobs_are_joined_on_demand(read):
    with pytest.raises(TraceError, match=r"3:JobID: duplicate id .*attempts=join"):
        read(REQUEUED)
    frame = read(REQUEUED, attempts="join")
    assert frame["duration"].tolist() == [900.0]
    assert frame.attrs["notes"] == [
        "2 records joined into 1 job",
        "jobs kept by state: COMPLETED 1",
    ]
    with pytest.raises(ParamError, match="attempts=all: give refuse or join"):
        read(REQUEUED, attempts="all")


#: Attempts of a job, without id and user. FIRST and SECOND are of one configuration.
SPOT = f"spot|cpu=64,gres/gpu:v100=1|PREEMPTED|{DAY}10:00:00|{DAY}10:10:00|{DAY}10:20:00|600|10:00"
FIRST, SECOND = (
    f"gpu|cpu=4,gres/gpu:a100=1|{state}|{DAY}10:30:00|{DAY}{hour}:30:00|{DAY}{hour}:36:40|400|4:00:00"
    for state, hour in (("PREEMPTED", 11), ("COMPLETED", 12))
)
SHORT = f"gpu|cpu=4,gres/gpu:a100=1|COMPLETED|{DAY}10:30:00|{DAY}11:30:00|{DAY}11:40:00|600|4:00:00"
WIDE = f"big|cpu=32,gres/gpu:a100=8|COMPLETED|{DAY}10:30:00|{DAY}13:00:00|{DAY}13:14:10|850|8:00:00"
DIFFERENT_RESOURCES = (
    "1 job with attempts that differ in gpu_type or num_cpus: such a job has the columns of the "
    "attempts that ran longest on its number of GPUs"
)


@pytest.mark.parametrize(
    ("attempts", "columns"),
    [
        ([SPOT, FIRST, SECOND], [1, "a100", 4, "gpu", 14_400.0]),
        ([FIRST, SPOT], [1, "v100", 64, "spot", 600.0]),
        ([SPOT, SHORT], [1, "v100", 64, "spot", 600.0]),
        ([SPOT, FIRST, SECOND, WIDE], [1, "a100", 4, "gpu", 14_400.0]),
        ([SPOT, WIDE], [8, "a100", 32, "big", 28_800.0]),
    ],
    ids=["two_attempts_of_one_configuration", "order", "tie", "fewer_gpus", "more_gpus"],
)
def test_a_joined_job_has_the_columns_of_its_longest_configuration(read, attempts, columns):
    frame = read(
        rows(*(f"9|bob|{fields}" for fields in attempts), f"8|ann|{WIDE}"), attempts="join"
    )
    names = ["num_gpus", "gpu_type", "num_cpus", "vc", "time_limit"]
    assert frame[names].iloc[0].tolist() == columns
    assert frame["job_id"].tolist() == [9, 8]
    assert frame["submit_time"].iloc[0] == 0.0
    assert frame["user"].tolist() == ["bob", "ann"]
    assert DIFFERENT_RESOURCES in frame.attrs["notes"]


def test_attempts_of_equal_resources_in_two_partitions_are_not_noted(read):
    moved = FIRST.replace("gpu|", "spot|", 1)
    waiting = f"gpu||PENDING|{DAY}10:30:00|Unknown|Unknown|0|4:00:00"
    frame = read(rows(f"9|bob|{moved}", f"9|bob|{SECOND}"), attempts="join")
    assert frame["vc"].tolist() == ["spot"]
    assert DIFFERENT_RESOURCES not in frame.attrs["notes"]
    frame = read(rows(*(f"9|bob|{row}" for row in (waiting, FIRST, SECOND))), attempts="join")
    assert DIFFERENT_RESOURCES not in frame.attrs["notes"]


@pytest.mark.parametrize(
    ("elapsed", "duration"),
    [("00:00:00.900", 0.9), ("01:00.900", 60.9), ("1-00:00:00.25", 86400.25)],
)
def test_fractions_of_a_second_count(read, elapsed, duration):
    header = "JobID|AllocTRES|State|Submit|Start|Elapsed"
    fields = (f"{n}|{GPU}|COMPLETED|{DAY}0{n}:00:00|{DAY}0{n}:00:00|{elapsed}" for n in (1, 9))
    frame = read(rows(*fields, header=header))
    assert frame["duration"].tolist() == [duration, pytest.approx(duration, abs=1e-9)]


def test_gpus_of_several_types_have_no_type(read):
    fields = (
        f"1|u|gpu|gres/gpu:a100=1,gres/gpu:v100=2|COMPLETED|{DAY}10:00:00|{DAY}10:00:00|"
        f"{DAY}10:01:00|60|UNLIMITED"
    )
    frame = read(rows(fields))
    assert frame["num_gpus"].tolist() == [3]
    assert "gpu_type" not in frame
    assert frame.attrs["notes"][0] == (
        "1 record with GPUs of several types: their gpu_type is left empty"
    )


def test_a_csv_of_a_spreadsheet(read):
    lines = [
        ",".join(f'"{field}"' if "," in field else field for field in line.split("|"))
        for line in FIVE.splitlines()
    ]
    assert read("\n".join(lines))["num_gpus"].tolist() == [1, 2]


def test_quotes_are_text(read):
    header = f"JobName|{HEADER}"
    fields = (
        f'say "hi|1|u|gpu|{GPU}|COMPLETED|{DAY}10:00:00|{DAY}10:00:00|{DAY}10:01:00|60|UNLIMITED'
    )
    frame = read(rows(fields, header=header))
    assert frame["duration"].tolist() == [60.0]
    assert frame.attrs["unread"] == ["JobName"]


GOOD = ["1", "u", "gpu", GPU, "COMPLETED", f"{DAY}10:00:00", f"{DAY}10:00:00", f"{DAY}10:01:00"]


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (3, "cpu=1,gres/gpu=1.5", "2:AllocTRES: no whole number of GPUs (cpu=1,gres/gpu=1.5)"),
        (5, "1706781600", "2:Submit: not a date (1706781600); looks like seconds since 1970"),
        (8, "-5", "2:ElapsedRaw: negative (-5)"),
        (9, f"{'9' * 400}-00", "2:Timelimit: not a time (9999"),
        (9, f"{'9' * 400}:00:00", "2:Timelimit: not a time (9999"),
        (9, f"{'9' * 5000}:00", "2:Timelimit: not a time (9999"),
        (9, "one day", "2:Timelimit: not a time (one day); a time is [days-]hours:minutes:seconds"),
    ],
)
def test_bad_cells_are_one_line(read, position, value, message):
    fields = [*GOOD, "60", "UNLIMITED"]
    fields[position] = value
    with pytest.raises(TraceError) as caught:
        read(rows("|".join(fields)))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "JobID|Submit|Start|End|AllocTRES\n1|a|b|c|d\n",
            "1:State: missing column (found JobID, Submit, Start, End, AllocTRES); write the file "
            "by sacct -P -o JobID,",
        ),
        ("JobID|Submit|Start|State|AllocTRES\n", "1:ElapsedRaw: missing column"),
        (rows("1.batch|||cpu=8|COMPLETED|||||"), "only job steps; call sacct with -X"),
        (
            "job_id,submit_time\n1,2\n",
            "1:JobID,Submit,Start,State,AllocTRES: missing column",
        ),
        (rows(f"1|u|gpu|cpu=8|COMPLETED|{DAY}10:00:00|{DAY}10:00:00|{DAY}10:01:00|60|"), "no GPU"),
        (rows("1|u|gpu"), "2: 3 fields where 10 are expected"),
    ],
)
def test_unreadable_files_are_one_line(read, text, message):
    with pytest.raises(TraceError) as caught:
        read(text)
    assert message in str(caught.value)


def test_a_limit_of_zero_is_none(read):
    frame = read(FIVE.replace("|60|01:00:00", "|60|00:00:00"))
    assert frame["time_limit"].isna().tolist() == [True, False]


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_a_requeued_job_that_waits_has_not_ended(read, state):
    start, elapsed = ("Unknown", 0) if state == "PENDING" else (f"{DAY}10:20:00", 30)
    text = rows(
        f"5|u|gpu|{GPU}|PREEMPTED|{DAY}10:00:00|{DAY}10:00:00|{DAY}10:01:00|60|UNLIMITED",
        f"6|u|gpu|{GPU}|COMPLETED|{DAY}10:00:00|{DAY}10:00:00|{DAY}10:01:00|60|UNLIMITED",
        f"5|u|gpu|{GPU}|{state}|{DAY}10:01:00|{start}|Unknown|{elapsed}|UNLIMITED",
    )
    frame = read(text, attempts="join")
    assert frame["job_id"].tolist() == [6]
    assert frame.attrs["dropped"] == {"still running": 1}
    assert "jobs kept by state: COMPLETED 1" in frame.attrs["notes"]


def test_components_of_heterogeneous_jobs_are_counted(read):
    times = f"COMPLETED|{DAY}10:00:00|{DAY}10:00:00|{DAY}10:01:00|60|UNLIMITED"
    jobs = (f"{job}|ann|gpu|{GPU}|{times}" for job in ("200+0", "200+1", "201", "202_1"))
    frame = read(rows(*jobs))
    assert frame["job_id"].tolist() == ["200+0", "200+1", "201", "202_1"]
    (note,) = [note for note in frame.attrs["notes"] if "heterogeneous" in note]
    assert note.endswith("read as jobs of their own: 2 (first: 200+0)")
