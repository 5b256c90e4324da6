"""The README's status table says what the committed results say."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def status():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("status")


def test_status_table_is_that_of_the_committed_results(status):
    assert status.marks.read(status.PAGE, "status") == status.table().strip()


def test_every_figure_has_a_committed_paper_result():
    ids = {f"{p.parts[-2]}/{p.stem}" for p in ROOT.glob("params/*/*.yaml")}
    page = (ROOT / "README.md").read_text().split("<!-- status: begin -->")[1]
    listed = re.findall(r"^\| `(\w+/\w+)` \|", page, re.M)
    assert ids == set(listed) and len(listed) == len(ids)
