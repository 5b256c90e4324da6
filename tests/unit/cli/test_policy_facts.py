"""`repro policies NAME`: every policy is explained, in full and truly."""

import dataclasses
import importlib
import json
import re
import subprocess
import types
from pathlib import Path

import pytest

import repro
from repro.base import docstrings
from repro.base.errors import ReproError
from repro.cli import app
from repro.cli.policies import explanation
from repro.cli.policy_facts import COLUMNS, GROUPS, OTHER, facts, group_of, grouped
from repro.cli.settings import parse_settings
from repro.model.policy import Order, Policy, make, policies, register
from repro.model.rules import RULES
from repro.model.settings import literals
from repro.testing import small_trace

ROOT = Path(__file__).resolve().parents[3]
NAMES = list(policies)
#: Numbers that are ratios, weights, seeds or shares, and so have no unit.
WITHOUT_UNIT = {
    "alpha",
    "c2",
    "decay",
    "delta",
    "lambda",
    "load",
    "near",
    "noise",
    "noise_seed",
    "profiled",
    "promote_knob",
    "share",
    "short",
    "size_error",
    "stream",
    "tolerance",
    "weights",
    "worth",
    "zeta_min",
}
#: Parameters of policies that several policies have with another unit.
WITH_UNIT = {("gittins-2d", "delta"), ("tiresias-g", "delta")}


def run(capsys, *words):
    assert app.main(list(words)) == 0
    return capsys.readouterr()


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_has_a_meaning_and_quantities_a_unit(name):
    for parameter in facts(name).parameters:
        meaning = parameter.meaning
        assert len(meaning) > 20, f"{parameter.name}: no meaning in the docstring"
        assert (
            meaning[0].isupper()
            or meaning[0] in '0"`'
            or meaning.split(":")[0] in literals(policies[name], parameter.name)
        ), meaning
        assert meaning.endswith("."), meaning
        assert not re.match(r"(As|See|The same)\b", meaning), f"{parameter.name}: {meaning}"
        assert parameter.accepts, f"{parameter.name}: no declared values"
        if "number" in parameter.accepts:
            has_no_unit = parameter.name in WITHOUT_UNIT and (name, parameter.name) not in WITH_UNIT
            assert (parameter.unit is None) == has_no_unit, f"{parameter.name}: unit"
        if parameter.unit in ("seconds", "GPU-seconds"):
            assert re.search(r"\bs\b|[Ss]econds|time", meaning), meaning


def test_times_have_a_unit():
    """Parameters that the test of policies scales with all times are in seconds."""
    for name in NAMES:
        units = {parameter.name: parameter.unit for parameter in facts(name).parameters}
        for field in policies[name].time_fields:
            assert units[field] in ("seconds", "GPU-seconds"), (name, field)


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_names_its_paper_and_its_rule(name):
    entry = facts(name)
    assert re.search(r"\b(19|20)\d\d\b|arXiv|Operating System", entry.reference), entry.reference
    assert re.search(r"section|Algorithm|Eq|simulator|20\d\d", entry.reference)
    assert entry.summary.endswith((".", "..."))
    assert "Ties:" in entry.formula, "the module says how ties are broken"
    assert entry.group in GROUPS.values()
    assert all(COLUMNS[column] for column in entry.columns)
    assert list(entry.rules) == list(RULES)


def test_no_column_is_described_in_vain():
    used = {column for name in NAMES for column in facts(name).columns}
    used |= {column for name in NAMES for columns in facts(name).requires for column in columns}
    assert used == set(COLUMNS)


