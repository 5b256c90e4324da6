"""Write README's summary and docs/status.md from the committed results: `make status`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import marks

from repro.batch.check import StoredFigure, headline_lines, stored
from repro.figures import params
from repro.figures.claims import is_own_check
from repro.figures.points import within_distances

ROOT = Path(__file__).resolve().parents[1]
SUMMARY_PAGE = ROOT / "README.md"
TABLE_PAGE = ROOT / "docs" / "status.md"
KINDS = ("number", "order", "example", "check")
OTHER = ("partial", "missed", "not comparable")


def kind_of(claim: dict[str, Any]) -> str:
    """Kind of a claim; an example derived by this package is a check."""
    return "check" if is_own_check(claim["kind"], claim["certainty"]) else str(claim["kind"])


def cells(claims: list[dict[str, Any]]) -> list[str]:
    """Cells of a row: claims reproduced of those judged for each kind, then the other verdicts."""
    shown = []
    for kind in KINDS:
        judged = [
            claim["verdict"] == "reproduced"
            for claim in claims
            if kind_of(claim) == kind and claim["verdict"] != "not comparable"
        ]
        shown.append(f"{sum(judged)} of {len(judged)}" if judged else "")
    tally = Counter(claim["verdict"] for claim in claims)
    return [*shown, *(str(tally[name] or "") for name in OTHER)]


def committed() -> list[StoredFigure]:
    """Results in `figures/`, paper by paper."""
    order = {"tiresias": 0, "muri": 1, "gavel": 2}
    results = stored(params.discover(ROOT), ROOT / "figures")
    return sorted(results, key=lambda result: order.get(result.entry.paper, len(order)))


def summary(results: list[StoredFigure]) -> str:
    """Summary of all results, a Markdown list."""
    return "\n".join(f"- {line}" for line in headline_lines(results))


def table(results: list[StoredFigure]) -> str:
    """Table of all results in Markdown, a row per figure and a row of sums."""
    rows = [
        "| figure | paper | rules | points within 2 % "
        f"| {' | '.join(f'{kind}s' for kind in KINDS)} | partial | missed | n. c. |",
        f"|{'---|' * 11}",
    ]
    claims = []
    for stored_result in results:
        result = json.loads((stored_result.folder / "result.json").read_text())
        rules = params.judged_rules(result["params"]) if "rules" in result["params"] else ""
        near = within_distances(result["points"])
        points = f"{near['within']['2 %']:.0%} of {near['judged']}" if near["judged"] else ""
        name = f"`{stored_result.entry.id}`"
        facts = [name, result["reference"], rules, points, *cells(result["claims"])]
        rows.append(f"| {' | '.join(facts)} |")
        claims += result["claims"]
    rows.append(f"| **all** | | | | {' | '.join(f'**{cell}**' for cell in cells(claims))} |")
    return "\n".join(rows)


def main() -> int:
    """Write the summary and the table."""
    results = committed()
    marks.write(SUMMARY_PAGE, "status", summary(results))
    marks.write(TABLE_PAGE, "status", table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
