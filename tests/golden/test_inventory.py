"""The inventory: every published number with its point, or the reason why it has none."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "docs" / "inventory").glob("*.csv"))
COLUMNS = (
    *("item", "series", "x", "quantity", "published", "unit"),
    *("source", "status", "figure", "point", "reason"),
)
JUDGED = {"point", "example"}
EXCUSED = {"input", "calibrated", "invented", "duplicate", "not computable"}
each_paper = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def rows(path):
    """Return the inventory of a paper, all columns as text."""
    table = pd.read_csv(path, comment="#", dtype=str, keep_default_na=False)
    assert tuple(table.columns) == COLUMNS
    return table


def place(value):
    """Return a place on an axis as it is compared: numbers rounded, everything else as text."""
    try:
        return round(float(value), 6)
    except (TypeError, ValueError):
        return "" if value is None else str(value)


def committed(figure):
    """Counted points and claims of a committed result."""
    result = json.loads((ROOT / "figures" / figure / "result.json").read_text(encoding="utf-8"))
    points = {
        (point["series"], place(point["x"]), point["quantity"]): point["published"]
        for point in result["points"]
        if not (point.get("uncounted") or point.get("fitted"))
    }
    return points, {claim["id"] for claim in result["claims"]}


def test_every_paper_has_an_inventory():
    assert {path.stem for path in FILES} >= {"tiresias", "muri", "gavel", "liquid", "pcs"}


@each_paper
def test_every_row_is_a_point_or_says_why_not(path):
    table = rows(path)
    assert set(table["status"]) <= JUDGED | EXCUSED | {"open"}
    judged = table["status"].isin(JUDGED)
    assert (table.loc[judged, ["figure", "point"]] != "").all(axis=None)
    assert (table.loc[~judged, "reason"] != "").all()
    assert (table[["item", "quantity", "published", "source"]] != "").all(axis=None)


@each_paper
def test_points_are_where_the_inventory_says(path):
    table = rows(path)
    astray = []
    for figure, held in table[table["status"].isin(JUDGED)].groupby("figure"):
        points, claims = committed(figure)
        for row in held.itertuples():
            if row.status == "example":
                found = row.point in claims
            else:
                published = points.get((row.point, place(row.x), row.quantity), math.nan)
                found = math.isclose(published, float(row.published), rel_tol=1e-6)
            if not found:
                astray.append((figure, row.point, row.x, row.quantity, row.published))
    assert astray == []


@each_paper
def test_nearly_all_that_can_be_computed_is_a_point(path):
    status = rows(path)["status"].value_counts()
    points = status.get("point", 0)
    still_open = status.get("open", 0)
    assert points >= 0.95 * (points + still_open)


@each_paper
def test_the_inventory_knows_every_counted_point(path):
    table = rows(path)
    known = {
        (row.figure, row.point, place(row.x), row.quantity)
        # a calibrated row may name the point that shows how well the fit meets it
        for row in table[table["status"].isin(["point", "calibrated"])].itertuples()
    }
    unknown = [
        (figure, *point)
        for figure in sorted(set(table["figure"]) - {""})
        for point in committed(figure)[0]
        if (figure, *point) not in known
    ]
    assert unknown == []
