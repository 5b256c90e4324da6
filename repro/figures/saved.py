"""What a figure leaves in its folder: title line, table, result record; written and read back."""

import contextlib
import hashlib
import html
import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from repro.base import paths
from repro.base.errors import ReproError
from repro.figures.cache import RECORDED, versions
from repro.figures.claims import MISSED, OUTCOMES, PARTIAL, REPRODUCED, Said, Verdict, worst
from repro.figures.params import FigureSpec, judged_rules
from repro.figures.points import Point, shares
from repro.figures.tolerance import show
from repro.files.spreadsheet import safe_cells
from repro.files.whole import read_small

RESULT = "result.json"
ERROR = "error.json"
MAX_BYTES = 64 << 20
#: The exact versions that the committed results were made with.
LOCK = "constraints.txt"

_Outcome = Literal["reproduced", "not comparable", "partial", "missed"]


class _Saved(BaseModel):
    """What readers of a file rely on; what else it holds is theirs to ignore."""

    model_config = ConfigDict(strict=True, extra="ignore")


class _Row(Said, _Saved):
    published: Any
    ours: Any
    tolerance: str
    verdict: _Outcome


class _Point(Point, _Saved):
    ours: float | str | None  # type: ignore[assignment]
    distance: float | None


class _Used(_Saved):
    name: str
    kind: str
    seed: int | None = None
    sha256: str | None = None


class _Lock(_Saved):
    file: str
    sha256: str
    differs: dict[str, Annotated[list[str | None], Field(min_length=2, max_length=2)]]


class _Result(_Saved):
    id: str
    title: str
    reference: str
    shows: str
    profile: str
    seed: int
    stand_in: str | None
    notes: list[str] = []
    params: dict[str, Any]
    data: list[_Used]
    versions: dict[str, str]
    lock: _Lock | None = None
    files: dict[str, str] | None = None
    verdict: _Outcome | None
    claims: list[_Row]
    points: list[_Point]
    wall_s: float | None = None
    fingerprint: str | None = None


class _Error(_Saved):
    error: str
    traceback: str = ""


def lock(root: Path) -> dict[str, Any] | None:
    """Return a checkout's lock file and ``{library: [locked, installed]}`` where they differ."""
    path = root / LOCK
    if not path.is_file():
        return None
    content = path.read_bytes()
    differs: dict[str, list[str | None]] = {}
    for line in content.decode(errors="replace").splitlines():
        try:
            wanted = Requirement(line.split(" #")[0].strip())
        except InvalidRequirement:
            continue
        name = canonicalize_name(wanted.name)
        here = versions().get(name)
        applies = wanted.marker is None or wanted.marker.evaluate()
        if name in RECORDED and applies and not (here and wanted.specifier.contains(here, True)):
            differs[name] = [str(wanted.specifier).removeprefix("=="), here]
    return {"file": LOCK, "sha256": hashlib.sha256(content).hexdigest(), "differs": differs}


def paper_name(paper: str) -> str:
    """Return the name of a paper's system as it is written."""
    return "PCS" if paper == "pcs" else paper.capitalize()


def title_line(
    spec: FigureSpec,
    run: Mapping[str, Any],
    verdicts: Sequence[Verdict],
    drawn: Collection[int] = (),
) -> str:
    """Return the line under a figure: paper, number, seeds, rules, verdicts, what marks mean.

    ``drawn`` are the seeds of what was drawn by chance, told unless the inputs name them.
    """
    parts = [paper_name(spec.paper), spec.reference, f"profile {run['profile']}"]
    if seeds := run["params"].get("seeds") or sorted(drawn):
        parts.append(told_seeds(seeds))
    if "rules" in run["params"]:
        parts.append(f"{judged_rules(run['params'])} rules")
    parts += _counted(verdicts) or ["no claims"]
    # what is only the default need not be true
    if not run["stand_in"] and "data" in spec.model_fields_set:
        named = {"model": "model", "author's": "authors' data"}
        parts.append(named.get(spec.data, f"{spec.data} data"))
    parts += [spec.marks] * bool(spec.marks)
    return " · ".join([*parts, *remarks(run).values()])


def _counted(verdicts: Sequence[Verdict]) -> list[str]:
    """Return how many claims of the paper came out and how many checks of our own hold."""
    parts = []
    for own, what, well in ((False, "claims", "reproduced"), (True, "own checks", "hold")):
        found = [one.outcome for one in verdicts if _is_own(one) is own]
        rest = [f", {found.count(one)} {one}" for one in OUTCOMES[1:] if one in found]
        if found:
            good = found.count(REPRODUCED)
            parts.append(f"{good} of {len(found)} {what} {well}{''.join(rest)}")
    return parts


def _is_own(verdict: Verdict) -> bool:
    """Tell whether a claim is a check of ours: nothing that the paper prints decides it."""
    derived = verdict.claim.kind == "example" and verdict.claim.certainty.startswith("derived")
    return derived or verdict.claim.kind == "check"


def told_seeds(given: Any) -> str:
    """Return ``seeds 0 to 11``, ``seeds 3, 5``, ``seed 0``, or ``200 seeds`` of a number.

    >>> told_seeds([0, 1, 2]), told_seeds([7]), told_seeds(200), told_seeds({"all": 3})
    ('seeds 0 to 2', 'seed 7', '200 seeds', '3 seeds (all)')
    """
    if isinstance(given, Mapping):
        return "; ".join(f"{told_seeds(some)} ({name})" for name, some in given.items())
    if not isinstance(given, list):
        return f"{given} seed{'s' * (given != 1)}"
    if len(given) > 2 and given == [given[0] + place for place in range(len(given))]:
        return f"seeds {given[0]} to {given[-1]}"
    return f"seed{'s' * (len(given) > 1)} {', '.join(map(str, given))}"


