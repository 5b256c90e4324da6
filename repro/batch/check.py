"""Reads the last results and reports verdicts, published numbers and damage."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from repro.base import paths
from repro.base.errors import ReproError
from repro.figures.claims import (
    DATA_NOT_AVAILABLE,
    KINDS,
    MISSED,
    OUTCOMES,
    REPRODUCED,
    is_own_check,
)
from repro.figures.data import STAND_IN
from repro.figures.params import FigureEntry
from repro.figures.points import ORIGINS, within_distances
from repro.figures.saved import (
    RESULT,
    damaged,
    paper_name,
    read_error,
    read_result,
    shown_values,
    verdict_counts,
    verdict_word,
)
from repro.files import public

#: Largest number of figures, or of missing public files, that a line names.
_MAX_NAMES = 5
#: The gallery page, which a batch writes when it ends.
INDEX = "index.html"


@dataclass(frozen=True)
class StoredFigure:
    """Content of a figure's folder: its result, its last error, and a line per damaged file."""

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
    def without_deviation(self) -> list[dict[str, Any]]:
        """Missed claims without a recorded deviation."""
        return [row for row in self.claims if row["verdict"] == MISSED and not row.get("deviation")]


def stored(entries: Sequence[FigureEntry], out: Path) -> list[StoredFigure]:
    """Figures that have a result or an error in ``out``, in input order."""
    figures = []
    for entry in entries:
        folder = out / entry.id
        result, result_fault = read_result(folder)
        error, error_fault = read_error(folder)
        damage = [*filter(None, (result_fault, error_fault))]
        damage += damaged(folder, entry.stem, result) if result else []
        if result or error or damage:
            figures.append(StoredFigure(entry, folder, result, error, tuple(damage)))
    return figures


def last_results(
    entries: Sequence[FigureEntry], out: Path | None
) -> tuple[Path, list[StoredFigure]]:
    """First folder with results, in the order of `_usual_folders`, and its results."""
    folders = _usual_folders() if out is None else [out]
    for folder in folders:
        figures = stored(entries, folder)
        if figures:
            return folder, figures
    tried = " and ".join(map(str, folders))
    if any(file for folder in folders for file in folder.glob(f"*/*/{RESULT}")):
        tried += f" of {listed([entry.id for entry in entries])}"
    raise ReproError(f"no results in {tried}; `repro run` makes them")


