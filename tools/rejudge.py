"""Judge stored results again, without running anything: `python tools/rejudge.py [FOLDER]`.

It serves edits of claims that need no new run: texts, tolerances, origins of points, and the choice
of the points that a claim judges. A picture's caption has counts of verdicts. A figure whose counts
change is printed and must run again.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from repro.base import paths
from repro.base.errors import ReproError
from repro.figures import params
from repro.figures.claims import (
    NOT_COMPARABLE,
    PACKAGE_NOT_INSTALLED,
    Reason,
    figure_verdict,
    judge_all,
    points_of,
)
from repro.figures.data import STAND_IN
from repro.figures.params import FigureEntry, FigureSpec
from repro.figures.points import point_table, read_points
from repro.figures.saved import RESULT, checksum, table_bytes, to_json, verdict_counts
from repro.files.whole import write_whole


def as_number(stored: Any) -> Any:
    """Stored value, its texts "inf" and "-inf" as numbers."""
    if isinstance(stored, list):
        return [as_number(item) for item in stored]
    return float(stored) if stored in ("inf", "-inf") else stored


def rejudged(spec: FigureSpec, result: dict[str, Any]) -> dict[str, Any]:
    """Judge the stored values of a result by the claims of its parameter file.

    A claim that is not comparable keeps the stored reason of its id.
    """
    data = "stand-in" if result["stand_in"] else spec.data
    rules = params.judged_rules(result["params"])
    stored = [{**row, "ours": as_number(row["ours"])} for row in result["points"]]
    claim_points = {(row["id"], row["what"]) for row in result["claims"]}
    figure_points = [
        {"fitted_on": spec.fitted_on, "unknown": spec.unknown, "origin": spec.origin, **row}
        for row in stored
        if (row["series"], row["quantity"]) not in claim_points
    ]
    points = read_points(pd.DataFrame(figure_points)) if figure_points else []
    values = {row["id"]: as_number(row["ours"]) for row in result["claims"]}
    about_values = {claim.id: values[claim.id] for claim in spec.claims if claim.series is None}
    stored_reasons = {row["id"]: row["reason"] for row in result["claims"] if row.get("reason")}
    missing_packages = {
        claim.package
        for claim in spec.claims
        if claim.package and stored_reasons.get(claim.id) == PACKAGE_NOT_INSTALLED
    }
    verdicts = [
        replace(verdict, reason=stored_reasons.get(verdict.claim.id, verdict.reason))
        if verdict.outcome == NOT_COMPARABLE
        else verdict
        for verdict in judge_all(
            spec.claims,
            about_values,
            points,
            reason=_reason(spec, result),
            missing_packages=missing_packages,
        )
    ]
    notes = {"fitted_on": spec.fitted_on, "unknown": spec.unknown}
    facts = {"data": data, "rules": rules, "origin": spec.origin, **notes}
    all_points = [*points, *points_of(verdicts, points, **facts)]
    rows = [verdict.row() for verdict in verdicts]
    return {
        **result,
        "verdict": figure_verdict(rows),
        "claims": rows,
        "points": [point.row() for point in all_points],
    }


def _reason(spec: FigureSpec, result: dict[str, Any]) -> Reason:
    """Reason for claims without a value and without a stored reason."""
    replaced = [used["name"] for used in result["data"] if used["kind"] == STAND_IN]
    return spec.missing_value_reason(
        result["profile"], replaced, has_stand_in=bool(result["stand_in"])
    )


def rewrite(entry: FigureEntry, folder: Path) -> str:
    """Rewrite a figure's result and points; a line about changed counts of verdicts.

    The line is empty if the counts in the picture's caption are still right.
    """
    result = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    new_result = rejudged(entry.load(), result)
    name = f"{entry.stem}.points.csv"
    if new_result["points"]:
        content = table_bytes(point_table(new_result["points"]), result)
        write_whole(folder / name, content)
        new_result["files"] = {**result["files"], name: checksum(content)}
    write_whole(folder / RESULT, to_json(new_result))
    before = verdict_counts(result["claims"])
    after = verdict_counts(new_result["claims"])
    return "" if before == after else f"{entry.id}: {before} -> {after}"


def main() -> int:
    """Rewrite all results of a folder, by default the committed figures; print changed counts."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else paths.figures_dir()
    lines = []
    for entry in params.discover():
        if (folder / entry.id / RESULT).is_file():
            try:
                lines.append(rewrite(entry, folder / entry.id))
            except (KeyError, ReproError) as error:
                lines.append(f"{entry.id}: must run again ({error})")
    for line in filter(None, lines):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
