"""What a finished figure says about itself: title line, table, result record, verdict frame."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from repro import paths
from repro.figures.claims import Verdict, worst
from repro.figures.params import FigureSpec
from repro.figures.points import COLUMNS, Point
from repro.figures.tolerance import show
from repro.figures.versions import RECORDED, versions
from repro.files.spreadsheet import safe_cells

#: The exact versions that the committed results were made with.
LOCK = "constraints.txt"


def lock(root: Path) -> dict[str, Any] | None:
    """Return the lock file of a checkout and the libraries that differ from it, None without one.

    ``differs`` is {library: [locked version, installed one or None]}, of those that can move a
    result.
    """
    path = root / LOCK
    if not path.is_file():
        return None
    content = path.read_bytes()
    differs: dict[str, list[str | None]] = {}
    for line in content.decode(errors="replace").splitlines():
        try:
            wanted = Requirement(line.split(" #")[0].strip())
        except InvalidRequirement:
            continue
        name = canonicalize_name(wanted.name)
        here = versions().get(name)
        applies = wanted.marker is None or wanted.marker.evaluate()
        if name in RECORDED and applies and not (here and wanted.specifier.contains(here, True)):
            differs[name] = [str(wanted.specifier).removeprefix("=="), here]
    return {"file": LOCK, "sha256": hashlib.sha256(content).hexdigest(), "differs": differs}


def title_line(spec: FigureSpec, run: Mapping[str, Any], verdicts: Sequence[Verdict]) -> str:
    """Return the line under a figure: paper, number, profile, seed, worst verdict, remarks."""
    parts = [
        spec.paper.capitalize(),
        spec.reference,
        f"profile {run['profile']}",
        f"seed {run['seed']}",
        worst(verdict.outcome for verdict in verdicts) or "no claims",
    ]
    return " · ".join([*parts, *remarks(run).values()])


def remarks(run: Mapping[str, Any]) -> dict[str, str]:
    """Return what a run says about itself that a reader must know: stand-in, notes."""
    found = {"stand_in": run["stand_in"], "notes": "; ".join(run["notes"])}
    return {name: text for name, text in found.items() if text}


def table_bytes(table: pd.DataFrame, run: Mapping[str, Any]) -> bytes:
    """Return a table as CSV, ten digits a number, with a column for each remark of the run.

    Text that a spreadsheet would run as a formula is quoted.
    """
    shown = safe_cells(table.assign(**remarks(run)))
    return str(shown.to_csv(index=False, float_format="%.10g", lineterminator="\n")).encode()


def points_bytes(points: Sequence[Point], run: Mapping[str, Any]) -> bytes:
    """Return the points as CSV."""
    rows = [point.row() for point in points]
    return table_bytes(pd.DataFrame(rows, columns=list(COLUMNS)), run)


def result(
    spec: FigureSpec,
    run: Mapping[str, Any],
    verdicts: Sequence[Verdict],
    points: Sequence[Point],
    used: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the content of ``result.json``, all but fingerprint, files and wall time.

    ``run`` holds id, profile, seed, stand_in, notes and params (inputs after profile and
    overrides); ``used`` the rows of provenance.
    """
    return {
        "id": run["id"],
        "paper": spec.paper,
        "title": spec.title,
        "reference": spec.reference,
        "shows": spec.shows,
        **run,
        "data": used,
        "versions": versions(),
        "lock": lock(paths.project_root()),
        "verdict": worst(verdict.outcome for verdict in verdicts),
        "claims": [verdict.row() for verdict in verdicts],
        "points": [point.row() for point in points],
    }


def verdict_frame(verdicts: Sequence[Verdict], stand_in: str | None) -> pd.DataFrame:
    """Return one row per claim for display at the end of a notebook."""
    columns = ["claim", "kind", "published", "ours", "tolerance", "certainty", "source", "verdict"]
    rows = [
        (
            verdict.claim.what,
            verdict.claim.kind,
            show(verdict.claim.published),
            show(verdict.ours),
            verdict.claim.tolerance(),
            verdict.claim.certainty,
            verdict.claim.source,
            verdict.outcome,
        )
        for verdict in verdicts
    ]
    frame = pd.DataFrame(rows, columns=columns)
    return frame if stand_in is None else frame.assign(data=stand_in)
