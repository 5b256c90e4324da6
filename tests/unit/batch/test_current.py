"""When a result is still current, and what a batch does before it starts a kernel."""

import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from repro.base.errors import ExtraMissingError, ParamError
from repro.batch import execute, plan
from repro.batch.task import Task
from repro.figures import data, params, saved
from repro.figures import fingerprint as fp
from repro.figures.saved import to_json
from repro.files import public


@pytest.fixture
def entry(project, monkeypatch):
    monkeypatch.setenv("REPRO_HOME", str(project.root))
    project.add("tiresias/fig01_one")
    return params.discover()[0]


#: What else a result.json holds.
REST = {
    "id": "tiresias/fig01_one",
    "title": "t",
    "reference": "r",
    "shows": "s",
    "seed": 0,
    "profile": "quick",
    "stand_in": None,
    "params": {},
    "versions": {},
    "verdict": None,
    "claims": [],
    "points": [],
}


def finished(project, wanted, data=()):
    folder = project.folder("tiresias/fig01_one")
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"fig01_one.{suffix}" for suffix in ("svg", "csv")]
    for name in names:
        (folder / name).write_text(name)
    sums = {name: saved.checksum(name.encode()) for name in names}
    record = {**REST, "fingerprint": wanted, "data": list(data), "files": sums}
    (folder / "result.json").write_bytes(to_json(record))
    return folder


def test_every_cause_changes_the_fingerprint(entry, project):
    def now(profile="quick", **given):
        return fp.fingerprint(entry, profile, given)

    first = now()
    assert now() == first
    seen = {first, now("paper"), now(seed=1), now(seed=2), now(seeds=[1])}
    assert len(seen) == 5
    changes = (
        (entry.params_file, lambda text: text.replace("1x4", "1x8")),
        (entry.notebook, lambda text: text.replace("range(5)", "range(6)")),
        (project.root / "traces/table.csv", lambda text: "a,b\n1,2\n"),
        (project.root / "params/models.csv", lambda text: "a,b\n1,2\n"),
    )
    for path, change in changes:
        path.write_text(change(path.read_text() if path.exists() else ""))
        assert now() not in seen
        seen.add(now())


def test_outputs_of_a_notebook_do_not_matter(entry):
    first = fp.fingerprint(entry, "quick", {})
    notebook = json.loads(entry.notebook.read_text())
    notebook["cells"][1]["execution_count"] = 7
    notebook["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x"}]
    entry.notebook.write_text(json.dumps(notebook))
    assert fp.fingerprint(entry, "quick", {}) == first


def test_sources_that_only_show_results_do_not_count():
    names = {path.name for path in fp.sources()}
    assert {"loop.py", "lines.py", "figure.py", "claims.py", "metrics.py"} <= names
    assert not {"cli.py", "report.py", "execute.py", "commands.py"} & names


def test_a_result_is_current_only_if_it_is_complete(project):
    folder = finished(project, "abc")
    assert fp.is_current(folder, "fig01_one", "abc")
    assert not fp.is_current(folder, "fig01_one", "abd")
    (folder / "fig01_one.csv").unlink()
    assert not fp.is_current(folder, "fig01_one", "abc")
    finished(project, "abc")
    (folder / "result.json").write_text('{"fingerprint": "abc"')
    assert not fp.is_current(folder, "fig01_one", "abc")
    assert not fp.is_current(folder / "absent", "fig01_one", "abc")


@pytest.mark.parametrize("suffix", ["svg", "csv"])
@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda path: path.write_text(""), "empty"),
        (lambda path: path.write_text("edited"), "changed since it was written"),
        (lambda path: path.unlink(), "missing"),
        (lambda path: (path.unlink(), path.mkdir()), "cannot be read"),
    ],
)
def test_a_damaged_file_is_not_current_and_is_named(project, suffix, damage, told):
    folder = finished(project, "abc")
    result = json.loads((folder / "result.json").read_text())
    assert saved.damaged(folder, "fig01_one", result) == []
    damage(folder / f"fig01_one.{suffix}")
    assert not fp.is_current(folder, "fig01_one", "abc")
    assert saved.damaged(folder, "fig01_one", result) == [f"fig01_one.{suffix}: {told}"]


