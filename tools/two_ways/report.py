"""The section about two ways of docs/quality.md, written from docs/two_ways.csv."""

from __future__ import annotations

from collections.abc import Mapping

from tools.two_ways import catalogue
from tools.two_ways.measure import Row
from tools.two_ways.pair import Pair

MARK = "two ways"


def section(rows: Mapping[str, Row]) -> str:
    """Text of the section: one row per pair, then the reasons of cases that were set aside."""
    if not rows:
        return "No results yet."
    pairs = [pair for pair in catalogue.PAIRS if pair.name in rows]
    cases = sum(rows[pair.name].cases for pair in pairs)
    equal = sum(rows[pair.name].equal for pair in pairs)
    beyond = sum(rows[pair.name].beyond for pair in pairs)
    seeds = sorted({rows[pair.name].seed for pair in pairs})
    head = (
        f"{len(pairs)} pairs, {cases:,} cases with seed {', '.join(map(str, seeds))}. "
        f"{equal:,} cases have no difference at all. {beyond:,} cases are beyond the bound."
    )
    lines = [
        "| pair | first way | second way | cases | set aside | largest difference | bound |",
        "|---|---|---|---:|---:|---:|---|",
        *(_line(pair, rows[pair.name]) for pair in pairs),
    ]
    parts = [head, "\n".join(lines)]
    asides = [f"- {pair.name}: {pair.aside}." for pair in pairs if rows[pair.name].aside]
    if asides:
        parts.append("\n".join(["Cases are set aside for these reasons:", "", *asides]))
    return "\n\n".join(parts)


def _line(pair: Pair, row: Row) -> str:
    """Row of the table."""
    largest = f"{row.largest:.1e} {pair.unit}" if row.largest else "none"
    cells = [
        pair.name,
        pair.first,
        pair.second,
        f"{row.cases:,}",
        f"{row.aside:,}",
        largest,
        f"{pair.bound:g} {pair.unit}" if pair.bound else "last bit",
    ]
    return f"| {' | '.join(cells)} |"
