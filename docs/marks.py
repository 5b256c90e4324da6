"""The part of a page that a program writes: what stands between two marks."""

from __future__ import annotations

from pathlib import Path


def read(page: Path, name: str) -> str:
    """Return what stands between the marks."""
    return _parts(page, name)[1].strip()


def write(page: Path, name: str, text: str) -> None:
    """Replace what stands between the marks, and say so."""
    before, _, after = _parts(page, name)
    begin, end = _marks(name)
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")
    print(f"{page.name} written")


def _parts(page: Path, name: str) -> tuple[str, str, str]:
    begin, end = _marks(name)
    before, _, rest = page.read_text().partition(begin)
    written, _, after = rest.partition(end)
    return before, written, after


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
