"""CSV text that a spreadsheet would run as a formula: quoted when written, unquoted when read."""

import re
from typing import Any

import pandas as pd

# Signs that begin a formula, also as wide characters, and the blanks that a spreadsheet strips.
# Leading quotes count as well: a quoted text gets one more quote, so unquoting restores it.
_BEGINS = r"'*[=+\-@＝＋－＠\t\r\n]"
_FORMULA = re.compile(_BEGINS)
_QUOTED = re.compile(f"'{_BEGINS}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-](inf|nan)")


def safe_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Table with ``'`` before text cells and column names that begin like a formula."""
    return _mapped(frame, _quote)


def plain_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Table as it was before :func:`safe_cells`."""
    return _mapped(frame, _unquote)


def _mapped(frame: pd.DataFrame, change: Any) -> pd.DataFrame:
    """Frame with ``change`` applied to its text cells and column names."""
    out = frame.copy(deep=False)
    for index, dtype in enumerate(frame.dtypes):
        is_number = pd.api.types.is_numeric_dtype(dtype)
        if not (is_number or pd.api.types.is_datetime64_any_dtype(dtype)):
            column = frame.iloc[:, index]
            out.isetitem(index, column.astype(object).map(change).array)
    out.columns = frame.columns.map(change) if len(frame.columns) else frame.columns
    return out


def _quote(value: Any) -> Any:
    risky = isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value)
    return f"'{value}" if risky else value


def _unquote(value: Any) -> Any:
    return value[1:] if isinstance(value, str) and _QUOTED.match(value) else value
