"""Completion in shells: words, their speed, and the table of options behind them."""

import importlib
import inspect
import json
import os
import resource
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from repro.cli import complete
from repro.cli.app import ClusterCommands, Commands, MeasureCommands, TraceCommands
from repro.cli.completion_table import TABLE, current
from repro.figures import params
from repro.files import public
from repro.model.families import ALIASES, explain, family
from repro.model.policy import Order, parameter_names, policies
from repro.model.rules import RULES
from repro.papers.pcs.fronts import Method
from repro.perf.model_names import TABLES
from repro.perf.parameter_server import RUN_TIME_MODELS
from repro.placement.base import placements
from repro.trace import synth
from repro.trace.formats import FORMATS

ROOT = Path(__file__).resolve().parents[3]
GROUPS = (Commands, TraceCommands, ClusterCommands, MeasureCommands)
#: Completes a line as a shell does, and names heavy modules that it imported.
CODE = """
import sys
from repro.cli import main
try:
    main()
finally:
    heavy = [name for name in ("numba", "pandas", "numpy", "scipy") if name in sys.modules]
    print("heavy:", *heavy, file=sys.stderr)
"""


def child(line, shell="bash"):
    """Completion of the last word of a line by a process of its own."""
    words = line.split(" ")
    env = {**os.environ, "_REPRO_COMPLETE": f"complete_{shell}"}
    if shell == "bash":
        env |= {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    else:
        env |= {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, env=env, cwd=ROOT
    )
    return done


def words_of(line, shell="bash"):
    done = child(line, shell)
    assert done.stderr == "heavy:\n", done.stderr
    # without a word bash gets an empty line
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("repro simulate --policy tiresias-", ["tiresias-g", "tiresias-l"]),
        ("repro simulate --policy fcf", ["fcfs"]),
        ("repro simulate --trace gavel-ph", ["gavel-physical"]),
        ("repro simulate --trace tiresias-6", ["tiresias-60"]),
        ("repro simulate --trace CITATION", ["CITATION.cff"]),
        ("repro simulate --format sw", ["swf"]),
        ("repro simulate --rules ", list(RULES)),
        ("repro simulate --placement y", ["yarn"]),
        ("repro simulate --slowdown t", ["tiresias"]),
        ("repro simulate --overhead ", ["none", "tiresias", "h100"]),
        ("repro simulate --policy fifo --set ", []),
        ("repro simulate --policy las-2d --set ", ["quantum=", "quantum=60.0"]),
        ("repro simulate --policy muri-s --set order", ["ordering=", "ordering=best"]),
        ("repro simulate --policy gavel-las --set round", ["round_s=", "round_s=360.0"]),
        (
            "repro simulate --format helios --policy sjf --set ",
            ["attempts=", "attempts=refuse"],
        ),
        ("repro compare --policies srtf,tiresias-", ["srtf,tiresias-g", "srtf,tiresias-l"]),
        ("repro compare --trace mm --set lo", ["load=", "load=0.7"]),
        ("repro run tour/", ["tour/five_papers"]),
        ("repro check --paper t", ["tiresias", "tour"]),
        ("repro run --profile ", ["quick", "paper"]),
        ("repro schema pol", ["policies", "policy"]),
        ("repro policies la", ["las-2d", "las-agnostic", "las"]),
        ("repro trace info pcs-th", ["pcs-themis1"]),
        ("repro trace fetch openb-n", ["openb-nodes"]),
        ("repro simulate --predict-", ["--predict-interval"]),
    ],
)
def test_bash_gets_the_words_without_heavy_imports(line, expected):
    assert words_of(line) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_words_with_explanations(shell):
    lines = words_of("repro simulate --policy tiresias-l", shell)
    assert "tiresias-l" in lines[0] and "Discretised 2D-LAS" in lines[0]


def test_a_tab_takes_less_than_0_4_s_of_cpu():
    line = "repro simulate --policy gavel-las --set "
    child(line)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child(line)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.4


