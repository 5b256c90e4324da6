"""Reads the last results and reports verdicts, published numbers and damage."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.base import paths
from repro.base.errors import ReproError
from repro.figures.claims import KINDS, MISSED, OUTCOMES, REPRODUCED
from repro.figures.params import FigureEntry
from repro.figures.points import shares
from repro.figures.saved import RESULT, damaged, read_error, read_result
from repro.figures.tolerance import show

#: The gallery page, which a batch writes when it ends.
INDEX = "index.html"


@dataclass(frozen=True)
class Stored:
    """Content of a figure's folder: its result, its last error, a line per damaged file."""

    entry: FigureEntry
    folder: Path
    result: Mapping[str, Any] = field(default_factory=dict)
    error: Mapping[str, Any] = field(default_factory=dict)
    damage: tuple[str, ...] = ()

    @property
    def claims(self) -> list[dict[str, Any]]:
        """Rows of claims."""
        return list(self.result.get("claims", []))

    @property
    def unexplained(self) -> list[dict[str, Any]]:
        """Missed claims without a recorded deviation."""
        return [row for row in self.claims if row["verdict"] == MISSED and not row.get("deviation")]


def stored(entries: Sequence[FigureEntry], out: Path) -> list[Stored]:
    """Read the figures that have a result or an error in ``out``, in input order."""
    figures = []
    for entry in entries:
        folder = out / entry.id
        result, result_fault = read_result(folder)
        error, error_fault = read_error(folder)
        damage = [*filter(None, (result_fault, error_fault))]
        damage += damaged(folder, entry.stem, result) if result else []
        if result or error or damage:
            figures.append(Stored(entry, folder, result, error, tuple(damage)))
    return figures


def last_results(entries: Sequence[FigureEntry], out: Path | None) -> tuple[Path, list[Stored]]:
    """Read the last results; also return their folder, ``build/figures`` if a batch ended there."""
    folders = _usual_folders() if out is None else [out]
    for folder in folders:
        figures = stored(entries, folder)
        if figures:
            return folder, figures
    tried = " and ".join(map(str, folders))
    raise ReproError(f"no results in {tried}; `repro run` makes them")


def elsewhere(entries: Sequence[FigureEntry], judged: Path) -> str:
    """Line on results in the usual folder that was not judged; empty without such results."""
    for other in _usual_folders():
        ids = [entry.id for entry in entries if (other / entry.id / RESULT).exists()]
        if ids and other != judged:
            which = ids[0] if len(ids) == 1 else f"{len(ids)} figures"
            return f"not judged: results of {which} in {other}; --out {other} judges them"
    return ""


def _usual_folders() -> list[Path]:
    """Folders that are searched for results, in order.

    ``build/figures`` is first only after a batch: a figure run by hand leaves no gallery there.
    """
    build = paths.build_dir()
    committed = paths.figures_dir()
    return [build, committed] if (build / INDEX).exists() else [committed, build]


