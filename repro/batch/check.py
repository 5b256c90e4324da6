"""The last results read back: one entry per figure, one row per claim, and whether all is well."""

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
    """What lies in a figure's folder: its result, its last error, a line per damaged file."""

    entry: FigureEntry
    folder: Path
    result: Mapping[str, Any] = field(default_factory=dict)
    error: Mapping[str, Any] = field(default_factory=dict)
    damage: tuple[str, ...] = ()

    @property
    def claims(self) -> list[dict[str, Any]]:
        """Verdict rows."""
        return list(self.result.get("claims", []))

    @property
    def unexplained(self) -> list[dict[str, Any]]:
        """Missed claims without a recorded deviation."""
        return [row for row in self.claims if row["verdict"] == MISSED and not row.get("deviation")]


def stored(entries: Sequence[FigureEntry], out: Path) -> list[Stored]:
    """Return the figures that have a result or an error in ``out``, in the order given."""
    found = []
    for entry in entries:
        folder = out / entry.id
        result, no_result = read_result(folder)
        error, no_error = read_error(folder)
        damage = [*filter(None, (no_result, no_error))]
        damage += damaged(folder, entry.stem, result) if result else []
        if result or error or damage:
            found.append(Stored(entry, folder, result, error, tuple(damage)))
    return found


def last_results(entries: Sequence[FigureEntry], out: Path | None) -> tuple[Path, list[Stored]]:
    """Return the last results and their folder, ``build/figures`` first if a batch ended there."""
    folders = _usual_folders() if out is None else [out]
    for folder in folders:
        found = stored(entries, folder)
        if found:
            return folder, found
    tried = " and ".join(map(str, folders))
    raise ReproError(f"no results in {tried}; `repro run` makes them")


def elsewhere(entries: Sequence[FigureEntry], judged: Path) -> str:
    """Return one line on results in the usual folder that was not judged; empty without any."""
    for other in _usual_folders():
        ids = [entry.id for entry in entries if (other / entry.id / RESULT).exists()]
        if ids and other != judged:
            named = ids[0] if len(ids) == 1 else f"{len(ids)} figures"
            return f"not judged: results of {named} in {other}; --out {other} judges those"
    return ""


def _usual_folders() -> list[Path]:
    """Return where results are looked for; one figure run by hand makes no folder the first."""
    build = paths.build_dir()
    committed = paths.figures_dir()
    return [build, committed] if (build / INDEX).exists() else [committed, build]


def counts(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many rows have each verdict, from best to worst."""
    tally = Counter(row["verdict"] for row in rows)
    return {outcome: tally[outcome] for outcome in OUTCOMES if tally[outcome]}


def verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return ``12 reproduced, 1 missed``; empty without rows."""
    return ", ".join(f"{n} {outcome}" for outcome, n in counts(rows).items())


def tally_line(found: Sequence[Stored]) -> str:
    """Return ``12 reproduced, 1 missed (1 without a recorded deviation), 1 figure failed``."""
    parts = [f"{n} {outcome}" for outcome, n in counts(_rows(found)).items()]
    open_misses = sum(len(one.unexplained) for one in found)
    if open_misses:
        parts[-1] += f" ({open_misses} without a recorded deviation)"
    for what, broken in (("failed", "error"), ("damaged", "damage")):
        if number := sum(bool(getattr(one, broken)) for one in found):
            parts.append(f"{number} figure{'s' if number > 1 else ''} {what}")
    return ", ".join(parts) or "no claims"


def headline(found: Sequence[Stored]) -> dict[str, Any]:
    """Return published numbers judged and how near they are, then claims by kind."""
    rows = _rows(found)
    points = _rows(found, "points")
    by_paper: dict[str, list[dict[str, Any]]] = {}
    by_data: dict[str, list[dict[str, Any]]] = {}
    for point in points:
        by_paper.setdefault(point["figure"].split("/")[0], []).append(point)
        by_data.setdefault(point["data"], []).append(point)
    parts = {
        "by_paper": {paper: shares(some) for paper, some in by_paper.items()},
        "by_data": {source: shares(by_data[source]) for source in sorted(by_data)},
    }
    kinds = {kind: counts([row for row in rows if row["kind"] == kind]) for kind in KINDS}
    return {"points": {**shares(points), **parts}, "claims": kinds}


def headline_lines(found: Sequence[Stored]) -> list[str]:
    """Return the headline as text, a line for the points and one for each kind of claim."""
    told = headline(found)
    points = told["points"]
    shown = []
    for name, one in {"all": points, **points["by_paper"], **points["by_data"]}.items():
        if one["judged"]:
            near = ", ".join(
                f"{share:.0%} within {limit}" for limit, share in one["within"].items()
            )
            shown.append(f"published numbers ({name}): {one['judged']} judged, {near}")
    for kind, tally in told["claims"].items():
        if tally:
            total = sum(tally.values())
            well = "hold" if kind == "check" else "reproduced"
            rest = [f"{n} {outcome}" for outcome, n in tally.items() if outcome != REPRODUCED]
            parts = [f"{tally.get(REPRODUCED, 0)} of {total} {well}", *rest]
            shown.append(f"{kind}s: {', '.join(parts)}")
    return shown


def is_fine(found: Sequence[Stored]) -> bool:
    """Tell whether no figure failed or is damaged and every miss has a recorded deviation."""
    return not any(one.error or one.damage or one.unexplained for one in found)


def as_json(out: Path, found: Sequence[Stored]) -> dict[str, Any]:
    """Return what ``repro check --json`` prints."""
    figures = []
    for one in found:
        row: dict[str, Any] = {"id": one.entry.id, "paper": one.entry.paper}
        row |= {name: one.result.get(name) for name in ("profile", "seed", "stand_in")}
        row |= {"notes": one.result.get("notes", []), "verdict": one.result.get("verdict")}
        figures.append({**row, "error": one.error.get("error"), "damaged": list(one.damage)})
    return {
        "results": str(out),
        "ok": is_fine(found),
        "counts": counts(_rows(found)),
        "headline": headline(found),
        "figures": figures,
        "claims": _rows(found),
        "points": _rows(found, "points"),
    }


def lines(found: Sequence[Stored]) -> list[str]:
    """Return the verdict table as aligned text, a figure's claims under its id."""
    shown: list[str] = []
    for one in found:
        parts = [one.entry.id, f"profile {one.result['profile']}" if one.result else ""]
        parts.append(f"[{one.result['stand_in']}]" if one.result.get("stand_in") else "")
        parts += [f"[{note}]" for note in one.result.get("notes", [])]
        shown.append("  ".join(filter(None, parts)))
        if one.error:
            shown.append(f"  failed          {one.error['error']}")
        shown += [f"  damaged         {one.folder}/{line}" for line in one.damage]
        for row in one.claims:
            published = _short(row["published"])
            ours = _short(row["ours"])
            shown.append(
                f"  {row['verdict']:<15} {row['kind']:<7} {row['id']}: ours {ours}, "
                f"published {published} ({row['tolerance']}; {row['certainty']}, {row['source']})"
            )
            if row.get("deviation"):
                shown.append(f"  {'':<15} deviation: {row['deviation']}")
    return shown


def _rows(found: Sequence[Stored], sort: str = "claims") -> list[dict[str, Any]]:
    return [{"figure": one.entry.id, **row} for one in found for row in one.result.get(sort, [])]


def _short(value: Any) -> str:
    text = show(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
