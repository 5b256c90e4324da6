"""Files in a figure's folder, written and read back, and the texts in them, such as captions."""

import contextlib
import hashlib
import html
import json
import math
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from repro.base import paths
from repro.base.errors import ReproError
from repro.figures import variation
from repro.figures.cache import RECORDED, versions
from repro.figures.claims import (
    MISSED,
    OUTCOMES,
    PARTIAL,
    REPRODUCED,
    ClaimFields,
    Verdict,
    figure_verdict,
    is_own_check,
)
from repro.figures.params import FigureSpec, judged_rules
from repro.figures.points import Point, within_distances
from repro.figures.tolerance import show
from repro.files.spreadsheet import safe_cells
from repro.files.whole import is_unfinished, read_small, remove_file, touch, write_whole

RESULT = "result.json"
#: Endings of the files that every result has beside ``result.json``.
SUFFIXES = ("svg", "csv")
#: Variable that asks for a PNG beside the SVG of each figure.
ENV_PNG = "REPRO_PNG"
#: File that confirms a result: a later run with another fingerprint gave the same. Git ignores it.
CONFIRMED = ".confirmed.json"
#: Fields of ``result.json`` about the run that wrote it.
_OF_THE_RUN = frozenset({"versions", "lock", "fingerprint", "wall_s", "cpu_s", "rounds"})
ERROR = "error.json"
MAX_BYTES = 64 << 20
#: File with the exact versions of the libraries that made the committed results.
LOCK = "constraints.txt"

#: Background of a verdict in a notebook's table.
_COLORS = {"reproduced": "#cfe8cf", "partial": "#fbe6b5", "missed": "#f6c9c4", "holds": "#dfe7f2"}

_Outcome = Literal["reproduced", "not comparable", "partial", "missed"]
_FigureVerdict = Literal["reproduced", "not comparable", "partial", "missed", "own checks only"]


class _Saved(BaseModel):
    """Fields of a file that its readers rely on; further fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore")


class _Row(ClaimFields, _Saved):
    published: Any
    ours: Any
    tolerance: str
    verdict: _Outcome


class _Point(Point, _Saved):
    ours: float | str | None  # type: ignore[assignment]
    distance: float | None


class _UsedData(_Saved):
    name: str
    kind: str
    seed: int | None = None
    sha256: str | None = None


class _Lock(_Saved):
    file: str
    sha256: str
    differs: dict[str, Annotated[list[str | None], Field(min_length=2, max_length=2)]]


class _ParallelBatch(_Saved):
    simulations: int
    cpu_s: float
    longest_s: float


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
    data: list[_UsedData]
    versions: dict[str, str]
    lock: _Lock | None = None
    files: dict[str, str] | None = None
    verdict: _FigureVerdict | None
    #: inputs that differ from the parameter file's, ``{name: [here, parameter file]}``; a result
    #: with differences has no claims
    variation: dict[str, list[Any]] = {}
    claims: list[_Row]
    points: list[_Point]
    #: wall time (s) of the run, with simulations read from the cache
    wall_s: float | None = None
    #: CPU time (s) of the run without a cache: a cached simulation counts with its first run
    cpu_s: float | None = None
    #: parts of ``cpu_s`` whose simulations can run at the same time, see
    #: `repro.figures.costs.ParallelBatch`; None: not recorded
    rounds: list[_ParallelBatch] | None = None
    fingerprint: str | None = None


class _Error(_Saved):
    error: str
    traceback: str = ""


def lock(root: Path) -> dict[str, Any] | None:
    """Lock file of a checkout; ``differs`` is ``{library: [locked, installed]}``."""
    path = root / LOCK
    if not path.is_file():
        return None
    content = path.read_bytes()
    differs: dict[str, list[str | None]] = {}
    for line in content.decode(errors="replace").splitlines():
        try:
            locked = Requirement(line.split(" #")[0].strip())
        except InvalidRequirement:
            continue
        name = canonicalize_name(locked.name)
        installed = versions().get(name)
        applies = locked.marker is None or locked.marker.evaluate()
        fits = installed is not None and locked.specifier.contains(installed, True)
        if name in RECORDED and applies and not fits:
            differs[name] = [str(locked.specifier).removeprefix("=="), installed]
    return {"file": LOCK, "sha256": hashlib.sha256(content).hexdigest(), "differs": differs}


def paper_name(paper: str) -> str:
    """Name of a paper's system, as the paper writes it."""
    return "PCS" if paper == "pcs" else paper.capitalize()


