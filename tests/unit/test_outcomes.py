"""The pages of the papers and docs/why_off.md say what came out of the committed results."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def outcomes():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("outcomes")


@pytest.fixture(scope="module")
def results(outcomes):
    return outcomes.status.committed()


def test_every_miss_about_a_paper_has_one_cause(outcomes, results):
    assert set(outcomes.complete(results)) == set(outcomes.misses(results))


def test_a_new_miss_without_a_cause_is_named(outcomes, results, monkeypatch):
    known = outcomes.causes()
    gone = next(iter(known))
    monkeypatch.setattr(outcomes, "causes", lambda: {m: c for m, c in known.items() if m != gone})
    with pytest.raises(SystemExit, match=f"without a cause: {gone.figure} {gone.claim}"):
        outcomes.complete(results)


def test_a_cause_of_a_claim_that_came_out_is_named(outcomes, results, monkeypatch):
    extra = outcomes.Miss("pcs/fig01b_toy_summary", "jct")
    known = {**outcomes.causes(), extra: outcomes.Cause("input", shown=False)}
    monkeypatch.setattr(outcomes, "causes", lambda: known)
    with pytest.raises(SystemExit, match="no miss any more: pcs/fig01b_toy_summary jct"):
        outcomes.complete(results)


@pytest.mark.parametrize(
    "row",
    [
        "gavel/fig09_las_multiple,las_agnostic_distribution,weather,no",
        "gavel/fig09_las_multiple,las_agnostic_distribution,input,perhaps",
        "gavel/figa5_makespan,single_gavel_ss,solver,no",
    ],
    ids=["unknown cause", "neither yes nor no", "a claim twice"],
)
def test_a_bad_row_is_refused_with_its_line(outcomes, tmp_path, monkeypatch, row):
    page = tmp_path / "miss_causes.csv"
    first = "gavel/figa5_makespan,single_gavel_ss,solver,no"
    page.write_text("\n".join([",".join(outcomes.COLUMNS), first, row, ""]))
    monkeypatch.setattr(outcomes, "CAUSES_FILE", page)
    with pytest.raises(SystemExit, match="line 3"):
        outcomes.causes()


def test_blocks_are_those_of_the_committed_results(outcomes, results):
    assert {"gavel", "pcs"} <= set(outcomes.pages())
    for paper in outcomes.pages():
        page = ROOT / "docs" / f"{paper}.md"
        assert outcomes.marks.read(page, "outcome") == outcomes.outcome(paper, results)
    assert outcomes.marks.read(outcomes.CAUSES_PAGE, "causes") == outcomes.by_cause(results)


def test_every_cause_has_its_section_in_the_order_of_the_table(outcomes):
    headings = re.findall(r"^## (.+)$", outcomes.CAUSES_PAGE.read_text(), re.M)
    assert [heading for heading in headings if heading in outcomes.CAUSES.values()] == list(
        outcomes.CAUSES.values()
    )


def test_a_missed_claim_of_a_figure_is_counted_with_its_cause(outcomes, results):
    """Table 3 of Gavel by hand: two numbers missed, one partial, one order reproduced."""
    text = outcomes.outcome("gavel", results)
    (line,) = [line for line in text.splitlines() if "`gavel/tab03_physical_cluster`" in line]
    assert "| 1 of 4 |" in line
    assert "1 [artifact](why_off.md#text-artifact-and-numbers-differ)" in line
    assert "2 [statistic](why_off.md#choice-of-statistic)" in line


def test_links_and_figures_of_the_pages_exist(outcomes):
    ids = {figure.entry.id for figure in outcomes.status.committed()}
    for name in (*outcomes.PAPERS, "why_off", "glossary", "tests"):
        page = ROOT / "docs" / f"{name}.md"
        text = page.read_text()
        for link in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", text):
            assert (page.parent / link).exists(), (name, link)
        named = re.findall(r"`((?:tiresias|muri|gavel|liquid|pcs)/\w+)`", text)
        assert set(named) <= ids, name


def test_glossary_is_alphabetical(outcomes):
    terms = re.findall(r"^\*\*(.+?)\*\*", (ROOT / "docs" / "glossary.md").read_text(), re.M)
    assert len(terms) > 40
    assert terms == sorted(terms, key=str.casefold)
