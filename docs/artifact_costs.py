"""Measure the experiments of ARTIFACT.md and write artifact_costs.csv: `make artifact-costs`.

``python docs/artifact_costs.py gavel/fig08_las_single`` measures some figures and keeps the other
rows. A first run at the quick profile, which does not count, compiles the loops. Each measured
batch then begins without cached simulations. The cache lies in ``build/artifact``.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = ROOT / "docs" / "artifact_claims.csv"
COSTS = ROOT / "docs" / "artifact_costs.csv"
#: Folder of the results, and of a cache of its own.
BUILD = ROOT / "build" / "artifact"
CACHE = BUILD / "cache"
PROFILES = ("quick", "paper")
FIELDS = ("figure", "profile", "cpu_s", "memory_mb")
#: Time between two looks at the memory (s).
_INTERVAL_S = 1.0

Rows = list[dict[str, str]]


def read(path: Path) -> Rows:
    """Rows of a CSV file."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def figures() -> list[str]:
    """Figures of the claims, in the order of their first claim."""
    return list(dict.fromkeys(row["figure"] for row in read(CLAIMS)))


def measure(names: list[str], profile: str) -> Rows:
    """Run figures without cached simulations; CPU time (s) of each, memory (MB) of the batch."""
    shutil.rmtree(CACHE / "simulations", ignore_errors=True)
    memory_mb = run(names, profile) / 1e6
    rows = []
    for name in names:
        path = BUILD / profile / name / "result.json"
        cpu_s = json.loads(path.read_text(encoding="utf-8"))["cpu_s"]
        rows.append(
            {
                "figure": name,
                "profile": profile,
                "cpu_s": f"{cpu_s:.1f}",
                "memory_mb": f"{memory_mb:.0f}",
            }
        )
    return rows


def run(names: list[str], profile: str) -> int:
    """Run figures, one at a time; largest memory (bytes) of all processes together."""
    options = ["--profile", profile, "-j", "1", "--force", "--out", str(BUILD / profile)]
    process = repro("run", *names, *options)
    largest_bytes = 0
    while process.poll() is None:
        largest_bytes = max(largest_bytes, _memory_bytes(process.pid))
        time.sleep(_INTERVAL_S)
    if process.returncode:
        raise SystemExit(f"the experiments failed at profile {profile}")
    return largest_bytes


def repro(*arguments: str) -> subprocess.Popen[bytes]:
    """Start a command of the package, with the cache of this script."""
    command = Path(sys.executable).with_name("repro")
    return subprocess.Popen(
        [command, *arguments], env={**os.environ, "REPRO_CACHE_DIR": str(CACHE)}
    )


def _memory_bytes(process_id: int) -> int:
    """Memory of a process and its descendants; pages that they share count once."""
    total = 0
    with contextlib.suppress(psutil.Error):
        first = psutil.Process(process_id)
        for process in (first, *first.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += process.memory_full_info().pss
    return total


def write(rows: Iterable[dict[str, str]]) -> None:
    """Write the rows of artifact_costs.csv."""
    with COSTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> int:
    """Measure the figures and write their rows."""
    if repro("trace", "fetch", "--all").wait():
        return 1
    rows = {(row["figure"], row["profile"]): row for row in read(COSTS)} if COSTS.exists() else {}
    names = sys.argv[1:] or figures()
    run(names, "quick")
    for profile in PROFILES:
        for row in measure(names, profile):
            rows[row["figure"], profile] = row
    known = [(figure, profile) for figure in figures() for profile in PROFILES]
    write(rows[key] for key in known if key in rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
