"""Random traces that are counted: the committed file, and the tables of docs/quality.md."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from docs import marks
from repro.trace.runs import quantity
from tools.random_traces.relations import RELATIONS
from tools.random_traces.run import COMMITTED, Line, merged, read_lines, write_lines

PAGE = "docs/quality.md"
MARK = "random traces"
RELATIONS_MARK = "relations"


def write(root: Path, files: Sequence[Path]) -> None:
    """Add files of results to the committed file, and write the parts of the page."""
    committed = root / COMMITTED
    lines = merged(line for path in (committed, *files) for line in read_lines(path))
    write_lines(committed, lines)
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
    """Table of policies and rule sets: traces without violation, jobs and seconds."""
    if not lines:
        return "No results yet."
    days = sorted({day for line in lines for day in line.date.split(" to ")})
    span = " to ".join(dict.fromkeys((days[0], days[-1])))
    seeds = ", ".join(map(str, sorted({line.seed for line in lines})))
    commits = quantity(len({name for line in lines for name in line.commit.split()}), "commit")
    rows = [
        textwrap.fill(f"Run on {span} at {commits} (see {COMMITTED}), seed {seeds}.", 118),
        "",
        "| policy | rules | traces | jobs | compared | CPU s |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for pair in sorted({(line.policy, line.rules) for line in lines}):
        chosen = [line for line in lines if (line.policy, line.rules) == pair]
        rows.append(_row(f"`{pair[0]}`", pair[1], chosen))
    rows.append(_row("**all**", "", lines))
    return "\n".join(rows)


def _row(policy: str, rules: str, lines: Sequence[Line]) -> str:
    """Row of the table."""
    numbers = [
        sum(line.traces for line in lines),
        sum(line.jobs for line in lines),
        sum(line.compared for line in lines),
        round(sum(line.cpu_s for line in lines)),
    ]
    cells = [policy, rules, *(f"{number:,}" for number in numbers)]
    return f"| {' | '.join(cells)} |"
