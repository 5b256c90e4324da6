"""Text files read once: encoding, delimiter and shape problems become one clear line each."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import re
import stat
import warnings
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from repro.base.errors import TraceError
from repro.base.typing import Flags, Floats
from repro.files.checks import BadRows, Origin, is_plain, numbers, refuse, shown
from repro.files.guess import (
    ADD_COLUMNS,
    ADD_OR_FORMAT,
    DATE_EXAMPLE,
    NO_UNITS,
    encoding_of,
    epoch_unit,
    is_lfs_pointer,
    marked_as,
    other_kind,
    packed_as,
)

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe", " ": "space"}
_MISSING = ["", "nan", "NaN", "NA", "N/A", "n/a", "null", "NULL", "None", "<NA>", "#N/A"]
# pandas reads decimals exactly from 3.1 on and says the option is obsolete
_OLD = tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1)
_EXACT: dict[str, Any] = {"float_precision": "round_trip"} if _OLD else {}
_UNREADABLE = (pd.errors.ParserError, pd.errors.ParserWarning, ValueError)
_MOST_BYTES = 2**31
_GZIP = b"\x1f\x8b"
_SEP = re.compile('\ufeff?"?sep=.?"?[,;]*\r?\n', re.IGNORECASE)
_SHOCKWAVE_FIELDS = 12
_MOST_COLUMNS = 1000
DATE = re.compile(
    "[0-9]{4}-[0-9]{2}-[0-9]{2}"
    "(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]+)?)?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
#: What stands for a date that is not known, in lower case.
NO_DATE = frozenset(["", "unknown", "none", "n/a", "na", "nan", "nat", "null", "<na>"])
_SHAPE = str.maketrans("123456789", "0" * 9)
DATE_YEARS = (1970, 2100)
DATE_LOOKS = "a date looks like 2017-10-09 07:01:55, of {} to {}".format(*DATE_YEARS)
_DAY_FIRST = re.compile(r"[0-9]{1,4}[/.][0-9]{1,2}[/.][0-9]{2,4}\b.*|[0-9]{8}")


@dataclass(frozen=True)
class Document:
    """The bytes of a file, unpacked, and its name for messages.

    ``left_out`` are rows that readers skip, with the reason for each. ``is_trace``: it has one of
    several formats, which ``--format`` names.
    """

    name: str
    raw: bytes
    packed_sha256: str | None = None
    left_out: Mapping[int, str] = field(default_factory=dict, hash=False)
    is_trace: bool = False

    @classmethod
    def read(cls, path: str | Path, *, is_trace: bool = False) -> Document:
        """Read ``path``; anything but a readable file of at most 2 GiB is a TraceError."""
        try:
            # a pipe or device is not even opened: it may never end
            if not stat.S_ISREG((found := Path(path).stat()).st_mode):
                if stat.S_ISDIR(found.st_mode):
                    raise TraceError(f"{path}: is a folder; give the trace file inside it")
                raise TraceError(f"{path}: a pipe or device; write its content to a file first")
            if found.st_size > _MOST_BYTES:
                raise TraceError(f"{path}: {found.st_size:,} bytes; at most 2 GiB are read")
            with Path(path).open("rb") as stream:
                raw = stream.read(found.st_size + 1)
        except FileNotFoundError:
            raise TraceError(f"{path}: no such file; check the path") from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise TraceError(f"{path}: cannot be read ({why}); check the file") from None
        if len(raw) != found.st_size:
            raise TraceError(f"{path}: changes while it is read; give a copy")
        if raw.startswith(_GZIP):
            packed_sha256 = hashlib.sha256(raw).hexdigest()
            return cls(str(path), _unzip(str(path), raw), packed_sha256, is_trace=is_trace)
        return cls(str(path), raw, is_trace=is_trace)

    def without(self, rows: Mapping[int, str]) -> Document:
        """Return the document without further rows."""
        return replace(self, left_out={**self.left_out, **rows})

    @cached_property
    def text(self) -> str:
        """The content as text; anything that is no text file is a TraceError."""
        if encoding := marked_as(self.raw):
            raise TraceError(f"{self.name}: {encoding} text; save it as UTF-8")
        if packed := packed_as(self.raw):
            raise TraceError(f"{self.name}: {packed}; unpack it, or save it as CSV in UTF-8")
        zero = self.raw.find(b"\0")
        try:
            text = self.raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            zero = error.start if zero < 0 else min(zero, error.start)
        if zero >= 0:
            raise self._not_text(zero)
        if not text.strip():
            raise TraceError(f"{self.name}: empty file; fetch or write it again")
        if text.lstrip()[:1] == "<":
            raise TraceError(
                f"{self.name}: an HTML or XML page, not a trace; "
                "the download went wrong: fetch it again"
            )
        if is_lfs_pointer(text):
            raise TraceError(f"{self.name}: a Git LFS pointer, not the file; run git lfs pull")
        return text

    def _not_text(self, place: int) -> TraceError:
        """Return the error for a byte that is no UTF-8 text."""
        byte = f"byte 0x{self.raw[place]:02x} at offset {place}"
        encoding = encoding_of(self.raw)
        if encoding is None:
            return TraceError(
                f"{self.name}: binary data ({byte}); "
                "a trace is UTF-8 text: unpack it or fetch it again"
            )
        line = self.raw.count(b"\n", 0, place) + 1
        return TraceError(
            f"{self.name}:{line}: not UTF-8 (looks like {encoding}): save it as UTF-8 ({byte})"
        )

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes of the file as it is, in hexadecimal."""
        return self.packed_sha256 or hashlib.sha256(self.raw).hexdigest()


