from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from repro.base.errors import DataMissingError, ParamError, TraceError
from repro.cli.app import trace as app
from repro.files import public
from repro.files.table import Document
from repro.trace.formats import FORMATS
from repro.trace.load import load, write
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


def test_info_counts_the_jobs_that_never_fit(jobs):
    shown = run("info", jobs, "--format", "tiresias", "--cluster", "1x2")
    assert re.search(r"^never fit +1 job with more than 2 GPUs$", shown, re.MULTILINE)
    facts = json.loads(
        run("info", jobs, "--format", "tiresias", "--cluster", "2xv100,3xk80", "--json")
    )
    assert (facts["never_fit"], facts["wider_than_any_type"]) == (0, 1)


TYPED = "job_id,submit_time,duration,num_gpus,gpu_type\n"


def test_info_shows_the_load_of_each_gpu_type(tmp_path):
    path = tmp_path / "jobs.csv"
    rows = [f"{n},{10 * n},100,2,A10" for n in range(10)]
    rows += ["10,100,10,1,H800", "11,110,10,9,A10|H800", "12,120,10,1,", "13,120,10,1,T4"]
    path.write_text(TYPED + "\n".join(rows) + "\n")
    words = ["info", str(path), "--format", "repro", "--cluster", "1x4:A10,10x8:H800"]
    loads = json.loads(run(*words, "--json"))["load_by_type"]
    assert loads["A10"]["offered_load"] == 2000 / 120 / 4
    assert loads["A10"]["never_fit"] == 0
    assert loads["A10|H800"]["gpus"] == 84
    assert loads["any type"]["jobs"] == 1
    assert (loads["T4"]["gpus"], loads["T4"]["never_fit"]) == (0, 1)
    shown = run(*words)
    assert re.search(r"^load on A10 +416\.7% on 4 GPUs, 10 jobs$", shown, re.MULTILINE)
    assert re.search(r"^load on T4 +- on 0 GPUs, 1 jobs, 1 of them never fit$", shown, re.MULTILINE)


