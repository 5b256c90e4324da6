"""Write what came out into the pages of the papers and docs/why_off.md: `python docs/outcomes.py`.

`docs/miss_causes.csv` has the cause of each missed or partial claim about a paper. A page of a
paper is docs/<paper>.md; its block ``outcome`` counts the published numbers and lists the figures
with misses. The block ``causes`` of docs/why_off.md counts the misses of all papers by cause.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import marks
import status

from repro.batch.check import ORIGIN_WORDS, StoredFigure
from repro.figures.claims import MISSED, NOT_COMPARABLE, PARTIAL, REPRODUCED, is_own_check
from repro.figures.points import ORIGINS, within_distances
from repro.figures.saved import paper_name

ROOT = Path(__file__).resolve().parents[1]
CAUSES_FILE = ROOT / "docs" / "miss_causes.csv"
CAUSES_PAGE = ROOT / "docs" / "why_off.md"
COLUMNS = ("figure", "claim", "cause", "shown")
PAPERS = ("tiresias", "gavel", "muri", "liquid", "pcs")
#: Heading of each cause in docs/why_off.md, in the order of the page.
CAUSES = {
    "input": "Inputs not published",
    "testbed": "Testbed instead of simulation",
    "sample": "Random sample without a seed",
    "artifact": "Text, artifact and numbers differ",
    "solver": "Another solver",
    "saturation": "Chaos past saturation",
    "reading": "Rounding and plots",
    "statistic": "Choice of statistic",
    "setting": "Another experiment",
    "unknown": "Cause not known",
}


class Miss(NamedTuple):
    """Missed or partial claim about a paper."""

    figure: str
    claim: str

    @property
    def paper(self) -> str:
        """Folder of the figure's paper."""
        return self.figure.partition("/")[0]


class Cause(NamedTuple):
    """Cause of a miss."""

    name: str
    #: whether a run or a file of the authors shows the cause; otherwise it is inferred
    shown: bool


def causes() -> dict[Miss, Cause]:
    """Causes of docs/miss_causes.csv."""
    with CAUSES_FILE.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise SystemExit(f"{CAUSES_FILE.name}: columns are not {', '.join(COLUMNS)}")
        found: dict[Miss, Cause] = {}
        for number, row in enumerate(reader, start=2):
            miss = Miss(row["figure"], row["claim"])
            if miss in found or row["cause"] not in CAUSES or row["shown"] not in ("yes", "no"):
                raise SystemExit(f"{CAUSES_FILE.name}, line {number}: {', '.join(row.values())}")
            found[miss] = Cause(row["cause"], row["shown"] == "yes")
    return found


def misses(results: Sequence[StoredFigure]) -> list[Miss]:
    """Missed and partial claims about the papers, without own checks."""
    return [
        Miss(figure.entry.id, claim["id"])
        for figure in results
        for claim in about_paper(figure)
        if claim["verdict"] in (PARTIAL, MISSED)
    ]


def about_paper(figure: StoredFigure) -> list[dict[str, Any]]:
    """Claims of a figure that are no own checks."""
    return [row for row in figure.claims if not is_own_check(row["kind"], row["certainty"])]


def complete(results: Sequence[StoredFigure]) -> dict[Miss, Cause]:
    """Causes, refused unless they are those of exactly the misses of the results."""
    found = causes()
    missed = set(misses(results))
    lines = [f"without a cause: {miss.figure} {miss.claim}" for miss in sorted(missed - set(found))]
    lines += [
        f"no miss any more: {miss.figure} {miss.claim}" for miss in sorted(set(found) - missed)
    ]
    if lines:
        raise SystemExit("\n".join([f"{CAUSES_FILE.name} is out of date", *lines]))
    return found


def points_of(results: Iterable[StoredFigure]) -> list[dict[str, Any]]:
    """Points of results."""
    return [point for figure in results for point in figure.result.get("points", [])]


def share_cells(points: Iterable[dict[str, Any]]) -> list[str]:
    """Number of judged points, and the shares within 2 and 10 %."""
    near = within_distances(points)
    if not near["judged"]:
        return ["0", "", ""]
    return [str(near["judged"]), *(f"{near['within'][limit]:.0%}" for limit in ("2 %", "10 %"))]


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def place(cause: str) -> str:
    """Anchor of the section of a cause in docs/why_off.md."""
    return "#" + CAUSES[cause].lower().replace(",", "").replace(" ", "-")


