"""Result files: written whole or not at all, JSON that every reader accepts."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repro.errors import ReproError

RESULT = "result.json"
ERROR = "error.json"


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader or a kill sees the old or the new one, never a part.

    Parameters
    ----------
    path : Path
        Missing folders are made.
    data : bytes
        The whole content.

    Raises
    ------
    ReproError
        If the folder or file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            # mkstemp is private to the user; results are meant to be read by others.
            os.chmod(unfinished, 0o644)
            os.replace(unfinished, path)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ReproError(f"{path}: cannot be written ({error.strerror}); check the path") from None


def sweep(folder: Path) -> None:
    """Remove what a killed :func:`write_whole` left behind in ``folder``."""
    for leftover in folder.glob(".*-*"):
        if leftover.is_file():
            leftover.unlink(missing_ok=True)


def to_json(value: Mapping[str, Any]) -> bytes:
    """Return JSON with one line per field: NaN as null, infinity as text, numpy as plain values.

    Examples
    --------
    >>> to_json({"a": float("nan"), "b": float("inf")}).decode().split()
    ['{', '"a":', 'null,', '"b":', '"inf"', '}']
    """
    text = json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a file, or None if there is none that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


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
