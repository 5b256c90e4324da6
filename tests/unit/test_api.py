"""Public names exist and are documented in full: what docs/api.md lists."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
NAMES = re.findall(r"`(repro(?:_course)?\.[\w.]+)`", PAGE.read_text())


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_documented_in_full(name):
    module, _, attribute = name.rpartition(".")
    text = inspect.getdoc(getattr(importlib.import_module(module), attribute)) or ""
    public = getattr(importlib.import_module(module), attribute)
    assert text and "." in text.splitlines()[0]
    if inspect.isfunction(public) and inspect.signature(public).parameters:
        assert "Parameters\n---" in text
    for method in vars(public).values() if inspect.isclass(public) else ():
        if inspect.isfunction(method) and not method.__name__.startswith("_"):
            assert inspect.getdoc(method), method


def test_no_name_is_listed_twice():
    assert len(NAMES) == len(set(NAMES)) > 40
