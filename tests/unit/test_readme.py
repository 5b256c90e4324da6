"""README, docs/start.md and docs/status.md say what the committed results say."""

import csv
import importlib
import re
from pathlib import Path

import pytest

from repro.figures.claims import MISSED, PARTIAL, is_own_check

#: Kinds of claims in the order of the table's columns, as the sums name them.
KINDS = ("numbers", "orders", "examples", "own checks")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def status():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("status")


def test_tables_are_those_of_the_committed_results(status):
    results = status.committed()
    assert status.marks.read(status.README, "status") == status.readme_table(results)
    assert status.marks.read(status.PAGE, "sums") == status.sums(results)
    assert status.marks.read(status.PAGE, "status") == status.table(results)
    assert status.marks.read(status.START, "quick") == status.quick_sums(results)


def test_totals_agree(status):
    """README, the sums and the last row of the table count the same claims and numbers."""
    results = status.committed()
    readme = status.readme_table(results)
    total = re.search(r"judge ([\d,]+) published numbers: .* They judge (\d+) claims", readme)
    listed = status.sums(results)
    assert f"| all | {total[1]} |" in listed
    last = status.table(results).splitlines()[-1]
    of_all = re.findall(r"\*\*(\d+) of (\d+)\*\*", last)
    assert sum(int(b) for _, b in of_all[:3]) == int(total[2])
    for kind, (good, count) in zip(KINDS, of_all, strict=True):
        assert re.search(rf"^\| {kind} \| {count} \| {good} \|", listed, re.MULTILINE)


def test_each_reason_is_about_figures_that_missed(status):
    by_id = {result.entry.id: result for result in status.committed()}
    for name, paper in status.PAPERS.items():
        assert paper.figures
        for figure in paper.figures:
            assert figure.startswith(f"{name}/")
            verdicts = {
                claim["verdict"]
                for claim in by_id[figure].claims
                if not is_own_check(claim["kind"], claim["certainty"])
            }
            assert verdicts & {PARTIAL, MISSED}, figure
        assert f"\n### {paper.name.split(',')[0]}\n" in status.PAGE.read_text()


def test_readme_fits_a_screen_or_two():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_readme_names_times_and_sizes_of_the_start_page():
    readme = (ROOT / "README.md").read_text()
    start = (ROOT / "docs/start.md").read_text()
    took = re.search(r"\| `make figures`, first time \|.*\| (\d+) min (\d+) s", start)
    minutes = round(int(took[1]) + int(took[2]) / 60)
    (size,) = set(re.findall(r'\[all\]"` \| ([\d.]+ GB)', start))
    assert f"{minutes} minutes on 2 cores" in readme and f"{size} of disk" in readme
    with (ROOT / "traces/registry.csv").open() as file:
        downloads = [row for row in csv.DictReader(file) if not row["member"]]
    megabytes = sum(int(row["bytes"]) for row in downloads) / 1e6
    assert f"({megabytes:.0f} MB)" in readme and f"({megabytes:.0f} MB)" in start


def test_every_figure_has_a_committed_paper_result(status):
    ids = {f"{p.parts[-2]}/{p.stem}" for p in ROOT.glob("params/*/*.yaml")}
    listed = re.findall(r"^\| `(\w+/\w+)` \|", status.PAGE.read_text(), re.M)
    assert ids == set(listed) and len(listed) == len(ids)


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/start.md",
        "docs/your_trace.md",
        "docs/your_policy.md",
        "docs/your_figure.md",
        "docs/commands.md",
    ],
)
def test_links_lead_to_pages_and_headings_that_exist(page):
    path = ROOT / page
    links = re.findall(r"\]\((?!https?:)([^)]*)\)", path.read_text())
    assert len(links) > 2
    for link in links:
        name, _, heading = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), link
        if heading:
            titles = re.findall(r"^#+ (.*)$", target.read_text(), re.M)
            assert heading in {anchor(title) for title in titles}, link


def anchor(title: str) -> str:
    """Name of a heading in links, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