@pytest.mark.parametrize("name", [name for name in NAMES if policies[name].requires])
def test_a_run_without_a_required_column_is_refused(name):
    """With all required columns a run ends; without one of them the column is named."""
    values = {"slo": 4.0, "num_cpus": 1.0, "memory_mib": 1.0}
    requires = policies[name].requires
    first = {columns[0]: values.get(columns[0], 1.0) for columns in requires}
    trace = small_trace().assign(**first)
    settings = {"cpus_per_gpu": 4.0} if name == "drf" else {}
    if name.startswith("muri"):
        trace = trace.assign(iteration_time=3.0)
    result = repro.simulate(trace, "1x4", make(name, **settings))
    assert result.summary()["n_finished"] == len(trace)
    for columns in requires:
        with pytest.raises(ReproError, match=columns[0]):
            repro.simulate(trace.drop(columns=columns[0]), "1x4", make(name))


def test_other_policies_run_on_the_columns_of_every_trace():
    """The runs of `make crossing` that were refused are those of a policy with a requirement."""
    refused = {
        line.split(",")[0]
        for line in (ROOT / "docs/crossing.csv").read_text().splitlines()[1:]
        if ",plain,False," in line
    }
    # allox refuses jobs of several GPUs
    assert refused == {name for name in NAMES if policies[name].requires} | {"allox"}


@pytest.mark.parametrize("name", ["srtf", "gavel-las", "muri-s", "pcs", "themis", "liquid"])
def test_refused_rule_sets_are_refused(name):
    rules = "pcs"
    trace = small_trace().assign(
        stage_storage=1.0, stage_gpu=1.0, stage_network=1.0, iteration_time=3.0
    )
    refused = facts(name).rules[rules].refused
    assert bool(refused) == (name not in ("pcs", "themis"))
    if refused:
        with pytest.raises(ReproError, match="has no compiled division rule"):
            repro.simulate(trace, "1x4", make(name, rules), rules=rules)
    else:
        result = repro.simulate(trace, "1x4", make(name, rules), rules=rules)
        assert result.summary()["n_finished"] == len(trace)


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_those_of_the_rule_sets(name):
    """The default that is shown, set by hand, gives the policy of the rule set."""
    for rules, effect in facts(name).rules.items():
        pairs = [f"{key}={value}" for key, value in effect.parameters.items()]
        paper = make(name, "paper", **parse_settings(pairs))
        assert paper == make(name, rules)
    pairs = [
        f"{parameter.name}={parameter.set_default}"
        for parameter in facts(name).parameters
        if parameter.set_default not in ("", "{}")
    ]
    assert make(name, **parse_settings(pairs, with_option={})) == make(name)


def test_awareness_of_gpu_types():
    aware = {name for name in NAMES if facts(name).aware_of_types}
    assert {name for name in NAMES if name.startswith("gavel-")} | {"allox"} == aware
    assert facts("srtf").gpu_types.startswith("not aware: the engine")
    assert "a cluster of its own" in facts("muri-s").gpu_types


def test_knowledge():
    known = {name: facts(name).knowledge for name in NAMES}
    assert known["srtf"] == "durations"
    assert known["tiresias-l"] == known["yarn-cs"] == known["fifo-elastic"] == "none"
    assert known["gittins-2d"] == "distribution of past job sizes"
    assert known["muri-s"] == "durations, stage times"
    assert known["edf"] == "deadlines"
    # of policies that read durations, those without decisions by duration do not read predictions
    for name in NAMES:
        if "predicted_duration" in facts(name).columns:
            assert "duration" in policies[name].needs


def test_an_explanation_has_every_fact(capsys):
    shown = run(capsys, "policies", "tiresias-l").out
    lines = shown.splitlines()
    assert lines[0].startswith("tiresias-l  Discretised 2D-LAS")
    assert max(map(len, lines)) <= 102
    for label in ("paper", "source", "formula", "parameters", "needs", "uses", "knows", "rules"):
        assert any(line.startswith(label) for line in lines), label
    assert "  --set promote_knob=inf" in lines
    assert "Default by rules: paper 3200, tiresias 3250,7200, muri 3250,7200." in shown
    assert "pcs: refused" in shown
    assert lines[-1] == f"  {facts('tiresias-l').example}"
    assert "rule\n  Classes share GPUs" in run(capsys, "policies", "pcs").out
    assert (
        "needs       job_id, submit_time, duration, num_gpus, slo"
        in run(capsys, "policies", "edf").out
    )