def outcome(paper: str, results: Sequence[StoredFigure]) -> str:
    """Block ``outcome`` of a paper: published numbers by origin, claims, figures with misses."""
    own = [figure for figure in results if figure.entry.paper == paper]
    known = complete(results)
    points = points_of(own)
    rows = [
        [ORIGIN_WORDS[origin], *share_cells(group)]
        for origin in ORIGINS
        if within_distances(group := [p for p in points if p["origin"] == origin])["judged"]
    ]
    rows.append(["all", *share_cells(points)])
    numbers = markdown(["published numbers", "judged", "within 2 %", "within 10 %"], rows)
    verdicts = Counter(claim["verdict"] for figure in own for claim in about_paper(figure))
    judged = verdicts.total() - verdicts[NOT_COMPARABLE]
    sentence = (
        f"Of {judged} judged claims of {paper_name(paper)} {verdicts[REPRODUCED]} are reproduced, "
        f"{verdicts[PARTIAL]} partial and {verdicts[MISSED]} missed."
    )
    figures = [figure for figure in own if misses([figure])]
    listed = [_figure_cells(figure, known) for figure in figures]
    table = markdown(["figure with misses", "reproduced", "partial or missed: cause"], listed)
    return "\n\n".join([numbers, sentence, *([table] if listed else [])])


def _figure_cells(figure: StoredFigure, known: dict[Miss, Cause]) -> list[str]:
    """Name of a figure, its claims reproduced of those judged, its misses by cause."""
    claims = [row for row in about_paper(figure) if row["verdict"] != NOT_COMPARABLE]
    good = sum(row["verdict"] == REPRODUCED for row in claims)
    tally = Counter(known[miss].name for miss in misses([figure]))
    reasons = ", ".join(
        f"{tally[name]} [{name}](why_off.md{place(name)})" for name in CAUSES if tally[name]
    )
    return [f"`{figure.entry.id}`", f"{good} of {len(claims)}", reasons]


def by_cause(results: Sequence[StoredFigure]) -> str:
    """Block ``causes``: misses by cause and paper, then published numbers by what is known."""
    known = complete(results)
    rows = []
    for name in CAUSES:
        of_cause = [miss for miss, cause in known.items() if cause.name == name]
        shown = sum(known[miss].shown for miss in of_cause)
        tally = Counter(miss.paper for miss in of_cause)
        link = f"`{name}`: [{CAUSES[name]}]({place(name)})"
        rows.append([link, *_row(len(of_cause), shown, tally)])
    shown = sum(cause.shown for cause in known.values())
    total = _row(len(known), shown, Counter(miss.paper for miss in known))
    rows.append(["**all**", *total])
    head = ["cause", "misses", "shown", *(paper_name(paper) for paper in PAPERS)]
    return f"{markdown(head, rows)}\n\n{_by_input(points_of(results))}"


def _row(number: int, shown: int, tally: Counter[str]) -> list[str]:
    """Cells of a cause: misses, misses with a shown cause, misses of each paper."""
    return [str(number), str(shown or ""), *(str(tally[paper] or "") for paper in PAPERS)]


def _by_input(points: Sequence[dict[str, Any]]) -> str:
    """Table of the judged published numbers by what is known of their inputs."""
    simulated = [point for point in points if point["origin"] != "testbed"]
    groups = {
        "simulated or stated, all inputs known": [p for p in simulated if not p.get("unknown")],
        "simulated, workload or configuration not published": [
            p for p in simulated if p.get("unknown") in ("workload", "configuration", "version")
        ],
        "simulated, random sample without a seed": [
            p for p in simulated if p.get("unknown") == "sample"
        ],
        "measured on a testbed": [p for p in points if p["origin"] == "testbed"],
        "all": list(points),
    }
    rows = [
        [name, *share_cells(group)]
        for name, group in groups.items()
        if within_distances(group)["judged"]
    ]
    return markdown(["published numbers", "judged", "within 2 %", "within 10 %"], rows)


def pages() -> list[str]:
    """Papers whose page has a block ``outcome``."""
    return [paper for paper in PAPERS if _has_block(ROOT / "docs" / f"{paper}.md")]


def _has_block(page: Path) -> bool:
    return page.exists() and "<!-- outcome: begin -->" in page.read_text(encoding="utf-8")


def main() -> int:
    """Write the blocks."""
    results = status.committed()
    for paper in pages():
        marks.write(ROOT / "docs" / f"{paper}.md", "outcome", outcome(paper, results))
    marks.write(CAUSES_PAGE, "causes", by_cause(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
