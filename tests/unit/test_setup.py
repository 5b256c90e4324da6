"""The set-up files agree with each other and with the package."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.testing import CliRunner

from repro.cli import app

ROOT = Path(__file__).resolve().parents[2]
#: Extras of the extra `all`.
IN_ALL = ("figures", "search", "estimate", "dask")
pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").exists(), reason="not run from a checkout"
)


def pyproject() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def course() -> dict:
    return tomllib.loads((ROOT / "course/pyproject.toml").read_text())


def course_dependencies() -> list[str]:
    """Requirements of the course but for the package itself."""
    own = f"{pyproject()['project']['name']}["
    return [line for line in course()["project"]["dependencies"] if not line.startswith(own)]


def bounds(lines: list[str]) -> dict[str, str]:
    parts = [re.fullmatch(r"([A-Za-z0-9_.-]+)\s*(.*)", line) for line in lines]
    return {m[1].lower(): m[2] for m in parts if m}


def conda() -> dict[str, str]:
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    return bounds([entry for entry in entries if isinstance(entry, str)])


def test_environment_has_the_same_names_and_bounds_as_pyproject():
    project = pyproject()["project"]
    extras = project["optional-dependencies"]
    extra = [line for name in (*IN_ALL, "ecos", "test") for line in extras[name]]
    wanted = bounds([*project["dependencies"], *extra, *course_dependencies()])
    found = conda()
    assert found.pop("python") == project["requires-python"]
    found.pop("pip")
    assert found.pop("make") == ""
    assert found == wanted


def test_all_is_every_extra_with_wheels_and_the_course_takes_a_part_of_it():
    project = pyproject()["project"]
    extras = project["optional-dependencies"]
    assert extras["all"] == [f"{project['name']}[{','.join(IN_ALL)}]"]
    assert extras.keys() - set(IN_ALL) == {
        *("all", "course", "crate", "docs", "ecos", "measure", "test")
    }
    (students,) = map(Requirement, extras["course"])
    assert students.name == project["name"] and students.extras <= set(IN_ALL)


def test_a_full_install_has_the_packages_that_the_project_stands_on():
    names = [
        "jupyterlab",
        "papermill",
        "numpy",
        "pandas",
        "scipy",
        "simpy",
        "networkx",
        "seaborn",
        "pymoo",
    ]
    project = pyproject()["project"]
    extras = project["optional-dependencies"]
    full = bounds([*project["dependencies"], *(line for extra in IN_ALL for line in extras[extra])])
    assert set(names) <= full.keys() and set(names) <= conda().keys()


def locked(python: str, platform: str = "linux") -> dict[str, Requirement]:
    """Return what constraints.txt pins on a Python, by name."""
    where = {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "sys_platform": platform,
        "os_name": "nt" if platform == "win32" else "posix",
    }
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    active = [pin for pin in pins if pin.marker is None or pin.marker.evaluate(where)]
    found = {canonicalize_name(pin.name): pin for pin in active}
    assert len(found) == len(active), "two pins of one package"
    return found


def asked(*extras: str) -> list[Requirement]:
    project = pyproject()["project"]
    lists = [project["dependencies"], *map(project["optional-dependencies"].get, extras)]
    lists.append(course_dependencies())
    return [Requirement(line) for listed in lists for line in listed]


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_lock_pins_every_dependency_within_its_bounds(python, platform):
    pins = locked(python, platform)
    for pin in pins.values():
        # sphinx-basic-ng, which furo stands on, has beta releases alone
        assert pin.url is None and re.fullmatch(r"==[0-9.]+(b[0-9]+)?", str(pin.specifier)), pin
    wanted = {canonicalize_name(r.name): r for r in asked(*IN_ALL, "ecos", "test", "crate", "docs")}
    if python == "3.13":
        assert "ecos" not in pins, "no wheel of it: the Makefile tries, and says so"
        del wanted["ecos"]
    for name, requirement in wanted.items():
        assert pins[name].specifier and str(pins[name].specifier)[2:] in requirement.specifier


def test_the_lock_names_the_versions_the_committed_figures_were_made_with():
    pins = locked("3.11")
    compared = set()
    for path in ROOT.glob("figures/*/*/result.json"):
        for name, version in json.loads(path.read_text())["versions"].items():
            if version and canonicalize_name(name) in pins:
                assert str(pins[canonicalize_name(name)].specifier) == f"=={version}", path
                compared.add(name)
    assert {"numpy", "scipy", "pandas", "matplotlib", "networkx", "simpy"} <= compared


def test_the_lock_pins_all_that_the_dependencies_bring():
    """Where the environment is the locked one; newer versions may bring other packages."""
    pins = locked(".".join(map(str, sys.version_info[:2])), sys.platform)
    todo = asked(*IN_ALL, "ecos", "test", "docs")
    seen = {}
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        extras = requirement.extras
        if (name, *sorted(extras)) in seen:
            continue
        try:
            seen[name, *sorted(extras)] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        for line in metadata.requires(name) or []:
            brought = Requirement(line)
            if brought.marker is None or any(
                brought.marker.evaluate({"extra": extra}) for extra in extras or [""]
            ):
                todo.append(brought)
    versions = {key[0]: version for key, version in seen.items()}
    if any(str(pins[n].specifier) != f"=={v}" for n, v in versions.items() if n in pins):
        pytest.skip("not the locked environment")
    assert len(versions) > 100 and versions.keys() <= pins.keys()


def test_version_is_the_same_everywhere():
    import repro

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert repro.__version__ == pyproject()["project"]["version"] == citation["version"]
    assert f"## {repro.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert course()["project"]["version"] == repro.__version__
    assert (
        course()["project"]["dependencies"][0]
        == f"repro-gpu-scheduling[course]=={repro.__version__}"
    )


def test_the_distribution_has_a_name_of_its_own_and_no_hint_installs_a_strangers():
    """On the public index `repro` is somebody else's."""
    project = pyproject()["project"]
    assert project["name"] != "repro" and project["scripts"] == {"repro": "repro.cli:main"}
    shown = [ROOT / name for name in ("README.md", "Makefile", "CHANGELOG.md", "environment.yml")]
    shown.append(ROOT / "course/README.md")
    for folder, suffix in (
        ("repro", "py"),
        ("course", "py"),
        ("docs", "md"),
        ("notebooks", "ipynb"),
    ):
        shown += (ROOT / folder).rglob(f"*.{suffix}")
    for path in shown:
        assert not re.search(r"pip install [^\n`]*\brepro(?![-\w/])", path.read_text()), path


