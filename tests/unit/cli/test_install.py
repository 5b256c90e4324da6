"""Installed from wheels, away from any checkout: what works, what says it needs one, plugins."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
pytest.importorskip("hatchling")
pytestmark = [
    pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="not run from a checkout"),
    pytest.mark.xdist_group("install"),
    # left out by `make check`
    pytest.mark.slow,
]
TRACE = "job_id,submit_time,duration,num_gpus\n0,0,60,4\n1,5,30,2\n2,6,10,1\n"


def pip(*words):
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def built(project: Path, into: Path) -> Path:
    pip("wheel", "--no-index", "--no-build-isolation", "--no-deps", "-w", into, project)
    (wheel,) = into.glob("*.whl")
    return wheel


class Place:
    """A folder of installed packages, and another in which the command line runs."""

    def __init__(self, site: Path, here: Path):
        self.site = site
        self.here = here
        (here / "jobs.csv").write_text(TRACE)

    def install(self, project: Path, wheels: Path) -> None:
        wheel = built(project, wheels)
        pip("install", "--no-index", "--no-deps", "--target", self.site, wheel)

    def python(self, *words, code=0, **more):
        env = {**os.environ, "PYTHONPATH": str(self.site), **more}
        env.pop("REPRO_HOME", None)
        done = subprocess.run(
            [sys.executable, *map(str, words)],
            cwd=self.here,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done

    def repro(self, *words, code=0):
        return self.python("-m", "repro.cli", *words, code=code)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def place(wheel, tmp_path_factory):
    site = tmp_path_factory.mktemp("site")
    pip("install", "--no-index", "--no-deps", "--target", site, wheel)
    return Place(site, tmp_path_factory.mktemp("elsewhere"))


OWN = ("simulate", "--trace", "jobs.csv", "--format", "repro", "--cluster", "1x4", "--json")


def test_the_tables_travel_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as packed:
        held = {name: packed.read(name) for name in packed.namelist() if "/tables/" in name}
    tables = [*ROOT.glob("params/*.csv"), *ROOT.glob("traces/**/*.csv")]
    wanted = {path: path.relative_to(ROOT) for path in tables}
    assert held == {
        f"repro/tables/{name.as_posix()}": path.read_bytes() for path, name in wanted.items()
    }


def test_a_students_wheel_holds_no_solution_and_no_grader(wheel):
    with zipfile.ZipFile(wheel) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    assert not any(name.endswith(".ipynb") for name in files)
    telling = (b"BEGIN SOLUTION", b"BEGIN HIDDEN TESTS")
    assert [name for name, held in files.items() if any(word in held for word in telling)] == []
    own = {name for name in files if name.startswith("repro/course/")}
    assert own == {"repro/course/__init__.py", "repro/course/checks.py"}


@pytest.fixture(scope="module")
def course_wheel(tmp_path_factory):
    return built(ROOT / "course", tmp_path_factory.mktemp("course"))


def test_the_assignments_travel_in_the_wheel_of_the_course(course_wheel):
    with zipfile.ZipFile(course_wheel) as packed:
        names = packed.namelist()
        held = {name: packed.read(name) for name in names if "/notebooks/" in name}
    wanted = {path.name: path.read_bytes() for path in ROOT.glob("notebooks/course/*.*")}
    assert held == {f"repro_course/notebooks/{name}": content for name, content in wanted.items()}
    assert not any(name.startswith("repro/") for name in names)


def test_the_installed_course_releases_and_grades(wheel, course_wheel, tmp_path):
    site = tmp_path / "site"
    pip("install", "--no-index", "--no-deps", "--target", site, wheel, course_wheel)
    (tmp_path / "here").mkdir()
    place = Place(site, tmp_path / "here")
    shown = place.python("-c", "import repro_course; print(repro_course.__file__)").stdout
    assert Path(shown.strip()).parent == site / "repro_course"
    place.repro("course", "release", "handout")
    blank = place.here / "handout/1_queues.ipynb"
    assert "SOLUTION" not in blank.read_text()
    (place.here / "in/ann").mkdir(parents=True)
    blank.rename(place.here / "in/ann/1_queues.ipynb")
    shown = place.repro("course", "grade", "in", "-j", "1").stdout
    assert shown.startswith("ann 1_queues: 0 of 10, ")
    old = "from repro.course.grade import Limits; print(Limits.__module__)"
    done = place.python("-W", "always::DeprecationWarning", "-c", old)
    assert done.stdout == "repro_course.grade\n"
    assert "repro.course.grade is now repro_course.grade" in done.stderr


def test_the_installed_package_is_the_one_that_runs(place):
    shown = place.python("-c", "import repro; print(repro.__file__)").stdout
    assert Path(shown.strip()).parent == place.site / "repro"


@pytest.mark.parametrize("policy", ["srtf", "tiresias-g"])
def test_a_file_of_ones_own_is_simulated(place, policy):
    found = json.loads(place.repro(*OWN, "--policy", policy).stdout)
    assert found["n_finished"] == 3


def test_generators_are_there(place):
    words = ("simulate", "--trace", "testbed", "--cluster", "8x8", "--json")
    found = json.loads(place.repro(*words, "--policy", "srtf").stdout)
    assert found["n_finished"] == found["n_jobs"] > 10


EVERY = """\
import warnings
from repro import simulate
from repro.model.policy import policies
from repro.base.errors import ReproError
from repro.testing import small_trace
warnings.simplefilter("ignore")
ran, refused = 0, []
for name in policies:
    try:
        ran += simulate(small_trace(), "1x4", name).summary()["n_finished"] == 6
    except ReproError as error:
        refused.append(str(error))