def listed(ids: Sequence[str]) -> str:
    """First ids, and the number of the others.

    >>> listed(["a", "b"]), listed("abcdefg")
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    hidden = len(ids) - _MAX_NAMES
    further = f" and {hidden} more" if hidden > 0 else ""
    return f"{', '.join(ids[:_MAX_NAMES])}{further}"


def line_on_other_folder(entries: Sequence[FigureEntry], shown_folder: Path) -> str:
    """Line on results in the usual folder that is not shown; empty without such results."""
    for other in _usual_folders():
        ids = [entry.id for entry in entries if (other / entry.id / RESULT).exists()]
        if ids and other != shown_folder:
            figures = ids[0] if len(ids) == 1 else f"{len(ids)} figures"
            return f"not judged: results of {figures} in {other}; --out {other} judges them"
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


def tally_line(figures: Sequence[StoredFigure]) -> str:
    """Write ``12 of 13 claims reproduced, 1 missed; 2 of 2 own checks hold; 1 figure failed``."""
    texts = verdict_counts(_rows(figures))
    without_deviation = sum(len(figure.without_deviation) for figure in figures)
    if without_deviation:
        texts.append(f"{without_deviation} missed without a recorded deviation")
    failed = sum(bool(figure.error) for figure in figures)
    broken = sum(bool(figure.damage) for figure in figures)
    for number, fault in ((failed, "failed"), (broken, "damaged")):
        if number:
            texts.append(f"{number} figure{'s' if number > 1 else ''} {fault}")
    return "; ".join(texts) or "no claims"


#: Data that replace the data of the authors.
_REPLACEMENTS = ("stand-in", "model")
#: Origins in words.
ORIGIN_WORDS = {
    "simulation": "simulated by the authors",
    "testbed": "measured on a testbed",
    "example": "worked examples",
    "text": "stated in the paper or its files",
}
#: Inputs that nobody outside the authors' group can know, in words.
UNKNOWN_WORDS = {
    "workload": "workload not published",
    "sample": "random sample without a seed",
    "configuration": "configuration not published",
    "version": "code version not published",
}


def headline(figures: Sequence[StoredFigure]) -> dict[str, Any]:
    """Distances of counted points, and counts of verdicts by kind of claim.

    Each group of points has its number of counted points (key ``judged``), and the fraction of them
    within each distance. Points are grouped by paper, by data, and by how their published numbers
    came to be (origin). The groups ``available`` leave out points on stand-ins and points on data
    from a model. The groups ``knowable`` leave out points with an input that nobody outside the
    authors' group can know; ``by_unknown`` has these. ``predicted`` has points of testbeds that a
    model predicts; the model was fitted to other published numbers.
    """
    rows = _rows(figures)
    # results of earlier versions have no origin
    points = [{"origin": "simulation", **point} for point in _rows(figures, "points")]
    by_origin = _grouped(points, itemgetter("origin"))
    on_authors_data = [point for point in points if point["data"] not in _REPLACEMENTS]
    knowable = [point for point in points if not point.get("unknown")]
    unknown = [point for point in points if point.get("unknown")]
    predicted = [
        point for point in points if point["origin"] == "testbed" and point.get("fitted_on")
    ]
    grouped: dict[str, dict[str, list[dict[str, Any]]]] = {
        "by_paper": _grouped(points, _paper),
        "by_data": _grouped(points, itemgetter("data")),
        "by_origin": {origin: by_origin[origin] for origin in ORIGINS if origin in by_origin},
        "by_unknown": _grouped(unknown, itemgetter("unknown")),
        "available_by_origin": _grouped(on_authors_data, itemgetter("origin")),
        "knowable_by_origin": _grouped(knowable, itemgetter("origin")),
        "knowable_by_paper": _grouped(knowable, _paper),
    }
    groups: dict[str, Any] = {
        name: {key: within_distances(group) for key, group in by_key.items()}
        for name, by_key in grouped.items()
    }
    groups["knowable"] = within_distances(knowable)
    groups["predicted"] = within_distances(predicted)
    claims: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for row in rows:
        own = is_own_check(row["kind"], row["certainty"])
        claims["check" if own else row["kind"]].append(row)
    tallies = {kind: counts(group) for kind, group in claims.items()}
    return {"points": {**within_distances(points), **groups}, "claims": tallies}


def _grouped(
    points: Sequence[dict[str, Any]], key: Callable[[dict[str, Any]], str]
) -> dict[str, list[dict[str, Any]]]:
    """Points by key, keys sorted."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for point in points:
        groups.setdefault(key(point), []).append(point)
    return {name: groups[name] for name in sorted(groups)}


def _paper(point: Mapping[str, Any]) -> str:
    """Paper of a point."""
    return str(point["figure"].split("/")[0])


def headline_lines(figures: Sequence[StoredFigure]) -> list[str]:
    """Headline as lines: published numbers by origin and by paper, then claims by kind."""
    summary = headline(figures)
    points = summary["points"]
    shown = []
    for name, group in point_groups(points).items():
        within = ", ".join(f"{part:.0%} within {limit}" for limit, part in group["within"].items())
        shown.append(f"published numbers, {name}: {group['judged']} judged, {within}")
    if points["by_unknown"]:
        reasons = {UNKNOWN_WORDS[name]: group for name, group in points["by_unknown"].items()}
        total = sum(group["judged"] for group in reasons.values())
        listed = ", ".join(f"{reason} {group['judged']}" for reason, group in reasons.items())
        shown.append(f"published numbers with an input that nobody can know: {total} ({listed})")
    for kind, tally in summary["claims"].items():
        if tally:
            total = sum(tally.values())
            noun = "own check" if kind == "check" else kind
            success = "hold" if kind == "check" else "reproduced"
            further = [f"{n} {outcome}" for outcome, n in tally.items() if outcome != REPRODUCED]
            texts = [f"{tally.get(REPRODUCED, 0)} of {total} {success}", *further]
            shown.append(f"{noun}s: {', '.join(texts)}")
    return shown


