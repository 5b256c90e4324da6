"""The command line: exact flags, exit codes, one clear line for each mistake."""

import csv
import importlib
import inspect
import io
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

import repro
from repro.base import paths
from repro.base.errors import ParamError
from repro.batch.papers import papers
from repro.cli import app, entry_points
from repro.figures.saved import to_json

TRACE = """\
job_id,num_gpu,submit_time,duration
1,2,0,10
2,1,1,4.5
3,4,1,25
4,1,4,3
"""
YAML = """\
title: Testbed
paper: tiresias
reference: Fig 10
shows: completion times
inputs: {cluster: 15x4}
claims:
  - {id: gain, kind: number, what: gain, published: 5.5, accept: {rel: 0.1}, source: section 5,
     certainty: paper}
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    for paper, stem in (("tiresias", "fig10_testbed"), ("gavel", "fig10_ftf")):
        for folder, suffix, text in (
            ("params", "yaml", YAML.replace("tiresias", paper)),
            ("notebooks", "ipynb", '{"cells": []}'),
        ):
            (tmp_path / folder / paper).mkdir(parents=True)
            (tmp_path / folder / paper / f"{stem}.{suffix}").write_text(text)
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(TRACE)
    return path


def put(root, figure_id, verdict="reproduced", out="build/figures", deviation=None, error=None):
    folder = root / out / figure_id
    folder.mkdir(parents=True)
    claim = {
        "id": "gain",
        "kind": "number",
        "what": "gain",
        "published": 5.5,
        "ours": 5.4,
        "tolerance": "±10 %",
        "source": "section 5",
        "certainty": "paper",
        "verdict": verdict,
        "stand_in": False,
    }
    if deviation:
        claim["deviation"] = deviation
    paper = figure_id.split("/")[0]
    record = {
        "id": figure_id,
        "paper": paper,
        "title": "Testbed",
        "reference": "Fig 10",
        "shows": "times",
        "profile": "quick",
        "seed": 0,
        "stand_in": None,
        "params": {},
        "data": [],
        "versions": {},
        "verdict": verdict,
        "points": [],
        "claims": [claim],
    }
    (folder / "result.json").write_bytes(to_json(record))
    for suffix in ("svg", "csv"):
        (folder / f"{folder.name}.{suffix}").write_text(suffix)
    if error:
        (folder / "error.json").write_bytes(to_json({"error": error, "traceback": error}))


def run(capsys, *words, code=0):
    assert app.main([str(word) for word in words]) == code
    return capsys.readouterr()


def refused(capsys, *words):
    shown = run(capsys, *words, code=2)
    assert shown.out == ""
    (line,) = shown.err.strip().splitlines()
    assert line.startswith("repro: ")
    return line


def test_list(root, capsys):
    assert run(capsys, "list").out.splitlines() == [
        "gavel/fig10_ftf         Testbed (Fig 10)",
        "tiresias/fig10_testbed  Testbed (Fig 10)",
    ]
    rows = json.loads(run(capsys, "list", "--json").out)
    assert [row["id"] for row in rows] == ["gavel/fig10_ftf", "tiresias/fig10_testbed"]
    assert rows[0]["paper"] == "gavel" and rows[0]["claims"] == 1 and rows[0]["kind"] == "figure"
    assert rows[0]["notebook"] == "notebooks/gavel/fig10_ftf.ipynb"
    assert len(json.loads(run(capsys, "list", "--paper", "gavel", "--json").out)) == 1
    assert "unknown paper 'muri'" in refused(capsys, "list", "--paper", "muri")


def test_list_tells_diagrams(root, capsys):
    path = root / "params/gavel/fig10_ftf.yaml"
    path.write_text(f"kind: diagram\n{path.read_text()}")
    assert "(Fig 10, diagram)" in run(capsys, "list").out.splitlines()[0]
    assert json.loads(run(capsys, "list", "--json").out)[0]["kind"] == "diagram"


def break_gavel(root, how):
    """Return what is said of it."""
    path = root / "params/gavel/fig10_ftf.yaml"
    if how == "orphan":
        (root / "notebooks/gavel/fig10_ftf.ipynb").unlink()
        return "repro: params/gavel/fig10_ftf.yaml has no notebooks/gavel/fig10_ftf.ipynb"
    path.write_text(path.read_text().replace("shows:", "show:"))
    return "repro: params/gavel/fig10_ftf.yaml:4:show: unknown key"


@pytest.mark.parametrize("how", ["orphan", "misspelt"])
def test_a_broken_figure_does_not_hide_the_others(root, capsys, how):
    put(root, "tiresias/fig10_testbed")
    put(root, "gavel/fig10_ftf")
    line = break_gavel(root, how)
    for words, code in ((("list",), 0), (("list", "--json"), 0), (("check",), 1), (("report",), 0)):
        shown = run(capsys, *words, code=code)
        assert "tiresias" in shown.out or words == ("report",)
        if words != ("report",):
            (told,) = shown.err.splitlines()
            assert told.startswith(line)
    assert refused(capsys, "check", "gavel/fig10").startswith(line)
    assert refused(capsys, "list", "--paper", "gavel").startswith(line)
    run(capsys, "check", "tiresias/fig10")


def test_control_characters_are_made_visible(root, capsys):
    put(root, "gavel/fig10_ftf", error="a\x1b]0;pwn\x07b\u202ec")
    assert r"a\x1b]0;pwn\x07b\u202ec" in run(capsys, "check", code=1).out
    line = refused(capsys, "run", "x\x1b]0;pwn\x07y\x9b1m\udcff")
    assert r"x\x1b]0;pwn\x07y\x9b1m\udcff" in line


def test_warnings_are_lines_without_places_and_each_once(root, capsys, monkeypatch):
    def listed(*_, **__):
        for _ in range(2):
            warnings.warn("a damaged thing", UserWarning, stacklevel=1)
            np.array([1e308]) * 10
        return {}, {}

    monkeypatch.setattr("repro.figures.params.loaded", listed)
    assert run(capsys, "list").err.splitlines() == [
        "repro: warning: a damaged thing",
        "repro: warning: overflow encountered in multiply",
    ]


def test_warnings_about_numbers_are_not_said_before_an_error(root, capsys, monkeypatch):
    def listed(*_, **__):
        np.array([1e308]) * 10
        raise ParamError("the speeds are too large")

    monkeypatch.setattr("repro.figures.params.loaded", listed)
    assert refused(capsys, "list") == "repro: the speeds are too large"


def test_an_interrupted_simulation_says_so(jobs, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("repro.simulate", interrupted, raising=False)
    words = ("simulate", "--trace", jobs, "--format", "tiresias", "--cluster", "1x4")
    shown = run(capsys, *words, "--policy", "srtf", code=130)
    assert shown.err.splitlines()[-1] == "repro: interrupted" and shown.out == ""


@pytest.mark.slow
def test_a_broken_policy_file_is_named_and_other_policies_work(jobs, tmp_path):
    """In a copy of the package, as its own files must stay whole."""
    package = tmp_path / "copy/repro"
    here = Path(repro.__file__).parent
    shutil.copytree(here, package, ignore=shutil.ignore_patterns("__pycache__"))
    file = package / "policies/baselines/sickly.py"
    file.write_text("@register('sickly')\nclass Sickly:\n    pass\n")
    line = "repro/policies/baselines/sickly.py:1: NameError: name 'register' is not defined"

    def simulate(policy):
        command = [
            sys.executable,
            "-m",
            "repro.cli",
            "simulate",
            "--trace",
            str(jobs),
            "--format",
            "tiresias",
            "--cluster",
            "1x4",
            "--policy",
            policy,
        ]
        return subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": str(package.parent), "REPRO_HOME": str(here.parent)},
            capture_output=True,
            text=True,
            check=False,
            cwd=package.parent,
        )

    well = simulate("srtf")
    broken = simulate("sickly")
    assert well.returncode == 0 and "avg_jct" in well.stdout
    warning = f"repro: warning: {line}; policy sickly left out"
    assert well.stderr == ""
    assert broken.returncode == 2
    assert broken.stderr.splitlines() == [
        warning,
        f"repro: policy 'sickly' cannot be read: {line}",
    ]


@pytest.mark.parametrize(
    ("verdict", "deviation", "error", "code"),
    [
        ("reproduced", None, None, 0),
        ("partial", None, None, 0),
        ("not comparable", None, None, 0),
        ("missed", None, None, 1),
        ("missed", "another trace", None, 0),
        ("reproduced", None, "ValueError: x", 1),
    ],
)
def test_check_fails_on_an_unexplained_miss_and_on_an_error(
    root, capsys, verdict, deviation, error, code
):
    put(root, "tiresias/fig10_testbed", verdict, deviation=deviation, error=error)
    shown = run(capsys, "check", code=code).out
    assert "tiresias/fig10_testbed" in shown and verdict in shown
    assert ("deviation: another trace" in shown) is bool(deviation)
    found = json.loads(run(capsys, "check", "--json", code=code).out)
    assert found["ok"] is (code == 0) and found["counts"] == {verdict: 1}
    assert found["claims"][0]["figure"] == "tiresias/fig10_testbed"
    assert found["figures"][0]["error"] == error
    assert "1 figure has no result yet" in shown


def test_check_reads_the_committed_results_when_nothing_was_run(root, capsys):
    assert "no results in" in refused(capsys, "check")
    put(root, "tiresias/fig10_testbed", out="figures")
    assert f"1 figure in {root / 'figures'}: 1 of 1 claims reproduced" in run(capsys, "check").out
    put(root, "tiresias/fig10_testbed", "partial")
    build = root / "build/figures"
    # A figure run by hand is told of and changes nothing; a batch leaves its gallery page.
    shown = run(capsys, "check").out
    assert f"1 figure in {root / 'figures'}: 1 of 1 claims reproduced" in shown
    assert f"not judged: results of tiresias/fig10_testbed in {build}; --out {build}" in shown
    assert run(capsys, "report").err.startswith("repro: not judged: results of tiresias/fig10")
    (build / "index.html").write_text("")
    assert f"1 figure in {build}: 0 of 1 claims reproduced, 1 partial" in run(capsys, "check").out
    assert (
        f"not judged: results of tiresias/fig10_testbed in {root / 'figures'}"
        in run(capsys, "check").out
    )
    assert json.loads(run(capsys, "check", "--json").out)["results"] == str(build)
    shown = run(capsys, "check", "--out", root / "figures").out
    assert "1 of 1 claims reproduced" in shown and "not judged" not in shown
    both = ("check", "gavel/fig10", "tiresias/fig10")
    assert "no result of gavel/fig10_ftf" in refused(capsys, *both)
    assert "no results in" in refused(capsys, "check", "--paper", "gavel")
    assert "ambiguous: gavel/fig10_ftf, tiresias/fig10_testbed" in refused(capsys, "check", "fig10")


def test_check_names_figures_without_a_result_next_to_figures_with_results(root, capsys):
    put(root, "tiresias/fig10_testbed")
    folder = root / "build/figures"
    line = f"repro: no results in {folder} of gavel/fig10_ftf; `repro run` makes them"
    for words in (["gavel/fig10"], ["--paper", "gavel"]):
        assert refused(capsys, "check", *words, "--out", folder) == line
    line = f"repro: no results in {root / 'none'}; `repro run` makes them"
    assert refused(capsys, "check", "gavel/fig10", "--out", root / "none") == line


DAMAGED = [
    ("", "result.json: damaged (not JSON)"),
    ('{"id": 3', "result.json: damaged (not JSON)"),
    ("[" * 100_000, "result.json: damaged (not JSON)"),
    ("[]", "result.json: damaged (not an object of names and values)"),
    ("{}", "result.json: damaged (id: Field required)"),
    ({"claims": 3}, "result.json: damaged (claims: Input should be a valid list)"),
    ({"claims": [3]}, "result.json: damaged (claims.0: Input should be a valid dictionary"),
    ({"claims": [{"id": "gain"}]}, "result.json: damaged (claims.0.kind: Field required)"),
    ({"verdict": "fine"}, "result.json: damaged (verdict: Input should be 'reproduced'"),
    ({"profile": ...}, "result.json: damaged (profile: Field required)"),
    ({"reference": None}, "result.json: damaged (reference: Input should be a valid string)"),
    ({"seed": "0"}, "result.json: damaged (seed: Input should be a valid integer)"),
    ({"data": [{"name": 1, "kind": "x"}]}, "result.json: damaged (data.0.name: Input should be"),
    ({"versions": 3}, "result.json: damaged (versions: Input should be a valid dictionary"),
]


@pytest.mark.parametrize(("change", "line"), DAMAGED)
def test_a_damaged_result_is_named_and_the_others_go_on(root, capsys, change, line):
    put(root, "gavel/fig10_ftf")
    put(root, "tiresias/fig10_testbed")
    file = root / "build/figures/gavel/fig10_ftf/result.json"
    if isinstance(change, dict):
        record = json.loads(file.read_text()) | change
        change = json.dumps({key: value for key, value in record.items() if value is not ...})
    file.write_text(change)
    shown = run(capsys, "check", code=1).out
    assert f"  damaged         {file.parent}/{line}" in shown
    assert "2 figures in" in shown and ": 1 of 1 claims reproduced; 1 figure damaged" in shown
    assert "Traceback" not in shown
    found = json.loads(run(capsys, "check", "--json", code=1).out)
    assert not found["ok"] and found["counts"] == {"reproduced": 1}
    (named,) = found["figures"][0]["damaged"]
    assert named.startswith(line) and named.endswith("`repro run` makes it again")
    run(capsys, "report")
    page = (root / "build/figures/index.html").read_text()
    assert "Damaged: result.json: damaged (" in page and str(root) not in page
    run(capsys, "check", "tiresias/fig10")


def test_a_damaged_error_file_still_says_that_the_last_run_failed(root, capsys):
    put(root, "gavel/fig10_ftf", error="ValueError: x")
    folder = root / "build/figures/gavel/fig10_ftf"
    for text in ("", '{"error": 3}'):
        (folder / "error.json").write_text(text)
        shown = run(capsys, "check", code=1).out
        assert f"  damaged         {folder}/error.json: damaged (" in shown
        assert "the last run failed" in shown
        assert "1 of 1 claims reproduced; 1 figure damaged" in shown
        run(capsys, "report")


def test_report_is_the_same_bytes_and_asks_nothing_of_the_network(root, capsys):
    put(root, "tiresias/fig10_testbed", "missed", deviation="<b>other</b> trace")
    put(root, "gavel/fig10_ftf", error="ValueError: 1 < 2")
    page = root / "build/figures/index.html"
    assert run(capsys, "report").out.strip() == str(page)
    first = page.read_text()
    run(capsys, "report")
    assert page.read_text() == first
    addresses = [paper.address for paper in papers() if paper.paper in ("gavel", "tiresias")]
    links = re.findall(r'<a href="(http[^"]+)">', first)
    assert sorted(set(links)) == sorted(addresses) and first.count("http") == len(links)
    assert str(root) not in first
    assert "&lt;b&gt;other&lt;/b&gt; trace" in first and "1 &lt; 2" in first
    assert 'src="tiresias/fig10_testbed/fig10_testbed.svg"' in first
    assert 'href="../../notebooks/tiresias/fig10_testbed.ipynb"' in first
    assert first.index("Gavel") < first.index("Tiresias")


def test_report_of_the_committed_folder_links_no_build_products(root, capsys):
    put(root, "tiresias/fig10_testbed", out="figures")
    copy = root / "build/notebooks/tiresias/fig10_testbed.ipynb"
    run(capsys, "report")
    before = (root / "figures/index.html").read_text()
    copy.parent.mkdir(parents=True)
    copy.write_text("{}")
    run(capsys, "report")
    assert (root / "figures/index.html").read_text() == before


def test_simulate_prints_exactly_the_agreed_keys(jobs, capsys):
    words = ["simulate", "--trace", jobs, "--format", "tiresias", "--cluster", "1x4"]
    out = run(capsys, *words, "--policy", "srtf", "--json").out
    found = json.loads(out)
    assert list(found) == [
        "policy",
        "trace",
        "cluster",
        "n_jobs",
        "n_finished",
        "avg_jct",
        "median_jct",
        "p95_jct",
        "p99_jct",
        "makespan",
        "avg_queueing",
        "preemptions",
        "utilisation",
        "wall_s",
        "ignored",
        "notes",
        "stand_in",
    ]
    assert (found["policy"], found["cluster"], found["n_finished"]) == ("srtf", "1x4", 4)
    assert "avg_jct" in run(capsys, *words, "--policy", "srtf").out


def test_simulate_writes_one_row_per_job(jobs, capsys, tmp_path):
    words = ["simulate", "--trace", jobs, "--format", "tiresias", "--cluster", "1x4"]
    run(capsys, *words, "--policy", "srtf", "--out", tmp_path / "out.csv", "--json")
    text = (tmp_path / "out.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    head = "job_id,submit_time,start_time,end_time,jct,num_gpus,queueing,preemptions,promotions"
    assert text.splitlines()[0] == head
    assert [row["job_id"] for row in rows] == ["1", "2", "3", "4"]
    assert rows[0] == {
        "job_id": "1",
        "submit_time": "0",
        "start_time": "0",
        "end_time": "10",
        "jct": "10",
        "num_gpus": "2",
        "queueing": "0",
        "preemptions": "0",
        "promotions": "0",
    }
    assert rows[1]["end_time"] == "5.5"


def test_simulate_writes_intervals_around_predictions(tmp_path, capsys):
    rows = "".join(f"{at},1,{5 * at},{10 + at % 3}\n" for at in range(40))
    (tmp_path / "many.csv").write_text("job_id,num_gpu,submit_time,duration\n" + rows)
    words = ["simulate", "--trace", tmp_path / "many.csv", "--format", "tiresias"]
    words += ["--cluster", "1x2", "--policy", "srsf-elastic", "--predict-interval", "0.8"]
    out = tmp_path / "out.csv"
    found = json.loads(run(capsys, *words, "--out", out, "--json").out)
    assert 0 < found["interval_coverage"] <= 1 and found["interval_width"] >= 0
    written = list(csv.DictReader(io.StringIO(out.read_text())))
    held = [row for row in written if row["predicted_jct_low"]]
    assert len(written) - len(held) == found["without_interval"] > 0
    for row in held:
        assert float(row["predicted_jct_low"]) <= float(row["predicted_jct_high"])
    assert "interval_coverage" in run(capsys, *words).out


def test_simulate_settings(jobs, capsys):
    words = ["simulate", "--trace", jobs, "--format", "tiresias", "--cluster", "1x4"]
    words += ["--policy", "tiresias-l", "--json"]

    def jct(*more):
        return json.loads(run(capsys, *words, *more).out)["avg_jct"]

    assert jct("--set", "thresholds=3,8") != jct("--set", "thresholds=1000")
    assert jct("--set", "thresholds=5", "--set", "promote_knob=inf") == jct("--set", "thresholds=5")
    assert jct("--interval", "7") != jct()
    assert jct("--rules", "tiresias", "--placement", "count", "--seed", "4")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "tiresias-x"], "unknown policy 'tiresias-x'; did you mean 'tiresias-"),
        (["--set", "thresold=1"], "has no parameter 'thresold'; did you mean 'thresholds'"),
        (["--set", "thresholds"], "--set thresholds: expected K=V"),
        (["--set", "thresholds=5,3"], "ascending"),
        (["--set", "rules=paper"], "use --rules instead"),
        (["--rules", "mine"], "unknown rules 'mine'"),
        (["--placement", "nowhere"], "nowhere"),
        (["--interval", "-1"], "interval"),
        (["--interval", "x"], "'--interval'"),
        (["--predict", "1", "--failures", "mtbf=9"], "are not foreseen; leave them out"),
        (["--predict-interval", "1.5"], "predict_interval is 1.5; give a probability above 0"),
        (["--predict-interval", "0.9", "--predict", "0"], "predict=0 predicts no job"),
        (["--predict-interval", "x"], "'--predict-interval'"),
        (["--seed", "-1"], "--seed -1"),
        (["--cluster", "8by8"], "8by8"),
        (["--cluster", "1x2"], "job 3 can never start on 2 GPUs"),
        (["--trace", "absent.csv"], "absent.csv: no such file"),
        (["--trace", "."], "."),
        (["--format", "tirseias"], "tirseias"),
    ],
)
def test_simulate_refuses_wrong_use_in_one_line(jobs, capsys, words, message):
    given = {"--trace": jobs, "--format": "tiresias", "--cluster": "1x4", "--policy": "tiresias-l"}
    flags = [str(part) for pair in given.items() if pair[0] not in words for part in pair]
    assert message in refused(capsys, "simulate", *flags, *words)


def test_bad_rows_name_file_line_and_column(jobs, capsys):
    jobs.write_text(TRACE.replace("2,1,1,4.5", "2,1,1,-4.5"))
    words = ["--trace", jobs, "--format", "tiresias", "--cluster", "1x4", "--policy", "srtf"]
    assert f"{jobs.name}:3:duration" in refused(capsys, "simulate", *words)


def test_policies(capsys):
    rows = {row["name"]: row for row in json.loads(run(capsys, "policies", "--json").out)}
    assert "duration" in rows["srtf"]["needs"]
    assert "thresholds" in rows["tiresias-l"]["parameters"]
    assert rows["srtf"]["paper"] == "Tiresias, NSDI'19"
    shown = run(capsys, "policies").out
    assert "Tiresias (NSDI 2019)\n" in shown and "\n  srtf " in shown


def test_a_policy_is_shown_alone(capsys):
    first, _, paper, *settings = run(capsys, "policies", "tiresias-l").out.splitlines()
    assert first.startswith("tiresias-l  ")
    assert paper.split(maxsplit=1) == ["paper", "Tiresias, NSDI'19"]
    assert any("--set thresholds=" in line for line in settings)
    row = json.loads(run(capsys, "policies", "srtf", "--json").out)
    assert (row["name"], row["paper"]) == ("srtf", "Tiresias, NSDI'19")
    # a baseline of another paper names that paper
    for name, paper in {"edf": "Liu and Layland, JACM'73", "drf": "Ghodsi et al., NSDI'11"}.items():
        shown = run(capsys, "policies", name).out.splitlines()[2]
        assert shown.split(maxsplit=1) == ["paper", paper]
    assert "did you mean 'srtf'" in refused(capsys, "policies", "srft")


def test_new_policy_writes_a_policy_and_a_test_that_pass(root, capsys, monkeypatch):
    monkeypatch.setattr(paths, "PACKAGE", root / "repro")
    shown = run(capsys, "new-policy", "my-first").out
    assert "wrote repro/policies/own/__init__.py" in shown
    assert "wrote repro/policies/own/my_first.py" in shown
    policy = root / "repro/policies/own/my_first.py"
    test = root / "tests/unit/policies/own/test_my_first.py"
    module = types.ModuleType("repro.policies.own.my_first")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(policy.read_text(), str(policy), "exec"), vars(module))
    tests: dict = {"__name__": "test_my_first"}
    exec(compile(test.read_text(), str(test), "exec"), tests)
    try:
        assert issubclass(repro.model.policy.policies["my-first"], repro.Order)
        for name, check in tests.items():
            if name.startswith("test_"):
                check()
    finally:
        del repro.model.policy.policies._items["my-first"]
    assert "exists already" in refused(capsys, "new-policy", "my-first")
    assert "exists already" in refused(capsys, "new-policy", "srtf")
    for name in ("My", "a_b", "-a", "a--b", "1a", "a/b", "class"):
        assert "lower-case letters" in refused(capsys, "new-policy", "--", name)


def test_new_policy_names_its_group_in_the_list_of_a_family(root, capsys, monkeypatch):
    monkeypatch.setattr(paths, "PACKAGE", root / "repro")
    run(capsys, "new-policy", "my-first")
    names: dict = {}
    exec((root / "repro/policies/own/__init__.py").read_text(), names)
    assert names["PAPER"] == "own"
    # the second policy leaves the folder's own file alone
    assert "__init__" not in run(capsys, "new-policy", "my-second").out


@pytest.mark.parametrize("name", ["json", "numpy"])
def test_a_package_of_a_policy_takes_no_name_of_a_module(capsys, tmp_path, monkeypatch, name):
    """Its entry point would load the module of that name, and the policy would be unknown."""
    monkeypatch.chdir(tmp_path)
    line = refused(capsys, "new-policy", name, "--package")
    assert f"a Python module '{name}' exists already; choose another name" in line
    assert not any(tmp_path.iterdir())


def test_new_policy_goes_into_the_folder_of_a_paper(root, capsys, monkeypatch):
    monkeypatch.setattr(paths, "PACKAGE", root / "repro")
    home = root / "repro/policies/gavel"
    home.mkdir(parents=True)
    (home / "__init__.py").write_text("")
    shown = run(capsys, "new-policy", "my-third", "--paper", "gavel").out
    assert "wrote repro/policies/gavel/my_third.py" in shown and "__init__" not in shown
    test = root / "tests/unit/policies/gavel/test_my_third.py"
    assert "from repro.policies.gavel.my_third import MyThird" in test.read_text()
    line = refused(capsys, "new-policy", "my-fourth", "--paper", "gavl")
    assert "'gavel'" in line and "tiresias" in line
    line = refused(capsys, "new-policy", "my-fourth", "--paper", "gavel", "--package")
    assert "leave --paper out" in line


def test_wrong_use(capsys, root):
    assert "No such command 'lst'. Did you mean 'list'" in refused(capsys, "lst")
    assert "Did you mean 'formats'?" in refused(capsys, "trace", "format")
    line = refused(capsys, "list", "--jsn")
    assert "No such option" in line and "--json" in line
    assert "Missing option" in refused(capsys, "simulate", "--cluster", "1x4")
    assert "expected K=V" in refused(capsys, "trace", "info", "x.csv", "--set", "x")


def test_debug_shows_the_traceback(root, capsys):
    from repro.base.errors import ParamError

    with pytest.raises(ParamError):
        app.main(["list", "--paper", "muri", "--debug"])


def child(*words, **env):
    code = f"import sys; from repro.cli import main; sys.exit(main({list(words)!r}))"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env}
    )


NAMES = (
    "list",
    "run",
    "plan",
    "check",
    "report",
    "crate",
    "schema",
    "simulate",
    "compare",
    "place",
    "front",
    "policies",
    "new-policy",
    "trace",
    "cluster",
    "measure",
    "course",
)


def test_help_is_quick_and_names_every_command():
    child("--help")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = child("--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    for name in NAMES:
        assert f"\n  {name} " in done.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from repro.cli import main; main(['trace', '--help']); main([]);"
        "sys.exit(bool({'numpy', 'pandas', 'matplotlib', 'papermill', 'yaml'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_one_command_does_not_import_the_others():
    code = (
        "import sys; from repro.cli import main; main(['policies']);"
        "sys.exit(any(f'repro.cli.{n}' in sys.modules for n in ('run', 'figures', 'simulate')))"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


@pytest.mark.parametrize("words", [(), ("trace",)])
def test_no_command_shows_the_help_as_help(words):
    bare = child(*words)
    asked = child(*words, "--help")
    assert (bare.returncode, bare.stdout, bare.stderr) == (0, asked.stdout, "")
    assert bare.stdout.startswith(" ".join(("Usage: repro", *words)))


@pytest.mark.parametrize(
    ("group", "above"),
    [(app.Commands, ()), (app.TraceCommands, ("trace",))],
)
def test_every_command_has_the_line_of_its_help_and_answers_to_h(group, above, capsys):
    for name, (target, line) in group.targets.items():
        module, _, function = target.partition(":")
        doc = inspect.getdoc(
            getattr(importlib.import_module(f"{group.package}.{module}"), function)
        )
        assert " ".join(doc.split("\n\n")[0].split()) == line
        words = (*above, name)
        shown = run(capsys, *words, "-h").out
        assert shown.startswith(f"Usage: repro {' '.join(words)} ") and "-h, --help" in shown


@pytest.mark.parametrize("words", [(), ("--help",), ("grade", "submissions"), ("release",)])
def test_course_without_its_distribution_is_one_line(words, capsys, monkeypatch):
    monkeypatch.setattr(entry_points.metadata, "entry_points", lambda **asked: ())
    line = refused(capsys, "course", *words)
    assert line == (
        "repro: the course tools are a distribution of their own: `pip install ./course` in a "
        "checkout"
    )


def test_the_shell_completes_nothing_of_a_distribution_that_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(entry_points.metadata, "entry_points", lambda **asked: ())
    monkeypatch.setenv("_REPRO_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "repro course ")
    monkeypatch.setenv("COMP_CWORD", "2")
    with pytest.raises(SystemExit):
        app.main([])
    out, err = capsys.readouterr()
    assert out.strip() == err == ""


def test_version(capsys):
    assert run(capsys, "--version").out == f"repro {repro.__version__}\n"


def test_the_shell_completes_commands_and_options():
    def completed(line):
        words = line.split(" ")
        asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        return child(_REPRO_COMPLETE="complete_bash", **asked).stdout.split()

    assert completed("repro ") == list(NAMES)
    assert completed("repro trace f") == ["formats", "fetch"]
    assert completed("repro simulate --pol") == ["--policy"]
    # Which shell runs the tests is not known: it is named.
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    assert "_repro_completion" in child("--show-completion", "bash", **named).stdout


def test_list_of_a_paper(root, capsys):
    assert run(capsys, "list", "gavel").out == run(capsys, "list", "--paper", "gavel").out
    assert "unknown paper 'muri'" in refused(capsys, "list", "muri")
    assert "two papers" in refused(capsys, "list", "gavel", "--paper", "tiresias")


def test_a_closed_pipe_is_no_error(root):
    command = f"{sys.executable} -m repro.cli policies --json | true"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, check=False, env={**os.environ}
    )
    assert done.stderr == ""
