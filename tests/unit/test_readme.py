"""README's summary and docs/status.md say what the committed results say."""

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


def test_summary_and_table_are_those_of_the_committed_results(status):
    results = status.committed()
    assert status.marks.read(status.SUMMARY_PAGE, "status") == status.summary(results)
    assert status.marks.read(status.TABLE_PAGE, "status") == status.table(results)


def test_every_figure_has_a_committed_paper_result(status):
    ids = {f"{p.parts[-2]}/{p.stem}" for p in ROOT.glob("params/*/*.yaml")}
    listed = re.findall(r"^\| `(\w+/\w+)` \|", status.TABLE_PAGE.read_text(), re.M)
    assert ids == set(listed) and len(listed) == len(ids)


def test_readme_links_to_pages_that_exist():
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", (ROOT / "README.md").read_text())
    assert len(links) > 10
    assert not [link for link in links if not (ROOT / link).exists()]