def test_info_shows_the_load_over_time(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,submit_time,duration,num_gpus\n0,500,10,1\n1,600,30,2\n")
    facts = json.loads(run("info", str(path), "--format", "repro", "--cluster", "1x2", "--json"))
    assert facts["load_over_time"] == [0.5, *[0.0] * 8, 3.0]
    assert facts["first_submit_s"] == 500
    shown = run("info", str(path), "--format", "repro", "--cluster", "1x2")
    assert "3.000 (tenths of the span; peak 3.000)" in shown
    assert re.search(r"^first submission +500 s$", shown, re.MULTILINE)
    assert "mean load over time (GPUs)" in run("info", str(path), "--format", "repro")


def test_info_shows_short_durations(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,submit_time,duration,num_gpus\n0,0,0.1,1\n")
    shown = run("info", str(path), "--format", "repro")
    assert "mean 0.1, min 0.1" in shown and "0.1 GPU-s" in shown


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


LOG = """\
job_id,gpu_num,queue,submit_time,start_time,end_time,duration
1,1,0,2020-06-09,2020-06-09,2020-06-10,5
2,1,0,2020-06-09,,,0
3,0.5,0,2020-06-09,2020-06-09,2020-06-10,86400
"""


def test_convert_passes_on_what_was_noted(tmp_path):
    path = tmp_path / "log.csv"
    out = tmp_path / "out.csv"
    path.write_text(LOG)
    words = ["convert", str(path), "--format", "helios", "--out", str(out)]
    with pytest.raises(TraceError, match="--drop-bad-rows"):
        run(*words)
    result = CliRunner().invoke(app, [*words, "--drop-bad-rows"], catch_exceptions=False)
    assert result.stdout == f"1 jobs written to {out} (format repro)\n"
    assert result.stderr.splitlines() == [
        "repro: not read by the format: columns of the file queue",
        "repro: left out: rows of the trace (never ran: 1, gpu_num: not a whole number: 1)",
        "repro: note: duration contradicts end - start in 1 of 1 rows: run time is end - start",
    ]
    result = CliRunner().invoke(app, [*words, "--drop-bad-rows", "--json"], catch_exceptions=False)
    said = json.loads(result.stdout)
    assert said["dropped"] == {"never ran": 1, "gpu_num: not a whole number": 1}
    assert (said["jobs"], said["unread"], len(said["notes"])) == (1, ["queue"], 1)
    shown = run("info", str(path), "--format", "helios", "--drop-bad-rows")
    assert re.search(r"^dropped, never ran +1$", shown, re.MULTILINE)


def test_convert_keeps_the_order_of_equal_submissions(tmp_path):
    path = tmp_path / "jobs.csv"
    out = tmp_path / "out.csv"
    rows = "".join(f"{name},{7 - n % 2},60,1\n" for n, name in enumerate("hgfedcba"))
    path.write_text(f"job_id,submit_time,duration,num_gpus\n{rows}")
    run("convert", str(path), "--format", "repro", "--out", str(out))
    assert "".join(load(out, "repro")["job_id"]) == "gecahfdb"


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


def test_fetch_optional_goes_on_without_what_it_cannot_fetch(tmp_path, monkeypatch):
    broken = public.entry("pcs-toy")
    copy = tmp_path / "mirror" / broken.relative_path
    copy.parent.mkdir(parents=True)
    copy.write_text("another file")
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(tmp_path / "mirror"))
    with pytest.raises(DataMissingError, match="repair the mirror"):
        run("fetch", "pcs-toy")
    fault, count = run("fetch", "pcs-toy", "--optional").splitlines()
    assert "repair the mirror" in fault
    assert count == "repro: 1 public file is missing; figures use stand-ins for it"
    with pytest.raises(DataMissingError, match="did you mean 'pcs-toy'"):
        run("fetch", "pcs-to", "--optional")


def test_a_trace_is_not_written_over_itself(tmp_path, monkeypatch):
    path = tmp_path / "base.csv"
    path.write_text("job_id,submit_time,duration,num_gpus\n0,0,1,1\n")
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    before = path.read_bytes()
    monkeypatch.chdir(tmp_path)
    for out in ("base.csv", "./base.csv", "link.csv", str(path)):
        with pytest.raises(ParamError, match="is the trace itself; name another file"):
            CliRunner().invoke(app, ["convert", "base.csv", "--out", out], catch_exceptions=False)
    assert path.read_bytes() == before and link.is_symlink()


def test_a_link_to_no_file_yet_stays_and_the_file_is_written(jobs, tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to("new.csv")
    run("convert", jobs, "--format", "tiresias", "--out", str(link))
    assert link.is_symlink() and load(tmp_path / "new.csv")["job_id"].tolist() == [0, 1, 2]


def test_types_that_differ_in_case_are_told(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(f"{TYPED}0,0,100,2,V100|T4\n1,5,10,1,k80\n")
    words = ["info", str(path), "--cluster", "4xv100,4xk80"]
    told = (
        "GPU types differ in upper and lower case alone: V100 of the trace and v100 of the cluster"
    )
    assert told in run(*words)
    assert json.loads(run(*words, "--json"))["notes"] == [f"{told}; write them alike"]


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


def test_an_option_without_a_default_is_listed_as_required(monkeypatch):
    def read(document, scale, unit="h", **options):
        """Read hours."""

    monkeypatch.setitem(FORMATS._items, "hours", read)
    assert formats()["hours"]["options"] == {"scale": None, "unit": "h"}
    shown = run("formats")
    assert "--set scale=VALUE (required)" in shown and "--set unit=h" in shown


@pytest.mark.parametrize("name", list(FORMATS))
def test_a_format_names_the_columns_it_asks_for(name):
    """Those that it says are missing from a file without any."""
    texts = {"philly-json": b'[{"x": 1}]', "batsim": b'{"x": 1}'}
    text = texts.get(name, b"x,y\n1,2\n")
    with pytest.raises(TraceError) as caught:
        FORMATS[name](Document("f", text))
    shown = formats()[name]["columns"]
    if name == "gavel":
        assert "12 fields" not in str(caught.value) and shown.startswith("Columns: job_type,")
        return
    if name == "swf":
        assert "1 fields where 18 are expected" in str(caught.value)
        assert shown.startswith("Columns: job, submit, run_time, processors;")
        return
    missing = re.search(r":1:([\w,]+): missing", str(caught.value))
    assert missing, caught.value
    required = shown.removeprefix("Columns: ").partition(";")[0].rstrip(".")
    assert set(missing[1].split(",")) == set(required.split(", "))


def test_convert_writes_swf(jobs, tmp_path):
    for words in (
        ["--out", str(tmp_path / "a.swf")],
        ["--to", "swf", "--out", str(tmp_path / "b")],
    ):
        assert "3 jobs written to" in run("convert", jobs, *words)
        frame = load(words[-1], "swf")
        assert frame["duration"].tolist() == [60.0, 30.0, 90.0]
        assert frame["num_gpus"].tolist() == [1, 2, 4]
    out = str(tmp_path / "c.swf")
    assert "(format repro)" in run("convert", jobs, "--to", "repro", "--out", out)
    assert load(out)["num_gpus"].tolist() == [1, 2, 4]
    with pytest.raises(ParamError, match="--to xml: give one of repro, swf, batsim"):
        run("convert", jobs, "--to", "xml", "--out", out)


def test_convert_writes_batsim(jobs, tmp_path):
    for words in (
        ["--out", str(tmp_path / "a.json")],
        ["--to", "batsim", "--out", str(tmp_path / "b")],
    ):
        assert "(format batsim)" in run("convert", jobs, *words)
        frame = load(words[-1], "batsim")
        assert frame["job_id"].tolist() == load(jobs)["job_id"].tolist()
        assert frame["duration"].tolist() == [60.0, 30.0, 90.0]
        assert frame["num_gpus"].tolist() == [1, 2, 4]


@pytest.mark.parametrize("words", [["convert"], ["convert", "--to", "swf"], ["dress"]])
def test_a_trace_is_not_written_under_a_binary_name(jobs, tmp_path, words):
    command, *options = words
    out = tmp_path / "x.parquet"
    with pytest.raises(
        ParamError, match=r"x\.parquet: the file will be text \(CSV.*, such as \.csv"
    ):
        run(command, jobs, *options, "--out", str(out))
    with pytest.raises(ParamError, match=r"text \(CSV, SWF or Batsim\), not \.parquet"):
        write(load(jobs), out)
    assert not out.exists()


def test_columns_and_unit_of_a_file(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("name,arrival,runtime,gpus\na,0,2,1\nb,1,0.5,2\n")
    columns = "job_id=name,submit_time=arrival,duration=runtime,num_gpus=gpus"
    out = tmp_path / "jobs.csv"
    words = ["--map", columns, "--unit", "min"]
    run("convert", str(path), *words, "--out", str(out))
    assert load(out)["submit_time"].tolist() == [0.0, 60.0]
    facts = json.loads(run("info", str(path), *words, "--json"))
    assert facts["gpu_seconds"] == 180.0
    assert facts["format"] == "repro"
    with pytest.raises(ParamError, match="--map: has no value"):
        run("info", str(path), "--map", "")


def test_info_says_which_format_it_chose(jobs):
    assert "notes" in run("info", jobs)
    facts = json.loads(run("info", jobs, "--json"))
    assert facts["format"] == "tiresias"
    assert facts["notes"] == ["read in format tiresias, by the contents of the file"]
