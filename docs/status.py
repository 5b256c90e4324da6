"""Write README's status table from the committed results: `make status`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import marks

from repro.batch.check import headline_lines, stored
from repro.figures import params
from repro.figures.points import shares

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "README.md"
KINDS = ("number", "order", "example", "check")
OTHER = ("partial", "missed", "not comparable")


def cells(claims: list[dict[str, Any]]) -> list[str]:
    """Return, per kind, how many of the judged claims came out, and how many did not."""
    shown = []
    for kind in KINDS:
        judged = [
            one["verdict"] == "reproduced"
            for one in claims
            if one["kind"] == kind and one["verdict"] != "not comparable"
        ]
        shown.append(f"{sum(judged)} of {len(judged)}" if judged else "")
    tally = Counter(one["verdict"] for one in claims)
    return [*shown, *(str(tally[name] or "") for name in OTHER)]


def table() -> str:
    """Return headline and table of the committed results, in Markdown."""
    found = stored(params.discover(ROOT), ROOT / "figures")
    order = {"tiresias": 0, "muri": 1, "gavel": 2}
    rows = [
        "| figure | paper | rules | points within 2 % "
        f"| {' | '.join(f'{kind}s' for kind in KINDS)} | partial | missed | n. c. |",
        f"|{'---|' * 11}",
    ]
    claims = []
    for one in sorted(found, key=lambda one: order.get(one.entry.paper, len(order))):
        result = json.loads((one.folder / "result.json").read_text())
        rules = params.judged_rules(result["params"]) if "rules" in result["params"] else ""
        near = shares(result["points"])
        points = f"{near['within']['2 %']:.0%} of {near['judged']}" if near["judged"] else ""
        facts = [f"`{one.entry.id}`", result["reference"], rules, points, *cells(result["claims"])]
        rows.append(f"| {' | '.join(facts)} |")
        claims += result["claims"]
    rows.append(f"| **all** | | | | {' | '.join(f'**{cell}**' for cell in cells(claims))} |")
    whole = [f"<details><summary>All {len(found)} figures and tables</summary>", "", *rows]
    headline = [f"- {line}" for line in headline_lines(found)]
    return "\n".join([*headline, "", *whole, "", "</details>"])


def main() -> int:
    """Write the table."""
    marks.write(PAGE, "status", table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
