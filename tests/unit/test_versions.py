"""docs/versions.py compares the figures of two machines or sets of versions."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIGURE = "gavel/fig08_las_single"
TIMED = "arena/decision_cost"


@pytest.fixture(scope="module")
def versions():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("versions")


def batch(folder, table, verdict="reproduced", figure=FIGURE):
    """Folder of results with one figure."""
    home = folder / figure
    home.mkdir(parents=True)
    claims = [{"id": "gain", "verdict": verdict}]
    (home / "result.json").write_text(json.dumps({"id": figure, "claims": claims}))
    (home / f"{home.name}.csv").write_text(f"# profile quick\n{table}")
    return folder


def test_numbers_that_differ_are_counted_with_the_largest(versions, tmp_path):
    ours = batch(tmp_path / "ours", "series,x,y\nLAS,1,2.0\nLAS,2,4.0\n")
    theirs = batch(tmp_path / "theirs", "series,x,y\nLAS,1,2.0\nLAS,2,3.0\n", "missed")
    row = versions.compare("old", theirs, ours)
    assert (row["figures"], row["figures_equal"]) == ("1", "0")
    assert (row["numbers"], row["numbers_differ"]) == ("4", "1")
    assert (row["largest_difference"], row["where"]) == ("0.25", FIGURE)
    assert row["verdicts_differ"] == f"{FIGURE} gain: missed, not reproduced"
    assert "| old | 1 | 0 | 4 | 1 | 0.25" in versions.block([row])


def test_equal_tables_have_no_difference(versions, tmp_path):
    table = "series,x\nLAS,nan\n"
    row = versions.compare("same", batch(tmp_path / "a", table), batch(tmp_path / "b", table))
    assert (row["figures_equal"], row["numbers_differ"]) == ("1", "0")
    assert versions.block([row]).endswith("| 0 | none |")


def test_a_table_of_another_shape_differs(versions, tmp_path):
    ours = batch(tmp_path / "ours", "x\n1\n")
    row = versions.compare("shape", batch(tmp_path / "theirs", "x\n1\n2\n"), ours)
    assert "another table" in versions.block([row])


def test_figures_that_measure_time_are_left_out(versions, tmp_path):
    ours = batch(tmp_path / "ours", "x\n1\n", figure=TIMED)
    with pytest.raises(SystemExit, match="no figure in common"):
        versions.compare("timed", batch(tmp_path / "theirs", "x\n2\n", figure=TIMED), ours)


def test_the_page_has_the_table_of_the_file(versions):
    rows = versions.read()
    page = versions.marks.read(versions.PAGE, "versions")
    assert page == (versions.block(rows) if rows else "No results yet.")
