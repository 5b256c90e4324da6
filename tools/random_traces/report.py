"""The tables of random traces of docs/quality.md: relations, and results from their files."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from docs import marks
from tools.random_traces.relations import RELATIONS
from tools.random_traces.run import Line, read_lines

PAGE = "docs/quality.md"
MARK = "random traces"
RELATIONS_MARK = "relations"


def write(root: Path, files: Sequence[Path]) -> None:
    """Write the parts of the page between their marks."""
    lines = [line for path in files for line in read_lines(path)]
    marks.write(root / PAGE, RELATIONS_MARK, relations())
    marks.write(root / PAGE, MARK, table(lines))


def relations() -> str:
    """Table of the relations, with the policies that are excepted."""
    rows = ["| relation | change, and what is equal | excepted |", "| --- | --- | --- |"]
    for relation in RELATIONS:
        excepted = "; ".join(f"`{name}`: {why}" for name, why in relation.excepted.items())
        rows.append(f"| {relation.name} | {relation.statement} | {excepted or '–'} |")
    return "\n".join(rows)


def table(lines: Sequence[Line]) -> str:
    """Table of policies and rule sets: traces, jobs, violations and seconds."""
    if not lines:
        return "No results yet."
    last = {(line.policy, line.rules, line.seed, line.first): line for line in lines}
    every = list(last.values())
    dates = sorted({line.date for line in every})
    days = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    commits = ", ".join(f"`{commit}`" for commit in sorted({line.commit for line in every}))
    seeds = ", ".join(map(str, sorted({line.seed for line in every})))
    rows = [
        textwrap.fill(f"Run on {days} at {commits}, seed {seeds}.", 118),
        "",
        "| policy | rules | traces | jobs | compared | violations | CPU s |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for pair in sorted({(line.policy, line.rules) for line in every}):
        chosen = [line for line in every if (line.policy, line.rules) == pair]
        rows.append(_row(f"`{pair[0]}`", pair[1], chosen))
    rows.append(_row("**all**", "", every))
    return "\n".join(rows)


def _row(policy: str, rules: str, lines: Sequence[Line]) -> str:
    """Row of the table."""
    numbers = [
        sum(line.traces for line in lines),
        sum(line.jobs for line in lines),
        sum(line.compared for line in lines),
        sum(line.violations for line in lines),
        round(sum(line.cpu_s for line in lines)),
    ]
    cells = [policy, rules, *(f"{number:,}" for number in numbers)]
    return f"| {' | '.join(cells)} |"