def test_a_result_of_before_checksums_is_read_but_not_current(project):
    folder = finished(project, "abc")
    (folder / "result.json").write_bytes(to_json({**REST, "fingerprint": "abc", "data": []}))
    assert not fp.is_current(folder, "fig01_one", "abc")
    assert saved.damaged(folder, "fig01_one", {"fingerprint": "abc"}) == []
    (folder / "fig01_one.svg").write_text("")
    assert saved.damaged(folder, "fig01_one", {}) == ["fig01_one.svg: empty"]
    (folder / "fig01_one.svg").write_text("x")
    assert len(saved.damaged(folder, "fig01_one", {"files": 3})) == 2


def test_a_result_that_a_later_run_confirmed_is_current_until_it_changes(project):
    folder = finished(project, "abc")
    saved.confirm(folder, "later")
    assert fp.is_current(folder, "fig01_one", "later") and fp.is_current(folder, "fig01_one", "abc")
    result = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_bytes(to_json({**result, "seed": 1}))
    assert not fp.is_current(folder, "fig01_one", "later"), "the note is about another result"


def test_an_own_file_that_changed_or_went_makes_a_result_old(project, monkeypatch):
    monkeypatch.setenv("REPRO_HOME", str(project.root))
    own = project.root / "mine.csv"
    own.write_text("1")
    folder = finished(project, "abc", [asdict(data.own_file("mine.csv"))])
    assert fp.is_current(folder, "fig01_one", "abc")
    own.write_text("2")
    assert not fp.is_current(folder, "fig01_one", "abc")
    own.unlink()
    assert not fp.is_current(folder, "fig01_one", "abc")


def test_a_parameter_given_its_default_counts_as_not_given(entry):
    first = fp.fingerprint(entry, "quick", {})
    assert fp.fingerprint(entry, "quick", {"seed": 0, "seeds": None}) == first
    assert fp.fingerprint(entry, "quick", {"seed": False}) != first


@pytest.mark.parametrize(
    ("kind", "here", "current"),
    [
        ("public", True, True),
        ("public", False, False),
        ("generated", False, True),
        ("synthetic stand-in", False, True),
        ("synthetic stand-in", True, False),
    ],
)
def test_data_that_came_or_went_makes_a_result_old(project, monkeypatch, kind, here, current):
    monkeypatch.setattr(public, "is_known", lambda name: name == "philly")
    monkeypatch.setattr(public, "available", lambda name: here)
    folder = finished(project, "abc", [{"name": "philly", "kind": kind}])
    assert fp.is_current(folder, "fig01_one", "abc") is current


def test_a_file_that_is_no_notebook(entry):
    for text in (
        "",
        "[]",
        '{"cells": [1]}',
        "<html>",
        "[" * 100_000,
        '{"cells": [{"cell_type": "code", "source": "", "metadata": null}]}',
    ):
        entry.notebook.write_text(text)
        with pytest.raises(ParamError, match="not a notebook"):
            fp.fingerprint(entry, "quick", {})


def test_dask_that_is_not_installed_is_named_with_its_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    task = Task(params.FigureEntry("a/b", Path()), {}, "", Path())
    with pytest.raises(ExtraMissingError, match=r'-m pip install -e ".*\[dask\]"$'):
        list(execute.run([task], jobs=1, backend="dask"))


def test_leftovers_of_killed_batches_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(plan.tempfile, "tempdir", str(tmp_path))
    with plan.scratch_folder() as scratch:
        prefix, number, _ = scratch.name.rsplit("-", 2)
        assert int(number) == os.getpid()
    dead = tmp_path / f"{prefix}-4194303-x"
    alive = tmp_path / f"{prefix}-{os.getpid()}-x"
    for folder in (dead, alive):
        folder.mkdir()
    with plan.scratch_folder() as scratch:
        assert scratch.parent == tmp_path and not dead.exists() and alive.exists()
    assert not scratch.exists()


