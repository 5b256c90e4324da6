"""Text in CSV that a spreadsheet would run as a formula: quoted when written, plain when read."""

import re
from typing import Any

import pandas as pd

# Signs that begin a formula, also as wide characters, and blanks a spreadsheet takes off first.
_BEGINS = r"'*[=+\-@＝＋－＠\t\r\n]"
_FORMULA = re.compile(_BEGINS)
_QUOTED = re.compile(f"'{_BEGINS}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-](inf|nan)")


def safe_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with ``'`` before text, also column names, that begins like a formula."""
    return _mapped(frame, _safe)


def plain_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table as it was before :func:`safe_cells`."""
    return _mapped(frame, _plain)


def _mapped(frame: pd.DataFrame, change: Any) -> pd.DataFrame:
    """Return a frame with its text cells and column names changed."""
    out = frame.copy(deep=False)
    for place, kind in enumerate(frame.dtypes):
        if not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_datetime64_any_dtype(kind)):
            column = frame.iloc[:, place]
            out.isetitem(place, column.astype(object).map(change).array)
    out.columns = frame.columns.map(change) if len(frame.columns) else frame.columns
    return out


def _safe(value: Any) -> Any:
    risky = isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value)
    return f"'{value}" if risky else value


def _plain(value: Any) -> Any:
    return value[1:] if isinstance(value, str) and _QUOTED.match(value) else value
