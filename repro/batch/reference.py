"""Reference: the values of a batch in one readable file, such as ``figures/quick.json``.

A batch of the quick profile is compared with it (``repro check --against FILE``), because the
committed results in ``figures/`` are those of the papers' own sizes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from repro.base.errors import ReproError
from repro.batch.check import StoredFigure, missing_data
from repro.figures.data import PUBLIC
from repro.figures.params import FigureEntry, FigureSpec
from repro.figures.tolerance import is_number
from repro.files.whole import read_small, write_whole

#: Significant digits of a value. Sums in another order (another CPU, another BLAS) move the 12th
#: digit or a later one, and solvers the 9th, so the rounded value is the same.
DIGITS = 6
#: Largest relative distance of values that count as equal; rounding moves a value by 5e-6 at most.
RELATIVE = 1e-5
#: Largest distance of values that count as equal. Values closer to 0 than this are written as 0: a
#: difference that should be 0 is another tiny number on each machine.
ABSOLUTE = 1e-9
_FORMAT = "repro reference 1"
_MAX_BYTES = 16 << 20
_ABOUT = (
    "Values of every figure at one profile, written by `make quick-reference` and read by "
    "`repro check --against FILE`. Numbers have `digits` significant digits. Numbers count as "
    "equal within the relative or the absolute tolerance. A figure has a record for each state of "
    "its data: public files available, stand-ins, or no public file used. A timed figure measures "
    "computing time, so it has verdicts alone."
)

_Data = Literal["no public files", "public", "stand-ins"]


class _Strict(BaseModel):
    """Part of the file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _Claim(_Strict):
    verdict: Literal["reproduced", "not comparable", "partial", "missed"]
    ours: Any = None


class _Curve(_Strict):
    """Points of a figure with equal series, quantity and rule set."""

    series: str
    quantity: str
    rules: str
    x: list[float | str | None]
    ours: list[float | str | None]


class _Record(_Strict):
    """Values of a figure with one state of its data."""

    data: _Data
    stand_in: str | None
    seed: int
    verdict: str | None
    timed: bool = False
    claims: dict[str, _Claim] = {}
    points: list[_Curve] = []


class _Tolerance(_Strict):
    relative: float
    absolute: float


class _File(_Strict):
    format: Literal["repro reference 1"]
    about: str
    profile: str
    digits: int
    tolerance: _Tolerance
    figures: dict[str, list[_Record]]


class Reference:
    """Content of a reference file.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    ReproError
        If the file cannot be read or is no reference.
    """

    def __init__(self, path: Path) -> None:
        try:
            content = json.loads(read_small(path, _MAX_BYTES, ReproError, str(path)))
            self._file = _File.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"])) or "file"
            raise ReproError(
                f"{path}: no reference ({key}: {first['msg']}); "
                "`repro check --save FILE` writes one"
            ) from None
        except (ValueError, RecursionError):
            raise ReproError(
                f"{path}: not JSON; `repro check --save FILE` writes a reference"
            ) from None

    @property
    def relative(self) -> float:
        """Largest relative distance of values that count as equal."""
        return self._file.tolerance.relative

    @property
    def absolute(self) -> float:
        """Largest distance of values that count as equal."""
        return self._file.tolerance.absolute

    @property
    def ids(self) -> list[str]:
        """Ids of the figures with values."""
        return list(self._file.figures)

    def matching(self, figures: Sequence[StoredFigure]) -> list[StoredFigure]:
        """Figures with their values in the reference.

        A figure has a record for each state of its data. The record with the same ``stand_in`` as
        the figure's result here is taken, or else the first record.
        """
        found = []
        for figure in figures:
            records = self._file.figures.get(figure.entry.id, [])
            alike = [
                record for record in records if record.stand_in == figure.result.get("stand_in")
            ]
            if records:
                result = _result((alike or records)[0], self._file.profile)
                found.append(StoredFigure(figure.entry, figure.folder, result))
        return found


def _result(record: _Record, profile: str) -> dict[str, Any]:
    """Fields of ``result.json`` that a comparison reads."""
    points = [
        {"series": curve.series, "quantity": curve.quantity, "rules": curve.rules, "x": x}
        | {"ours": ours}
        for curve in record.points
        for x, ours in zip(curve.x, curve.ours, strict=True)
    ]
    claims = [{"id": name, **claim.model_dump()} for name, claim in record.claims.items()]
    return {
        "profile": profile,
        "params": None,
        "seed": record.seed,
        "stand_in": record.stand_in,
        "timed": record.timed,
        "claims": claims,
        "points": points,
    }