def test_the_table_has_the_options_of_all_commands(monkeypatch):
    """After a change of an option, `make policies-page` writes the table anew."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    assert importlib.import_module("completion").text() == TABLE.read_text("utf-8")


def test_every_name_in_the_table_completes_words():
    rows = [row for rows in json.loads(TABLE.read_text()).values() for row in rows]
    names = {row["words"] for row in rows} - {""}
    assert len(names) > 20
    for name in names:
        assert list(inspect.signature(getattr(complete, name)).parameters) == ["ctx", "incomplete"]
    # options that name something of a list complete it
    options = {"policy", "rules", "trace_format", "format", "placement", "paper", "profile", "ids"}
    assert all(row["words"] for row in rows if row["name"] in options)
    assert set(current(GROUPS)) == set(json.loads(TABLE.read_text()))


class Line:
    """Parameters that a command line has so far."""

    def __init__(self, **params):
        self.params = params


def completed(completion, incomplete="", **params):
    return [word for word, _ in completion(Line(**params), incomplete)]


def test_words_are_those_of_the_registries():
    assert completed(complete.policies) == [*policies, *ALIASES]
    assert completed(complete.placements) == list(placements)
    assert completed(complete.formats) == list(FORMATS)
    assert completed(complete.run_times) == list(RUN_TIME_MODELS)
    assert completed(complete.profiles) == list(params.PROFILES)
    assert completed(complete.figures) == [entry.id for entry in params.discover()]
    assert set(completed(complete.public_files)) == set(public.entries())
    assert completed(complete.table_list) == ["all", *TABLES]
    for method in completed(complete.search_methods):
        assert Method(method).name == method
    traces = completed(complete.jobs, incomplete="g")
    assert [word for word in traces if word in synth.generators] == [
        name for name in synth.generators if name.startswith("g")
    ]
    readable = {file.name for file in public.entries().values() if file.format in FORMATS}
    assert set(completed(complete.traces, incomplete="muri-")) == {
        name for name in readable if name.startswith("muri-")
    }


def test_families_are_those_that_the_command_explains():
    classes = {name: policies[name] for name in policies}
    words = set(completed(complete.policies_and_families)) - set(policies) - set(ALIASES)
    assert words
    for word in words:
        assert explain(word, classes), word
    declared = {name for cls in classes.values() for name in cls.families}
    assert declared <= words | set(ALIASES) | set(policies)
    assert all(family(word, classes) for word in words)


@pytest.mark.parametrize("name", list(policies))
def test_parameters_of_a_policy_are_read_from_its_source(name):
    parameters = complete.policy_parameters(name)
    names = dict.fromkeys(word.partition("=")[0] for word, _ in parameters.words)
    assert sorted(names) == sorted(parameter_names(policies[name]))
    assert parameters.has_rounds != issubclass(policies[name], Order)


def test_values_of_a_choice_are_words():
    words = completed(complete.settings, "score=", policy="liquid")
    assert words == ["score=", "score=paper", "score=artifact"]
    assert completed(complete.settings, "no-such", policy="nothing") == []


def test_a_policy_of_an_installed_package_is_completed(tmp_path, monkeypatch):
    module = tmp_path / "newest_policy.py"
    module.write_text(
        "from dataclasses import dataclass\n"
        "from repro.model.policy import Order, register\n\n\n"
        '@register("newest-first")\n@dataclass(frozen=True)\nclass Newest(Order):\n'
        '    """Newest first."""\n\n    bonus: float = 1.5\n'
    )
    meta = tmp_path / "newest_policy-1.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: newest-policy\nVersion: 1\n")
    (meta / "entry_points.txt").write_text(
        "[repro.policies]\nnewest-first = newest_policy:Newest\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert completed(complete.policies, "newest") == ["newest-first"]
    words = completed(complete.settings, "", policy="newest-first")
    assert words == ["bonus=", "bonus=1.5"]


def test_folders_and_hidden_files(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs.csv").touch()
    (tmp_path / ".hidden").touch()
    place = f"{tmp_path}/"
    assert completed(complete.traces, f"{place}jo") == [f"{place}jobs/", f"{place}jobs.csv"]
    assert completed(complete.traces, place) == [f"{place}jobs/", f"{place}jobs.csv"]
    assert completed(complete.traces, f"{place}.h") == [f"{place}.hidden"]
    assert completed(complete.traces, f"{place}no/such") == []


def test_the_folder_of_an_unknown_user_has_no_files():
    assert complete._files("~no-such-user-of-this-machine/") == []


def test_a_policy_of_a_package_that_is_missing_has_no_file(monkeypatch):
    point = EntryPoint("gone", "no_such_package.policies:Gone", "repro.policies")
    monkeypatch.setattr(complete.metadata, "entry_points", lambda **_: (point,))
    assert complete.policy_parameters("gone").words == []
    assert ("given", "score the column tasks") in complete.policies_or_given(None, "")
