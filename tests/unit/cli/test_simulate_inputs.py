"""``repro simulate``: what the loader noted, stand-ins, rows left out, baselines, GPU types."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import repro
from repro.cli.app import main
from repro.files import public
from repro.model.policy import policies

HEAD = "job_id,submit_time,duration,num_gpus\n"


@pytest.fixture
def run_cli(capsys):
    def run(*words):
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        shown = json.loads(said.out) if code == 0 and "--json" in words else None
        return SimpleNamespace(code=code, out=said.out, err=said.err, json=shown)

    return run


@pytest.fixture
def simulated(tmp_path, run_cli):
    def run(text, *words, form="repro", cluster="1x4", policy="srtf"):
        path = tmp_path / "jobs.csv"
        path.write_text(text)
        given = ["--trace", path, "--format", form, "--cluster", cluster, "--policy", policy]
        return run_cli("simulate", *given, *words)

    return run


def test_a_file_registers_the_policy(simulated, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from dataclasses import dataclass\n\nimport repro\n\n\n"
        '@repro.register("last-first")\n'
        "@dataclass(frozen=True)\n"
        "class LastFirst(repro.Order):\n"
        "    sign: int = -1\n\n"
        "    def key(self, view, job):\n"
        "        return self.sign * view.submit(job)\n"
    )
    text = HEAD + "0,0,100,4\n1,10,100,4\n"
    try:
        words = ("--extra", mine, "--json")
        # job 1 preempts job 0 at 10 s
        assert simulated(text, *words, policy="last-first").json["avg_jct"] == 150
        # jobs run in order of arrival
        first = simulated(text, *words, "--set", "sign=1", policy="last-first")
        assert first.json["avg_jct"] == 145
        unknown = simulated(text, *words, policy="last-frist")
        assert unknown.code == 2 and "did you mean 'last-first'" in unknown.err
    finally:
        policies._items.pop("last-first", None)


def test_a_file_imports_its_neighbour(simulated, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "signs_of_mine.py").write_text("SIGN = -1\n")
    (folder / "mine.py").write_text(
        "import repro\nfrom signs_of_mine import SIGN\n\n"
        '@repro.register("last-first-imported")\n'
        "def last_first(view, job):\n"
        "    return SIGN * view.submit(job)\n"
    )
    try:
        text = HEAD + "0,0,100,4\n1,10,100,4\n"
        words = ("--extra", folder / "mine.py", "--json")
        assert simulated(text, *words, policy="last-first-imported").json["avg_jct"] == 150
        # a file of the folder replaces no module of another place
        assert sys.path[-1] == str(folder)
    finally:
        policies._items.pop("last-first-imported", None)


@pytest.mark.parametrize(
    ("name", "source", "reason"),
    [
        ("mine.py", None, "mine.py: cannot be read (it does not exist)"),
        ("mine.py", "x = 1\n", "mine.py: registers no policy; see @repro.register"),
        ("mine.py", "1 / 0\n", "mine.py:1: ZeroDivisionError"),
        ("mine.py", "import os\n\nx = (\n", "mine.py:3: SyntaxError: '(' was never closed\n"),
        ("mine.py", "raise SystemExit(3)\n", "mine.py:1: SystemExit: 3"),
        (
            "mine.py",
            "import pathlib\npathlib.Path('broken_one.py').write_text('x = (')\nimport broken_one",
            "(broken_one.py, line 1)",
        ),
        ("srtf", None, "--extra srtf: give a file FILE.py that registers policies"),
    ],
)
def test_a_file_without_policies_is_one_line(
    simulated, tmp_path, monkeypatch, name, source, reason
):
    monkeypatch.chdir(tmp_path)
    if source is not None:
        (tmp_path / name).write_text(source)
    refused = simulated(HEAD + "0,0,10,1\n", "--extra", name)
    assert refused.code == 2 and refused.out == ""
    assert reason in refused.err and refused.err.count("\n") == 1


def test_notes_of_the_loader_are_passed_on(simulated):
    head = "job_id,gpu_num,submit_time,start_time,end_time,duration\n"
    rows = (
        "1,1,2020-01-01 00:00:00,2020-01-01 00:00:10,2020-01-01 00:01:10,6000\n"
        "2,1,2020-01-01 00:00:00,,,\n"
    )
    done = simulated(head + rows, "--json", form="helios")
    assert done.code == 0
    assert "contradicts end - start in 1 of 1 rows" in " ".join(done.json["notes"])
    assert "contradicts end - start" in done.err
    assert sum(done.json["ignored"]["rows"].values()) == 1
    assert done.json["avg_jct"] == 60.0


def test_bad_rows_are_left_out_and_counted_on_request(simulated):
    text = HEAD + "1,0,10,1\n2,0,-3,1\n3,0,20,0.5\n"
    done = simulated(text)
    assert done.code == 2 and "--drop-bad-rows" in done.err
    done = simulated(text, "--drop-bad-rows", "--json")
    assert done.code == 0
    assert done.json["n_jobs"] == 1
    assert sum(done.json["ignored"]["rows"].values()) == 2


def test_a_policy_that_is_its_baseline_says_so_once(simulated):
    done = simulated(HEAD + "1,0,10,1\n2,0,30,4\n", "--json", policy="pcs")
    assert done.code == 0
    assert done.err.count("makes the decisions of 'fifo-elastic' in this run") == 1
    assert "repro front" in done.err and "--set c2=" in done.err
    assert any("fifo-elastic" in note for note in done.json["notes"])


def test_a_clock_in_unix_seconds_is_said_and_changes_nothing(simulated):
    late = HEAD + "1,1600000000,100,1\n2,1600000010,100,1\n"
    early = HEAD + "1,0,100,1\n2,10,100,1\n"
    first, second = (
        simulated(text, "--json", cluster="1xv100", policy="gavel-las") for text in (late, early)
    )
    assert "first submission, 1,600,000,000 s (18,518.5 days)" in first.err
    for key in ("avg_jct", "makespan", "avg_queueing"):
        assert first.json[key] == second.json[key]


def test_equally_fast_types_are_said_for_policies_of_shares_too(simulated):
    done = simulated(HEAD + "1,0,100,1\n", cluster="1xv100,1xk80", policy="gavel-las")
    assert "not used: GPU types of the cluster (all GPUs are equally fast)" in done.err


@pytest.fixture
def nothing_public(tmp_path, monkeypatch):
    """Take away mirror, cache and network."""
    monkeypatch.delenv("REPRO_TRACE_MIRROR", raising=False)
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / "cache"))

    def refuse(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr(public, "_retrieve", refuse)


def test_rules_of_a_simulator_on_a_stand_in_need_leave(simulated, nothing_public):
    text = "ResNet-18 (batch size 16)\tx\tx\tx\t0\t1000\t1\t1\t-1\t0\n"
    words = ("--rules", "gavel", "--json")
    given = {"form": "gavel", "cluster": "1xv100,1xk80", "policy": "gavel-las"}
    done = simulated(text, *words, **given)
    assert done.code == 2
    assert "stand-in takes the place of throughputs gavel-throughputs" in done.err
    assert "--stand-in" in done.err
    done = simulated(text, "--stand-in", *words, **given)
    assert done.code == 0
    assert done.json["stand_in"] == ["throughputs gavel-throughputs"]
    plain = simulated(text, "--json", **given)
    assert plain.json["stand_in"] == ["throughputs gavel-throughputs"]


def test_what_is_public_is_no_stand_in(simulated):
    done = simulated(HEAD + "1,0,100,1\n", "--json")
    assert done.json["stand_in"] == []


def test_options_of_the_format_are_set_too(simulated):
    head = "job_id,gpu_num,submit_time,start_time,end_time\n"
    rows = (
        "1,1,2020-01-01 00:00:00,2020-01-01 00:00:00,2020-01-01 00:01:00\n"
        "1,1,2020-01-01 00:00:00,2020-01-01 00:02:00,2020-01-01 00:04:00\n"
    )
    refused = simulated(head + rows, form="helios")
    assert refused.code == 2 and "--set attempts=join" in refused.err
    done = simulated(head + rows, "--set", "attempts=join", "--json", form="helios")
    assert done.code == 0
    assert (done.json["n_jobs"], done.json["avg_jct"]) == (1, 180.0)
    wrong = simulated(head + rows, "--set", "attempts=glue", form="helios")
    assert wrong.code == 2 and "attempts" in wrong.err


def test_a_metric_without_a_value_is_left_out_of_the_table_alone(simulated):
    jobs = HEAD + "1,0,10,1\n2,0,30,4\n"
    shown = simulated(jobs, policy="pcs")
    assert shown.code == 0
    assert "nan" not in shown.out and "pred_err" not in shown.out
    given = simulated(jobs, "--json", policy="pcs").json
    assert given["avg_pred_err"] is None


def test_a_list_of_policies_is_answered_with_the_command_that_compares_them(simulated):
    done = simulated(HEAD + "1,0,10,1\n", policy="srtf,sf")
    assert done.code == 2 and done.err.count("\n") == 1
    assert "repro compare --policies srtf,sf" in done.err


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("--seed", "1", "--seed", "2"), "--seed"),
        (("--policy", "sf"), "--policy"),
        (("--seed=1", "--seed=1", "--seed=1"), "--seed"),
    ],
)
def test_a_second_value_of_an_option_is_refused(simulated, words, option):
    done = simulated(HEAD + "1,0,10,1\n", *words)
    assert done.code == 2 and done.err.count("\n") == 1
    times = 3 if "=" in words[0] else 2
    assert f"{option} is given {times} times; give it once" in done.err


def test_options_that_take_several_values_and_switches_may_be_repeated(simulated):
    words = ("--set", "thresholds=5", "--set", "promote_knob=2", "--json", "--json")
    assert simulated(HEAD + "1,0,10,1\n", *words, policy="tiresias-l").code == 0


@pytest.mark.parametrize("policy", ["tiresias-g", "gittins-2d"])
def test_job_sizes_of_another_trace_are_said(simulated, policy):
    done = simulated(HEAD + "1,0,10,1\n", policy=policy)
    assert done.code == 0
    assert "history of job sizes: tiresias-history-1000, not this trace" in done.err
    own = simulated(HEAD + "1,0,10,1\n", "--set", "history=10,20", policy=policy)
    assert own.code == 0 and "history" not in own.err


# slow-down and placement -------------------------------------------------------------------------


def slowed(tmp_path, capsys, *options):
    path = tmp_path / "spread.csv"
    path.write_text(
        "job_id,submit_time,duration,num_gpus,model\na,0,100,3,vgg16\nb,0,100,3,vgg16\n"
        "c,1,73,2,vgg16\n"
    )
    words = ["simulate", "--trace", str(path), "--cluster", "2x4", "--policy", "srtf", "--json"]
    code = main([*words, *options])
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    ("options", "end"), [(["2"], 147), (["node=2,rack=3"], 147), (["tiresias"], 101), (["1"], 74)]
)
def test_slow_down_of_spread_gangs(tmp_path, capsys, options, end):
    jobs = tmp_path / "out.csv"
    code, _, _ = slowed(tmp_path, capsys, "--slowdown", *options, "--out", str(jobs))
    assert code == 0
    ends = pd.read_csv(jobs)["end_time"].tolist()
    assert ends == pytest.approx([100, 100, end])


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--slowdown", ""], "--slowdown: is empty"),
        (["--slowdown", "x"], "'x' is no number; give a factor such as 1.3"),
        (["--slowdown", "2", "--placement", "count"], "placement 'count' chooses no nodes"),
        (["--slowdown", "2", "--placement-sensitive"], "both slow spread gangs; give one"),
        (["--placement", "liquid:lambda"], "expected NAME:K=V,K=V"),
        (["--placement", "liquid:lambda=3"], "lambda is 3"),
        (["--placement", "liquid:mu=3"], "placement 'liquid' has no setting 'mu'"),
    ],
)
def test_bad_slow_downs_and_placements(tmp_path, capsys, options, line):
    code, out, err = slowed(tmp_path, capsys, *options)
    assert (code, out) == (2, "")
    assert line in err and err.count("\n") == 1


def test_settings_of_a_placement(tmp_path, capsys):
    options = ["--placement", "liquid:lambda=0.3,drop=always", "--slowdown", "2"]
    code, out, _ = slowed(tmp_path, capsys, *options)
    assert code == 0
    code, out, err = slowed(tmp_path, capsys, "--placement", "skew")
    assert "placement 'skew' changes no speed and no start in this run" in err
    assert err.count("\n") <= 2 and json.loads(out)["notes"]


def test_options_of_a_format_that_the_file_tells(tmp_path, run_cli):
    path = tmp_path / "log.txt"
    day = "2024-02-01T10:0"
    path.write_text(
        "JobID|Submit|Start|End|State|AllocTRES\n"
        f"5|{day}0:00|{day}0:00|{day}1:00|REQUEUED|gres/gpu=1\n"
        f"5|{day}1:00|{day}2:00|{day}3:00|COMPLETED|gres/gpu=1\n"
    )
    words = ["simulate", "--trace", path, "--cluster", "1x4", "--policy", "srtf", "--json"]
    refused = run_cli(*words)
    assert refused.code == 2 and "duplicate id (5)" in refused.err
    done = run_cli(*words, "--set", "attempts=join")
    assert done.code == 0
    assert done.json["avg_jct"] == 120.0
    assert "read in format slurm, by the contents of the file" in done.err


def test_a_folder_hides_no_generator(tmp_path, run_cli, monkeypatch):
    (tmp_path / "testbed").mkdir()
    monkeypatch.chdir(tmp_path)
    words = ["--trace", "testbed", "--cluster", "15x4", "--policy", "srtf", "--json"]
    assert run_cli("simulate", *words).json["n_jobs"] == 480


def test_columns_and_unit_of_the_file(tmp_path, run_cli):
    path = tmp_path / "log.csv"
    path.write_text("job_id,arrival,duration,num_gpus\n0,0,0.5,1\n")
    words = ["simulate", "--trace", path, "--cluster", "1x4", "--policy", "srtf", "--json"]
    done = run_cli(*words, "--map", "submit_time=arrival", "--unit", "h")
    assert done.json["avg_jct"] == 1800.0
    words[2] = "philly-like"
    done = run_cli(*words, "--unit", "h")
    assert done.code == 2
    assert "--unit: 'philly-like' is a generator, not a file with columns and rows" in done.err


def test_a_prediction_error_uses_the_seed_and_is_said(simulated):
    # on one GPU the first job takes 10 s and the second 9 s
    text = HEAD + "1,0,10,1\n2,0,9,1\n"
    words = ("--prediction-error", "3", "--json")
    means = {
        simulated(text, *words, "--seed", seed, cluster="1x1").json["avg_jct"] for seed in range(6)
    }
    assert means == {14.0, 14.5}
    done = simulated(text, *words, "--seed", 1, cluster="1x1")
    assert "durations predicted with a log-normal error of 3 (seed 1)" in done.json["notes"]
    assert not done.json["ignored"].get("options")
    blind = simulated(text, *words, cluster="1x1", policy="las-2d")
    assert blind.json["ignored"]["columns"] == ["predicted_duration"]


def test_a_prediction_error_does_not_replace_predictions(simulated):
    text = "job_id,submit_time,duration,num_gpus,predicted_duration\n1,0,10,1,3\n2,0,9,1,4\n"
    assert simulated(text, "--json", cluster="1x1").json["avg_jct"] == 14.5
    done = simulated(text, "--prediction-error", "1", cluster="1x1")
    assert done.code == 2
    assert "jobs.csv: has predicted_duration already; leave --prediction-error" in done.err
    assert done.err.count("\n") == 1
    gap = simulated(text.replace(",4\n", ",\n"), cluster="1x1")
    assert gap.code == 2
    assert "predicted_duration: missing value" in gap.err


@pytest.mark.parametrize("command", ["simulate", "front"])
def test_an_input_is_not_overwritten(tmp_path, run_cli, command):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(HEAD + "0,0,100,1\n1,10,100,1\n")
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text("nodes: [{count: 1, gpus: 4}]\n")
    policy = tmp_path / "mine.py"
    policy.write_text("import repro\n")
    words = [command, "--trace", jobs, "--cluster", nodes, "--policy", "tiresias-l"]
    words += ["--extra", policy]
    if command == "front":
        words += ["--prefer", "jct=avg", "--search", "promote_knob=1:8"]
    inputs = {"the trace": jobs, "the file of nodes": nodes}
    inputs[f"the file {policy} of --extra"] = policy
    for name, path in inputs.items():
        before = path.read_bytes()
        done = run_cli(*words, "--out", path)
        assert (done.code, done.out) == (2, "")
        assert done.err == f"repro: --out {path}: is {name} itself; name another file\n"
        assert path.read_bytes() == before
    done = run_cli(*words, "--out", tmp_path / "out.xlsx")
    assert (done.code, done.out) == (2, "")
    assert "out.xlsx: the file will be text (CSV), not .xlsx; choose another ending" in done.err


@pytest.mark.parametrize("option", ["--profiles", "--throughputs"])
def test_a_file_of_a_measured_folder_is_not_overwritten(tmp_path, run_cli, option):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(HEAD + "0,0,100,1\n")
    folder = tmp_path / "measured"
    shutil.copytree(Path(repro.__file__).parents[1] / "traces" / "measured", folder)
    table = folder / "isolated.csv"
    before = table.read_bytes()
    words = ["simulate", "--trace", jobs, "--cluster", "1x4:h100", "--policy", "srtf"]
    done = run_cli(*words, option, folder, "--out", table)
    assert (done.code, done.out) == (2, "")
    assert f"--out {table}: is a file of the " in done.err
    assert table.read_bytes() == before


def test_a_rounding_error_below_zero_is_printed_as_zero(simulated):
    text = HEAD + "0,0,1,1\n1,993,48.333333333333336,1\n"
    assert simulated(text, "--json").json["avg_queueing"] < 0
    assert "\navg_queueing  0.000 s\n" in simulated(text).out