def title_line(
    spec: FigureSpec,
    run: Mapping[str, Any],
    verdicts: Sequence[Verdict],
    seeds: Collection[int] = (),
) -> str:
    """Caption: paper, reference, profile, seeds, rule set, verdicts, data, marks and remarks.

    ``seeds`` are all seeds that the run used. They are written unless the inputs have ``seeds``.
    If the figure adds the run's seed to those of the inputs, the sums are written.
    """
    texts = [paper_name(spec.paper), spec.reference, f"profile {run['profile']}"]
    run_seeds = _moved_seeds(run, seeds) or run["params"].get("seeds") or sorted(seeds)
    if run_seeds:
        texts.append(seeds_text(run_seeds))
    if "rules" in run["params"]:
        texts.append(f"{judged_rules(run['params'])} rules")
    if run.get("variation"):
        texts.append(f"variation, not judged: {variation.text(run['variation'])}")
    else:
        texts += _counts(verdicts) or ["no claims"]
    # The data is named only if the parameter file names it; else it is a default.
    is_papers_trace = not variation.replaces_trace(run.get("variation") or {})
    if not run["stand_in"] and "data" in spec.model_fields_set and is_papers_trace:
        names = {"model": "model", "author's": "authors' data"}
        texts.append(names.get(spec.data, f"{spec.data} data"))
    if spec.marks:
        texts.append(spec.marks)
        # a list of seeds, or their number
        has_one_seed = run_seeds == 1 or (isinstance(run_seeds, list) and len(run_seeds) == 1)
        if has_one_seed and "seeds" in spec.marks:
            texts.append("ours: one seed, no range")
    return " · ".join([*texts, *remarks(run).values()])


def _moved_seeds(run: Mapping[str, Any], used: Collection[int]) -> list[int]:
    """Seeds of the inputs plus that of the run, if the run used these sums; else empty."""
    listed = run["params"].get("seeds")
    if not isinstance(listed, list) or set(listed) <= set(used):
        return []
    moved = [run["seed"] + seed for seed in listed]
    return moved if set(moved) <= set(used) else []


