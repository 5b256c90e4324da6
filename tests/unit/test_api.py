"""docs/api.md lists public names that exist and are documented in full."""

from __future__ import annotations

import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import repro
from repro.base import moved

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
TEXT = PAGE.read_text()
#: Rows of the first table, then names in lists; mentions in sentences are neither.
FLAT = re.findall(r"^\| `(repro\.\w+)` \|", TEXT, re.M)
DEEP = re.findall(r"`(repro(?:_course)?\.\w+\.[\w.]+)`", TEXT)


@pytest.mark.parametrize("name", [*FLAT, *DEEP])
def test_a_public_name_is_documented_in_full(name):
    public = pkgutil.resolve_name(name)
    text = inspect.getdoc(public) or ""
    assert text and "." in text.splitlines()[0]
    if inspect.isfunction(public) and inspect.signature(public).parameters:
        assert "Parameters\n---" in text
    for method in vars(public).values() if inspect.isclass(public) else ():
        if inspect.isfunction(method) and not method.__name__.startswith("_"):
            assert inspect.getdoc(method), method


def test_the_flat_names_are_all_that_the_package_offers():
    assert len(FLAT) == len(set(FLAT))
    assert {f"repro.{name}" for name in repro.__all__} - {"repro.__version__"} == set(FLAT)


def test_no_name_is_listed_twice():
    """A deep name stands on the page only where there is no flat one."""
    assert len(DEEP) == len(set(DEEP)) > 30
    flat = [pkgutil.resolve_name(name) for name in FLAT]
    assert not [name for name in DEEP if pkgutil.resolve_name(name) in flat]


def test_the_old_names_are_those_that_work():
    rows = re.findall(r"^\| (repro\.[\w.]+) \| (repro(?:_course)?\.[\w.]+) \|$", TEXT, re.M)
    assert dict(rows) == moved.MOVED