print(ran)
print(refused)
"""


def test_every_policy_runs(place):
    ran, refused = place.python("-c", EVERY, NUMBA_DISABLE_JIT="1").stdout.splitlines()
    assert int(ran) > 30 and "checkout" not in refused


def test_public_traces_are_listed_and_fetched(place, mirror, tmp_path, monkeypatch):
    assert "tiresias-60" in place.repro("trace", "list").stdout
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path))
    name, path = place.repro("trace", "fetch", "tiresias-60").stdout.split()
    assert name == "tiresias-60" and Path(path).is_file()
    assert "jobs" in place.repro("trace", "info", "tiresias-60").stdout


@pytest.mark.parametrize("words", [["list"], ["run", "--all"], ["check"], ["report"]])
def test_what_needs_the_checkout_says_how_to_get_one(place, words):
    done = place.repro(*words, code=2)
    (line,) = done.stderr.splitlines()
    assert line.startswith("repro: no project checkout") and "`git clone`" in line
    assert done.stdout == ""


def test_new_policy_writes_a_package_that_adds_it(place, tmp_path):
    shown = place.repro("new-policy", "my-first").stdout
    folder = place.here / "my-first"
    assert "wrote my-first/pyproject.toml" in shown
    assert place.repro("policies").stdout.count("my-first") == 0
    place.install(folder, tmp_path)
    assert "\n  my-first " in place.repro("policies").stdout
    found = json.loads(place.repro(*OWN, "--policy", "my-first").stdout)
    assert (found["policy"], found["n_finished"]) == ("my-first", 3)
    tested = place.python("-m", "pytest", "-q", "-p", "no:cacheprovider", folder).stdout
    assert "2 passed" in tested
    assert "exists already" in place.repro("new-policy", "my-first", code=2).stderr
    line = place.repro("new-policy", "my-second", "--paper", "gavel", code=2).stderr
    assert "leave --paper out" in line


PLUGIN = {
    "pyproject.toml": """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "plain-things"
version = "0.1"

[project.entry-points."repro.policies"]
shortest = "plain_things"
broken = "plain_broken"

[project.entry-points."repro.placements"]
last = "plain_things"

[project.entry-points."repro.trace_formats"]
plain = "plain_things"

[tool.hatch.build.targets.wheel]
only-include = ["plain_things.py", "plain_broken.py"]
""",
    "plain_broken.py": "from repro.model.policy import register\nnme\n",
    "plain_things.py": """\
from dataclasses import dataclass
from typing import ClassVar
from repro.model.policy import Order, register
from repro.files.table import Table
from repro.placement.count import Count
from repro.placement import register as place
from repro.trace.formats import FORMATS

@register("shortest")
@dataclass(frozen=True)
class Shortest(Order):
    '''Shortest job first.'''
    needs: ClassVar[frozenset[str]] = frozenset({"duration"})
    def key(self, view, job):
        return view.duration(job)

@place("last")
@dataclass(frozen=True)
class Last(Count):
    '''As count does.'''

@FORMATS.register("plain")
def read(document):
    '''Read three columns without more ado.

    Columns: start, length, gpus.
    '''
    table = Table(document, ("start", "length", "gpus"))
    parsed = table.parsed(submit_time="start", duration="length", num_gpus="gpus")
    parsed.frame.insert(0, "job_id", range(len(parsed.frame)))
    return parsed
""",
}


def test_a_wheel_adds_a_policy_a_placement_and_a_format_and_a_broken_file_is_one_line(
    place, tmp_path
):
    folder = tmp_path / "plain"
    folder.mkdir()
    for name, text in PLUGIN.items():
        (folder / name).write_text(text)
    place.install(folder, tmp_path / "wheels")
    (place.here / "plain.csv").write_text("start,length,gpus\n0,60,4\n5,30,2\n6,10,1\n")
    words = ("simulate", "--trace", "plain.csv", "--format", "plain", "--cluster", "1x4", "--json")
    done = place.repro(*words, "--policy", "shortest", "--placement", "last", "--out", "out.csv")
    with (place.here / "out.csv").open() as stream:
        ends = {row["job_id"]: float(row["end_time"]) for row in csv.DictReader(stream)}
    assert ends == {"0": 90.0, "1": 35.0, "2": 16.0}
    warned = (
        "plain-things 0.1: plain_broken.py:2: NameError: name 'nme' is not defined; "
        "policy broken left out"
    )
    assert done.stderr == ""
    listed = place.repro("policies")
    assert listed.stderr.splitlines() == [f"repro: warning: {warned}"]
    assert "shortest" in listed.stdout
    assert "Columns: start, length, gpus." in place.repro("trace", "formats").stdout
    refused = place.repro(*words, "--policy", "broken", code=2).stderr.splitlines()
    assert refused[-1].startswith("repro: policy 'broken' cannot be read: plain-things 0.1: ")