def verdict_counts(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Count verdicts in words: a text for claims of the paper, a text for checks of our own.

    >>> rows = [{"verdict": "reproduced", "kind": kind, "certainty": "paper"}
    ...         for kind in ("number", "check")]
    >>> verdict_counts([*rows, {**rows[0], "verdict": "missed"}])
    ['1 of 2 claims reproduced, 1 missed', '1 of 1 own checks hold']
    """
    outcomes: dict[bool, list[str]] = {False: [], True: []}
    for row in rows:
        outcomes[is_own_check(row["kind"], row["certainty"])].append(row["verdict"])
    texts = []
    for own, noun, success in ((False, "claims", "reproduced"), (True, "own checks", "hold")):
        tally = Counter(outcomes[own])
        if tally:
            further = "".join(f", {tally[name]} {name}" for name in OUTCOMES[1:] if tally[name])
            total = sum(tally.values())
            texts.append(f"{tally[REPRODUCED]} of {total} {noun} {success}{further}")
    return texts


def _counts(verdicts: Sequence[Verdict]) -> list[str]:
    """Count verdicts in words, as `verdict_counts`."""
    return verdict_counts(verdict.row() for verdict in verdicts)


def seeds_text(seeds: Any) -> str:
    """Write a list, a number, or a mapping of either: ``seeds 3, 5``, ``200 seeds``.

    >>> seeds_text([0, 1, 2]), seeds_text([7]), seeds_text(200), seeds_text({"all": 3})
    ('seeds 0 to 2', 'seed 7', '200 seeds', '3 seeds (all)')
    """
    if isinstance(seeds, Mapping):
        return "; ".join(f"{seeds_text(part)} ({name})" for name, part in seeds.items())
    if not isinstance(seeds, list):
        return f"{seeds} seed{'s' * (seeds != 1)}"
    if len(seeds) > 2 and seeds == [seeds[0] + number for number in range(len(seeds))]:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def remarks(run: Mapping[str, Any]) -> dict[str, str]:
    """Remarks of a run for its readers, by column: ``stand_in``, ``notes``."""
    texts = {"stand_in": run["stand_in"], "notes": "; ".join(run["notes"])}
    return {name: text for name, text in texts.items() if text}


def table_bytes(table: pd.DataFrame, run: Mapping[str, Any]) -> bytes:
    """Write a table as CSV without spreadsheet formulas, with a column per remark of the run."""
    safe = safe_cells(table.assign(**remarks(run)))
    return str(safe.to_csv(index=False, float_format="%.10g", lineterminator="\n")).encode()


def result(
    spec: FigureSpec,
    run: Mapping[str, Any],
    verdicts: Sequence[Verdict],
    points: Sequence[Point],
    used_data: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Content of ``result.json``, without fingerprint, files and wall time."""
    about = {name: getattr(spec, name) for name in ("paper", "kind", "title", "reference", "shows")}
    rows = [verdict.row() for verdict in verdicts]
    return {
        **{"id": run["id"], **about, **run},
        "data": used_data,
        "versions": versions(),
        "lock": lock(paths.project_root()),
        "verdict": figure_verdict(rows),
        "claims": rows,
        "points": [point.row() for point in points],
    }


class Verdicts(pd.DataFrame):
    """Verdicts at the end of a notebook: a row per claim, unshortened, below a summary."""

    @classmethod
    def of(
        cls, verdicts: Sequence[Verdict], points: Sequence[Point], remarks: Mapping[str, str]
    ) -> "Verdicts":
        """Make the table of a run's verdicts; points and `remarks` go to the summary."""
        columns = ["verdict", "claim", "published", "ours", "tolerance", "certainty", "source"]
        rows = [verdict.row() for verdict in verdicts]
        for row in rows:
            published, ours, point = shown_values(row)
            word = verdict_word(row)
            claim = f"{row['what']} ({point})" if point else row["what"]
            row |= {"claim": claim, "published": published, "ours": ours, "verdict": word}
        frame = cls(rows, columns=[*columns, "kind"])
        frame.attrs["sentence"] = summary(verdicts, points, remarks)
        return frame

    @classmethod
    def of_variation(
        cls, changed: Mapping[str, list[Any]], folder: Path, remarks: Mapping[str, str]
    ) -> "Verdicts":
        """Make the empty table of a variation, which nothing judges."""
        frame = cls(columns=["verdict", "claim"])
        sentences = [
            f"Variation of the paper's figure: {variation.text(changed)}",
            "Nothing is judged; published values belong to the paper's setting",
            f"Saved in {os.path.relpath(folder, paths.project_root())}",
            *(text[0].upper() + text[1:] for text in remarks.values()),
        ]
        frame.attrs["sentence"] = " ".join(f"{sentence}." for sentence in sentences)
        return frame

    def __repr__(self) -> str:
        if self.empty:
            return str(self.attrs["sentence"])
        return f"{self.attrs['sentence']}\n\n{self.to_string(index=False)}"

    def _repr_html_(self) -> str:
        sentence = f"<p>{html.escape(self.attrs['sentence'])}</p>"
        if self.empty:
            return sentence
        # needs jinja2, an extra
        from pandas.io.formats.style import Styler

        shown = Styler(self.astype(str), uuid="verdicts", cell_ids=False).hide()
        shown = shown.format(escape="html").map(_verdict_css, subset=["verdict"])
        shown = shown.set_table_styles([{"selector": "th, td", "props": "text-align: left"}])
        return f"{sentence}\n{shown.to_html()}"


def _verdict_css(verdict: Any) -> str:
    """CSS of a cell with a verdict."""
    color = _COLORS.get(str(verdict))
    return f"background-color: {color}; color: #111" if color else ""


def shown_values(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Texts of a claim: published value, our value, and the point of a series that they are of.

    >>> farthest = {"x": 4.4, "unit": "h"}
    >>> shown_values({"published": 25.7, "ours": 29.71, "farthest": farthest, "judged": 11})
    ('25.7 h', '29.71 h', 'at 4.4, farthest of 11')
    """
    published = show(row["published"])
    ours = show(row["ours"])
    farthest = row.get("farthest")
    if not farthest:
        return published, ours, ""
    unit = f" {farthest['unit']}" if farthest["unit"] else ""
    facts = [f"at {show(farthest['x'])}"] if "x" in farthest else []
    facts += [farthest[name] for name in ("series", "quantity") if name in farthest]
    facts += [f"farthest of {row['judged']}"] if row["judged"] > 1 else []
    return f"{published}{unit}", f"{ours}{unit}", ", ".join(facts)


def verdict_word(row: Mapping[str, Any]) -> str:
    """Verdict of a claim's row, with the reason if any; ``holds`` for a reproduced own check."""
    if row["verdict"] == REPRODUCED and is_own_check(row["kind"], row["certainty"]):
        return "holds"
    reason = f": {row['reason']}" if row.get("reason") else ""
    return f"{row['verdict']}{reason}"


def summary(
    verdicts: Sequence[Verdict], points: Sequence[Point], remarks: Mapping[str, str]
) -> str:
    """Sentences on claims reproduced and missed, distances from published numbers, and remarks."""
    sentences = _counts(verdicts)
    for outcome in (PARTIAL, MISSED):
        texts = [verdict.claim.what for verdict in verdicts if verdict.outcome == outcome]
        if texts:
            sentences.append(f"{outcome.capitalize()}: {'; '.join(texts)}")
    distances = within_distances(point.row() for point in points)
    if count := distances["judged"]:
        percentage = 100 * distances["within"]["2 %"]
        plural = "s" if count > 1 else ""
        sentences.append(
            f"{count} published number{plural} compared, {percentage:.0f} % within 2 %"
        )
    sentences += [text[0].upper() + text[1:] for text in remarks.values()]
    return " ".join(f"{sentence}." for sentence in sentences or ["No claims"])


def read_result(folder: Path) -> tuple[dict[str, Any], str]:
    """Read ``result.json``; return (content, error), both empty without a file."""
    return _read(folder / RESULT, _Result, "`repro run` makes it again")


def read_error(folder: Path) -> tuple[dict[str, Any], str]:
    """Read ``error.json``, which a failed run leaves, as `read_result` does."""
    return _read(folder / ERROR, _Error, "the last run failed; `repro run` runs the figure again")


def damaged(folder: Path, stem: str, result: Mapping[str, Any]) -> list[str]:
    """Lines on the files of a result that are missing, empty or changed since written.

    A result without checksums (version 0.3.0 and before) cannot reveal a change.
    """
    written = result.get("files")
    checksums = written if isinstance(written, Mapping) else {}
    faults = []
    names = [f"{stem}.{suffix}" for suffix in SUFFIXES]
    for name in dict.fromkeys([*names, *checksums]):
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            faults.append(f"{name}: {'missing' if missing else 'cannot be read'}")
            continue
        if not content:
            faults.append(f"{name}: empty")
        elif written is not None and checksum(content) != checksums.get(name):
            faults.append(f"{name}: changed since it was written")
    return faults


def is_same(folder: Path, stem: str, result: Mapping[str, Any]) -> bool:
    """Whether a folder has this result already, undamaged and with all fields.

    Versions of libraries, fingerprint and times may differ. A result has no fingerprint if the
    cells that ran differ from the cells in the notebook's file. Such a result never confirms a
    result with a fingerprint.
    """
    before, _ = read_result(folder)
    if not before or damaged(folder, stem, before):
        return False
    now = json.loads(to_json(result))
    if "fingerprint" in before and "fingerprint" not in now:
        return False
    if not now.keys() - {"fingerprint"} <= before.keys():
        return False
    names = (before.keys() | now.keys()) - _OF_THE_RUN
    return all(name in now and before[name] == now[name] for name in names)


def write_files(
    folder: Path, stem: str, files: Mapping[str, bytes], result: Mapping[str, Any]
) -> None:
    """Write the files of a result, unless the folder has the same result already."""
    remove_unfinished(folder)
    # A PNG of an earlier run may show another picture.
    remove_file(folder / f"{stem}.png")
    record = folder / RESULT
    if is_same(folder, stem, result):
        # The time of the file tells the batch that the notebook has saved.
        touch(record)
        if "fingerprint" in result:
            confirm(folder, result["fingerprint"])
        return
    remove_file(folder / CONFIRMED)
    points_file = f"{stem}.points.csv"
    if points_file not in files:
        remove_file(folder / points_file)
    for name, content in files.items():
        write_whole(folder / name, content)
    write_whole(record, to_json(result))


def confirm(folder: Path, fingerprint: str) -> None:
    """Record that a run with this fingerprint gave the result that the folder has already."""
    if read_json(folder / RESULT).get("fingerprint") != fingerprint:
        note = {"result": checksum((folder / RESULT).read_bytes()), "fingerprint": fingerprint}
        write_whole(folder / CONFIRMED, to_json(note))


def fingerprints(folder: Path, result: Mapping[str, Any]) -> list[Any]:
    """Fingerprints of the run that wrote a folder's result and of the last run that confirmed it.

    The second is left out if no run has confirmed the result.
    """
    found = [result.get("fingerprint")]
    note = read_json(folder / CONFIRMED)
    with contextlib.suppress(OSError):
        if note.get("result") == checksum((folder / RESULT).read_bytes()):
            found.append(note.get("fingerprint"))
    return found


def checksum(content: bytes) -> str:
    """SHA-256 of a written file."""
    return hashlib.sha256(content).hexdigest()


def _read(path: Path, model: type[_Saved], remedy: str) -> tuple[dict[str, Any], str]:
    """Read a JSON file and check its fields; return (content, error)."""
    if not path.exists():
        return {}, ""
    try:
        content = json.loads(read_small(path, MAX_BYTES, ReproError, path.name))
        model.model_validate(content)
        return dict(content), ""
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        fault = f"{key}: {first['msg']}" if key else "not an object of names and values"
    except ReproError as error:
        return {}, f"{error}; {remedy}"
    except (ValueError, RecursionError):
        fault = "not JSON"
    return {}, f"{path.name}: damaged ({fault}); {remedy}"


def remove_unfinished(folder: Path) -> None:
    """Remove unfinished files of a killed `repro.files.whole.write_whole` from ``folder``."""
    for leftover in folder.glob(".*-*"):
        if is_unfinished(leftover) and leftover.is_file():
            leftover.unlink(missing_ok=True)


def to_json(value: Mapping[str, Any]) -> bytes:
    """Write JSON, a line per field: NaN as null, infinity as text, numpy as plain values."""
    text = json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def read_json(path: Path) -> dict[str, Any]:
    """Read the object in a JSON file; empty if that fails."""
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(path.read_text(encoding="utf-8"))
        return content if isinstance(content, dict) else {}
    return {}


def _plain(value: Any) -> Any:
    """Value that JSON can write."""
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
