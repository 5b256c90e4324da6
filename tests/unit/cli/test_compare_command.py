"""`repro compare`: table, files, refusals, a student's file, errors in one line."""

import json

import pandas as pd
import pytest

from repro.cli import main
from repro.comparison.compare import compare
from repro.comparison.result import FILES
from repro.model.policy import policies

HEAD = "job_id,submit_time,duration,num_gpus\n"
JOBS = HEAD + "0,0,100,1\n1,1,10,1\n2,7199,200,1\n3,7200,20,1\n"


@pytest.fixture
def compared(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS)

    def call(*words, names="srtf,yarn-cs", code=0, trace=path, cluster="1x1"):
        words = ["--trace", trace, "--cluster", cluster, "--policies", names, *words]
        words += [] if "-j" in words else ["-j", "1"]
        assert main(["compare", *map(str, words)]) == code
        return capsys.readouterr()

    return call


def test_table_and_files(compared, tmp_path):
    out = tmp_path / "result"
    shown = compared("--windows", "2x1h", "--loads", "0.01,0.02", "--out", out)
    lines = shown.out.splitlines()
    assert lines[0].split()[:2] == ["load", "policy"] and "against srtf (s)" in lines[0]
    assert [line.split()[:2] for line in lines[1:5]] == [
        ["0.01", "srtf"],
        ["0.01", "yarn-cs"],
        ["0.02", "srtf"],
        ["0.02", "yarn-cs"],
    ]
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    assert len(pd.read_csv(out / "comparison.csv")) == 8
    content = json.loads((out / "result.json").read_text())
    assert content["kind"] == "comparison" and content["loads"] == [0.01, 0.02]
    summary = pd.read_csv(out / "summary.csv")
    assert len(summary) == len(content["summary"])
    report = (out / "report.md").read_text()
    assert "| 0.01 | srtf |" in report and "- rules: paper, all policies" in report
    assert all((out / name).read_text().startswith("<?xml") for name in FILES if "svg" in name)
    assert "repro: note: rules: paper, all policies" in shown.err


def test_a_second_run_reads_the_cache_and_writes_the_same(compared, tmp_path):
    for folder in ("a", "b"):
        compared("--windows", "2x1h", "--out", tmp_path / folder)
    for name in FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_json_is_one_object(compared):
    content = json.loads(compared("--json").out)
    assert content["reference"] == "srtf" and content["overhead"] == "none"


UNUSED = """job_id,submit_time,duration,num_gpus,user,foo,gpu_share,predicted_duration
0,0,10,1,a,x,0.5,10
1,5,10,1,b,y,1,9
2,9,-1,1,b,y,1,8
"""


def test_what_no_run_used_is_in_notes_and_files(compared, tmp_path):
    path = tmp_path / "unused.csv"
    path.write_text(UNUSED)
    words = ("--drop-bad-rows", "--out", tmp_path / "result")
    # srtf reads predicted durations, yarn-cs does not
    shown = compared(*words, trace=path)
    lines = [
        "not used by any run: trace columns gpu_share, user (every job holds whole GPUs)",
        "not read by the format: columns of the file foo",
        "left out: rows of the trace (duration: not positive: 1)",
    ]
    report = (tmp_path / "result" / "report.md").read_text()
    notes = json.loads((tmp_path / "result" / "result.json").read_text())["notes"]
    for line in lines:
        assert f"repro: note: {line}\n" in shown.err
        assert f"- {line}\n" in report
        assert line in notes
    alone = compared("--drop-bad-rows", trace=path, names="yarn-cs")
    assert "any run: trace columns predicted_duration, gpu_share, user" in alone.err


def test_refused_policies_are_named_and_none_is_an_error(compared):
    shown = compared(names="srtf,drf")
    assert "repro: drf cannot run: " in shown.err
    nothing = compared(names="drf", code=2)
    assert nothing.out == "" and "no policy can run on this input:" in nothing.err
    assert "  drf: " in nothing.err


def test_a_generator_takes_options_and_seeds(compared):
    words = ("--seeds", "2", "--set", "jobs=10")
    shown = compared(*words, trace="testbed", cluster="4x8")
    assert "samples: 2 seeds, 10 jobs each" in shown.err
    refused = compared("--format", "repro", trace="testbed", code=2)
    assert "'testbed' is a generator" in refused.err


def test_a_folder_hides_no_generator(compared, tmp_path, monkeypatch):
    (tmp_path / "testbed").mkdir()
    monkeypatch.chdir(tmp_path)
    shown = compared("--set", "jobs=6", trace="testbed", cluster="4x8")
    assert "srtf" in shown.out


