"""The section about mutants of docs/quality.md, written from files of results."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from docs import marks
from tools.mutate import operators, scope
from tools.mutate.run import KILLED, SURVIVED, TIMEOUT, read_lines
from tools.mutate.suite import short_hash

PAGE = "docs/quality.md"
REASONS = "docs/mutants.csv"
MARK = "mutants"
#: Kinds of reasons in `REASONS`.
EQUIVALENT, NIGHTLY, UNTESTED = "equivalent", "nightly", "untested"
KINDS = (EQUIVALENT, NIGHTLY, UNTESTED)


def write(root: Path, files: Sequence[Path]) -> None:
    """Write the part of the page between its marks."""
    rows = current(root, [line for path in files for line in read_lines(path)])
    text = section(rows, reasons(root / REASONS))
    marks.write(root / PAGE, MARK, text)


def current(root: Path, lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Last result of each mutant of the present source, with its present line number."""
    last = {(line["id"], line["source"]): line for line in lines}
    rows = []
    for path in scope.modules(root).values():
        source = (root / path).read_text("utf-8")
        key = short_hash(source)
        for mutant in operators.mutants(source, path):
            if (mutant.id, key) in last:
                rows.append({**last[mutant.id, key], "line": mutant.line})
    return rows


def reasons(path: Path) -> dict[str, tuple[str, str]]:
    """Kind and text of the reason of each survivor that somebody looked at, by id."""
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["kind"] not in KINDS or not row["reason"].strip():
            raise ValueError(f"{path.name}: {row['id']} needs a kind of {KINDS} and a reason")
    return {row["id"]: (row["kind"], row["reason"]) for row in rows}


def section(rows: Sequence[dict[str, Any]], known: dict[str, tuple[str, str]]) -> str:
    """Text of the section: scores by folder, then every survivor."""
    if not rows:
        return "No results yet."
    kind_of = {name: kind for name, (kind, _) in known.items()}
    tables = [_scores(rows, kind_of), _survivors(rows, known)]
    dates = sorted({row["date"] for row in rows})
    commits = sorted({row["commit"] for row in rows})
    days = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    seconds = sum(row["cpu_s"] for row in rows)
    head = (
        f"{len(rows):,} mutants of {len({row['path'] for row in rows})} files, run on {days} "
        f"at {', '.join(f'`{commit}`' for commit in commits)}. "
        f"A mutant took {seconds / len(rows):.1f} s of CPU time on average."
    )
    return "\n\n".join([head, *tables])


def wilson(hits: int, count: int) -> tuple[float, float]:
    """Bounds of the 95 % interval of Wilson for a share."""
    z = 1.959964
    share = hits / count
    centre = share + z * z / (2 * count)
    width = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return (centre - width) / scale, (centre + width) / scale


def folder_of(path: str) -> str:
    """Folder of a file."""
    return path.rpartition("/")[0]


def _scores(rows: Sequence[dict[str, Any]], kind_of: dict[str, str]) -> str:
    """Table of scores."""
    lines = [
        "| folder | mutants | found | too long | survived | equivalent | score | 95 % interval |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    folders = sorted({folder_of(row["path"]) for row in rows})
    for folder in [*folders, None]:
        chosen = [row for row in rows if folder in (None, folder_of(row["path"]))]
        counts = Counter(row["status"] for row in chosen)
        survivors = [row["id"] for row in chosen if row["status"] == SURVIVED]
        equivalent = sum(kind_of.get(name) == EQUIVALENT for name in survivors)
        hits = counts[KILLED] + counts[TIMEOUT]
        judged = len(chosen) - equivalent
        score = f"{100 * hits / judged:.1f} %" if judged else "–"
        low, high = wilson(hits, judged) if judged else (math.nan, math.nan)
        interval = f"{100 * low:.0f} … {100 * high:.0f} %" if judged else "–"
        name = f"`{folder}`" if folder else "**all**"
        numbers = [len(chosen), counts[KILLED], counts[TIMEOUT], counts[SURVIVED], equivalent]
        cells = [name, *(f"{number:,}" for number in numbers), score, interval]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _survivors(rows: Sequence[dict[str, Any]], known: dict[str, tuple[str, str]]) -> str:
    """Table of survivors."""
    survivors = [row for row in rows if row["status"] == SURVIVED]
    if not survivors:
        return "No mutant survived."
    lines = ["| survivor | before | after | reason |", "| --- | --- | --- | --- |"]
    for row in sorted(survivors, key=lambda row: (row["path"], row["line"], row["id"])):
        kind, reason = known.get(row["id"], ("not looked at", ""))
        text = f"{kind}: {reason}" if reason else kind
        place = f"{row['path'].removeprefix('repro/')}:{row['line']} ({row['id']})"
        cells = [place, _code(row["old"]), _code(row["new"]), _cell(text)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _code(text: str) -> str:
    """Source in a cell of a table."""
    return f"`` {_cell(text)} ``"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
