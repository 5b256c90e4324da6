"""Checks of whole columns; the one-line error names the first invalid cell."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from repro.base.errors import TraceError
from repro.base.typing import Flags, Floats
from repro.files.guess import ADD_COLUMNS, NO_UNITS, rename_hint

# Control characters, zero-width characters, line ends, direction marks and lone surrogates.
# The joiners U+200C and U+200D are accepted, because some Asian scripts need them.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
# Blanks that look like a space but are other characters.
_BLANK = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_MAX_TEXT = 1000
_NO_NUMBERS = (bool, np.bool_, complex, np.complexfloating, bytes, bytearray, memoryview)
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf(?:inity)?", re.I
)


class MissingColumns(TraceError):
    """Error for columns that a table lacks."""


class BadRows(TraceError):
    """Error for invalid rows of the file ``source``; ``reasons``: row number -> reason."""

    def __init__(
        self, message: str, reasons: Mapping[int, str] | None = None, source: str = ""
    ) -> None:
        super().__init__(message)
        self.reasons = dict(reasons or {})
        self.source = source

    @classmethod
    def joined(cls, errors: Sequence[BadRows]) -> BadRows:
        """One error with the rows of all ``errors`` and the message of the first."""
        reasons = {row: reason for error in errors for row, reason in error.reasons.items()}
        more = len(reasons) - len(errors[0].reasons)
        message = f"{errors[0]}{f' ({more:,} more bad rows)' if more else ''}"
        return cls(message, reasons, errors[0].source)


@dataclass(frozen=True)
class Source:
    """Source of the rows of a table, usually a file, for errors with line and column.

    ``columns`` maps names of the schema to names of the file. ``line`` gives the line of a row, and
    ``cell`` the text of a cell.
    """

    name: str
    columns: Mapping[str, str] = field(default_factory=dict)
    line: Callable[[int], int] | None = None
    cell: Callable[[int, str], str | None] | None = None

    def where(self, label: int) -> str:
        """Line number of row ``label`` in the file, or ``row label`` without a file."""
        return str(self.line(label)) if self.line else f"row {label}"

    def error(
        self,
        label: int,
        column: str,
        rule: str,
        value: object,
        accepted: str,
        rows: Sequence[int] = (),
    ) -> BadRows:
        """Error ``file:line:column: rule (value); accepted`` for row ``label``.

        ``rows`` are all rows with this fault, by default row ``label`` alone.
        """
        name = self.columns.get(column, column)
        cell_text = self.cell(label, name) if self.cell else None
        message = (
            f"{self.name}:{self.where(label)}:{name}: {rule} "
            f"({shown(value if cell_text is None else cell_text)}); {accepted}"
        )
        reasons = dict.fromkeys(rows or (label,), f"{name}: {rule}")
        return BadRows(message, reasons, self.name)

    def missing(
        self,
        columns: list[str],
        present: list[str],
        advice: str = ADD_COLUMNS,
        units: Mapping[str, str] = NO_UNITS,
        line: int = 1,
    ) -> MissingColumns:
        """Error for missing columns.

        ``advice`` is about missing columns that no present column resembles.
        """
        where = f"{line}:" if self.line else ""
        hint = _printable(rename_hint(columns, present, advice, units))
        return MissingColumns(
            f"{self.name}:{where}{','.join(columns)}: missing column "
            f"(found {shown(', '.join(present), 200)}); {hint}"
        )


def shown(value: object, limit: int = 60) -> str:
    r"""Text of a value for a message: one line of at most ``limit`` characters, with escapes.

    >>> shown(" 7"), shown("7\u200b"), shown(" ")
    ("' 7'", '7\\u200b', 'empty')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    text = str(value)
    if not text.strip():
        return "empty"
    line = _printable(text[:limit])
    if text != text.strip():
        line = f"'{' ' * text[:1].isspace()}{line}{' ' * text[-1:].isspace()}'"
    return line + "…" * (len(text) > limit)


