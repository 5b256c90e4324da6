"""`repro run`: how many notebooks run at a time."""

import os

import joblib
import pytest

from repro.batch import execute
from repro.cli import main, run

SIMULATE = ("simulate", "--trace", "mm", "--policy", "fifo")


@pytest.mark.parametrize(("words", "workers"), [((), 2), (("-j", "3"), 3)])
def test_one_notebook_runs_per_cpu_that_the_quota_allows(project, monkeypatch, words, workers):
    monkeypatch.setenv("REPRO_HOME", str(project.root))
    for number in range(4):
        project.add(f"tiresias/fig0{number}_one")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    # joblib also reads the quota of a container
    monkeypatch.setattr(joblib, "cpu_count", lambda: 2)
    options = {}
    monkeypatch.setattr(run, "_run_tasks", lambda *_, **given: iter(options.update(given) or ()))
    main(["run", "--all", *words])
    assert options["jobs"] == workers


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--all", "--out", "{path}"],
        ["plan", "--out", "{path}"],
        [*SIMULATE, "--cluster", "{path}.csv"],
        [*SIMULATE, "--cluster", "1x2:v100", "--throughputs", "{path}"],
    ],
)
def test_a_home_folder_that_is_not_known_is_one_line(words, capsys):
    path = "~no-such-user-of-this-machine/x"
    assert main([word.format(path=path) for word in words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"repro: {path}")
    assert line.endswith("there is no home folder ~no-such-user-of-this-machine; give another path")


def test_results_cannot_go_below_a_file(project, monkeypatch, capsys):
    monkeypatch.setenv("REPRO_HOME", str(project.root))
    monkeypatch.setattr(run, "_run_tasks", lambda *_, **__: pytest.fail("a notebook started"))
    project.add("tiresias/fig01_one")
    file = project.root / "file"
    file.touch()
    for out in (file, file / "inside"):
        assert main(["run", "--all", "--out", str(out)]) == 2
        assert capsys.readouterr().err == f"repro: --out {out}: {file} is a file; give a folder\n"


def test_a_batch_without_a_number_of_notebooks_follows_the_quota(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 2)
    with execute._pool([], None, "local", None) as (_, slots, _):
        assert slots == 2