def _unzip(name: str, packed: bytes) -> bytes:
    """Unpack a gzip file."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            raw = stream.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        why = " ".join(str(error).split())
        raise TraceError(f"{name}: a broken gzip file ({why}); fetch it again") from None
    if len(raw) > _MOST_BYTES:
        raise TraceError(f"{name}: more than 2 GiB once unpacked; at most 2 GiB are read")
    return raw


@dataclass
class Parsed:
    """Jobs of a file in the columns of the schema, in file order, not validated yet."""

    frame: pd.DataFrame
    origin: Origin
    dropped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rows = self.frame.index

    def drop(self, reasons: Mapping[str, Flags]) -> None:
        """Leave out rows, each counted under the first reason that holds; flags are of all rows."""
        for reason, rows in reasons.items():
            held = rows[self.rows.get_indexer(self.frame.index)]
            if held.any():
                self.dropped[reason] = int(held.sum())
                self.frame = self.frame[~held].copy()


class Table:
    """Columns of a delimited text file, and the line of each row.

    Rows are labelled by their position in the file, from 0. Wholly blank rows and columns without a
    name, as spreadsheets write them, are left out.
    """

    def __init__(
        self,
        document: Document,
        required: Sequence[str],
        *,
        text: Collection[str] = (),
        ids: str | None = None,
        delimiter: str = ",",
        headed: bool = True,
        units: Mapping[str, str] = NO_UNITS,
    ) -> None:
        """Read a table.

        Parameters
        ----------
        document : Document
            The file.
        required : sequence of str
            Columns that it must have, all of them if it has no header.
        text : collection of str
            Columns that are no numbers.
        ids : str, optional
            Column of ids, which are whole numbers where all are written as such.
        delimiter : str
            What stands between two fields.
        headed : bool
            Whether the first line names the columns.
        units : mapping of str to str
            Required columns whose unit is not seconds: ``ms``, or ``date``.
        """
        self.document = document
        self.delimiter = delimiter
        self.units = units
        self.headed = headed
        self.quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if headed else csv.QUOTE_NONE
        self.offsets: bool | None = None
        self.blank_rows = 0
        self.skipped = _naming_line(document) if headed else 0
        start, first = next(self._records(), (1, [""]))
        if len(first) > _MOST_COLUMNS:
            raise TraceError(
                f"{document.name}:{start}: {len(first):,} columns; at most {_MOST_COLUMNS:,} are "
                "read: leave some out"
            )
        names = (name.strip() or _unnamed(place) for place, name in enumerate(first, 1))
        self.header = list(names) if headed else list(required)
        self._check_kind(first, required)
        self._check_delimiter(start, first)
        if headed:
            self._check_header(start, required)
        elif len(first) != len(required):
            self._check_width(start, len(first))
        held = self._read({*text, *([ids] if ids else [])} & set(self.header))
        if held.empty:
            raise TraceError(f"{document.name}: header only, no jobs; a trace has at least one row")
        self.every = held
        self.frame = held.drop(index=held.index.intersection(list(document.left_out)))
        self._leave_blank_columns()
        if self.frame.empty:
            raise no_job_left(document, {})
        if ids is not None:
            self.frame[ids] = _whole_ids(self.frame[ids])

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        return _records(self.document, self.delimiter, self.quoting, self.skipped)

    def _rows(self) -> Iterator[tuple[int, int, list[str]]]:
        """Yield (row, line on which it starts, fields) of each row below the header."""
        for record, (line, fields) in enumerate(self._records()):
            if record >= self.headed:
                yield record - self.headed, line, fields

    def _check_kind(self, first: list[str], required: Sequence[str]) -> None:
        """Raise for a file of another kind (JSON, SWF, YAML), told by what is no header."""
        fits = set(required) <= set(self.header) if self.headed else len(first) == len(required)
        kind = None if fits else other_kind(self.document.text, required)
        if kind is not None:
            raise TraceError(f"{self.document.name}:1: {kind}")

    def _check_header(self, line: int, required: Sequence[str]) -> None:
        absent = [name for name in required if name not in self.header]
        if absent:
            origin = Origin(self.document.name, line=lambda _: line)
            advice = ADD_OR_FORMAT if self.document.is_trace else ADD_COLUMNS
            raise origin.missing(absent, self.header, advice, self.units, line)
        twice = {name for name in self.header if self.header.count(name) > 1}
        if twice:
            raise TraceError(
                f"{self.document.name}:{line}:{shown(min(twice))}: column appears twice; "
                "name each column once"
            )
        for name in self.header:
            if not is_plain(name):
                raise TraceError(
                    f"{self.document.name}:{line}:{shown(name)}: control characters in the name of "
                    "a column; name it in printable text"
                )

    def _check_width(self, line: int, fields: int) -> None:
        """Raise if all rows have this number of fields, or if the first of them is a bad row."""
        error = self._fields_error({0: (line, fields)})
        if all(len(found) == fields for _, _, found in self._rows()):
            raise TraceError(str(error))
        if 0 not in self.document.left_out:
            raise error

    def _check_delimiter(self, line: int, first: list[str]) -> None:
        if len(first) > 1 or first[0].lstrip().startswith("#"):
            return
        for delimiter, name in _DELIMITERS.items():
            if delimiter != self.delimiter and delimiter in first[0].strip():
                raise TraceError(
                    f"{self.document.name}:{line}: wrong delimiter: found {name} ({delimiter!r}), "
                    f"this format uses {_DELIMITERS[self.delimiter]} ({self.delimiter!r})"
                )

    def _fields_error(self, found: Mapping[int, tuple[int, int]]) -> BadRows:
        """Return the error for rows with too few or too many fields, given (line, fields)."""
        line, fields = next(iter(found.values()))
        what = f"{fields} fields where {len(self.header)} are expected; one field per column"
        if not self.headed and fields == _SHOCKWAVE_FIELDS:
            what += " (looks like a trace of Shockwave: take out fields 8, mode, and 11, duration)"
        if len(found) > 1:
            what += f" ({len(found) - 1:,} more like it)"
        reasons = dict.fromkeys(found, "another number of fields")
        name = self.document.name
        return BadRows(f"{name}:{line}: {what}", reasons, name)

    def _read(self, text: Collection[str]) -> pd.DataFrame:
        """Read all rows; where some are blank or of another length, only the others."""
        body = self.document.raw
        if self.skipped:
            body = self.document.text[self.skipped :].encode()
        reason = ""
        try:
            frame = self._parse(body, text, headed=self.headed)
        except _UNREADABLE as error:
            reason = " ".join(str(error).split())
            if "EOF inside string" in reason:
                # it takes all rows below with it
                *_, (line, _) = self._records()
                raise TraceError(
                    f"{self.document.name}:{line}: not a readable row (a quote that is not "
                    "closed); close it"
                ) from None
        else:
            if self._is_even(frame, body):
                return frame
        written, labels = self._even_rows()
        if not labels:
            return pd.DataFrame(columns=self.header)
        try:
            frame = self._parse(written, text, headed=False)
        except _UNREADABLE as error:
            raise self._unreadable(reason or " ".join(str(error).split())) from None
        frame.index = pd.Index(labels)
        return frame

    def _unreadable(self, reason: str) -> TraceError:
        return TraceError(f"{self.document.name}: not a readable table ({reason})")

    def _parse(self, raw: bytes, text: Collection[str], *, headed: bool) -> pd.DataFrame:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame: pd.DataFrame = pd.read_csv(
                io.BytesIO(raw),
                sep=self.delimiter,
                header=0 if headed else None,
                names=self.header,
                index_col=False,
                dtype=dict.fromkeys(text, str),
                keep_default_na=False,
                na_values={c: [""] if c in text else _MISSING for c in self.header},
                quoting=self.quoting,
                encoding="utf-8-sig",
                low_memory=False,
                **_EXACT,
            )
        return frame

    def _is_even(self, frame: pd.DataFrame, body: bytes) -> bool:
        """Tell whether every row has a field per column and none is blank."""
        first = frame[self.header[0]].isna()
        if first.any() and frame[first].isna().all(axis=1).any():
            return False
        if self.quoting == csv.QUOTE_MINIMAL and b'"' in body:
            return all(len(fields) == len(self.header) for _, _, fields in self._rows())
        full = (len(self.header) - 1) * (len(frame) + self.headed)
        return body.count(self.delimiter.encode()) == full

    def _even_rows(self) -> tuple[bytes, list[int]]:
        """Write anew the rows with a field per column, and give their labels; others raise.

        Blank rows are left out and counted. Blank fields beyond the last column are taken off, and
        those below the last column without a name are filled up.
        """
        width = len(self.header)
        least = max((n for n, name in enumerate(self.header, 1) if name != _unnamed(n)), default=0)
        stream = io.StringIO(newline="")
        writer = csv.writer(
            stream,
            delimiter=self.delimiter,
            quoting=self.quoting,
            quotechar='"' if self.quoting == csv.QUOTE_MINIMAL else None,
            lineterminator="\n",
        )
        labels = []
        uneven = {}
        self.blank_rows = 0
        for row, line, fields in self._rows():
            if not any(field.strip() for field in fields):
                self.blank_rows += 1
                continue
            found = len(fields)
            while len(fields) > width and not fields[-1].strip():
                fields.pop()
            if least <= len(fields) < width:
                fields += [""] * (width - len(fields))
            if len(fields) == width:
                writer.writerow(fields)
                labels.append(row)
            elif row not in self.document.left_out:
                uneven[row] = (line, found)
        if uneven:
            raise self._fields_error(uneven)
        return stream.getvalue().encode(), labels

    def _leave_blank_columns(self) -> None:
        """Leave out columns that have neither a name nor content."""
        nameless = [name for place, name in enumerate(self.header, 1) if name == _unnamed(place)]
        blank = [name for name in nameless if self.every[name].isna().all()]
        self.nameless = [name for name in nameless if name not in blank]
        self.frame = self.frame.drop(columns=blank)

    def _record(self, row: int) -> tuple[int, list[str]]:
        return next((line, fields) for number, line, fields in self._rows() if number == row)

    def line(self, row: int) -> int:
        """Return the line of the file that holds job ``row`` (0 = first)."""
        return self._record(row)[0]

    def cell(self, row: int, column: str) -> str | None:
        """Return the text of one field of the file, or None if it has no such column."""
        if column not in self.header:
            return None
        fields = self._record(row)[1]
        position = self.header.index(column)
        return fields[position] if position < len(fields) else ""

    def origin(self, columns: Mapping[str, str]) -> Origin:
        """Return the origin of rows read from this file, given schema to file columns."""
        return Origin(self.document.name, columns, self.line, self.cell)

    def parsed(self, *same: str, also: Collection[str] = (), **columns: str) -> Parsed:
        """Jobs with the columns that the file has, under their names in the schema.

        Parameters
        ----------
        *same : str
            Columns with the same name in schema and file.
        also : collection of str
            Further columns of the file that the format reads.
        **columns : str
            Name in the schema -> name in the file.
        """
        columns = {name: name for name in same} | columns
        held = {name: self.frame[column] for name, column in columns.items() if column in self}
        used = {*columns.values(), *also}
        unread = [str(name) for name in self.frame if name not in used]
        frame = pd.DataFrame(held, index=self.frame.index)
        notes = []
        if self.nameless:
            places = [str(self.header.index(name) + 1) for name in self.nameless]
            plural = len(places) > 1
            notes.append(
                f"column{'s' * plural} {' and '.join(places)} ha{'ve' if plural else 's'} no name"
            )
        dropped = {"blank row": self.blank_rows} if self.blank_rows else {}
        return Parsed(frame, self.origin(columns), dropped, notes, unread)

    def __contains__(self, column: object) -> bool:
        """Tell whether the file has the column."""
        return column in self.header

    def numbers(
        self,
        column: str,
        accepted: str,
        *,
        low: float | None = None,
        high: float = np.inf,
        required: bool = True,
    ) -> Floats:
        """Return a file column as float64; text, required gaps, too low or high values raise."""
        values = numbers(self.frame[column], column, self.origin({}), accepted, required=required)
        if low is not None:
            self.refuse(values < low, column, "negative" if low == 0 else "too small", accepted)
        self.refuse(values > high, column, "too large", accepted)
        return values

    def whole(
        self, column: str, least: int = 0, *, most: float = np.inf, required: bool = True
    ) -> Floats:
        """Return a file column of whole numbers; fractions and numbers out of bounds raise."""
        accepted = f"a whole number of {least} or more"
        if most < np.inf:
            accepted += f", at most {most:,}"
        values = self.numbers(column, accepted, low=least, high=most, required=required)
        self.refuse(values % 1 > 0, column, "not a whole number", accepted)
        return values

    def complete(self, text: Sequence[str], numbers: Sequence[str]) -> pd.DataFrame:
        """Return columns of text and of numbers of 0 or more; a gap in one raises."""
        frame = self.frame[list(text)].copy()
        for name in text:
            gone = frame[name].isna().to_numpy(bool)
            self.refuse(gone, name, "missing value", "every row has one")
        for name in numbers:
            frame[name] = self.numbers(name, f"{name} is a number, 0 or more", low=0)
        return frame

    def refuse(self, bad: Flags, column: str, rule: str, accepted: str) -> None:
        """Raise for the first row marked in ``bad``, by what a column of the file says there."""
        refuse(bad, self.frame[column], column, self.origin({}), rule, accepted)

    def times(self, column: str, *, required: bool = True) -> pd.Series[Any]:
        """Return a file column as UTC dates (NaT where missing); what is no date raises.

        Dates without an offset from UTC are taken as they stand; a file has one sort of dates.
        """
        series = self.frame[column]
        # all dates of a file have the same shape, so few are matched
        shapes = _shapes(series)
        if not all(map(DATE.fullmatch, shapes)):
            series = series.str.strip()
            series = series.mask(series.str.lower().isin(NO_DATE))
            shapes = _shapes(series)
        held = series.notna().to_numpy(bool)
        if not all(map(DATE.fullmatch, shapes)):
            written = [isinstance(cell, str) and bool(DATE.fullmatch(cell)) for cell in series]
            strange = held & ~np.array(written)
            hint = date_looks(series.iloc[int(strange.argmax())])
            self.refuse(strange, column, "not a date", hint)
        self._check_offsets(series, column, shapes)
        dates = pd.to_datetime(series, format="ISO8601", errors="coerce", utc=True)
        gone = dates.isna().to_numpy()
        self.refuse(gone & held, column, "not a date", DATE_LOOKS)
        if required:
            self.refuse(gone, column, "missing value", DATE_LOOKS)
        strange = ~dates.dt.year.between(*DATE_YEARS).to_numpy(bool) & held
        self.refuse(strange, column, "a year that no trace is from", DATE_LOOKS)
        return dates

    def _check_offsets(self, series: pd.Series[Any], column: str, shapes: set[str]) -> None:
        """Raise for a date with an offset from UTC among dates without, or the other way round."""
        sorts = {bool(found[1]) for shape in shapes if (found := DATE.fullmatch(shape))}
        if self.offsets is None and sorts:
            first = DATE.fullmatch(series.dropna().iloc[0])
            self.offsets = bool(first and first[1])
        if sorts - {self.offsets}:
            matches = (DATE.fullmatch(cell) if isinstance(cell, str) else None for cell in series)
            other = [found is not None and bool(found[1]) != self.offsets for found in matches]
            accepted = "the dates of a file all have an offset from UTC (+08:00), or none has"
            self.refuse(np.array(other), column, "another sort of date", accepted)


def header_of(document: Document) -> tuple[int, list[str]]:
    """Line and names of the header of a table with commas."""
    records = _records(document, ",", csv.QUOTE_MINIMAL, _naming_line(document))
    line, first = next(records, (1, [""]))
    return line, [name.strip() for name in first]


def _naming_line(document: Document) -> int:
    """Length of the line by which a spreadsheet names the delimiter, 0 if there is none."""
    found = _SEP.match(document.text)
    return found.end() if found else 0


def _records(
    document: Document, delimiter: str, quoting: Literal[0, 3], skipped: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line on which it starts, fields) of each line that is not blank."""
    stream = io.StringIO(document.text, newline="")
    stream.seek(skipped)
    reader = csv.reader(stream, delimiter=delimiter, quoting=quoting)
    before = 1 if skipped else 0
    line = before + 1
    try:
        for fields in reader:
            if len(fields) > 1 or (fields and fields[0].strip()):
                yield line, fields
            line = before + reader.line_num + 1
    except csv.Error as error:
        raise TraceError(
            f"{document.name}:{line}: not a readable row ({error}); "
            "look for a quote that is not closed"
        ) from None