def save(
    path: Path,
    figures: Sequence[StoredFigure],
    specs: Mapping[FigureEntry, FigureSpec],
    known: Collection[str],
) -> int:
    """Write the values of results as a reference, and return the number of figures with values.

    Records in an existing file are kept, with two exceptions. Records of figures that are not in
    ``known`` are removed. Records that a new record of their figure replaces are removed, too.

    Raises
    ------
    ReproError
        If a figure failed or is damaged, or the results have several profiles.
    """
    faulty = [figure.entry.id for figure in figures if figure.error or figure.damage]
    if faulty:
        raise ReproError(f"{path}: not written, because {', '.join(faulty)} failed or is damaged")
    profiles = sorted({str(figure.result["profile"]) for figure in figures})
    records: dict[str, list[dict[str, Any]]] = {}
    if path.exists():
        earlier = Reference(path)._file
        profiles = sorted({*profiles, earlier.profile})
        for name, kept in earlier.figures.items():
            if name in known:
                records[name] = [record.model_dump(exclude_defaults=True) for record in kept]
    if len(profiles) != 1:
        raise ReproError(f"{path}: a reference has results of one profile, not {profiles}")
    for figure in figures:
        spec = specs.get(figure.entry)
        new = _record(figure, is_timed=spec is not None and spec.timed)
        others = [record for record in records.get(figure.entry.id, []) if _stays(record, new)]
        records[figure.entry.id] = sorted([*others, new], key=lambda record: record["data"])
    head = {
        "format": _FORMAT,
        "about": _ABOUT,
        "profile": profiles[0],
        "digits": DIGITS,
        "tolerance": {"relative": RELATIVE, "absolute": ABSOLUTE},
        "figures": {name: records[name] for name in sorted(records)},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, f"{_text(head)}\n".encode())
    return len(records)


def _stays(record: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether an earlier record of a figure stays next to a new one.

    A figure without public files has one state of its data, so it has one record.
    """
    one_state = "no public files" in (record["data"], new["data"])
    return not one_state and record["stand_in"] != new["stand_in"]


def _record(figure: StoredFigure, *, is_timed: bool) -> dict[str, Any]:
    """Values of a figure's result, rounded."""
    result = figure.result
    kinds = {used["kind"] for used in result["data"]}
    data: _Data = "public" if PUBLIC in kinds else "no public files"
    if missing_data([figure])[0]:
        data = "stand-ins"
    record: dict[str, Any] = {"data": data, "stand_in": result["stand_in"], "seed": result["seed"]}
    record["verdict"] = result["verdict"]
    if is_timed:
        record["timed"] = True
    with_points = {point["series"] for point in result["points"]}
    claims: dict[str, dict[str, Any]] = {}
    for row in result["claims"]:
        claims[row["id"]] = {"verdict": row["verdict"]}
        # the value of a claim about points follows from them
        follows = "series" in row or row["id"] in with_points
        if not is_timed and not follows and row["ours"] is not None:
            claims[row["id"]]["ours"] = _rounded(row["ours"])
    if claims:
        record["claims"] = {name: claims[name] for name in sorted(claims)}
    curves: dict[tuple[str, str, str], dict[str, Any]] = {}
    # points without a value are left out: the verdict of their claim says as much
    with_value = [point for point in result["points"] if point["ours"] is not None]
    for point in [] if is_timed else with_value:
        names = ("series", "quantity", "rules")
        facts = {name: point[name] for name in names}
        curve = curves.setdefault(tuple(facts.values()), {**facts, "x": [], "ours": []})
        curve["x"].append(point["x"])
        curve["ours"].append(_rounded(point["ours"]))
    if curves:
        record["points"] = [curves[names] for names in sorted(curves)]
    return record


def _rounded(value: Any) -> Any:
    """Value with `DIGITS` significant digits; lists element by element.

    >>> _rounded([1234567.8, 0.1234567, 3, -1e-17, True, "x"])
    [1234570.0, 0.123457, 3, 0.0, True, 'x']
    """
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if not is_number(value) or not isinstance(value, float) or not math.isfinite(value):
        return value
    return 0.0 if abs(value) < ABSOLUTE else float(f"{value:.{DIGITS}g}")


def _text(value: Any, depth: int = 0) -> str:
    """JSON with a line per claim and per curve."""
    is_nested = isinstance(value, dict | list) and value and depth < _DEPTH_OF_LINES
    if not is_nested:
        return json.dumps(value, ensure_ascii=False)
    blank = "  " * (depth + 1)
    if isinstance(value, dict):
        lines = [f"{json.dumps(key)}: {_text(item, depth + 1)}" for key, item in value.items()]
        brackets = "{}"
    else:
        lines = [_text(item, depth + 1) for item in value]
        brackets = "[]"
    body = ",\n".join(f"{blank}{line}" for line in lines)
    return f"{brackets[0]}\n{body}\n{'  ' * depth}{brackets[1]}"


#: Levels that have a line for each item: file, figures, records, fields of a record, claims.
_DEPTH_OF_LINES = 5