def remarks(run: Mapping[str, Any]) -> dict[str, str]:
    """Return what a run says about itself that a reader must know: stand-in, notes."""
    found = {"stand_in": run["stand_in"], "notes": "; ".join(run["notes"])}
    return {name: text for name, text in found.items() if text}


def table_bytes(table: pd.DataFrame, run: Mapping[str, Any]) -> bytes:
    """Return a table as CSV that no spreadsheet runs, with a column for each remark of the run."""
    shown = safe_cells(table.assign(**remarks(run)))
    return str(shown.to_csv(index=False, float_format="%.10g", lineterminator="\n")).encode()


def result(
    spec: FigureSpec,
    run: Mapping[str, Any],
    verdicts: Sequence[Verdict],
    points: Sequence[Point],
    used: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the content of ``result.json``, all but fingerprint, files and wall time."""
    about = {name: getattr(spec, name) for name in ("paper", "kind", "title", "reference", "shows")}
    return {
        **{"id": run["id"], **about, **run},
        "data": used,
        "versions": versions(),
        "lock": lock(paths.project_root()),
        "verdict": worst(verdict.outcome for verdict in verdicts),
        "claims": [verdict.row() for verdict in verdicts],
        "points": [point.row() for point in points],
    }


class Verdicts(pd.DataFrame):
    """One row per claim, whole, below a sentence of what came out: the end of a notebook."""

    @classmethod
    def of(
        cls, verdicts: Sequence[Verdict], points: Sequence[Point], said: Mapping[str, str]
    ) -> "Verdicts":
        """Return the verdicts of a run with its points and remarks."""
        columns = ["verdict", "claim", "published", "ours", "tolerance", "certainty", "source"]
        rows = [verdict.row() for verdict in verdicts]
        for row in rows:
            values = {name: show(row[name]) for name in ("published", "ours")}
            row |= {"claim": row["what"], **values}
        frame = cls(rows, columns=[*columns, "kind"])
        frame.attrs["sentence"] = what_came_out(verdicts, points, said)
        return frame

    def __repr__(self) -> str:
        return f"{self.attrs['sentence']}\n\n{self.to_string(index=False)}"

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            table = self.to_html(index=False, border=0, justify="left")
        aligned = table.replace("<td>", '<td style="text-align: left">')
        return f"<p>{html.escape(self.attrs['sentence'])}</p>\n{aligned}"


def what_came_out(
    verdicts: Sequence[Verdict], points: Sequence[Point], said: Mapping[str, str]
) -> str:
    """Return claims reproduced and missed, nearness of published numbers, and remarks, in words."""
    parts = _counted(verdicts)
    for outcome in (PARTIAL, MISSED):
        if names := [one.claim.what for one in verdicts if one.outcome == outcome]:
            parts.append(f"{outcome.capitalize()}: {'; '.join(names)}")
    near = shares(point.row() for point in points)
    if count := near["judged"]:
        share = 100 * near["within"]["2 %"]
        many = "s" if count > 1 else ""
        parts.append(f"{count} published number{many} compared, {share:.0f} % within 2 %")
    parts += [text[0].upper() + text[1:] for text in said.values()]
    return " ".join(f"{part}." for part in parts or ["No claims"])


def read_result(folder: Path) -> tuple[dict[str, Any], str]:
    """Return the ``result.json`` of a figure, and in one line what is wrong with it; or empty."""
    return _read(folder / RESULT, _Result, "`repro run` makes it again")


def read_error(folder: Path) -> tuple[dict[str, Any], str]:
    """Return the ``error.json`` of a figure whose last run failed, as `read_result` does."""
    return _read(folder / ERROR, _Error, "the last run failed; `repro run` runs the figure again")


def damaged(folder: Path, stem: str, result: Mapping[str, Any]) -> list[str]:
    """Return which files of a result are missing, empty or changed since written, a line each.

    A result without checksums (version 0.3.0 and before) says nothing of changes.
    """
    written = result.get("files")
    sums = written if isinstance(written, Mapping) else {}
    found = []
    names = [f"{stem}.{suffix}" for suffix in ("png", "svg", "csv")]
    for name in dict.fromkeys([*names, *sums]):
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            found.append(f"{name}: {'missing' if missing else 'cannot be read'}")
            continue
        if not content:
            found.append(f"{name}: empty")
        elif written is not None and checksum(content) != sums.get(name):
            found.append(f"{name}: changed since it was written")
    return found


def checksum(content: bytes) -> str:
    """Return the SHA-256 by which a written file is known again."""
    return hashlib.sha256(content).hexdigest()


def _read(path: Path, model: type[_Saved], way_out: str) -> tuple[dict[str, Any], str]:
    if not path.exists():
        return {}, ""
    try:
        found = json.loads(read_small(path, MAX_BYTES, ReproError, path.name))
        model.model_validate(found)
        return dict(found), ""
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        what = f"{place}: {first['msg']}" if place else "not an object of names and values"
    except ReproError as error:
        return {}, f"{error}; {way_out}"
    except (ValueError, RecursionError):
        what = "not JSON"
    return {}, f"{path.name}: damaged ({what}); {way_out}"


def sweep(folder: Path) -> None:
    """Remove what a killed `repro.files.whole.write_whole` left behind in ``folder``."""
    for leftover in folder.glob(".*-*"):
        if leftover.is_file():
            leftover.unlink(missing_ok=True)


def to_json(value: Mapping[str, Any]) -> bytes:
    """Return JSON with one line per field: NaN as null, infinity as text, numpy as plain values."""
    text = json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file, empty if there is none that can be read."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    return {}


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
