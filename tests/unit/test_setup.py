"""The set-up files agree with each other and with the package."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").exists(), reason="not run from a checkout"
)


def pyproject() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def bounds(lines: list[str]) -> dict[str, str]:
    parts = [re.fullmatch(r"([A-Za-z0-9_.-]+)\s*(.*)", line) for line in lines]
    return {m[1].lower(): m[2] for m in parts if m}


def conda() -> dict[str, str]:
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    return bounds([entry for entry in entries if isinstance(entry, str)])


def test_environment_has_the_same_names_and_bounds_as_pyproject():
    project = pyproject()["project"]
    extras = project["optional-dependencies"]
    wanted = bounds([*project["dependencies"], *extras["dask"], *extras["ecos"], *extras["test"]])
    found = conda()
    assert found.pop("python") == project["requires-python"]
    found.pop("pip")
    assert found == wanted


def test_extras_are_the_promised_ones():
    assert set(pyproject()["project"]["optional-dependencies"]) == {
        "dask",
        "ecos",
        "course",
        "docs",
        "test",
    }


def test_version_is_the_same_everywhere():
    import repro

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert repro.__version__ == pyproject()["project"]["version"] == citation["version"]
    assert f"## {repro.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_makefile_has_the_promised_targets():
    text = (ROOT / "Makefile").read_text()
    for target in ("figures", "test", "paper", "lab", "clean"):
        assert re.search(rf"^{target}:", text, re.MULTILINE)


def test_no_file_is_above_350_lines():
    long = [p for p in ROOT.glob("repro/**/*.py") if len(p.read_text().splitlines()) > 350]
    assert not long
