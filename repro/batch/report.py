"""The gallery page beside the results: pictures, verdicts, provenance, tracebacks."""

import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2

from repro import paths
from repro.batch.check import INDEX, Stored, headline_lines, tally_line, verdicts
from repro.figures.params import judged_rules
from repro.figures.points import shares
from repro.figures.saved import RESULT, paper_name
from repro.figures.tolerance import show
from repro.files.whole import write_whole


def write_report(out: Path, found: Sequence[Stored]) -> Path:
    """Write ``index.html``, which needs no network; equal results give equal bytes."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(paths.PACKAGE / "batch"),
        autoescape=True, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    page = templates.get_template("gallery.html").render(
        found=found,
        papers={name: list(some) for name, some in groupby(found, lambda one: one.entry.paper)},
        out=out,
        headline_lines=headline_lines,
        tally_line=tally_line,
        verdicts=verdicts,
        paper_name=paper_name,
        show=show,
        shares=shares,
        judged_rules=judged_rules,
        lock=_lock,
        links=_links,
    )
    path = out / INDEX
    write_whole(path, page.encode())
    return path


def _lock(lock: dict[str, Any] | None) -> str:
    """Return which lock file a result names, and the libraries that differed from it."""
    if not lock:
        return "none"
    differs = [
        f"{name} {here or 'not installed'} for {locked}"
        for name, (locked, here) in lock["differs"].items()
    ]
    return f"{lock['file']}, sha256 {lock['sha256'][:16]}…; " + (
        f"other versions: {', '.join(differs)}" if differs else "all versions as there"
    )


def _links(one: Stored, out: Path) -> list[tuple[str, str]]:
    """Return name and address of the files behind a figure."""
    entry, files = one.entry, list[tuple[str, Path]]()
    if one.result:
        names = [f"{entry.stem}.{suffix}" for suffix in ("svg", "png", "csv")]
        names = list(dict.fromkeys([*names, *(one.result.get("files") or {}), RESULT]))
        files += [(name, one.folder / name) for name in names]
    # The committed gallery must read the same in a clone that has run nothing.
    if entry.executed.is_file() and out.resolve() != paths.figures_dir():
        files.append(("executed notebook", entry.executed))
    files += [("notebook", entry.notebook), ("parameters and claims", entry.params)]
    return [(name, Path(os.path.relpath(path, out)).as_posix()) for name, path in files]
