"""Citation files and licences agree with pyproject.toml, the table of papers and the tables."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from repro.batch.papers import papers
from repro.figures.params import discover

ROOT = Path(__file__).resolve().parents[2]
#: Licences that the first line of a table may state.
STATED = ("MIT", "Apache-2.0", "CC-BY-4.0")
pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").exists(), reason="not run from a checkout"
)


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture
def metadata(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("metadata")


@pytest.mark.parametrize("name", ["CITATION.cff", "codemeta.json", ".zenodo.json"])
def test_files_are_what_make_metadata_writes(metadata, name):
    assert (ROOT / name).read_text() == metadata.FILES[name]()


def test_files_agree_on_the_package_and_its_papers():
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    codemeta = json.loads((ROOT / "codemeta.json").read_text())
    zenodo = json.loads((ROOT / ".zenodo.json").read_text())
    about = project()
    for field in ("version", "keywords"):
        assert cff[field] == codemeta[field] == zenodo[field] == about[field]
    assert cff["license"] == zenodo["license"] == Path(codemeta["license"]).name
    titles = [paper.title for paper in papers()]
    assert [reference["title"] for reference in cff["references"]] == titles
    assert [article["name"] for article in codemeta["citation"]] == titles
    named = [entry["identifier"] for entry in zenodo["related_identifiers"]]
    assert named == [paper.doi or paper.url for paper in papers()]


def test_every_paper_with_figures_is_cited():
    cited = {paper.paper for paper in papers()}
    assert cited == {entry.paper for entry in discover(ROOT)} - {"arena", "measured", "tour"}
    for paper in papers():
        assert all(family and given for family, given in paper.people)
        assert re.fullmatch(r"https://[a-z.]+/\S+", paper.address)
        assert re.search(rf"\b{paper.year}\b", (ROOT / "README.md").read_text()), paper.paper


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no git repository: which files belong to the project is not known")
    return [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()]


def annotations() -> list[tuple[list[str], set[str]]]:
    """Patterns and licences of REUSE.toml, in its order; the last match of a file counts."""
    content = tomllib.loads((ROOT / "REUSE.toml").read_text())
    assert content["version"] == 1
    entries = content["annotations"]
    return [
        (entry["path"], set(entry["SPDX-License-Identifier"].split(" AND "))) for entry in entries
    ]


def matches(pattern: str, name: str) -> bool:
    pieces = [re.escape(piece) for piece in pattern.split("**")]
    return bool(re.fullmatch(".*".join(piece.replace(r"\*", "[^/]*") for piece in pieces), name))


def licences(name: str) -> set[str]:
    found = set()
    for patterns, ids in annotations():
        if any(matches(pattern, name) for pattern in patterns):
            found = ids
    return found


def test_every_file_has_a_licence():
    without = [
        name
        for name in tracked()
        if name != "LICENSE" and not name.startswith("LICENSES/") and not licences(name)
    ]
    assert without == []


def test_every_pattern_of_licences_has_files():
    names = tracked()
    for patterns, _ in annotations():
        for pattern in patterns:
            assert any(matches(pattern, name) for name in names), pattern


def test_licences_have_their_texts_and_the_package_names_them_all():
    used = set().union(*(ids for _, ids in annotations()))
    assert {path.stem for path in (ROOT / "LICENSES").glob("*.txt")} == used
    assert set(project()["license"].split(" AND ")) == used
    assert (ROOT / "LICENSES/MIT.txt").read_text() == (ROOT / "LICENSE").read_text()


def test_tables_have_the_licence_that_their_first_line_states():
    stated = {}
    for name in tracked():
        if name.startswith(("params/", "traces/", "tests/golden/")) and name.endswith(".csv"):
            first = (ROOT / name).read_text().splitlines()[0]
            words = {word for word in STATED if re.search(rf"\b{word}\b", first)}
            if first.startswith("#") and words:
                stated[name] = words
    assert len(stated) > 25
    for name, wanted in stated.items():
        assert wanted <= licences(name), name


def test_philly_tables_credit_microsoft():
    entries = tomllib.loads((ROOT / "REUSE.toml").read_text())["annotations"]
    philly = [entry for entry in entries if "philly" in "".join(entry["path"])]
    assert philly and all("Microsoft" in str(entry["SPDX-FileCopyrightText"]) for entry in philly)
    for path in ROOT.glob("traces/philly_*.csv"):
        assert "CC-BY-4.0" in licences(path.relative_to(ROOT).as_posix())
