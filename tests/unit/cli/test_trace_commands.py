from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from repro.cli.app import trace as app
from repro.errors import DataMissingError, ParamError, TraceError
from repro.files.table import Document
from repro.trace.formats import FORMATS
from repro.trace.load import load
from repro.trace.schema import COLUMNS, REQUIRED

CSV = "job_id,num_gpu,submit_time,duration\n0,1,0,60\n1,2,60,30\n2,4,100,90\n"


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(CSV)
    return str(path)


@pytest.fixture(autouse=True)
def no_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("REPRO_TRACE_MIRROR", raising=False)
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / "cache"))


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_list():
    shown = run("list")
    assert "tiresias-60" in shown
    assert "gavel-throughputs" not in shown
    assert "gavel-throughputs" in run("list", "--tables")
    held = json.loads(run("list", "--json"))
    assert {"name", "repository", "commit", "path", "sha256", "licence", "url", "here"} <= set(
        held[0]
    )
    assert not any(item["here"] for item in held)


def test_info(jobs):
    shown = run("info", jobs, "--format", "tiresias", "--cluster", "2x4")
    assert "jobs.csv (format tiresias" in shown
    assert "1: 1 (33.3%), 2: 1 (33.3%), 4: 1 (33.3%)" in shown
    assert "p50 60" in shown
    assert "0.600 on 8 GPUs" in shown


def test_info_json(jobs):
    facts = json.loads(run("info", jobs, "--format", "tiresias", "--cluster", "2x4", "--json"))
    assert facts["jobs"] == 3
    assert facts["offered_load"] == 0.6


def test_info_of_jobs_that_arrive_at_once(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,num_gpu,submit_time,duration\n0,1,0,60\n1,1,0,60\n")
    shown = run("info", str(path), "--format", "tiresias", "--cluster", "1x1")
    assert "undefined, all jobs arrive at once on 1 GPUs" in shown


def test_info_names_the_job_that_never_fits(jobs):
    with pytest.raises(
        TraceError, match=r"jobs\.csv:4:num_gpu: more GPUs than the cluster has \(4\)"
    ):
        run("info", jobs, "--format", "tiresias", "--cluster", "1x2")


def test_info_shows_drops_and_options(tmp_path):
    speeds = tmp_path / "speeds.csv"
    speeds.write_text("job_type,scale_factor,gpu_type,steps_per_second\nA3C,1,p100,8\n")
    path = tmp_path / "jobs.trace"
    path.write_text("A3C\tmain.py\t--n\t0\t480\t0.0\t2\n")
    settings = ["--set", f"throughputs={speeds}", "--set", "reference_gpu=p100"]
    shown = run("info", str(path), "--format", "gavel", *settings)
    assert "1 of 1 durations from one-GPU throughputs" in shown
    assert re.search(r"^not used +command, steps_arg, needs_data_dir$", shown, re.MULTILINE)
    with pytest.raises(ParamError, match="expected K=V"):
        run("info", str(path), "--format", "gavel", "--set", "throughputs")


def test_convert(jobs, tmp_path):
    out = tmp_path / "out.csv"
    shown = run("convert", jobs, "--format", "tiresias", "--out", str(out))
    assert shown == f"3 jobs written to {out} (format repro)\n"
    assert load(out, "repro")["duration"].tolist() == [60.0, 30.0, 90.0]


def test_fetch(mirror, monkeypatch):
    with pytest.raises(ParamError, match="takes names"):
        run("fetch")
    with pytest.raises(ParamError, match="takes names"):
        run("fetch", "pcs-toy", "--all")
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    name, path = run("fetch", "pcs-toy").split()
    assert name == "pcs-toy"
    assert path.endswith("trace_toy.csv")
    assert len(run("fetch", "--all").splitlines()) > 150


def test_fetch_unknown():
    with pytest.raises(DataMissingError, match="did you mean 'pcs-toy'"):
        run("fetch", "pcs-to")


def formats() -> dict[str, dict]:
    return {row["name"]: row for row in json.loads(run("formats", "--json"))}


def test_formats_are_listed_with_columns_and_options():
    rows = formats()
    assert list(rows) == list(FORMATS)
    assert rows["gavel"]["options"] == {
        "throughputs": "gavel-throughputs",
        "reference_gpu": "v100",
    }
    shown = run("formats")
    assert "Columns: timestamp, duration, num_gpus; optional: cluster." in shown
    assert "--set reference_gpu=v100" in shown
    named, _, optional = rows["repro"]["columns"].removeprefix("Columns: ").partition("; optional:")
    assert tuple(named.split(", ")) == REQUIRED
    assert {*named.split(", "), *re.findall(r"\w+", optional)} == set(COLUMNS)


@pytest.mark.parametrize("name", list(FORMATS))
def test_a_format_names_the_columns_it_asks_for(name):
    """Those that it says are missing from a file without any."""
    text = b'[{"x": 1}]' if name == "philly-json" else b"x,y\n1,2\n"
    with pytest.raises(TraceError) as caught:
        FORMATS[name](Document("f", text))
    shown = formats()[name]["columns"]
    if name == "gavel":
        assert "12 fields" not in str(caught.value) and shown.startswith("Columns: job_type,")
        return
    missing = re.search(r":1:([\w,]+): missing", str(caught.value))
    assert missing, caught.value
    required = shown.removeprefix("Columns: ").partition(";")[0].rstrip(".")
    assert set(missing[1].split(",")) == set(required.split(", "))
