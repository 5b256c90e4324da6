"""ARTIFACT.md says what the claims and the committed results say."""

import csv
import importlib
import re
from pathlib import Path

import pytest

from repro.figures.claims import REPRODUCED, is_own_check

ROOT = Path(__file__).resolve().parents[2]
#: Folders of params/ that are no papers.
OTHER = {"arena", "measured", "tour"}


@pytest.fixture(scope="module")
def artifact():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("artifact")


@pytest.fixture
def rewrite(artifact, tmp_path, monkeypatch):
    """Returns a function that changes the rows of a table of the artifact."""

    def replaced(name, change):
        rows = [*filter(None, map(change, artifact.costs.read(getattr(artifact.costs, name))))]
        path = tmp_path / f"{name}.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        monkeypatch.setattr(artifact.costs, name, path)

    return replaced


def selected(artifact):
    return artifact.claims(artifact.results())


def test_page_is_what_the_generator_writes(artifact):
    written = artifact.parts()
    assert {name: artifact.marks.read(artifact.PAGE, name) for name in written} == written


def test_claims_are_numbered_and_each_is_listed_once(artifact):
    rows = artifact.costs.read(artifact.costs.CLAIMS)
    assert [row["id"] for row in rows] == [f"C{n}" for n in range(1, len(rows) + 1)]
    assert len({(row["figure"], row["claim"]) for row in rows}) == len(rows)
    assert all(row["words"] and row["where"] for row in rows)


def test_each_paper_has_claims_in_the_order_of_readme(artifact):
    papers = {path.parent.name for path in ROOT.glob("params/*/*.yaml")} - OTHER
    assert papers == set(artifact.PAPERS)
    listed = [claim.paper for claim in selected(artifact)]
    assert [*dict.fromkeys(listed)] == [*artifact.PAPERS]
    opening = (ROOT / "README.md").read_text().split("```")[0].lower()
    assert sorted(papers, key=opening.index) == [*artifact.PAPERS]


def test_claims_are_those_of_the_papers(artifact):
    for claim in selected(artifact):
        assert not is_own_check(claim.result["kind"], claim.result["certainty"]), claim.id


def test_a_claim_that_does_not_come_out_has_its_reason_on_the_page(artifact):
    page = artifact.PAGE.read_text()
    for claim in selected(artifact):
        if claim.result["verdict"] != REPRODUCED:
            assert f"- {claim.id}, {claim.result['verdict']}: {claim.result['deviation']}" in page


def test_a_claim_that_is_not_there_is_refused(artifact, rewrite):
    rewrite("CLAIMS", lambda row: {**row, "claim": "no_such"} if row["id"] == "C3" else row)
    with pytest.raises(ValueError, match=r"tiresias/tab05_trace_jct has no claim no_such"):
        artifact.parts()


def test_a_figure_that_is_not_there_is_refused(artifact, rewrite):
    rewrite("CLAIMS", lambda row: {**row, "figure": "pcs/no_such"} if row["id"] == "C3" else row)
    with pytest.raises(ValueError, match=r"no result of pcs/no_such"):
        artifact.parts()


def test_a_paper_without_a_claim_is_refused(artifact, rewrite):
    rewrite("CLAIMS", lambda row: None if row["figure"].startswith("muri/") else row)
    with pytest.raises(ValueError, match=r"no claim of muri"):
        artifact.parts()


def test_an_experiment_without_a_cost_is_refused(artifact, rewrite):
    missing = ("gavel/fig08_las_single", "quick")
    rewrite("COSTS", lambda row: None if (row["figure"], row["profile"]) == missing else row)
    with pytest.raises(ValueError, match=r"no row of gavel/fig08_las_single at profile quick"):
        artifact.parts()


def test_costs_are_those_of_the_experiments(artifact):
    measured = [
        (row["figure"], row["profile"]) for row in artifact.costs.read(artifact.costs.COSTS)
    ]
    expected = [(name, p) for name in artifact.costs.figures() for p in artifact.costs.PROFILES]
    assert measured == expected


def test_times_are_those_of_the_start_page(artifact):
    with pytest.raises(ValueError, match=r"no row that begins with `make nothing`"):
        artifact.time_cells("`make nothing`")
    took = artifact.time_cells("`make test`")[-1]
    assert f"| `make test` | {took} |" in artifact.requirements()


def test_links_and_figures_of_the_page_exist(artifact):
    page = artifact.PAGE.read_text()
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", page)
    assert len(links) > 10
    assert not [link for link in links if not (ROOT / link).exists()]
    figures = re.findall(r"repro run (\w+/\w+)", page)
    assert len(figures) > 20
    assert not [name for name in figures if not (ROOT / "params" / f"{name}.yaml").exists()]


def test_quick_verdicts_are_those_on_public_data_if_there_are_any(artifact):
    def record(data, verdict):
        return {"data": data, "claims": {"gain": {"verdict": verdict}}}

    records = [record("stand-ins", "not comparable"), record("public", "reproduced")]
    assert artifact.quick_verdict(records, "gain") == "reproduced"
    without = "not comparable (without public files)"
    assert artifact.quick_verdict(records[:1], "gain") == without
    assert artifact.quick_verdict([record("no public files", "missed")], "gain") == "missed"
    assert artifact.quick_verdict(records, "other") == "" == artifact.quick_verdict([], "gain")
