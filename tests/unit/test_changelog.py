"""CHANGELOG.md: versions with dates, a short line per behaviour, as Keep a Changelog has it."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

import repro
from repro.base import moved

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
POLICY, *RELEASES = re.split(r"^## (?=Unreleased|\d)", TEXT, flags=re.M)
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
#: Areas of the package, in the order in which a section has them.
AREAS = [
    *("Simulate", "Policies", "Traces", "Compare", "Figures", "Gallery", "Command line"),
    *("CI and clusters", "Course", "Docs", "Package"),
]
MOST_WORDS = 25


def bullets(text: str) -> list[str]:
    """List items of a text, each as one line."""
    return [" ".join(item.split()) for item in re.findall(r"^- (.+(?:\n  .+)*)", text, re.M)]


def words(line: str) -> int:
    """Words of a line; code and the target of a link are one word each."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line)
    return len(re.sub(r"`[^`]*`", "code", plain).split())


def test_releases_have_dates_and_stand_in_order():
    heads = [release.splitlines()[0] for release in RELEASES]
    assert heads[0] == "Unreleased" and len(heads) == 4
    releases = [
        re.fullmatch(r"(\d+)\.(\d+)\.(\d+) - (\d{4}-\d\d-\d\d)", head) for head in heads[1:]
    ]
    numbers = [tuple(map(int, release.groups()[:3])) for release in releases]
    dates = [datetime.date.fromisoformat(release[4]) for release in releases]
    assert numbers == sorted(numbers, reverse=True) and dates == sorted(dates, reverse=True)
    assert ".".join(map(str, numbers[0])) == repro.__version__


@pytest.mark.parametrize("release", RELEASES, ids=lambda text: text.split()[0])
def test_changes_are_grouped_by_kind_and_area(release):
    kinds = re.findall(r"^### (.+)", release, re.M)
    assert kinds == list(dict.fromkeys(kinds)) and set(kinds) <= set(KINDS)
    for section in re.split(r"^### ", release, flags=re.M)[1:]:
        areas = re.findall(r"^#### (.+)", section, re.M)
        assert areas == sorted(areas, key=AREAS.index)
        assert bullets(section)
        # a line is an item, a heading or the rest of an item
        others = [
            line for line in section.splitlines()[1:] if line and line[:2] not in ("- ", "  ")
        ]
        assert all(line.startswith("#### ") for line in others)


def test_a_behaviour_is_one_short_line_and_stands_once():
    lines = bullets(TEXT)
    assert len(lines) == len(set(lines)) > 200
    long = [line for line in lines if words(line) > MOST_WORDS]
    assert not long
    assert all(line.endswith(".") for line in lines)


def test_the_policy_names_what_may_change():
    for word in ("__init__.pyi", "docs/api.md", "result.json", "JSON schemas", "committed results"):
        assert word in POLICY
    assert "until 1.0.0" in POLICY and "from 1.0.0 on" in POLICY
    warning = Path(moved.__file__).read_text(encoding="utf-8")
    assert "the next release removes the old name" in warning
    assert "The next release removes them" in " ".join(POLICY.split())


def test_links_lead_to_files():
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", TEXT)
    assert targets and all((ROOT / target).exists() for target in targets)
