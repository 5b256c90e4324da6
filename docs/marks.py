"""Part of a page that a program writes: the text between two marks."""

from __future__ import annotations

from pathlib import Path


def read(page: Path, name: str) -> str:
    """Text between the marks ``name``."""
    return _split(page, name)[1].strip()


def write(page: Path, name: str, text: str) -> None:
    """Replace the text between the marks ``name`` and print the name of the page."""
    before, _, after = _split(page, name)
    begin, end = _marks(name)
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")
    print(f"{page.name} written")


def _split(page: Path, name: str) -> tuple[str, str, str]:
    """Texts before, between and after the marks."""
    begin, end = _marks(name)
    before, _, marked = page.read_text().partition(begin)
    between, _, after = marked.partition(end)
    return before, between, after


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