def point_groups(points: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Groups of the key ``points`` of a headline in words, by origin, then by paper.

    Only groups with judged numbers are in it. Each group comes before its parts.
    """
    groups = {**_origin_groups(points), **_paper_groups(points)}
    return {name: group for name, group in groups.items() if group["judged"]}


def _origin_groups(points: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Groups of points by origin in words, each followed by its parts."""
    groups = _with_parts("all", points, {"all inputs known": points["knowable"]})
    for origin, group in points["by_origin"].items():
        parts: dict[str, Mapping[str, Any] | None] = {}
        if origin == "simulation":
            parts["simulated, on available data"] = points["available_by_origin"].get(origin)
            parts["simulated, all inputs known"] = points["knowable_by_origin"].get(origin)
        if origin == "testbed":
            parts["measured, predicted by a model fitted on other numbers"] = points["predicted"]
        groups |= _with_parts(ORIGIN_WORDS[origin], group, parts)
    return groups


def _paper_groups(points: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Groups of points by paper, each followed by its points of which all inputs are known."""
    groups: dict[str, Mapping[str, Any]] = {}
    for paper, group in points["by_paper"].items():
        name = paper_name(paper)
        known = points["knowable_by_paper"].get(paper)
        groups |= _with_parts(name, group, {f"{name}, all inputs known": known})
    return groups


def _with_parts(
    name: str, group: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any] | None]
) -> dict[str, Mapping[str, Any]]:
    """Group and its parts, without parts that have no point or all points of the group."""
    shown = {
        part_name: part
        for part_name, part in parts.items()
        if part and 0 < part["judged"] < group["judged"]
    }
    return {name: group, **shown}


def missing_data(figures: Sequence[StoredFigure]) -> tuple[list[str], int]:
    """Names of public files that are not available here, and number of claims that lack them."""
    names = {
        used["name"]
        for figure in figures
        for used in figure.result.get("data", [])
        if used["kind"] == STAND_IN and public.is_known(used["name"])
    }
    rows = _rows(figures)
    return sorted(names), sum(row.get("reason") == DATA_NOT_AVAILABLE for row in rows)


def missing_data_line(figures: Sequence[StoredFigure]) -> str:
    """Line on missing public files and the command that fetches them; empty if none is missing."""
    names, claims = missing_data(figures)
    if not names:
        return ""
    too_many = len(names) > _MAX_NAMES
    listed = "" if too_many else f" ({', '.join(names)})"
    fetched = "--all" if too_many else " ".join(names)
    files = f"{len(names)} public file{'s' if len(names) > 1 else ''}"
    claims_are = f"{claims} claim is" if claims == 1 else f"{claims} claims are"
    return (
        f"{files} not available here{listed}: {claims_are} not comparable; "
        f"`repro trace fetch {fetched}` fetches them, then run the figures again"
    )


def not_comparable_line(figures: Sequence[StoredFigure]) -> str:
    """Line with the reasons why claims are not comparable; empty without such claims."""
    rows = _rows(figures)
    tally = Counter(row["reason"] for row in rows if row.get("reason"))
    reasons = ", ".join(f"{n} {reason}" for reason, n in tally.most_common())
    return f"not comparable: {reasons}" if reasons else ""


def is_fine(figures: Sequence[StoredFigure]) -> bool:
    """Whether no figure failed or is damaged, and every missed claim has a recorded deviation."""
    return not any(figure.error or figure.damage or figure.without_deviation for figure in figures)


def as_json(out: Path, figures: Sequence[StoredFigure]) -> dict[str, Any]:
    """Content of ``repro check --json``."""
    rows = []
    for figure in figures:
        result = figure.result
        row: dict[str, Any] = {"id": figure.entry.id, "paper": figure.entry.paper}
        row |= {name: result.get(name) for name in ("profile", "seed", "stand_in")}
        row |= {"notes": result.get("notes", []), "verdict": result.get("verdict")}
        row |= {"error": figure.error.get("error"), "damaged": list(figure.damage)}
        rows.append(row)
    names, claims = missing_data(figures)
    return {
        "results": str(out),
        "ok": is_fine(figures),
        "missing_data": {"files": names, "claims": claims},
        "counts": counts(_rows(figures)),
        "headline": headline(figures),
        "figures": rows,
        "claims": _rows(figures),
        "points": _rows(figures, "points"),
    }


def lines(figures: Sequence[StoredFigure]) -> list[str]:
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
            published, ours, point = map(_short, shown_values(row))
            where = f" ({point})" if point else ""
            source = f"{row['tolerance']}; {row['certainty']}, {row['source']}"
            shown.append(
                f"  {verdict_word(row):<15} {row['kind']:<7} {row['id']}: ours {ours}, "
                f"published {published}{where} ({source})"
            )
            if row.get("deviation"):
                shown.append(f"  {'':<15} deviation: {row['deviation']}")
    return shown


def _rows(figures: Sequence[StoredFigure], key: str = "claims") -> list[dict[str, Any]]:
    """Rows of all results under a key, with the id of their figure."""
    return [
        {"figure": figure.entry.id, **row}
        for figure in figures
        for row in figure.result.get(key, [])
    ]


def _short(text: str) -> str:
    """Text of at most 60 letters."""
    return text if len(text) <= 60 else f"{text[:57]}…"
