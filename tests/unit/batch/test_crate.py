"""Research objects: results with their provenance, readable by the library that archives use."""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import shutil
import subprocess
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import pytest

from repro.base.errors import ReproError
from repro.batch import check
from repro.batch.crate import write_crate
from repro.batch.crate.commands import options
from repro.cli import main
from repro.figures import params
from repro.files import public

ROOT = Path(__file__).resolve().parents[3]
#: A figure on public and generated data, one on measured tables of the checkout, a diagram.
IDS = ("gavel/fig08_las_single", "liquid/measured_estimators", "tiresias/fig06_architecture")
EPOCH = "1764000000"
pytestmark = [
    pytest.mark.skipif(
        find_spec("rocrate") is None,
        reason="the package rocrate is not installed: pip install -e .[crate]",
    ),
    pytest.mark.skipif(not (ROOT / "figures").is_dir(), reason="not run from a checkout"),
]


def stored(*ids: str, out: Path = ROOT / "figures") -> list[check.StoredFigure]:
    return check.stored(params.select(ids, params.discover(ROOT)), out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("crates") / "crate"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", EPOCH)
        patch.setenv("REPRO_HOME", str(ROOT))
        write_crate(target, stored(*IDS), ROOT)
    return target


@pytest.fixture(scope="module")
def entities(folder) -> dict[str, dict]:
    graph = json.loads((folder / "ro-crate-metadata.json").read_text())["@graph"]
    found = {entity["@id"]: entity for entity in graph}
    assert len(found) == len(graph), "an id stands twice"
    return found


def as_list(value) -> list:
    return value if isinstance(value, list) else [value]


def ids(value) -> list[str]:
    return [target["@id"] for target in as_list(value)]


def of_type(entities, kind: str) -> list[dict]:
    return [entity for entity in entities.values() if kind in as_list(entity["@type"])]


def test_every_reference_leads_to_an_entity_or_an_address(entities):
    for entity in entities.values():
        for value in entity.values():
            for target in as_list(value):
                if isinstance(target, dict):
                    assert target["@id"] in entities or target["@id"].startswith("http"), target


def test_the_crate_has_what_the_profiles_require(entities):
    root = entities["./"]
    profiles = {
        "https://w3id.org/ro/wfrun/process/0.5",
        "https://w3id.org/ro/wfrun/workflow/0.5",
        "https://w3id.org/workflowhub/workflow-ro-crate/1.0",
    }
    assert set(ids(root["conformsTo"])) == profiles
    assert all("CreativeWork" in entities[profile]["@type"] for profile in profiles)
    assert {"name", "description", "license", "datePublished"} <= root.keys()
    (main_id,) = ids(root["mainEntity"])
    main_workflow = entities[main_id]
    assert {"File", "SoftwareSourceCode", "ComputationalWorkflow"} == set(main_workflow["@type"])
    assert {"name", "programmingLanguage", "license", "input", "output"} <= main_workflow.keys()
    actions = of_type(entities, "CreateAction")
    assert {action["@id"] for action in actions} == set(ids(root["mentions"]))
    assert [a for a in actions if ids(a["instrument"]) == [main_id]]
    for action in actions:
        (tool,) = ids(action["instrument"])
        assert "SoftwareSourceCode" in entities[tool]["@type"]
        assert action["object"] and action["result"] and action["endTime"]
    for parameter in of_type(entities, "FormalParameter"):
        assert parameter["additionalType"]
        for example in ids(parameter["workExample"]):
            assert parameter["@id"] in ids(entities[example]["exampleOfWork"])


def test_a_run_for_each_figure_with_notebook_yaml_data_and_results(folder, entities):
    for figure in stored(*IDS):
        action = entities[f"#run-{figure.entry.id.replace('/', '-').replace('_', '-')}"]
        assert ids(action["instrument"]) == [f"notebooks/{figure.entry.id}.ipynb"]
        used = [entities[name] for name in ids(action["object"])]
        assert f"params/{figure.entry.id}.yaml" in [entity["@id"] for entity in used]
        values = {entity["name"]: entity["value"] for entity in used if "value" in entity}
        assert values == {name: figure.result[name] for name in ("profile", "seed")}
        names = [*figure.result["files"], "result.json"]
        results = [f"figures/{figure.entry.id}/{name}" for name in names]
        assert ids(action["result"]) == results
        for name in results:
            assert (folder / name).read_bytes() == (ROOT / name).read_bytes()


def test_files_have_size_checksum_and_licence(folder, entities):
    files = [e for e in of_type(entities, "File") if not e["@id"].startswith("http")]
    on_disk = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    own = {"ro-crate-metadata.json", "ro-crate-preview.html"}
    assert {unquote(entity["@id"]) for entity in files} == on_disk - own
    assert {entity["@id"] for entity in files} <= set(ids(entities["./"]["hasPart"]))
    for entity in files:
        content = (folder / unquote(entity["@id"])).read_bytes()
        assert entity["sha256"] == hashlib.sha256(content).hexdigest()
        assert entity["contentSize"] == str(len(content))
        if entity["@id"] not in ("LICENSE", "README.md"):
            assert ids(entity["license"]) == ["https://spdx.org/licenses/MIT"]


def test_public_data_is_named_by_address_checksum_and_licence_and_not_copied(entities):
    used = {
        data["name"]
        for figure in stored(*IDS)
        for data in figure.result["data"]
        if data["kind"] == "public"
    }
    assert used
    for name in used:
        file = public.entry(name)
        entity = entities[file.url]
        assert (entity["name"], entity["sha256"]) == (name, file.sha256)
        assert entities[ids(entity["license"])[0]]["name"] == file.licence


def test_generated_data_has_seed_and_checksum_and_own_tables_travel(folder, entities):
    used = [data for figure in stored(*IDS) for data in figure.result["data"]]
    generated = [data for data in used if data["kind"] == "generated"]
    own = [data for data in used if data["kind"] == "own file"]
    assert generated and own
    for data in generated:
        name = f"#data-{data['name']}-{data['seed']}-{data['sha256'][:12]}"
        assert entities[name]["sha256"] == data["sha256"]
        assert f"seed {data['seed']}" in entities[name]["description"]
    for data in own:
        assert hashlib.sha256((folder / data["name"]).read_bytes()).hexdigest() == data["sha256"]


def test_verdicts_are_counted_for_the_crate_and_for_each_figure(entities):
    for figures, name in (
        (stored(*IDS), "./"),
        (stored(IDS[0]), f"figures/{IDS[0]}/"),
    ):
        measured = [entities[value] for value in ids(entities[name]["variableMeasured"])]
        rows = [row for figure in figures for row in figure.claims]
        wanted = {f"claims {word}": number for word, number in check.counts(rows).items()}
        assert {entity["name"]: entity["value"] for entity in measured} == wanted


def test_papers_are_cited_with_their_authors(entities):
    cited = [entities[name] for name in ids(entities["./"]["citation"])]
    assert len(cited) == 3
    assert {"Zaharia", "Chowdhury"} <= {
        entities[person]["familyName"] for paper in cited for person in ids(paper["author"])
    }


def test_versions_are_those_of_the_results(entities):
    found = {
        (entity["name"], entity["softwareVersion"])
        for entity in of_type(entities, "SoftwareApplication")
    }
    for figure in stored(*IDS):
        assert set(figure.result["versions"].items()) <= found


def test_commands_are_a_shell_script_that_names_every_figure(folder):
    text = (folder / "commands.sh").read_text()
    checked = subprocess.run(["sh", "-n", folder / "commands.sh"], capture_output=True)
    assert checked.returncode == 0, checked.stderr
    for name in IDS:
        assert text.count(name) == 2
    assert "trace fetch gavel-throughputs" in text
    assert f"repro run {' '.join(IDS)} --profile paper --out build/again" in text


def test_only_a_seed_of_its_own_is_passed_to_a_notebook():
    (figure,) = stored(IDS[0])
    assert options(figure) == "--profile paper"
    seeded = check.StoredFigure(figure.entry, figure.folder, {**figure.result, "seed": 7})
    assert options(seeded) == "--profile paper -p seed 7"
    # a notebook without random draws takes no seed
    assert all("seed" not in options(each) for each in stored("gavel/fig04_colocation"))


def test_the_library_reads_the_crate_again(folder):
    from rocrate.rocrate import ROCrate

    crate = ROCrate(folder)
    assert crate.mainEntity.id == "commands.sh"
    assert crate.datePublished.timestamp() == float(EPOCH)
    assert len(crate.get_by_type("CreateAction")) == len(IDS) + 1
    assert "<html" in (folder / "ro-crate-preview.html").read_text()


def test_equal_results_give_equal_bytes(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", EPOCH)
    write_crate(tmp_path / "again", stored(*IDS), ROOT)
    names = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
    same, other, failed = filecmp.cmpfiles(folder, tmp_path / "again", names, shallow=False)
    assert (len(same), other, failed) == (len(names), [], [])
    assert os.listdir(tmp_path) == ["again"]


def test_without_a_fixed_date_the_results_give_it(tmp_path, monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    summary = write_crate(tmp_path / "crate", stored(IDS[2]), ROOT)
    assert summary.dates == "the last change of each result.json" and summary.figures == 1
    graph = json.loads((tmp_path / "crate/ro-crate-metadata.json").read_text())["@graph"]
    (root,) = [entity for entity in graph if entity["@id"] == "./"]
    changed = int((ROOT / "figures" / IDS[2] / "result.json").stat().st_mtime)
    assert datetime.fromisoformat(root["datePublished"]).timestamp() == changed


def refused(capsys, *words) -> str:
    assert main([str(word) for word in words]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    return line


def test_the_command_writes_a_crate_and_refuses_a_folder_with_files(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("REPRO_HOME", str(ROOT))
    words = ["crate", tmp_path / "new", IDS[2], "--out", ROOT / "figures"]
    assert main([str(word) for word in words]) == 0
    said = capsys.readouterr().out
    assert "1 figure of" in said and "dates are the last change of each result.json" in said
    assert "is not empty; give a new folder" in refused(capsys, *words)
    (tmp_path / "file").touch()
    assert "is no folder" in refused(capsys, "crate", tmp_path / "file", *words[2:])


def test_wrong_input_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("REPRO_HOME", str(ROOT))
    out = ["--out", tmp_path / "none"]
    assert "no results in" in refused(capsys, "crate", tmp_path / "new", IDS[2], *out)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    words = ["crate", tmp_path / "new", IDS[2], "--out", ROOT / "figures"]
    assert "give whole seconds since 1970" in refused(capsys, *words)
    assert not (tmp_path / "new").exists()


def test_damaged_results_and_changed_tables_are_refused(tmp_path):
    copied = tmp_path / "figures" / IDS[2]
    copied.mkdir(parents=True)
    for path in (ROOT / "figures" / IDS[2]).iterdir():
        (copied / path.name).write_bytes(path.read_bytes())
    next(copied.glob("*.csv")).write_text("changed\n")
    with pytest.raises(ReproError, match="changed since it was written"):
        write_crate(tmp_path / "crate", stored(IDS[2], out=tmp_path / "figures"), ROOT)
    (figure,) = stored(IDS[1])
    data = [{**used, "sha256": "0" * 64} for used in figure.result["data"]]
    stale = check.StoredFigure(figure.entry, figure.folder, {**figure.result, "data": data})
    with pytest.raises(ReproError, match="changed since results were made from it"):
        write_crate(tmp_path / "crate", [stale], ROOT)
    assert not (tmp_path / "crate").exists()


def test_the_command_refuses_a_damaged_result(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("REPRO_HOME", str(ROOT))
    for name in IDS[1:3]:
        shutil.copytree(ROOT / "figures" / name, tmp_path / "figures" / name)
    (tmp_path / "figures" / IDS[2] / "result.json").write_text('{"id": ')
    line = f"repro: {IDS[2]}: result.json: damaged (not JSON); `repro run` makes it again"
    for words in ([], [IDS[2]]):
        command = ["crate", tmp_path / "new", *words, "--out", tmp_path / "figures"]
        assert refused(capsys, *command) == line
    assert not (tmp_path / "new").exists()


def test_a_users_own_file_stays_private(tmp_path):
    (figure,) = stored(IDS[2])
    data = [{"name": "/home/ada/jobs.csv", "kind": "own file", "sha256": "1" * 64, "seed": None}]
    private = check.StoredFigure(figure.entry, figure.folder, {**figure.result, "data": data})
    write_crate(tmp_path / "crate", [private], ROOT)
    text = (tmp_path / "crate/ro-crate-metadata.json").read_text()
    assert "jobs.csv" in text and "/home/ada" not in text
