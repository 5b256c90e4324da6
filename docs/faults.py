"""Run the trials of all faults, and write docs/faults.csv and the table of docs/quality.md.

``python docs/faults.py`` runs ``tests/faults`` with the nightly tests. ``python docs/faults.py
FILE`` takes the trials of an earlier run, ``pytest tests/faults --faults FILE``.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import marks

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "faults.csv"
PAGE = ROOT / "docs" / "quality.md"
COUNTS = ("times", "hit", "same")
FIELDS = ("fault", "run", *COUNTS)

Row = dict[str, str]


def run(trials: Path) -> int:
    """Run all tests of faults, which write their trials into a file; the exit code of pytest."""
    words = ["-m", "pytest", "tests/faults", "-n0", "-m", "nightly or not nightly"]
    command = [sys.executable, *words, "--faults", str(trials)]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def rows_of(trials: Path) -> list[Row]:
    """Rows of the table: the trials of all tests with the same fault and the same run."""
    sums: dict[tuple[str, str], list[int]] = {}
    for text in trials.read_text(encoding="utf-8").splitlines():
        noted = json.loads(text)
        counts = sums.setdefault((noted["fault"], noted["run"]), [0] * len(COUNTS))
        for place, name in enumerate(COUNTS):
            counts[place] += noted[name]
    return [
        {"fault": fault, "run": run, **dict(zip(COUNTS, map(str, counts), strict=True))}
        for (fault, run), counts in sorted(sums.items())
    ]


def read() -> list[Row]:
    """Rows of docs/faults.csv."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(rows: list[Row]) -> None:
    """Write docs/faults.csv."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def block(rows: list[Row]) -> str:
    """Table of docs/quality.md."""
    lines = ["| fault | run | trials | hit | same bytes |", "|---|---|---:|---:|---:|"]
    for row in rows:
        counts = [f"{int(row[name]):,}" for name in COUNTS]
        lines.append(f"| {row['fault']} | {row['run']} | {' | '.join(counts)} |")
    totals = [f"{sum(int(row[name]) for row in rows):,}" for name in COUNTS]
    return "\n".join([*lines, f"| **all** | | {' | '.join(totals)} |"])


def main(arguments: list[str]) -> int:
    """Write the table of a run of the tests, or of a file with the trials of an earlier run."""
    with tempfile.TemporaryDirectory() as folder:
        trials = Path(arguments[0]) if arguments else Path(folder) / "trials.jsonl"
        if not arguments and (code := run(trials)):
            return code
        rows = rows_of(trials)
    write(rows)
    marks.write(PAGE, "faults", block(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
