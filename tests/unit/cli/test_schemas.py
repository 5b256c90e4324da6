"""JSON schemas: committed results and real outputs of every command fit them."""

import importlib
import inspect
import json
from itertools import islice
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from repro.cli import app
from repro.cli.app import ClusterCommands, Commands, TraceCommands
from repro.cli.schema import FOLDER

ROOT = Path(__file__).resolve().parents[3]
RESULTS = sorted(ROOT.glob("figures/*/*/result.json"))
JOBS = "job_id,submit_time,duration,num_gpus\na,0,100,1\nb,10,50,2\nc,20,200,4\nd,30,10,1\n"
GANGS = "job_id,num_ps,num_workers\na,1,2\nb,0,1\n"
#: Schema -> commands with ``--json``, by words.
COMMANDS = {
    "check": [
        "check gavel/fig01 tiresias/fig07 --out {root}/figures",
        "check --paper muri --out {root}/figures --against {root}/figures/quick.json",
    ],
    "list": ["list", "list liquid"],
    "policies": ["policies"],
    "policy": ["policies muri-s", "policies pcs", "policies sf"],
    "simulate": [
        "simulate --trace jobs.csv --cluster 2x4 --policy srtf",
        "simulate --trace jobs.csv --cluster 2x4 --policy fifo --predict 2 --predict-interval 0.9",
        "simulate --trace jobs.csv --cluster 2x4 --policy afs",
        "simulate --trace jobs.csv --cluster 2x4:v100,2x4:k80 --policy srtf --seed 3",
    ],
    "place": ["place --cluster 2x2 --jobs gangs.csv --policy liquid"],
    "compare": [
        "compare --trace jobs.csv --cluster 2x4 --policies srtf,fifo",
        "compare --trace lognormal --cluster 2x4 --policies srtf,fifo --seeds 2 --loads 0.5 -j 1",
    ],
    "front": [
        "front --trace pcs-workload --cluster 1x8 --train 20 --prefer jct=avg --method random "
        "--budget 4 --population 4 -j 1"
    ],
    "plan": ["plan --paper muri --profile paper --out {root}/figures --workers 2"],
    "cluster-show": ["cluster show 2x4", "cluster show 36xv100,4x4:k80"],
    "trace-list": ["trace list", "trace list --tables"],
    "trace-formats": ["trace formats"],
    "trace-info": ["trace info jobs.csv", "trace info jobs.csv --cluster 1x2:v100,1x2:k80"],
    "trace-doctor": [
        "trace doctor jobs.csv --cluster 2x4 --policies srtf",
        "trace doctor jobs.csv --cluster 1x2 --policies srtf,muri-s",
    ],
    "trace-convert": [
        "trace convert jobs.csv --out out.csv",
        "trace dress jobs.csv --models all --seed 0 --out dressed.csv",
    ],
}
#: Documents that are files.
FILES = {"result", "reference"}


def validator(name):
    return Draft202012Validator(json.loads((FOLDER / f"{name}.json").read_text()))


def faults(name, document):
    """First errors of a document, each with its place."""
    errors = validator(name).iter_errors(document)
    return [f"{error.json_path}: {error.message[:200]}" for error in islice(errors, 5)]


def test_each_schema_is_one_and_has_a_title():
    names = [path.stem for path in sorted(FOLDER.glob("*.json"))]
    assert set(names) == set(COMMANDS) | FILES
    for name in names:
        content = json.loads((FOLDER / f"{name}.json").read_text())
        Draft202012Validator.check_schema(content)
        assert content["title"] and content["description"]


def test_each_command_with_json_has_a_schema():
    groups = {"": Commands, "trace ": TraceCommands, "cluster ": ClusterCommands}
    with_json = {
        prefix + name
        for prefix, group in groups.items()
        for name, (target, _) in group.targets.items()
        if "as_json" in parameters(group.package, target)
    }
    shown = [command for commands in COMMANDS.values() for command in commands]
    missing = {
        name for name in with_json if not any(f"{text} ".startswith(f"{name} ") for text in shown)
    }
    assert not missing


def parameters(package, target):
    module, _, function = target.partition(":")
    return inspect.signature(
        getattr(importlib.import_module(f"{package}.{module}"), function)
    ).parameters


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: f"{path.parts[-3]}/{path.parts[-2]}")
def test_committed_results_fit_their_schema(path):
    assert faults("result", json.loads(path.read_text())) == []


def test_the_committed_reference_fits_its_schema():
    assert faults("reference", json.loads((ROOT / "figures/quick.json").read_text())) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "command"),
    [(name, command) for name, commands in COMMANDS.items() for command in commands],
)
def test_outputs_of_commands_fit_their_schema(name, command, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("REPRO_HOME", str(ROOT))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "gangs.csv").write_text(GANGS)
    code = app.main([*command.format(root=ROOT).split(), "--json"])
    told = capsys.readouterr()
    assert code in (0, 1), told.err
    assert faults(name, json.loads(told.out)) == []


def test_a_field_that_the_schema_does_not_have_is_a_fault():
    result = json.loads(RESULTS[0].read_text())
    assert "'extra' was unexpected" in faults("result", result | {"extra": 1})[0]
    del result["claims"]
    assert "'claims' is a required property" in faults("result", result)[0]


def test_schema_prints_one_and_lists_all(capsys):
    assert app.main(["schema"]) == 0
    assert capsys.readouterr().out.split() == sorted([*COMMANDS, *FILES])
    assert app.main(["schema", "result"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "result.json of a figure"
    assert app.main(["schema", "resutl"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "did you mean 'result'" in line
