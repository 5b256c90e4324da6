"""docs/faults.py adds up the trials of faults for docs/quality.md."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def faults():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        yield importlib.import_module("faults")


def test_trials_of_one_fault_are_added_up(faults, tmp_path):
    path = tmp_path / "trials.jsonl"
    noted = {"fault": "full disk", "run": "simulate", "times": 3, "hit": 2, "same": 3}
    other = {**noted, "run": "compare"}
    path.write_text("".join(f"{json.dumps(row)}\n" for row in (noted, other, noted)))
    rows = faults.rows_of(path)
    assert [row["run"] for row in rows] == ["compare", "simulate"]
    assert "| full disk | simulate | 6 | 4 | 6 |" in faults.block(rows)
    assert faults.block(rows).endswith("| **all** | | 9 | 6 | 9 |")


def test_the_page_has_the_table_of_the_file(faults):
    rows = faults.read()
    assert faults.marks.read(faults.PAGE, "faults") == faults.block(rows)
    assert all(row["times"] == row["same"] for row in rows)
