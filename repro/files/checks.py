"""Vectorised rules on one column, and the one-line error that says where they are broken."""

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

# control characters, characters without width, ends of lines, marks that turn the direction of
# text, halves of characters; scripts of Asia need the joiners U+200C and U+200D
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
# blanks that look like a space and are none
_BLANK = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_LONGEST = 1000
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf(?:inity)?", re.I
)


class BadRows(TraceError):
    """Rows of the file ``source`` that break a rule, with the reason for each by its number."""

    def __init__(
        self, message: str, reasons: Mapping[int, str] | None = None, source: str = ""
    ) -> None:
        super().__init__(message)
        self.reasons = dict(reasons or {})
        self.source = source

    @classmethod
    def together(cls, errors: Sequence[BadRows]) -> BadRows:
        """Join the errors of single rows; the message is the first one's."""
        reasons = {row: why for error in errors for row, why in error.reasons.items()}
        more = len(reasons) - len(errors[0].reasons)
        message = f"{errors[0]}{f' ({more:,} more bad rows)' if more else ''}"
        return cls(message, reasons, errors[0].source)


@dataclass(frozen=True)
class Origin:
    """Where the rows of a table came from, so that an error can point into the file."""

    name: str
    columns: Mapping[str, str] = field(default_factory=dict)
    line: Callable[[int], int] | None = None
    cell: Callable[[int, str], str | None] | None = None

    def where(self, label: int) -> str:
        """Return the line of the file that holds row ``label``, or ``row label``."""
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
        """Return ``file:line:column: rule (value); accepted`` as an exception.

        ``rows`` are all rows that break the rule, by default the one that is named.
        """
        name = self.columns.get(column, column)
        found = self.cell(label, name) if self.cell else None
        message = (
            f"{self.name}:{self.where(label)}:{name}: {rule} "
            f"({shown(value if found is None else found)}); {accepted}"
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
    ) -> TraceError:
        """Return the error for missing columns, with advice on those that nothing resembles."""
        where = f"{line}:" if self.line else ""
        hint = _printable(rename_hint(columns, present, advice, units))
        return TraceError(
            f"{self.name}:{where}{','.join(columns)}: missing column "
            f"(found {shown(', '.join(present), 200)}); {hint}"
        )


def shown(value: object, limit: int = 60) -> str:
    r"""Return a value as a message shows it: on one line, cut, hidden characters spelt out.

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


def _printable(text: str) -> str:
    """Put text on one line, with hidden characters and unusual blanks spelt out."""
    spelt = _BLANK.sub(_spell, text)
    return _HIDDEN.sub(_spell, " ".join(spelt.split()))


def _spell(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def is_plain(text: str) -> bool:
    """Tell whether a text has neither control characters nor marks that hide or turn text."""
    return text.isprintable() or _HIDDEN.search(text) is None


def refuse_strange(series: pd.Series[Any], column: str, origin: Origin, accepted: str) -> None:
    """Raise for the first text with control characters, or longer than 1,000 characters."""
    texts = series.dropna().unique().tolist()
    if max(map(len, texts), default=0) > _LONGEST:
        rule = "too long"
        hint = f"{accepted}, of at most {_LONGEST:,} characters"
        bad = (series.str.len() > _LONGEST).fillna(value=False)
        refuse(bad.to_numpy(bool), series, column, origin, rule, hint)
    if not is_plain("".join(texts)):
        bad = series.map(lambda text: not is_plain(text), na_action="ignore").fillna(value=False)
        accepted += ", in printable text"
        refuse(bad.to_numpy(bool), series, column, origin, "control characters", accepted)


def refuse(
    bad: Flags, series: pd.Series[Any], column: str, origin: Origin, rule: str, accepted: str
) -> None:
    """Raise for the first row marked in ``bad``; say how many more there are."""
    if not bad.any():
        return
    first = int(bad.argmax())
    label = series.index[first]
    row = int(label) if isinstance(label, (int, np.integer)) else first
    more = int(bad.sum()) - 1
    if more:
        accepted += f" ({more:,} more like it)"
    rows = series.index[bad].tolist()
    raise origin.error(row, column, rule, series.iloc[first], accepted, rows)


def numbers(
    series: pd.Series[Any], column: str, origin: Origin, accepted: str, *, required: bool = True
) -> Floats:
    """Column as float64; what is no real number, infinity and (if required) gaps are errors."""
    if pd.api.types.is_bool_dtype(series.dtype) or pd.api.types.is_complex_dtype(series.dtype):
        refuse(np.ones(len(series), bool), series, column, origin, "not a number", accepted)
    if pd.api.types.is_numeric_dtype(series.dtype):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = np.array([_number(value) for value in series.tolist()], dtype=np.float64)
        held = series.notna().to_numpy() & (series.astype(str).str.strip() != "").to_numpy()
        refuse(np.isnan(values) & held, series, column, origin, "not a number", accepted)
    if required:
        refuse(np.isnan(values), series, column, origin, "missing value", accepted)
    refuse(np.isinf(values), series, column, origin, "not finite", accepted)
    return values


def _number(value: object) -> float:
    """Return a value as float, NaN if it is no plain decimal number in ASCII (or no number)."""
    if isinstance(value, str):
        text = value.strip(" \t")
        return float(text) if _NUMBER.fullmatch(text) else math.nan
    try:
        is_number = not isinstance(value, bool | np.bool_ | complex | np.complexfloating)
        return float(value) if is_number else math.nan  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan
