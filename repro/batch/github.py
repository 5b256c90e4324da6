"""Verdicts for GitHub Actions: annotations of a job, and a summary in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from repro.batch.check import StoredFigure, counts, tally_line
from repro.batch.compare_results import Change, not_compared_lines, totals
from repro.figures.claims import MISSED, OUTCOMES, PARTIAL, REPRODUCED, is_own_check
from repro.figures.saved import paper_name, shown_values

#: Variable with the file of a step's summary.
ENV_SUMMARY = "GITHUB_STEP_SUMMARY"
#: Most rows of a list in the summary. GitHub refuses summaries above 1 MiB.
_MOST_ROWS = 200


def annotation_lines(figures: Sequence[StoredFigure], changes: Sequence[Change] = ()) -> list[str]:
    """Workflow commands that annotate the parameter files of figures.

    A figure has at most one error and one warning. An error lists the faults of the figure that
    make ``repro check`` exit 1. A warning lists points and claims that moved in a figure with a
    missed or partial claim.
    """
    change_of = {change.id: change for change in changes}
    errors = []
    warnings = []
    for figure in figures:
        change = change_of.get(figure.entry.id)
        faults = [str(figure.error["error"])] if figure.error else []
        faults += [f"damaged: {line}" for line in figure.damage]
        for row in figure.without_deviation:
            published, ours, _ = shown_values(row)
            faults.append(f"missed: {row['id']}: ours {ours}, published {published}")
        faults += [f"worse: {line}" for line in change.worse] if change else []
        if faults:
            errors.append(_command("error", figure.entry.id, faults))
        is_missed = any(row["verdict"] in (MISSED, PARTIAL) for row in figure.claims)
        moved = [*change.moved, *change.moved_claims] if change else []
        if is_missed and moved:
            lines = [f"moved: {line}" for line in moved[:5]]
            lines += [f"{len(moved) - 5} more moved"] if len(moved) > 5 else []
            warnings.append(_command("warning", figure.entry.id, lines))
    return [*errors, *warnings]


def _command(level: str, figure_id: str, lines: Sequence[str]) -> str:
    """Workflow command; characters that would end one of its parts are escaped.

    >>> _command("error", "gavel/fig08", ["100 % off", "a, b"])
    '::error file=params/gavel/fig08.yaml,title=gavel/fig08::100 %25 off%0Aa, b'
    """
    name = _escaped(figure_id).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} file=params/{name}.yaml,title={name}::{_escaped(chr(10).join(lines))}"


def _escaped(text: str) -> str:
    """Text for a workflow command, with per cent signs and line ends escaped."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def summary(
    figures: Sequence[StoredFigure], changes: Sequence[Change] = (), against: str = ""
) -> str:
    """Summary in Markdown: a row of verdicts per paper, then what got worse, better, and moved."""
    head = ["figures", *OUTCOMES, "own checks that hold"]
    lines = ["## Published numbers against regenerated", "", f"{tally_line(figures)}.", ""]
    lines += [f"| paper | {' | '.join(head)} |", f"|---|{'---:|' * len(head)}"]
    for paper in dict.fromkeys(figure.entry.paper for figure in figures):
        of_paper = [figure for figure in figures if figure.entry.paper == paper]
        rows = [row for figure in of_paper for row in figure.claims]
        own = [row for row in rows if is_own_check(row["kind"], row["certainty"])]
        tally = counts([row for row in rows if row not in own])
        hold = counts(own).get(REPRODUCED, 0)
        cells = [paper_name(paper), str(len(of_paper))]
        cells += [str(tally.get(outcome, 0)) for outcome in OUTCOMES]
        lines.append(f"| {' | '.join(cells)} | {hold} of {len(own)} |")
    faults = [
        (figure.entry.id, text)
        for figure in figures
        for text in [*filter(None, [figure.error.get("error")]), *figure.damage]
    ]
    lines += _table("Failed or damaged", faults)
    missed = [
        (figure.entry.id, f"{row['id']}: {row['what']}")
        for figure in figures
        for row in figure.without_deviation
    ]
    lines += _table("Missed without a recorded deviation", missed)
    if changes:
        lines += ["", f"## Against {_cell(against)}", "", f"{totals(changes)}."]
        lines += [f"- {_cell(line)}" for line in not_compared_lines(changes)]
        for name in ("worse", "better"):
            changed = [(change.id, line) for change in changes for line in getattr(change, name)]
            lines += _table(name.capitalize(), changed)
        moved = [
            (change.id, line)
            for change in changes
            for line in [*change.moved, *change.moved_claims]
        ]
        lines += _table("Moved", moved)
    return "\n".join(lines) + "\n"


def _table(title: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    """Heading and table of figures with a text; nothing without rows."""
    if not rows:
        return []
    lines = ["", f"### {title}: {len(rows)}", "", "| figure | what |", "|---|---|"]
    lines += [f"| {_cell(name)} | {_cell(text)} |" for name, text in rows[:_MOST_ROWS]]
    hidden = len(rows) - _MOST_ROWS
    return [*lines, "", f"{hidden} more"] if hidden > 0 else lines


def _cell(text: str) -> str:
    """Text on one line, for a table: characters of HTML and the column separator are escaped.

    >>> _cell("a <b> & c")
    'a &lt;b&gt; &amp; c'
    """
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return plain.replace("|", "\\|")