def no_job_left(document: Document, dropped: Mapping[str, int]) -> TraceError:
    """Return the error for a file of which every row was left out."""
    counts = Counter(document.left_out.values())
    counts.update(dropped)
    why = ", ".join(f"{reason}: {count:,}" for reason, count in counts.items())
    return TraceError(f"{document.name}: no job left ({why}); a trace holds at least one")


def date_looks(value: object) -> str:
    """Say how a date is written, and what to do with a value that is none."""
    unit = epoch_unit(value)
    if unit is not None:
        return f"looks like {unit} since 1970: write dates as {DATE_EXAMPLE}"
    if _DAY_FIRST.fullmatch(str(value).strip()):
        return f"write dates as {DATE_EXAMPLE}"
    return DATE_LOOKS


def _shapes(series: pd.Series[Any]) -> set[str]:
    """Texts that differ in more than their digits."""
    held = series.dropna()
    return set("\n".join(held).translate(_SHAPE).split("\n")) if len(held) else set()


def _unnamed(place: int) -> str:
    return f"column {place} (unnamed)"


def _whole_ids(texts: pd.Series[Any]) -> pd.Series[Any]:
    """Return ids as integers if each is written as one is (7, not 007), else as they stand."""
    try:
        numbers = pd.to_numeric(texts)
    except (ValueError, TypeError, OverflowError):
        return texts
    if numbers.dtype != "int64":
        return texts
    written = numbers.astype(str).to_numpy(object)
    plain = texts.to_numpy(object)
    canonical = (written == plain).all() or (written == texts.str.strip().to_numpy(object)).all()
    return numbers if canonical else texts


def elapsed(dates: pd.Series[Any]) -> pd.Series[Any]:
    """Return seconds since the earliest date."""
    seconds: pd.Series[Any] = (dates - dates.min()).dt.total_seconds()
    return seconds