def test_the_document_has_the_same_facts(capsys):
    document = json.loads(run(capsys, "policies", "muri-l", "--json").out)
    entry = facts("muri-l")
    assert document["example"] == entry.example
    assert document["requires"] == [list(columns) for columns in entry.requires]
    details = document["parameter_details"]
    assert [row["name"] for row in details] == list(document["parameters"])
    assert details == [dataclasses.asdict(parameter) for parameter in entry.parameters]
    shown = "\n".join(explanation(entry))
    assert all(row["name"] in shown and row["accepts"] in shown for row in details)


def test_aliases_and_families_keep_their_note(capsys):
    shown = run(capsys, "policies", "fifo")
    assert shown.out.startswith("yarn-cs  ")
    assert "fifo: runs yarn-cs" in shown.err
    assert app.main(["policies", "las"]) == 2
    assert "policies of that family" in capsys.readouterr().err


def test_the_list_has_a_line_for_each_policy_by_paper(capsys):
    lines = run(capsys, "policies").out.splitlines()
    titles = [line for line in lines if line and not line.startswith((" ", "`"))]
    assert titles == list(GROUPS.values())
    names = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(names) == NAMES
    assert "repro policies NAME" in lines[-1]
    by_group = grouped(NAMES)
    assert by_group[GROUPS["muri"]] == ["antman", "muri-l", "muri-s"]


def test_own_policies_come_last_and_need_no_docstring(capsys, monkeypatch):
    module = types.ModuleType("my_package")
    monkeypatch.setitem(importlib.import_module("sys").modules, "my_package", module)

    @register("facts-test")
    @dataclasses.dataclass(frozen=True)
    class Bare(Order):
        bonus: float
        name_of_user: str = "a"

        needs = frozenset({"colour"})

    Bare.__module__ = "my_package"
    Bare.__doc__ = None
    try:
        assert group_of(Bare) == OTHER
        lines = run(capsys, "policies").out.splitlines()
        assert lines[lines.index(OTHER) + 1].split() == ["facts-test"]
        shown = run(capsys, "policies", "facts-test").out
        assert "--set bonus=\n" in shown and "uses        colour" in shown
        assert json.loads(run(capsys, "policies", "facts-test", "--json").out)["formula"] == ""
        module.PAPER = ""
        lines = run(capsys, "policies", "facts-test").out.splitlines()
        assert not [line for line in lines if line.startswith("paper")]
    finally:
        del policies._items["facts-test"]


def test_the_page_is_what_the_script_writes(monkeypatch):
    """`make policies-page` writes docs/policies.md."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    page = importlib.import_module("policies")
    assert page.text() == page.PAGE.read_text("utf-8")
    for name in NAMES:
        assert f"### `{name}`" in page.text()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_example_runs(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    *before, command = facts(name).example.split(" && ")
    for line in before:
        subprocess.run(["sh", "-c", line], check=True)
    assert command.startswith("repro ") and f"--policy {name}" in command
    summary = json.loads(run(capsys, *command.split()[1:], "--json").out)
    assert summary["n_finished"] == summary["n_jobs"] > 0


def test_parts_of_a_docstring():
    text = Policy.__doc__
    assert (
        docstrings.summary(text)
        == "A scheduling policy: it reads a `View` and returns a `Decision`."
    )
    assert docstrings.description(text).startswith("Subclasses are frozen")
    assert docstrings.parameters(text) == {}
    assert (
        docstrings.summary(None) == docstrings.description(None) == docstrings.reference(None) == ""
    )
    nested = docstrings.parameters(
        "Sort.\n\nParameters\n----------\na, b : int, str\n    First.\n\n    - one\n      more\n"
        "    - two\n\nReference: here."
    )
    assert nested["b"] == ("str", "First.\n- one more\n- two") and nested["a"].type == "int"
