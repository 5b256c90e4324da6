"""What a run left in its folder, read back: a damaged file is told from an absent one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from repro.errors import ReproError
from repro.figures.claims import Kind
from repro.figures.points import Certainty, Data
from repro.figures.result_files import ERROR, RESULT
from repro.files.small import read_small

MAX_BYTES = 64 << 20

_Outcome = Literal["reproduced", "not comparable", "partial", "missed"]


class _Saved(BaseModel):
    """What readers of a file rely on; what else it holds is theirs to ignore."""

    model_config = ConfigDict(strict=True, extra="ignore")


class _Row(_Saved):
    id: str
    kind: Kind
    what: str
    published: Any
    ours: Any
    tolerance: str
    source: str
    certainty: str
    verdict: _Outcome
    stand_in: bool = False
    series: str | None = None
    deviation: str | None = None


class _Point(_Saved):
    series: str
    x: float | int | str | None
    quantity: str
    published: float | int
    ours: float | int | str | None
    unit: str
    distance: float | int | None
    certainty: Certainty
    data: Data
    rules: str


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


def read_result(folder: Path) -> tuple[dict[str, Any], str]:
    """Return the ``result.json`` of a figure, and in one line what is wrong with it.

    Without a file both are empty; a file that cannot be relied on has no content.
    """
    return _read(folder / RESULT, _Result, "`repro run` makes it again")


def read_error(folder: Path) -> tuple[dict[str, Any], str]:
    """Read the ``error.json`` of a figure whose last run failed; returns as `read_result`."""
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