def test_columns_and_unit_of_the_file(compared, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("job_id,arrival,runtime,num_gpus\n0,0,0.5,1\n1,0.25,0.1,1\n")
    words = ("--map", "submit_time=arrival,duration=runtime", "--unit", "h", "--json")
    summary = json.loads(compared(*words, trace=path).out)["summary"]
    means = {row["policy"]: row["mean"] for row in summary if row["metric"] == "avg_jct"}
    # job 1 preempts job 0 at 0.25 h under srtf, and waits until 0.5 h in order of arrival
    assert means["srtf"] == pytest.approx(3600 * (0.6 + 0.1) / 2)
    assert means["yarn-cs"] == pytest.approx(3600 * (0.5 + 0.35) / 2)
    options = {"map": "submit_time=arrival,duration=runtime", "unit": "h"}
    rows = compare(path, "1x1", "srtf", options=options, workers=1).frame
    assert rows["avg_jct"].tolist() == pytest.approx([means["srtf"]])
    refused = compared("--unit", "h", trace="testbed", code=2)
    assert "--unit: 'testbed' is a generator, not a file; leave it out" in refused.err
    refused = compared("--map", "", trace=path, code=2)
    assert "--map: has no value" in refused.err
    refused = compared("--map", "submit_time=start", trace=path, code=2)
    assert "log.csv:1:start: no such column" in refused.err and refused.err.count("\n") == 1


@pytest.fixture
def unregistered():
    """The policy of a student's file, known during one test."""
    yield "last-first"
    policies._items.pop("last-first", None)


@pytest.fixture
def mine(tmp_path, unregistered):
    """A student's file."""
    path = tmp_path / "mine.py"
    path.write_text(
        "import repro\n\n"
        f'@repro.register("{unregistered}")\n'
        "def last_first(view, job):\n"
        "    return -view.submit(job)\n"
    )
    return path


def test_a_file_of_policies_joins(compared, mine, unregistered):
    label = "{policy: tiresias-l, settings: {thresholds: [50]}, label: low limit}"
    shown = compared("--extra", mine, "--extra", label)
    assert unregistered in shown.out and "low limit" in shown.out


def test_policies_may_name_the_policy_of_a_file_which_counts_once(compared, mine, unregistered):
    words = ("--extra", mine, "--extra", mine, "--json")
    content = json.loads(compared(*words, names=f"{unregistered},srtf").out)
    labels = [row["policy"] for row in content["summary"] if row["metric"] == "avg_jct"]
    assert labels == [unregistered, "srtf"] and content["reference"] == unregistered
    # an entry with settings may come before the file
    entry = f"{{policy: {unregistered}, label: again}}"
    shown = compared("--extra", entry, "--extra", mine)
    assert [line.split()[0] for line in shown.out.splitlines()[1:]] == [
        "srtf",
        "yarn-cs",
        unregistered,
        "again",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("x = 1\n", "registers no policy"), ("1 / 0\n", "ZeroDivisionError"), ("(\n", "SyntaxError")],
)
def test_a_file_that_fails_is_one_line(compared, tmp_path, text, reason):
    mine = tmp_path / "mine.py"
    mine.write_text(text)
    shown = compared("--extra", mine, code=2)
    assert reason in shown.err and shown.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--loads", "a"), "--loads a: give numbers"),
        (("--seeds", "0"), "--seeds 0: give a whole number of 1 or more"),
        (("--predict", "-1"), "--predict -1"),
        (("--windows", "7d"), "20x7d"),
        (("--windows", "2x1h", "--seeds", "2"), "give one of them"),
        (("--reference", "sf"), "none of the policies is 'sf'"),
        (("-j", "0"), "-j 0: give a number of processes"),
        (("--overhead", "free"), "overhead 'free'"),
        (("--placement", ""), "--placement: is empty"),
        (("--throughputs", "gavel-throughputs"), "names no GPU types"),
        (("--extra", "srtf"), "two policies are named"),
        (("--extra", "srtff"), "unknown policy 'srtff'; did you mean 'srtf' or 'srsf'?; --extra F"),
        (("--extra", "nofile.py"), "nofile.py: cannot be read (it does not exist)"),
        (("--dress", "nobody"), "nobody"),
    ],
)
def test_bad_input_is_one_line(compared, words, reason):
    shown = compared(*words, code=2)
    assert reason in shown.err and shown.err.count("\n") == 1 and shown.out == ""


def test_an_output_that_is_a_file_is_refused_before_the_runs(compared, tmp_path):
    assert "is a file; give a folder" in compared("--out", tmp_path / "jobs.csv", code=2).err


def test_a_prediction_error_is_in_the_notes_and_in_the_file(compared, tmp_path):
    out = tmp_path / "result"
    shown = compared("--prediction-error", "0.5", "--out", out)
    words = "knowledge: durations predicted with a log-normal error of 0.5: srtf; none: yarn-cs"
    assert f"repro: note: {words}" in shown.err
    content = json.loads((out / "result.json").read_text())
    assert content["prediction_error"] == 0.5
    assert f"- {words}" in (out / "report.md").read_text()
    refused = compared("--prediction-error=-1", code=2)
    assert refused.err.startswith("repro: prediction error is -1.0; give the standard deviation")
    assert refused.err.count("\n") == 1


def test_predictions_of_the_trace_are_not_replaced(compared, tmp_path):
    path = tmp_path / "predicted.csv"
    path.write_text(
        "job_id,submit_time,duration,num_gpus,predicted_duration\n0,0,100,1,5\n1,0,10,1,9\n"
    )
    shown = compared("--json", trace=path)
    notes = json.loads(shown.out)["notes"]
    assert "knowledge: durations as predicted by the trace: srtf; none: yarn-cs" in notes
    refused = compared("--prediction-error", "0.5", trace=path, code=2)
    assert "predicted.csv: has predicted_duration already" in refused.err
    assert refused.err.count("\n") == 1
