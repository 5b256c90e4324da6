"""Result files: their names, and JSON that every reader accepts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULT = "result.json"
ERROR = "error.json"


def sweep(folder: Path) -> None:
    """Remove what a killed `repro.files.whole.write_whole` left behind in ``folder``."""
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