@pytest.mark.parametrize("mark", ["node", "boot", "processes"])
def test_scratch_folders_of_other_machines_stay(tmp_path, monkeypatch, mark):
    """Hosts and containers may share the temporary folder; each has process numbers of its own."""
    monkeypatch.setattr(plan.tempfile, "tempdir", str(tmp_path))
    machine = {"node": "a", "boot": "1", "processes": "pid:[1]"}
    monkeypatch.setattr(plan, "_machine", lambda: tuple(machine.values()))
    with plan.scratch_folder() as live:
        pass
    of_machine = live.name.rsplit("-", 2)[0]
    live = tmp_path / f"{of_machine}-4194303-x"
    live.mkdir()
    machine[mark] = "another"
    with plan.scratch_folder():
        assert live.exists()


def test_scratch_folders_name_host_boot_and_processes():
    node, *_ = plan._machine()
    assert node == platform.node()
    assert plan._machine() == plan._machine()


@pytest.fixture
def shared(project, monkeypatch):
    """Two figures of one notebook."""
    monkeypatch.setenv("REPRO_HOME", str(project.root))
    for figure_id in ("tiresias/fig02_b", "tiresias/fig01_a"):
        project.add(figure_id, notebook="shared")
    return params.discover()


def planned(project, entries, **user_parameters):
    """Tasks of a batch by figure."""
    options = {"profile": "quick", "out": project.root / "out", "force": False}
    tasks, outcomes = plan.plan(
        entries, user_parameters=user_parameters, scratch=project.root, **options
    )
    assert outcomes == []
    return {task.id: task for task in tasks}


def test_a_batch_passes_the_id_to_a_notebook_of_several_figures(project, shared):
    project.add("tiresias/fig03_own")
    tasks = planned(project, params.discover())
    passed = {name: task.parameters.get("figure_id") for name, task in tasks.items()}
    assert passed == {
        "tiresias/fig01_a": "tiresias/fig01_a",
        "tiresias/fig02_b": "tiresias/fig02_b",
        "tiresias/fig03_own": None,
    }
    assert len({task.executed_notebook for task in tasks.values()}) == 3
    assert not any(task.changed for task in tasks.values())


def test_most_cpu_time_comes_first_but_papers_take_turns(project, monkeypatch):
    monkeypatch.setenv("REPRO_HOME", str(project.root))
    cpu_s = {"gavel/fig01_a": 9, "gavel/fig02_b": 8, "gavel/fig03_c": 7, "muri/fig01_d": 1}
    for figure_id in cpu_s:
        project.add(figure_id)
    monkeypatch.setattr(plan, "_expected_cpu_s", lambda result, figure_id: cpu_s[figure_id])
    order = list(planned(project, params.discover()))
    assert order == ["gavel/fig01_a", "muri/fig01_d", "gavel/fig02_b", "gavel/fig03_c"]


def test_the_id_is_in_the_fingerprint_once(shared):
    first, second = shared
    assert fp.fingerprint(first, "quick", {}) != fp.fingerprint(second, "quick", {})
    for entry in shared:
        # papermill passes the id; a batch has it from the figure
        passed = {"figure_id": entry.id, "profile": "quick", "out": "x"}
        assert fp.fingerprint(entry, "quick", passed) == fp.fingerprint(entry, "quick", {})


def test_the_id_is_no_parameter_of_the_user(project, shared):
    with pytest.raises(ParamError, match="-p figure_id: use the argument ID instead"):
        planned(project, shared, figure_id="tiresias/fig01_a")


def test_a_shared_notebook_needs_the_parameter(project, shared):
    path = shared[0].notebook
    path.write_text(path.read_text().replace("figure_id = ", "other = "))
    with pytest.raises(ParamError) as caught:
        plan.plan(
            shared,
            profile="quick",
            out=project.root,
            user_parameters={},
            force=False,
            scratch=project.root,
            raise_unreadable=True,
        )
    assert str(caught.value) == (
        f"{path}: the parameters cell has no figure_id, but tiresias/fig01_a names this notebook; "
        'add `figure_id = "tiresias/fig01_a"`'
    )
