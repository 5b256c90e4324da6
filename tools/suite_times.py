"""Time of the tests by folder, against a budget: `make times`.

The tests should take at most 30 minutes on two cores, so the budgets of `BUDGET_S` sum to 3,600 s.
A folder over its budget ends the command with exit code 1.
"""

from __future__ import annotations

import argparse
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from docs import marks

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "quality.md"
MARK = "times"
#: Folder -> time of its tests on one core (s), at most.
BUDGET_S: Mapping[str, float] = {
    "tests/unit": 1220.0,
    "tests/notebooks": 1080.0,
    "tests/conformance": 380.0,
    "tests/golden": 250.0,
    "tests/course": 170.0,
    "tests/browser": 150.0,
    "tests/ways": 100.0,
    "tests/hostile": 80.0,
    "tests/random": 70.0,
    "tests/faults": 60.0,
    "docstrings": 30.0,
    # skipped
    "tests/bench": 10.0,
}


@dataclass
class Folder:
    """Tests of a folder."""

    tests: int = 0
    #: time of all tests, as if one ran at a time (s)
    seconds: float = 0.0
    #: the slowest test
    slowest: str = ""
    slowest_s: float = 0.0

    def add(self, name: str, seconds: float) -> None:
        """Count a test."""
        self.tests += 1
        self.seconds += seconds
        if seconds > self.slowest_s:
            self.slowest = name
            self.slowest_s = seconds


def by_folder(path: Path) -> dict[str, Folder]:
    """Tests of a JUnit file of pytest by folder, with setup and teardown."""
    folders: dict[str, Folder] = {}
    for case in ET.parse(path).iter("testcase"):
        parts = case.get("classname", "").split(".")
        in_tests = parts[0] == "tests" and len(parts) > 1
        name = "/".join(parts[:2]) if in_tests else "docstrings"
        folders.setdefault(name, Folder()).add(case.get("name", ""), float(case.get("time", 0.0)))
    return dict(sorted(folders.items()))


def table(folders: Mapping[str, Folder]) -> str:
    """Tests and times by folder, in Markdown."""
    rows = [
        "| folder | tests | time (s) | budget (s) | slowest test (s) |",
        "|---|---:|---:|---:|---|",
    ]
    for name, folder in folders.items():
        shown = f"`{name}`" if "/" in name else name
        budget = f"{BUDGET_S[name]:,.0f}" if name in BUDGET_S else ""
        slowest = "–"
        # skipped tests take no time
        if folder.slowest:
            slowest = f"`{folder.slowest.split('[')[0]}` ({folder.slowest_s:.0f})"
        cells = [shown, f"{folder.tests:,}", f"{folder.seconds:,.0f}", budget, slowest]
        rows.append(f"| {' | '.join(cells)} |")
    tests = sum(folder.tests for folder in folders.values())
    seconds = sum(folder.seconds for folder in folders.values())
    budget = sum(BUDGET_S.values())
    rows.append(f"| **all** | {tests:,} | {seconds:,.0f} | {budget:,.0f} | |")
    return "\n".join(rows)


def over_budget(folders: Mapping[str, Folder]) -> list[str]:
    """A line for each folder whose tests take longer than its budget, or that has none."""
    lines = []
    for name, folder in folders.items():
        budget = BUDGET_S.get(name)
        if budget is None:
            lines.append(f"{name}: no budget in tools/suite_times.py")
        elif folder.seconds > budget:
            lines.append(f"{name}: {folder.seconds:.0f} s, budget {budget:.0f} s")
    return lines


def main(words: list[str] | None = None) -> int:
    """Write the table and print the folders over their budget."""
    parser = argparse.ArgumentParser(prog="python -m tools.suite_times", description=__doc__)
    parser.add_argument("junit", type=Path, help="JUnit file of pytest")
    folders = by_folder(parser.parse_args(words).junit)
    marks.write(PAGE, MARK, table(folders))
    lines = over_budget(folders)
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