def counts(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Count the rows of each verdict, from best to worst."""
    tally = Counter(row["verdict"] for row in rows)
    return {outcome: tally[outcome] for outcome in OUTCOMES if tally[outcome]}


def verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write ``12 reproduced, 1 missed``; empty without rows."""
    return ", ".join(f"{n} {outcome}" for outcome, n in counts(rows).items())


def tally_line(figures: Sequence[Stored]) -> str:
    """Write ``12 reproduced, 1 missed (1 without a recorded deviation), 1 figure failed``."""
    texts = [f"{n} {outcome}" for outcome, n in counts(_rows(figures)).items()]
    open_misses = sum(len(figure.unexplained) for figure in figures)
    if open_misses:
        texts[-1] += f" ({open_misses} without a recorded deviation)"
    failed = sum(bool(figure.error) for figure in figures)
    broken = sum(bool(figure.damage) for figure in figures)
    for number, fault in ((failed, "failed"), (broken, "damaged")):
        if number:
            texts.append(f"{number} figure{'s' if number > 1 else ''} {fault}")
    return ", ".join(texts) or "no claims"


def headline(figures: Sequence[Stored]) -> dict[str, Any]:
    """Shares of judged points by distance, and verdicts of claims by kind."""
    rows = _rows(figures)
    points = _rows(figures, "points")
    by_paper: dict[str, list[dict[str, Any]]] = {}
    by_data: dict[str, list[dict[str, Any]]] = {}
    for point in points:
        by_paper.setdefault(point["figure"].split("/")[0], []).append(point)
        by_data.setdefault(point["data"], []).append(point)
    groups = {
        "by_paper": {paper: shares(group) for paper, group in by_paper.items()},
        "by_data": {source: shares(by_data[source]) for source in sorted(by_data)},
    }
    kinds = {kind: counts([row for row in rows if row["kind"] == kind]) for kind in KINDS}
    return {"points": {**shares(points), **groups}, "claims": kinds}


def headline_lines(figures: Sequence[Stored]) -> list[str]:
    """Headline as lines: points of all figures, by paper and by data, then claims by kind."""
    summary = headline(figures)
    points = summary["points"]
    shown = []
    for name, group in {"all": points, **points["by_paper"], **points["by_data"]}.items():
        if group["judged"]:
            near = ", ".join(
                f"{share:.0%} within {limit}" for limit, share in group["within"].items()
            )
            shown.append(f"published numbers ({name}): {group['judged']} judged, {near}")
    for kind, tally in summary["claims"].items():
        if tally:
            total = sum(tally.values())
            success = "hold" if kind == "check" else "reproduced"
            rest = [f"{n} {outcome}" for outcome, n in tally.items() if outcome != REPRODUCED]
            texts = [f"{tally.get(REPRODUCED, 0)} of {total} {success}", *rest]
            shown.append(f"{kind}s: {', '.join(texts)}")
    return shown


def is_fine(figures: Sequence[Stored]) -> bool:
    """Tell whether no figure failed or is damaged and every miss has a recorded deviation."""
    return not any(figure.error or figure.damage or figure.unexplained for figure in figures)


def as_json(out: Path, figures: Sequence[Stored]) -> dict[str, Any]:
    """Content of ``repro check --json``."""
    rows = []
    for figure in figures:
        result = figure.result
        row: dict[str, Any] = {"id": figure.entry.id, "paper": figure.entry.paper}
        row |= {name: result.get(name) for name in ("profile", "seed", "stand_in")}
        row |= {"notes": result.get("notes", []), "verdict": result.get("verdict")}
        row |= {"error": figure.error.get("error"), "damaged": list(figure.damage)}
        rows.append(row)
    return {
        "results": str(out),
        "ok": is_fine(figures),
        "counts": counts(_rows(figures)),
        "headline": headline(figures),
        "figures": rows,
        "claims": _rows(figures),
        "points": _rows(figures, "points"),
    }


def lines(figures: Sequence[Stored]) -> list[str]:
    """Verdicts as aligned lines, a figure's claims under its id."""
    shown: list[str] = []
    for figure in figures:
        result = figure.result
        heading = [figure.entry.id]
        if result:
            heading.append(f"profile {result['profile']}")
        if result.get("stand_in"):
            heading.append(f"[{result['stand_in']}]")
        heading += [f"[{note}]" for note in result.get("notes", [])]
        shown.append("  ".join(filter(None, heading)))
        if figure.error:
            shown.append(f"  failed          {figure.error['error']}")
        shown += [f"  damaged         {figure.folder}/{line}" for line in figure.damage]
        for row in figure.claims:
            published = _short(row["published"])
            ours = _short(row["ours"])
            shown.append(
                f"  {row['verdict']:<15} {row['kind']:<7} {row['id']}: ours {ours}, "
                f"published {published} ({row['tolerance']}; {row['certainty']}, {row['source']})"
            )
            if row.get("deviation"):
                shown.append(f"  {'':<15} deviation: {row['deviation']}")
    return shown


def _rows(figures: Sequence[Stored], key: str = "claims") -> list[dict[str, Any]]:
    """Rows of all results under a key, with the id of their figure."""
    return [
        {"figure": figure.entry.id, **row}
        for figure in figures
        for row in figure.result.get(key, [])
    ]


def _short(value: Any) -> str:
    """Value as a text of at most 58 letters."""
    text = show(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