def test_the_wheel_takes_every_table_along():
    included = pyproject()["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    tables = [*ROOT.glob("params/*.csv"), *ROOT.glob("traces/**/*.csv")]
    names = [path.relative_to(ROOT).as_posix() for path in tables]
    assert included == {name: f"repro/tables/{name}" for name in names}


def test_the_wheel_of_the_course_takes_the_assignments_along():
    wheel = course()["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"../notebooks/course": "repro_course/notebooks"}
    assert wheel["packages"] == ["repro_course"]


@pytest.fixture
def fake(tmp_path):
    """A checkout whose Python writes down what is asked of it; returns a function that makes."""
    for name in ("Makefile", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        'echo "$@" >> calls\n'
        'case "$*" in *ecos*) cat pip-says >&2; exit 1;; esac\n'
        'case "$*" in "-m venv"*) mkdir -p "$3/bin"; cp python "$3/bin";; esac\n'
    )
    python.chmod(0o755)
    (tmp_path / "pip-says").write_text("ERROR: No matching distribution found for ecos>=2\n")

    def make(*arguments: str, rc: int = 0) -> tuple[list[str], str]:
        calls = tmp_path / "calls"
        calls.write_text("")
        # files written within one tick of the file system's clock look equally old
        time.sleep(0.02)
        command = ["make", f"PYTHON={python}", *arguments]
        # the variables of a make that runs this test are not those of the checkout
        outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTEST_ARGS")
        environment = {name: value for name, value in os.environ.items() if name not in outer}
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, env=environment
        )
        assert done.returncode == rc, done.stderr
        return calls.read_text().splitlines(), done.stdout

    return make


needs_make = pytest.mark.skipif(not shutil.which("make"), reason="no make")


@needs_make
def test_make_installs_the_locked_versions_once(fake, tmp_path):
    calls, said = fake(".venv/.core")
    assert [call.split()[1] for call in calls] == ["venv", "pip", "pip", "compileall"]
    assert calls[1].endswith("-e .[all]") and calls[2].endswith("-e .[ecos]")
    assert all("-c constraints.txt" in call for call in calls[1:3])
    assert "no wheel of ecos" in said and "constraints.txt" in said
    assert fake(".venv/.core")[0] == []


@needs_make
def test_the_tests_install_the_course_and_the_figures_do_not(fake, tmp_path):
    (tmp_path / "course").mkdir()
    shutil.copy(ROOT / "course/pyproject.toml", tmp_path / "course")
    assert not any("course" in call for call in fake(".venv/.core")[0])
    calls = [call for call in fake(".venv/.test")[0] if "pip install" in call]
    (call,) = calls
    assert "-c constraints.txt" in call and call.endswith("-e ./course")


@needs_make
def test_the_site_installs_what_builds_it_and_the_course_whose_names_it_lists(fake, tmp_path):
    (tmp_path / "course").mkdir()
    shutil.copy(ROOT / "course/pyproject.toml", tmp_path / "course")
    fake(".venv/.core")
    calls, said = fake("docs")
    assert [call.split()[1] for call in calls] == ["pip", "compileall", "sphinx"]
    assert "-c constraints.txt" in calls[0] and calls[0].endswith("-e .[docs] -e ./course")
    assert "-W" in calls[2].split() and said.endswith("/build/docs/index.html\n")
    assert [call.split()[1] for call in fake("docs")[0]] == ["sphinx"]


@needs_make
def test_a_solver_that_fails_to_install_for_another_reason_is_not_passed_over(fake, tmp_path):
    (tmp_path / "pip-says").write_text("ERROR: No space left on device\n")
    said = fake(".venv/.core", rc=2)[1]
    assert "No space left" in said and "no wheel" not in said
    assert not (tmp_path / ".venv/.core").exists()


@needs_make
def test_another_lock_installs_again(fake, tmp_path):
    fake(".venv/.core")
    newest = fake(".venv/.core", "LOCK=")[0]
    assert [call.split()[1] for call in newest] == ["pip", "pip", "compileall"]
    assert all("--upgrade" in call and " -c " not in call for call in newest[:2])
    assert fake(".venv/.core", "LOCK=")[0] == []
    assert len(fake(".venv/.core")[0]) == 3
    stamp = (tmp_path / ".venv/.core").stat().st_mtime
    os.utime(tmp_path / "constraints.txt", (stamp + 9, stamp + 9))
    assert len(fake(".venv/.core")[0]) == 3


@needs_make
def test_make_takes_an_environment_that_is_there_as_it_is(fake, tmp_path):
    (tmp_path / "bin").mkdir()
    shutil.copy("/bin/true", tmp_path / "bin/repro")
    shutil.copy(tmp_path / "python", tmp_path / "bin/python")
    assert fake("figures", f"BIN={tmp_path}/bin")[0] == []
    assert fake("test", f"BIN={tmp_path}/bin")[0] == ["-m pytest -n 2 --dist loadgroup"]
    assert not (tmp_path / ".venv").exists()


def workflow() -> dict:
    return yaml.safe_load((ROOT / ".github/workflows/figures.yml").read_text())["jobs"]


def lines(job: str) -> list[str]:
    return [
        line.strip()
        for step in workflow()[job]["steps"]
        for line in step.get("run", "").splitlines()
    ]


def test_workflow_tries_the_lock_the_newest_versions_and_the_conda_environment():
    assert workflow()["quick"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert not any("LOCK=" in line for job in ("quick", "paper") for line in lines(job))
    assert {"make figures LOCK=", "make nightly LOCK="} <= set(lines("newest"))
    assert "make figures BIN=$CONDA_PREFIX/bin" in lines("conda")
    asked = [step["with"] for step in workflow()["conda"]["steps"] if "with" in step]
    assert {"environment-file": "environment.yml"}.items() <= asked[0].items()
    assert "make figures LOCK=build/lowest.txt" in lines("lowest")
    assert lines("lowest").index("make lowest") < lines("lowest").index(
        "make .venv/.core LOCK=build/lowest.txt"
    )
    for job in ("newest", "lowest", "conda", "paper"):
        assert "github.event_name == 'schedule'" in workflow()[job]["if"]


def action_lines() -> list[str]:
    """Lines of the composite action that call a program of the environment."""
    action = yaml.safe_load((ROOT / ".github/actions/repro/action.yml").read_text())
    text = "\n".join(step.get("run", "") for step in action["runs"]["steps"])
    called = [line.strip() for line in text.splitlines() if re.search(r"/repro\"|^make ", line)]
    return [re.sub(r'"[^"]*/repro"', "repro", line) for line in called]


def check_call(line: str) -> None:
    """Check that a line calls a target of the Makefile, or a command with options that it has."""
    program, *arguments = line.split()
    if program == "make":
        # the folder of the action is the checkout
        arguments = [str(ROOT) if word == '"$PACKAGE"' else word for word in arguments]
        done = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True)
        assert done.returncode == 0, done.stderr
        return
    assert program in (".venv/bin/repro", "repro")
    words = [word for word in arguments[:2] if re.fullmatch("[a-z]+", word)]
    command = words[: 2 if words[0] == "trace" else 1]
    shown = CliRunner().invoke(app.app, [*command, "--help"])
    assert shown.exit_code == 0
    options = [word for word in arguments if word.startswith("-")]
    assert all(re.search(rf"(?<![\w-]){word}(?![\w-])", shown.output) for word in options)


@needs_make
@pytest.mark.parametrize("job", ["tests", "quick", "site", "newest", "lowest", "conda"])
def test_workflow_calls_what_there_is(job):
    assert lines(job)
    for line in lines(job):
        check_call(line)


@needs_make
def test_the_composite_action_calls_what_there_is():
    called = action_lines()
    assert [line.split()[0] for line in called] == ["make", "repro", "repro", "repro"]
    for line in called:
        check_call(line)
    text = (ROOT / ".github/actions/repro/action.yml").read_text()
    options = re.findall(r"words[+]?=\((--[a-z-]+)", text)
    assert sorted(set(options)) == ["--against", "--all", "--paper", "--require-data"]
    with pytest.raises(AssertionError):
        check_call("repro check --nowhere")


def test_the_site_is_built_and_uploaded_and_read_the_docs_builds_it_in_the_same_way():
    assert lines("site") == ["make docs PYTHON=python"]
    uploaded = [step["with"]["path"] for step in workflow()["site"]["steps"][2:] if "with" in step]
    assert uploaded == ["build/docs"]
    jobs = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text())["build"]["jobs"]
    (install,) = jobs["install"]
    check_call(install)
    (build,) = jobs["build"]["html"]
    recipe = re.search(r"^docs:.*\n\t\$\(BIN\)/(.*) -j ", (ROOT / "Makefile").read_text(), re.M)
    assert recipe and recipe[1] in build and " docs " in build