def type_of(value: object) -> str:
    """Type of a value for a message.

    >>> type_of(None), type_of("2x4"), type_of(5)
    ('None', 'a str', 'an int')
    """
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"


def _printable(text: str) -> str:
    """Text on one line, with hidden characters and unusual blanks as escapes."""
    escaped = _BLANK.sub(_escape, text)
    return _HIDDEN.sub(_escape, " ".join(escaped.split()))


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def is_plain(text: str) -> bool:
    """Whether a text has no control characters and no marks that hide or reverse text."""
    return text.isprintable() or _HIDDEN.search(text) is None


def refuse_strange(series: pd.Series[Any], column: str, source: Source, accepted: str) -> None:
    """Raise for the first text that has control characters or more than 1,000 characters."""
    texts = [text for text in series.unique() if isinstance(text, str)]
    if max(map(len, texts), default=0) > _MAX_TEXT:
        rule = "too long"
        hint = f"{accepted}, of at most {_MAX_TEXT:,} characters"
        bad = (series.str.len() > _MAX_TEXT).fillna(value=False)
        refuse(bad.to_numpy(bool), series, column, source, rule, hint)
    if not is_plain("".join(texts)):
        bad = series.map(lambda text: not is_plain(text), na_action="ignore").fillna(value=False)
        accepted += ", in printable text"
        refuse(bad.to_numpy(bool), series, column, source, "control characters", accepted)


def refuse(
    bad: Flags, series: pd.Series[Any], column: str, source: Source, rule: str, accepted: str
) -> None:
    """Raise for the first row flagged in ``bad``, with the number of further rows."""
    if not bad.any():
        return
    first = int(bad.argmax())
    more = int(bad.sum()) - 1
    if more:
        accepted += f" ({more:,} more like it)"
    rows = series.index[bad].tolist()
    row = row_label(series, first)
    raise source.error(row, column, rule, series.iloc[first], accepted, rows)


def row_label(series: pd.Series[Any], position: int) -> int:
    """Label of a row in messages; its position if the label is no whole number."""
    label = series.index[position]
    return int(label) if isinstance(label, (int, np.integer)) else position


def numbers(
    series: pd.Series[Any], column: str, source: Source, accepted: str, *, required: bool = True
) -> Floats:
    """Column as float64.

    Text that is not a decimal number raises, and so does an infinite value. A gap raises if
    ``required``.
    """
    dtype: Any = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iuf":
        # most columns of a trace; the general way below takes twice as long
        values = series.to_numpy().astype(np.float64)
        if dtype.kind != "f":
            return values
        return _filled(values, series, column, source, accepted, required=required)
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_complex_dtype(dtype):
        refuse(np.ones(len(series), bool), series, column, source, "not a number", accepted)
    if pd.api.types.is_numeric_dtype(dtype):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = np.array([_as_float(value) for value in series.tolist()], dtype=np.float64)
        filled = series.notna().to_numpy() & (series.astype(str).str.strip() != "").to_numpy()
        refuse(np.isnan(values) & filled, series, column, source, "not a number", accepted)
    return _filled(values, series, column, source, accepted, required=required)


def _filled(
    values: Floats,
    series: pd.Series[Any],
    column: str,
    source: Source,
    accepted: str,
    *,
    required: bool,
) -> Floats:
    """Values of a column. Infinite values raise, and so do gaps if ``required``."""
    if required:
        refuse(np.isnan(values), series, column, source, "missing value", accepted)
    refuse(np.isinf(values), series, column, source, "not finite", accepted)
    return values


def _as_float(value: object) -> float:
    """Value as float; NaN unless it is a number or the text of a decimal number in ASCII."""
    if isinstance(value, str):
        text = value.strip(" \t")
        return float(text) if _NUMBER.fullmatch(text) else math.nan
    try:
        # Python reads numbers from bytes as well
        is_number = not isinstance(value, _NO_NUMBERS)
        return float(value) if is_number else math.nan  # type: ignore[arg-type]
    except (TypeError, ValueError, ArithmeticError):
        return math.nan
