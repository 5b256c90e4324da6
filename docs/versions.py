"""Compare the results of two machines or of two sets of versions, for docs/quality.md.

``python docs/versions.py "lowest versions" THEIRS OURS`` compares two folders of results and writes
the row "lowest versions" of docs/versions.csv and the table of docs/quality.md. Figures that
measure computing time are left out.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import marks

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "versions.csv"
PAGE = ROOT / "docs" / "quality.md"
FIELDS = (
    "setting",
    "figures",
    "figures_equal",
    "numbers",
    "numbers_differ",
    "largest_difference",
    "where",
    "verdicts_differ",
)

Row = dict[str, str]


def results(folder: Path) -> dict[str, dict]:
    """Content of every ``result.json`` below a folder of results, by figure id."""
    found = {}
    for path in sorted(folder.glob("*/*/result.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        found[result["id"]] = result
    return found


def is_timed(figure_id: str) -> bool:
    """Whether a figure measures computing time."""
    text = (ROOT / "params" / f"{figure_id}.yaml").read_text(encoding="utf-8")
    return "\ntimed: true\n" in text


def cells(path: Path) -> list[list[str]]:
    """Cells of a CSV file without its comments."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return list(csv.reader(io.StringIO("".join(line for line in lines if line[:1] != "#"))))


def number(cell: str) -> float | None:
    """Number of a cell; None for text."""
    try:
        return float(cell)
    except ValueError:
        return None


def differences(theirs: Path, ours: Path) -> Iterator[float]:
    """Relative difference of each number of two tables; infinite where only one is a number.

    Tables of different shape differ in one number by infinity.
    """
    rows, other_rows = cells(theirs), cells(ours)
    if [len(row) for row in rows] != [len(row) for row in other_rows]:
        yield math.inf
        return
    for row, other_row in zip(rows, other_rows, strict=True):
        for cell, other_cell in zip(row, other_row, strict=True):
            value, other = number(cell), number(other_cell)
            if value is None and other is None:
                continue
            if cell == other_cell:
                yield 0.0
            elif value is None or other is None:
                yield math.inf
            else:
                yield abs(value - other) / max(abs(value), abs(other), 1e-300)


def compare(setting: str, theirs: Path, ours: Path) -> Row:
    """Row of the table for two folders of results.

    Raises
    ------
    SystemExit
        If the folders have no figure in common.
    """
    their_results, our_results = results(theirs), results(ours)
    shared = [name for name in our_results if name in their_results and not is_timed(name)]
    if not shared:
        raise SystemExit(f"{theirs} and {ours} have no figure in common")
    figures_equal = numbers = differ = 0
    largest, where = 0.0, ""
    verdicts = []
    for name in shared:
        stem = name.partition("/")[2]
        tables = [folder / name / f"{stem}.csv" for folder in (theirs, ours)]
        found = list(differences(*tables))
        figures_equal += not any(found)
        numbers += len(found)
        differ += sum(value > 0 for value in found)
        if max(found, default=0.0) > largest:
            largest, where = max(found), name
        verdicts += changed_verdicts(name, their_results[name], our_results[name])
    return {
        "setting": setting,
        "figures": str(len(shared)),
        "figures_equal": str(figures_equal),
        "numbers": str(numbers),
        "numbers_differ": str(differ),
        "largest_difference": f"{largest:.2g}",
        "where": where,
        "verdicts_differ": "; ".join(verdicts),
    }


def changed_verdicts(name: str, theirs: dict, ours: dict) -> list[str]:
    """Claims of a figure with another verdict, as texts."""
    verdict_of = {claim["id"]: claim["verdict"] for claim in ours["claims"]}
    return [
        f"{name} {claim['id']}: {claim['verdict']}, not {verdict_of[claim['id']]}"
        for claim in theirs["claims"]
        if claim["verdict"] != verdict_of.get(claim["id"], claim["verdict"])
    ]


def read() -> list[Row]:
    """Rows of docs/versions.csv."""
    if not TABLE.exists():
        return []
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(rows: list[Row]) -> None:
    """Write docs/versions.csv."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def block(rows: list[Row]) -> str:
    """Table of docs/quality.md."""
    lines = [
        "| setting | figures | equal | numbers | differ | largest difference | other verdicts |",
        "|---|---:|---:|---:|---:|---|---|",
    ]
    for row in rows:
        where = f" (`{row['where']}`)" if row["where"] else ""
        difference = float(row["largest_difference"])
        words = "another table" if math.isinf(difference) else f"{difference:.2g}"
        counts = [f"{int(row[name]):,}" for name in FIELDS[1:5]]
        cell = row["verdicts_differ"] or "none"
        lines.append(f"| {row['setting']} | {' | '.join(counts)} | {words}{where} | {cell} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Add a row, or write the table alone without arguments."""
    rows = read()
    if arguments:
        setting, theirs, ours = arguments
        new = compare(setting, Path(theirs), Path(ours))
        rows = [row for row in rows if row["setting"] != setting] + [new]
        write(rows)
    marks.write(PAGE, "versions", block(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
