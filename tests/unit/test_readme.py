"""The README's status table says what the committed results say."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = ("reproduced", "partial", "missed", "not comparable")


def committed() -> dict[str, list[int]]:
    found = {}
    for path in ROOT.glob("figures/*/*/result.json"):
        claims = json.loads(path.read_text())["claims"]
        counts = Counter(claim["verdict"] for claim in claims)
        found[f"{path.parts[-3]}/{path.parts[-2]}"] = [counts[name] for name in COLUMNS]
    return found


def listed() -> dict[str, list[int]]:
    rows = re.findall(r"^\| `([\w/]+)` \|[^|]*\|(.*)\|$", (ROOT / "README.md").read_text(), re.M)
    return {name: [int(cell or 0) for cell in map(str.strip, row.split("|"))] for name, row in rows}


@pytest.mark.skipif(not committed(), reason="no committed results beside the package")
def test_status_table_is_that_of_the_committed_results():
    assert listed() == committed()


def test_every_figure_has_a_committed_paper_result():
    ids = {f"{p.parts[-2]}/{p.stem}" for p in ROOT.glob("params/*/*.yaml")}
    assert ids == set(committed())