def test_no_failure_is_hidden_and_no_job_judges_what_it_has_overwritten():
    for path in (ROOT / ".github").rglob("*.yml"):
        text = path.read_text()
        assert "|| true" not in text and "continue-on-error" not in text, path
        assert "--out figures" not in text and "make paper" not in text, path
    assert any("--against figures/quick.json" in line for line in lines("quick"))
    (paper,) = [step for step in workflow()["paper"]["steps"] if "with" in step]
    assert paper["uses"] == "./.github/actions/repro"
    wanted = {"profile": "paper", "against": "figures", "require-data": "true"}
    assert wanted.items() <= paper["with"].items()


def test_each_paper_has_a_job_and_each_job_a_limit():
    papers = workflow()["paper"]["strategy"]["matrix"]["paper"]
    assert papers == sorted(path.name for path in (ROOT / "params").iterdir() if path.is_dir())
    assert all("timeout-minutes" in job for job in workflow().values())


def test_the_inputs_of_the_action_are_those_that_jobs_pass():
    action = yaml.safe_load((ROOT / ".github/actions/repro/action.yml").read_text())
    passed = {
        name
        for job in workflow().values()
        for step in job["steps"]
        if step.get("uses", "").startswith("./")
        for name in step["with"]
    }
    page = (ROOT / "docs/ci.md").read_text()
    assert passed <= set(action["inputs"])
    used = set(
        re.findall(r"inputs\.([a-z-]+)", (ROOT / ".github/actions/repro/action.yml").read_text())
    )
    assert used == set(action["inputs"])
    assert all(f"`{name}`" in page for name in action["inputs"])
    # values of inputs reach scripts as variables, so that none of them runs as code
    scripts = "".join(step.get("run", "") for step in action["runs"]["steps"])
    assert "${{" not in scripts


@needs_make
def test_the_page_on_ci_shows_what_there_is():
    page = (ROOT / "docs/ci.md").read_text()
    (gitlab,) = [
        content
        for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
        for content in [yaml.safe_load(text)]
        if "figures" in content
    ]
    called = [
        line for job in gitlab.values() if isinstance(job, dict) for line in job.get("script", [])
    ]
    assert called
    for line in called:
        check_call(line)
    for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL):
        for line in block.splitlines():
            if line.startswith(("make ", "repro ")):
                check_call(line.split("#")[0])
