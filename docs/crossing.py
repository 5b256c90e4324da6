"""Write crossing.csv and the tables of crossing.md: every policy on every paper's jobs.

``make crossing`` runs all combinations of tests/conformance/crossing_cases.py. ``python
docs/crossing.py drf edf`` runs those of some policies and keeps the other results.
"""

from __future__ import annotations

import csv
import dataclasses
import sys
from collections import Counter
from pathlib import Path

import marks

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS / "crossing.csv"
PAGE = DOCS / "crossing.md"
sys.path.insert(0, str(DOCS.parent / "tests" / "conformance"))
#: Sign of a cell.
RUNS, DRESSED, REFUSED = "●", "○", "–"

Rows = list[dict[str, str]]


def compute(policies: list[str]) -> None:
    """Run the combinations of some policies, or of all, and write crossing.csv."""
    import crossing_cases as cases

    kept = {(row["policy"], row["trace"], row["cluster"], row["dress"]): row for row in rows()}
    written = [
        kept[where]
        if policies and where[0] not in policies
        else dataclasses.asdict(cases.crossing(*where))
        for where in cases.all_combinations()
    ]
    fields = [field.name for field in dataclasses.fields(cases.Outcome)]
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(written)


def rows() -> Rows:
    """Rows of crossing.csv."""
    with RESULTS.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def summary(results: Rows) -> str:
    """How many combinations run, by cluster and dress."""
    total = Counter((row["cluster"], row["dress"]) for row in results)
    runs = Counter((row["cluster"], row["dress"]) for row in results if row["runs"] == "True")
    lines = ["| GPUs | jobs | run | refused |", "|---|---|---:|---:|"]
    for key, count in total.items():
        cluster, dressing = key
        lines.append(f"| {cluster} | {dressing} | {runs[key]} | {count - runs[key]} |")
    return "\n".join(lines)


def table(results: Rows) -> str:
    """A row per policy, a column per paper's jobs and cluster."""
    outcome = {
        (row["policy"], row["trace"], row["cluster"], row["dress"]): row["runs"] == "True"
        for row in results
    }
    policies = list(dict.fromkeys(row["policy"] for row in results))
    traces = list(dict.fromkeys(row["trace"] for row in results))
    clusters = list(dict.fromkeys(row["cluster"] for row in results))
    columns = [(trace, cluster) for cluster in clusters for trace in traces]
    head = " | ".join(f"{trace}, {cluster}" for trace, cluster in columns)
    lines = [f"| policy | {head} |", "|---|" + ":-:|" * len(columns)]
    for policy in policies:
        cells = []
        for trace, cluster in columns:
            plain = outcome[policy, trace, cluster, "plain"]
            dressed = outcome[policy, trace, cluster, "dressed"]
            cells.append(RUNS if plain else DRESSED if dressed else REFUSED)
        lines.append(f"| `{policy}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def refusals(results: Rows) -> str:
    """One refusal of each policy and dress, as a user reads it."""
    first: dict[tuple[str, str], str] = {}
    for row in results:
        if row["runs"] != "True":
            first.setdefault((row["policy"], row["dress"]), row["line"])
    lines = ["| policy | jobs | line |", "|---|---|---|"]
    lines += [f"| `{policy}` | {dressing} | {line} |" for (policy, dressing), line in first.items()]
    return "\n".join(lines)


def main() -> None:
    """Run the combinations and write the page."""
    compute(sys.argv[1:])
    results = rows()
    for name, part in (("summary", summary), ("table", table), ("refusals", refusals)):
        marks.write(PAGE, name, part(results))


if __name__ == "__main__":
    main()
