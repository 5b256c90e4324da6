"""A light install: what works without extras, and the line that asks for a missing one."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repro.base import extras
from repro.base.errors import ExtraMissingError, ReproError

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").exists(), reason="not run from a checkout"
)


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def brought_by(lines: list[str]) -> set[str]:
    """Names of the distributions that requirements bring, themselves included."""
    todo = [Requirement(line) for line in lines]
    seen: set[tuple[str, ...]] = set()
    while todo:
        wanted = todo.pop()
        name = canonicalize_name(wanted.name)
        key = (name, *sorted(wanted.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            brought = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for requirement in map(Requirement, brought):
            marker = requirement.marker
            chosen = wanted.extras or {""}
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in chosen):
                todo.append(requirement)
    return {key[0] for key in seen}


@pytest.fixture(scope="module")
def owners() -> dict[str, set[str]]:
    """Installed top-level modules -> distributions that have them."""
    found = metadata.packages_distributions()
    return {module: set(map(canonicalize_name, names)) for module, names in found.items()}


WITHOUT = """\
import sys
from importlib.machinery import PathFinder

class Light(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        top = name.partition(".")[0]
        return None if top in BLOCKED else super().find_spec(name, path, target)

sys.meta_path = [Light if finder is PathFinder else finder for finder in sys.meta_path]
"""


@pytest.fixture(scope="module")
def light(owners):
    """Function that runs Python without the modules that a light install does not bring."""
    core = brought_by(project()["dependencies"])
    blocked = [
        module
        for module, names in owners.items()
        if not names & core and not module.startswith(("_", "repro"))
    ]
    # modules of extras that are not installed here are blocked as well
    blocked += [module for modules in extras.MODULES.values() for module in modules]
    assert {"matplotlib", "pymoo", "sklearn", "pytest"} <= set(blocked)
    assert not {"numpy", "pandas", "numba", "rich", "packaging"} & set(blocked)

    def run(code: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        start = f"BLOCKED = {blocked!r}\n{WITHOUT}"
        # loops run as plain Python: the traces are tiny
        settings = {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT), "REPRO_HOME": str(ROOT)}
        return subprocess.run(
            [sys.executable, "-c", start + code],
            cwd=folder,
            env={**os.environ, **settings, **variables},
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


SIMULATES = """\
import json, warnings
import repro
from repro.testing import small_trace
warnings.simplefilter("ignore")
stages = {"stage_storage": 0.1, "stage_cpu": 0.1, "stage_gpu": 0.5, "stage_network": 0.3}
trace = small_trace().assign(**stages)
names = ["srtf", "tiresias-l", "gavel-las", "pcs", "muri-s", "liquid", "antman", "themis"]
runs = {name: repro.simulate(trace, "1x4", name).summary() for name in names}
print(json.dumps({name: summary["n_finished"] for name, summary in runs.items()}))
"""


def test_a_light_install_simulates_under_policies_of_every_paper(light, tmp_path):
    done = light(SIMULATES, tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout).values()) == {6}


IMPORTS = """\
import importlib, json, pkgutil, repro
failed = {}
for module in pkgutil.walk_packages(repro.__path__, "repro."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            failed[module.name] = type(error).__name__
print(json.dumps(failed))
"""


@pytest.mark.slow
def test_only_charts_and_the_runner_of_notebooks_need_an_extra_to_be_imported(light, tmp_path):
    done = light(IMPORTS, tmp_path)
    assert done.returncode == 0, done.stderr
    failed = json.loads(done.stdout)
    charts = {"plot", "figures.figure", "papers.gavel.curves", "papers.gavel.hierarchy"}
    charts |= {"papers.pcs.front_view", "comparison.charts"}
    assert {f"repro.{name}" for name in charts} == {
        name for name, error in failed.items() if error == "ExtraMissingError"
    }
    runner = {"execute", "kernel", "notebook_libraries", "notebook_page", "on_worker", "warm"}
    training = {"image_networks", "inputs", "networks", "other_networks", "staged", "training"}
    training |= {"worker_requests"}
    assert failed.keys() == {
        *(f"repro.{name}" for name in charts),
        *(f"repro.batch.{name}" for name in runner),
        *(f"repro.measure.{name}" for name in training),
    }


COMMANDS = """\
import contextlib, io, json
from repro.cli import main
answers = []
for words in json.loads(WORDS):
    streams = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        code = main(words)
    answers.append([code, *(stream.getvalue() for stream in streams)])
print(json.dumps(answers))
"""
JOBS = "job_id,submit_time,duration,num_gpus\n0,0,60,4\n1,5,30,2\n2,6,10,1\n"
GANGS = "job_id,num_ps,num_workers\n0,1,2\n1,1,2\n"
OWN = ["simulate", "--trace", "jobs.csv", "--format", "repro", "--cluster", "1x4"]
PLACE = ["place", "--cluster", "3x2", "--jobs", "gangs.csv", "--policy"]
FRONT = ["front", "--trace", "divisible.csv", "--format", "repro", "--cluster", "1x4"]
FRONT += ["--prefer", "jct=avg", "--prefer", "pred_err=99", "--budget", "80", "-j", "1"]


@pytest.fixture
def commands(light, tmp_path):
    """Function that runs commands in a light install; returns exit code, stdout and stderr."""
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "gangs.csv").write_text(GANGS)
    (tmp_path / "divisible.csv").write_text(JOBS)

    def run(*calls: list[str]) -> list[tuple[int, str, str]]:
        done = light(f"WORDS = {json.dumps(calls)!r}\n{COMMANDS}", tmp_path)
        assert done.returncode == 0, done.stderr
        return [tuple(answer) for answer in json.loads(done.stdout)]

    return run


@pytest.mark.slow
def test_commands_of_a_light_install(commands, tmp_path):
    calls = [
        ["--help"],
        ["run", "--help"],
        ["policies"],
        ["list", "tour"],
        ["check", "--paper", "tour", "--out", str(ROOT / "figures")],
        ["trace", "list"],
        ["trace", "info", "jobs.csv", "--format", "repro", "--cluster", "1x4"],
        ["trace", "convert", "jobs.csv", "--format", "repro", "--out", "own.csv"],
        [*OWN, "--policy", "srtf", "--out", "records.csv"],
        [*PLACE, "liquid"],
        [*FRONT, "--method", "random"],
    ]
    answers = commands(*calls)
    for words, (code, out, err) in zip(calls, answers, strict=True):
        assert code == 0, (words, err)
        assert out or "convert" in words
    help_text, policies = answers[0][1], answers[2][1]
    assert "simulate" in help_text and "liquid-batch" in policies
    assert (tmp_path / "records.csv").read_text().count("\n") == 4


@pytest.mark.slow
def test_a_command_without_its_extra_says_in_one_line_how_to_install_it(commands):
    ecos = ["--cluster", "2xv100,2xp100", "--policy", "gavel-las", "--set", "lp_backend=ecos"]
    calls = {
        "figures": [["run", "tiresias/fig10"], ["report"]],
        "search": [
            [*OWN, "--policy", "liquid-batch"],
            [*PLACE, "liquid-batch"],
            FRONT,
            [*FRONT, "--method", "nsga2"],
        ],
        "estimate": [[*FRONT, "--method", "gaussian-process"]],
        "ecos": [["simulate", "--trace", "gavel-single", "--stand-in", *ecos]],
        "measure": [["measure", "pairs", "--out", "mine"]],
    }
    pairs = [(extra, words) for extra, listed in calls.items() for words in listed]
    answers = commands(*(words for _, words in pairs))
    for (extra, words), (code, out, err) in zip(pairs, answers, strict=True):
        assert (code, out) == (2, ""), (words, err)
        (line,) = err.splitlines()
        assert re.match(r"repro: .* needs \w+, which is not installed; .*run: .*pip install ", line)
        assert line.endswith(f'[{extra}]"'), words


def test_dask_is_asked_for_where_all_else_is_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ExtraMissingError, match=r'--backend dask needs .*\[dask\]"$') as caught:
        extras.require("dask", "--backend dask")
    assert caught.value.name == "distributed"


FUNCTIONS = """\
import json
import numpy as np
import repro
from repro.base.errors import ReproError
from repro.papers.liquid.online import OnlineForest
from repro.papers.liquid.requirements import regressor
from repro.papers.pcs.fronts import hypervolume
from repro.papers.tiresias.models import pack_limit
from repro.testing import small_trace

def charts():
    import repro.plot

calls = {
    "figure": lambda: repro.figure("tiresias/fig10"),
    "plot": lambda: repro.simulate(small_trace(), "1x4", "srtf").plot(),
    "charts": charts,
    "hypervolume": lambda: hypervolume(np.eye(2), np.array([2.0, 2.0])),
    "forest": lambda: OnlineForest(["gpu_mem_mb"]),
    "regressor": lambda: regressor("gbdt", 6),
    "classifier": lambda: pack_limit([0.1, 0.9], [False, True]),
}
answers = {}
for name, call in calls.items():
    try:
        call()
    except ImportError as error:
        answers[name] = [isinstance(error, ReproError), error.name, str(error)]
print(json.dumps(answers))
"""


def test_a_function_without_its_extra_raises_an_import_error_of_this_package(light, tmp_path):
    done = light(FUNCTIONS, tmp_path)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    wanted = dict.fromkeys(("figure", "plot", "charts"), "figures") | {
        "hypervolume": "search",
        "forest": "estimate",
        "regressor": "estimate",
        "classifier": "estimate",
    }
    assert answers.keys() == wanted.keys()
    for name, (is_ours, module, text) in answers.items():
        assert is_ours and module in extras.MODULES[wanted[name]], name
        assert text.endswith(f'[{wanted[name]}]"') and "\n" not in text


def test_completion_on_tab_works_without_extras(light, tmp_path):
    code = "from repro.cli import main\nsys.argv = ['repro']\nsys.exit(main([]))"
    words = {"_REPRO_COMPLETE": "complete_bash", "COMP_WORDS": "repro si", "COMP_CWORD": "1"}
    done = light(code, tmp_path, **words)
    assert done.stdout.split() == ["simulate"], done.stderr


def imported(path: Path) -> set[str]:
    """Top-level modules that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(str(node.module).partition(".")[0])
    return found


def test_what_the_package_imports_is_a_dependency_or_in_the_table_of_extras(owners):
    used = set().union(*map(imported, (ROOT / "repro").rglob("*.py")))
    third_party = used - set(sys.stdlib_module_names) - {"repro", "repro_course"}
    in_extras = {module for modules in extras.MODULES.values() for module in modules}
    core = brought_by(project()["dependencies"])
    # a bar of progress, left out where tqdm is absent
    left = third_party - in_extras - {"tqdm", "pytest"}
    assert {name for name in left if not owners[name] & core} == set()
    assert in_extras <= third_party


def test_the_table_of_extras_is_that_of_pyproject(owners):
    optional = project()["optional-dependencies"]
    assert project()["name"] == extras.DISTRIBUTION
    for extra, modules in extras.MODULES.items():
        brought = brought_by(optional[extra])
        for module in modules:
            assert module not in owners or owners[module] & brought, module


def test_the_core_and_the_extras_share_no_dependency():
    optional = project()["optional-dependencies"]
    lists = [project()["dependencies"], *(optional[extra] for extra in extras.MODULES)]
    names = [canonicalize_name(Requirement(line).name) for listed in lists for line in listed]
    assert len(names) == len(set(names))


def test_the_command_is_that_of_the_checkout_or_of_the_wheel(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    assert extras.install_command("dask") == f'{sys.executable} -m pip install -e ".[dask]"'
    monkeypatch.chdir(tmp_path)
    assert extras.install_command("dask").endswith(f'pip install -e "{ROOT}[dask]"')
    monkeypatch.setattr(extras, "PACKAGE", tmp_path / "repro")
    assert extras.install_command("dask").endswith('pip install "repro-gpu-scheduling[dask]"')


def test_another_failed_import_passes_through():
    with (
        pytest.raises(ModuleNotFoundError, match="no_such_module") as caught,
        extras.needed_for("a chart"),
    ):
        import no_such_module  # noqa: F401
    assert not isinstance(caught.value, ReproError)


def test_a_part_that_an_installed_package_lacks_is_not_called_a_missing_package():
    with pytest.raises(ModuleNotFoundError) as caught, extras.needed_for("a chart"):
        import matplotlib.no_such_part  # noqa: F401
    assert not isinstance(caught.value, ReproError)
