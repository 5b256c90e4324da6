"""Compare the policies of accuracy_cases.csv with public simulators: `make accuracy`.

Runs the cases of tests/golden/accuracy_cases.csv against the simulators of Tiresias, Muri, Gavel
and PCS, keeps the results in accuracy.csv next to this file and writes a table for each of the four
papers into the pages on rules. Cases keep their old results where this machine lacks a public file
or ECOS. ``python docs/accuracy.py muri`` runs the cases of one paper; ``--write`` runs none and
writes the tables.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import marks
import pandas as pd

DOCS = Path(__file__).resolve().parent
GOLDEN = DOCS.parent / "tests" / "golden"
RESULTS = DOCS / "accuracy.csv"
ORIGINALS = DOCS / "accuracy_originals.csv"
PAGES = {
    "tiresias": DOCS / "rules-tiresias-effects.md",
    "muri": DOCS / "rules-muri-accuracy.md",
    "gavel": DOCS / "rules-gavel-accuracy.md",
    "pcs": DOCS / "rules-pcs-accuracy.md",
}
#: Columns that identify a case.
KEY = [
    *("paper", "policy", "settings", "compared_with", "reference_settings"),
    *("workload", "cluster", "seed"),
]
#: Relative differences from the simulator: average JCT, makespan, farthest job.
GAPS = ["avg_gap", "makespan_gap", "job_gap"]
#: Largest relative difference of numbers that count as equal.
EXACT = 1e-6
# the cases and the re-implementations lie among the tests
sys.path.insert(0, str(GOLDEN))
#: Texts of the column ``compared_with``.
WORDS = {
    "original": "printed by the simulator",
    "solver": "the same with its solver",
    "reference": "re-implementation",
}


@dataclass(frozen=True)
class Counts:
    """Cases of one row of a table, by their distance from the simulator."""

    exact: int
    tenth: int
    percent: int
    worse: int


def nearness(results: pd.DataFrame) -> Counts:
    """Count the cases that are equal job by job, and the others by the gap of their averages.

    A case without average JCT counts by its makespan, a case without job times by its average.
    """
    gaps = results["avg_gap"].abs().fillna(results["makespan_gap"].abs())
    exact = results["job_gap"].fillna(gaps) <= EXACT
    other_gaps = gaps[~exact]
    tenth = int((other_gaps <= 1e-3).sum())
    percent = int((other_gaps <= 1e-2).sum()) - tenth
    return Counts(int(exact.sum()), tenth, percent, len(other_gaps) - tenth - percent)


def signed(gap: float) -> str:
    """Format a relative difference as per cent; "0" for equal numbers, "–" for NaN."""
    if pd.isna(gap):
        return "–"
    if abs(gap) <= EXACT:
        return "0"
    digits = 2 if abs(gap) < 0.01 else 1
    return f"{gap:+.{digits}%}".replace("-", "−").replace("%", " %")


def worst(gaps: pd.Series[float]) -> float:
    """Difference of largest size; NaN if all are NaN."""
    numbers = gaps.dropna()
    return float(numbers[numbers.abs().idxmax()]) if len(numbers) else float("nan")


def table(results: pd.DataFrame) -> str:
    """Table of one paper in Markdown, a row per policy, settings and kind of comparison."""
    lines = [
        "| policy | compared with | cases | equal in every job | within 0.1 % | within 1 % | worse "
        "| average JCT, at most | makespan, at most |",
        f"|{'---|' * 9}",
    ]
    groups = results.groupby(["policy", "settings", "compared_with"], sort=False, dropna=False)
    for (policy, settings, compared), cases in groups:
        name = f"{policy}, `{settings}`" if settings else policy
        near = nearness(cases)
        counts = [near.exact, near.tenth, near.percent, near.worse]
        cells = [name, WORDS[compared], len(cases), *(count or "" for count in counts)]
        cells += [signed(worst(cases["avg_gap"])), signed(worst(cases["makespan_gap"]))]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def originals(paper: str) -> str:
    """Table of comparisons with the unmodified simulator, in Markdown."""
    rows = pd.read_csv(ORIGINALS, keep_default_na=False, comment="#")
    lines = [
        "| policies | cases | equal in every job | within 0.1 % | within 1 % | worse "
        "| average JCT, at most | note |",
        f"|{'---|' * 8}",
    ]
    for row in rows[rows["paper"] == paper].drop(columns="paper").itertuples(index=False):
        lines.append(f"| {' | '.join(map(str, row))} |")
    return "\n".join(lines)


def stored() -> pd.DataFrame:
    """Read the committed results, one row per case."""
    return pd.read_csv(RESULTS, keep_default_na=False, na_values=dict.fromkeys(GAPS, ""))


def measured(case: Any) -> dict[str, Any]:
    """Run one case; its row of the results."""
    import accuracy_cases

    outcome = accuracy_cases.run(case)
    row = {name: getattr(case, name) for name in KEY}
    row |= {"jobs": outcome.jobs, "avg_jct": f"{outcome.avg_jct:.10g}"}
    row |= {name: f"{getattr(outcome, name):.3g}" for name in GAPS}
    return {name: "" if value == "nan" else value for name, value in row.items()}


def merged(
    cases: list[Any], new_rows: list[dict[str, Any]], old_rows: list[dict[str, Any]]
) -> pd.DataFrame:
    """Results in the order of the cases; a case that was not run keeps its old row."""
    row_of = {tuple(str(row[name]) for name in KEY): row for row in [*old_rows, *new_rows]}
    rows = [row_of.get(tuple(str(getattr(case, name)) for name in KEY)) for case in cases]
    return pd.DataFrame([row for row in rows if row is not None])


def write_tables() -> None:
    """Write the tables of all pages."""
    results = stored()
    for paper, page in PAGES.items():
        marks.write(page, f"accuracy-{paper}", table(results[results["paper"] == paper]))
        marks.write(page, f"originals-{paper}", originals(paper))


def main(words: list[str]) -> int:
    """Run cases, keep their results and write the tables."""
    if strange := set(words) - {*PAGES, "--write"}:
        print(f"accuracy: {min(strange)!r}: give papers ({', '.join(PAGES)}) or --write")
        return 2
    if "--write" not in words:
        _measure(set(words) or set(PAGES))
    write_tables()
    return 0


def _measure(papers: set[str]) -> None:
    """Run the cases of papers and write their results."""
    import accuracy_cases

    started = time.monotonic()
    cases = accuracy_cases.read()
    chosen = [case for case in cases if case.paper in papers]
    missing = {case: accuracy_cases.missing(case) for case in chosen}
    for name, count in Counter(filter(None, missing.values())).items():
        print(f"accuracy: {count} cases keep their old results: this machine lacks {name}")
    runnable = [case for case in chosen if not missing[case]]
    # new processes: a fork of a process whose compiled loops have threads can hang
    pool = ProcessPoolExecutor(int(os.environ.get("JOBS", "2")), get_context("spawn"))
    with pool:
        new_rows = list(pool.map(measured, runnable, chunksize=4))
    old_rows = []
    if RESULTS.exists():
        old_rows = pd.read_csv(RESULTS, dtype=str, keep_default_na=False).to_dict("records")
    merged(cases, new_rows, old_rows).to_csv(RESULTS, index=False, lineterminator="\n")
    print(f"accuracy: {len(new_rows)} cases in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
