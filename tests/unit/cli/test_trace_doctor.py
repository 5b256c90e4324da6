"""``repro trace doctor`` on files: text, JSON, exit codes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from repro.cli import main
from repro.cli.app import trace as app

HEAD = "job_id,submit_time,duration,num_gpus\n"
ROWS = "".join(f"{number},{10 * number},{15 + number % 3},1\n" for number in range(30))


@pytest.fixture(autouse=True)
def no_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("REPRO_TRACE_MIRROR", raising=False)
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(HEAD + ROWS)
    return path


def doctor(path, *words, policies="srtf", cluster="1x1"):
    options = ["--cluster", cluster, "--policies", policies, *words]
    return CliRunner().invoke(app, ["doctor", str(path), *options], catch_exceptions=False)


def test_text(jobs):
    done = doctor(jobs)
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert lines[0] == "trace          jobs.csv (format repro)"
    assert lines[1] == "jobs           30 in 4.8 min"
    # 10 jobs of 15, 16 and 17 s in 290 s
    assert lines[3].startswith("load           1.655 on 1 GPUs; highest ")
    assert lines[4] == (
        "queue (FIFO)   a job waits for 95% of the span, and at all times in 9 of its 10 tenths"
    )
    assert any(line.startswith("warning  overload: 30 jobs demand 166%") for line in lines)
    assert lines[-1] == "0 errors, 1 warning, 0 notes"


def test_exit_code_1_on_an_error(jobs):
    jobs.write_text(HEAD + ROWS + "30,300,10,2\n")
    done = doctor(jobs)
    assert done.exit_code == 1
    assert "error    never-fit: 1 job demands more GPUs than the cluster has (1)" in done.output
    assert "(job 30)" in done.output


def test_json(jobs):
    done = doctor(jobs, "--json", policies="srtf, muri-s", cluster="2x4")
    assert done.exit_code == 1
    whole = json.loads(done.output)
    (refused,) = [item for item in whole["findings"] if item["code"] == "refused"]
    assert refused.keys() == {"level", "code", "what", "count", "jobs", "advice"}
    assert refused["count"] == 1
    assert set(whole["policies"]) == {"srtf", "muri-s"}
    assert whole["queue"]["jobs"] == 30


def test_bad_rows_are_left_out_and_reported(jobs):
    jobs.write_text(HEAD + ROWS + "0,300,10,1\n")
    done = doctor(jobs, cluster="1x4")
    assert done.exit_code == 1
    assert "error    bad-rows: 1 row left out: job_id: duplicate id; first: " in done.output
    dropped = doctor(jobs, "--drop-bad-rows", cluster="1x4")
    assert dropped.exit_code == 0
    assert "warning  bad-rows: 1 row left out" in dropped.output


def test_columns_and_unit(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("id,arrival,runtime,gpus\na,0,0.5,1\nb,1,0.75,1\n")
    names = "job_id=id,submit_time=arrival,duration=runtime,num_gpus=gpus"
    as_seconds = doctor(path, "--map", names)
    assert "unit-too-large: half of the durations are below 1 s" in as_seconds.output
    as_hours = doctor(path, "--map", names, "--unit", "h")
    assert "unit-too-large" not in as_hours.output
    assert "jobs           2 in 1.0 h" in as_hours.output


def test_format_and_its_options(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "job_id,gpu_num,submit_time,start_time,end_time\n"
        "1,1,2024-01-01 00:00:00,2024-01-01 00:00:00,2024-01-01 01:00:00\n"
        "1,1,2024-01-01 00:00:00,2024-01-01 01:10:00,2024-01-01 02:10:00\n"
    )
    assert "bad-rows" in doctor(path, "--format", "helios").output
    joined = doctor(path, "--format", "helios", "--set", "attempts=join")
    assert joined.exit_code == 0
    assert "2 records joined into 1 job" in joined.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policies", ","], "--policies: names no policy"),
        (["--policies", "nosuch"], "nosuch"),
        (["--set", "x"], "--set x: expected K=V"),
        (["--throughputs", "gavel-throughputs"], "names no GPU types"),
    ],
)
def test_bad_options(jobs, capsys, words, message):
    assert main(["trace", "doctor", str(jobs), "--cluster", "1x1", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_file(tmp_path, capsys):
    assert main(["trace", "doctor", str(tmp_path / "no.csv"), "--cluster", "1x1"]) == 2
    assert "no such file" in capsys.readouterr().err
