"""Statements and branches of `repro` that the tests run: `make coverage`.

The tests run twice. In the first pass, loops are compiled, so only Python code counts. In the
second pass Python runs the loops, and a test that takes longer than a limit ends. The table of
docs/quality.md counts a line that either pass runs. ``build/coverage/html`` shows each line.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs import marks

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "quality.md"
MARK = "coverage"
BUILD = ROOT / "build" / "coverage"
JSON = BUILD / "coverage.json"
#: Name of a pass -> words for pytest. A test that is stopped in the second pass may have no line
#: number, and the long form of tracebacks needs one.
PASSES: Mapping[str, tuple[str, ...]] = {
    "compiled": (),
    "python": (
        *("--timeout=30", "--tb=native"),
        *("tests/unit", "tests/conformance", "tests/golden", "repro"),
    ),
}
#: Environment of the pass in which Python runs the loops.
_PYTHON_LOOPS = {"NUMBA_DISABLE_JIT": "1"}
#: Counts of a file in the report of coverage.py.
_COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def run(passes: list[str], processes: int) -> None:
    """Run the passes, then combine what they ran."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for name in passes:
        folder = BUILD / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        environment = {**os.environ, "COVERAGE_FILE": str(folder / "data")}
        if name == "python":
            environment |= _PYTHON_LOOPS
        words = ["-n", str(processes), "--dist", "loadgroup", "--cov", "--cov-report="]
        command = [sys.executable, "-m", "pytest", *words, *PASSES[name]]
        subprocess.run(command, cwd=ROOT, env=environment)
    data = [str(path) for name in PASSES for path in (BUILD / name).glob("data*")]
    environment = {**os.environ, "COVERAGE_FILE": str(BUILD / "data")}
    _coverage("combine", "--keep", *data, environment=environment)
    # tests also run code of files that no longer exist
    _coverage("json", "-i", "-o", str(JSON), environment=environment)
    _coverage("html", "-i", "-d", str(BUILD / "html"), environment=environment)


def _coverage(*words: str, environment: dict[str, str]) -> None:
    """Run a command of coverage.py."""
    command = [sys.executable, "-m", "coverage", *words]
    code = subprocess.run(command, cwd=ROOT, env=environment).returncode
    if code:
        raise SystemExit(f"coverage {words[0]} ended with exit code {code}")


def table(report: Mapping[str, Any]) -> str:
    """Statements and branches by subpackage, in Markdown.

    Parameters
    ----------
    report : mapping
        Report of ``coverage json``.
    """
    by_package: dict[str, Counter[str]] = {}
    for path, file in report["files"].items():
        folders = Path(path).parts[1:-1]
        package = f"repro/{folders[0]}" if folders else "repro"
        counts = {name: file["summary"][name] for name in _COUNTS}
        by_package.setdefault(package, Counter()).update(counts)
    rows = [
        "| folder | statements | run | never run | branches | taken |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    rows += [_row(f"`{name}`", counts) for name, counts in sorted(by_package.items())]
    rows.append(_row("**all**", sum(by_package.values(), Counter())))
    return "\n".join(rows)


def _row(name: str, counts: Counter[str]) -> str:
    """Row of the table."""
    never = counts["num_statements"] - counts["covered_lines"]
    lines = _share(counts["covered_lines"], counts["num_statements"])
    branches = _share(counts["covered_branches"], counts["num_branches"])
    cells = [f"{counts['num_statements']:,}", lines, str(never)]
    cells += [f"{counts['num_branches']:,}", branches]
    return f"| {name} | {' | '.join(cells)} |"


def _share(part: int, whole: int) -> str:
    """Share in percent; empty without a whole."""
    return f"{part / whole:.1%}" if whole else ""


def never_run(report: Mapping[str, Any]) -> list[str]:
    """Lines that no test runs, as ``file: lines``, files with most of them first."""
    missing = {path: file["missing_lines"] for path, file in report["files"].items()}
    order = sorted(missing, key=lambda path: (-len(missing[path]), path))
    return [f"{path}: {_ranges(missing[path])}" for path in order if missing[path]]


def _ranges(numbers: list[int]) -> str:
    """Line numbers in short, such as ``3-5, 9``."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    texts = [str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}" for group in groups]
    return ", ".join(texts)


def main(words: list[str] | None = None) -> int:
    """Run the tests, write the table and print the lines that no test runs."""
    parser = argparse.ArgumentParser(prog="python -m tools.suite_coverage", description=__doc__)
    parser.add_argument("--passes", nargs="*", choices=list(PASSES), default=list(PASSES))
    parser.add_argument("-j", "--processes", type=int, default=2)
    options = parser.parse_args(words)
    run(options.passes, options.processes)
    report = json.loads(JSON.read_text("utf-8"))
    marks.write(PAGE, MARK, table(report))
    print("\n".join(never_run(report)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
