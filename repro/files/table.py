"""Delimited text files as tables. A problem of encoding or shape raises a one-line error."""

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
from repro.files.checks import BadRows, Source, is_plain, numbers, refuse, shown
from repro.files.guess import (
    ADD_COLUMNS,
    ADD_OR_FORMAT,
    DATE_EXAMPLE,
    NO_UNITS,
    binary_format,
    encoding_by_mark,
    encoding_of,
    epoch_unit,
    foreign_format,
    is_lfs_pointer,
)

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe", " ": "space"}
_MISSING = ["", "nan", "NaN", "NA", "N/A", "n/a", "null", "NULL", "None", "<NA>", "#N/A"]
# pandas reads decimals exactly from 3.1 on and says the option is obsolete
_OLD_PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1)
_EXACT: dict[str, Any] = {"float_precision": "round_trip"} if _OLD_PANDAS else {}
_UNREADABLE = (pd.errors.ParserError, pd.errors.ParserWarning, ValueError)
_MOST_BYTES = 2**31
_GZIP = b"\x1f\x8b"
_SEP_LINE = re.compile('\ufeff?"?sep=.?"?[,;]*\r?\n', re.IGNORECASE)
MOST_COLUMNS = 1000
#: Number of left-out rows per reason whose ids are reported.
_FIRST_IDS = 3
DATE = re.compile(
    "[0-9]{4}-[0-9]{2}-[0-9]{2}"
    "(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]+)?)?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
#: Texts for a missing date, in lower case.
NO_DATE = frozenset(["", "unknown", "none", "n/a", "na", "nan", "nat", "null", "<na>"])
_DIGITS_TO_ZERO = str.maketrans("123456789", "0" * 9)
DATE_YEARS = (1970, 2100)
DATE_ADVICE = "a date looks like 2017-10-09 07:01:55, of {} to {}".format(*DATE_YEARS)
WRONG_YEAR = "year before {} or after {}".format(*DATE_YEARS)
#: Dates in other forms, such as 9/10/2017, 2017/10/09 and 20171009.
_OTHER_DATE = re.compile(r"[0-9]{1,4}[/.][0-9]{1,2}[/.][0-9]{2,4}\b.*|[0-9]{8}")


@dataclass(frozen=True)
class Document:
    """The unpacked bytes of a file, and its name for messages.

    ``left_out`` has the rows that readers skip: row -> reason. ``is_trace`` is true for a trace,
    whose format can be set by ``--format``.
    """

    name: str
    raw: bytes
    packed_sha256: str | None = None
    left_out: Mapping[int, str] = field(default_factory=dict, hash=False)
    is_trace: bool = False

    @classmethod
    def read(cls, path: str | Path, *, is_trace: bool = False) -> Document:
        """Read ``path``; TraceError unless it is a readable file of at most 2 GiB."""
        try:
            status = Path(path).stat()
            # a pipe or device may never end, so it is not opened
            if not stat.S_ISREG(status.st_mode):
                if stat.S_ISDIR(status.st_mode):
                    raise TraceError(f"{path}: is a folder; give the trace file inside it")
                raise TraceError(f"{path}: a pipe or device; write its content to a file first")
            if status.st_size > _MOST_BYTES:
                raise TraceError(f"{path}: {status.st_size:,} bytes; at most 2 GiB are read")
            with Path(path).open("rb") as stream:
                raw = stream.read(status.st_size + 1)
        except FileNotFoundError:
            raise TraceError(f"{path}: no such file; check the path") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise TraceError(f"{path}: cannot be read ({reason}); check the file") from None
        if len(raw) != status.st_size:
            raise TraceError(f"{path}: changes while it is read; give a copy")
        if raw.startswith(_GZIP):
            packed_sha256 = hashlib.sha256(raw).hexdigest()
            return cls(str(path), _unzip(str(path), raw), packed_sha256, is_trace=is_trace)
        return cls(str(path), raw, is_trace=is_trace)

    def leaving_out(self, rows: Mapping[int, str]) -> Document:
        """Copy of the document whose readers skip also these rows: row -> reason."""
        return replace(self, left_out={**self.left_out, **rows})

    @cached_property
    def text(self) -> str:
        """Content as text; TraceError for binary data and for encodings other than UTF-8."""
        if encoding := encoding_by_mark(self.raw):
            raise TraceError(f"{self.name}: {encoding} text; save it as UTF-8")
        if binary := binary_format(self.raw):
            raise TraceError(f"{self.name}: {binary}; unpack it, or save it as CSV in UTF-8")
        bad = self.raw.find(b"\0")
        try:
            text = self.raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            bad = error.start if bad < 0 else min(bad, error.start)
        if bad >= 0:
            raise self._encoding_error(bad)
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

    def _encoding_error(self, offset: int) -> TraceError:
        """Error for the byte at ``offset``, which is not UTF-8 text."""
        byte = f"byte 0x{self.raw[offset]:02x} at offset {offset}"
        encoding = encoding_of(self.raw)
        if encoding is None:
            return TraceError(
                f"{self.name}: binary data ({byte}); "
                "a trace is UTF-8 text: unpack it or fetch it again"
            )
        line = self.raw.count(b"\n", 0, offset) + 1
        return TraceError(
            f"{self.name}:{line}: not UTF-8 (looks like {encoding}): save it as UTF-8 ({byte})"
        )

    @property
    def sha256(self) -> str:
        """SHA-256 of the file as stored, before unpacking (hexadecimal)."""
        return self.packed_sha256 or hashlib.sha256(self.raw).hexdigest()


def _unzip(name: str, packed: bytes) -> bytes:
    """Unpack a gzip file."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            raw = stream.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = " ".join(str(error).split())
        raise TraceError(f"{name}: a broken gzip file ({reason}); fetch it again") from None
    if len(raw) > _MOST_BYTES:
        raise TraceError(f"{name}: more than 2 GiB once unpacked; at most 2 GiB are read")
    return raw


@dataclass
class Parsed:
    """Jobs of a file in the columns of the schema, in file order, before validation.

    ``dropped`` has the number of rows that were left out: reason -> rows. ``unread`` are the
    columns of the file that the format does not read. ``rows`` are the labels of all rows, also of
    rows that `drop` left out. ``log`` has the times that the file records for the rows of
    ``frame``, if it is a log. `repro.trace.runs.set_run_times` sets it. ``dropped_jobs`` has the
    ids of the first rows that `drop` left out: reason -> ids.
    """

    frame: pd.DataFrame
    source: Source
    dropped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    log: pd.DataFrame | None = None
    dropped_jobs: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = self.frame.index

    def drop(self, reasons: Mapping[str, Flags]) -> None:
        """Leave out flagged rows and count each under its first reason.

        ``reasons`` maps a reason to flags of all ``rows``, also of rows that were left out before.
        """
        for reason, flags in reasons.items():
            marked = flags[self.rows.get_indexer(self.frame.index)]
            if marked.any():
                self.dropped[reason] = int(marked.sum())
                if "job_id" in self.frame:
                    ids = self.frame.loc[marked, "job_id"].head(_FIRST_IDS)
                    self.dropped_jobs[reason] = ids.tolist()
                self.frame = self.frame[~marked].copy()


class Table:
    """Columns of a delimited text file, and the line of each row.

    Rows are labelled by their position in the file, from 0. Blank rows are left out. Blank columns
    without a name, which spreadsheets write, are missing in ``frame``. The rows of the document's
    ``left_out`` are missing in ``frame``, too. ``all_rows`` has the rows of ``frame``, and the rows
    of ``left_out`` whose number of fields is right.
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
        quoted: bool = True,
        units: Mapping[str, str] = NO_UNITS,
    ) -> None:
        """Read a table.

        Parameters
        ----------
        document : Document
            The file.
        required : sequence of str
            Columns that the file must have. A file without a header has exactly these columns.
        text : collection of str
            Columns of text.
        ids : str, optional
            Column of ids. They become integers if every id is written like one (7, not 007).
        delimiter : str
            Character between two fields.
        headed : bool
            Whether the first line names the columns.
        quoted : bool
            Whether quotes may enclose a field of a file with a header.
        units : mapping of str to str
            Units of required columns that are not in seconds: ``ms`` or ``date``.
        """
        self.document = document
        self.delimiter = delimiter
        self.units = units
        self.headed = headed
        self.quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if headed and quoted else csv.QUOTE_NONE
        self.dates_have_offset: bool | None = None
        self.blank_rows = 0
        self.sep_line_length = _sep_line_length(document) if headed else 0
        start, first = next(self._records(), (1, [""]))
        if len(first) > MOST_COLUMNS:
            raise TraceError(
                f"{document.name}:{start}: {len(first):,} columns; at most {MOST_COLUMNS:,} are "
                "read: leave some out"
            )
        names = (name.strip() or _unnamed(number) for number, name in enumerate(first, 1))
        self.header = list(names) if headed else list(required)
        self._check_format(first, required)
        self._check_delimiter(start, first)
        if headed:
            self._check_header(start, required)
        elif len(first) != len(required):
            self._check_width(start, len(first))
        rows = self._read({*text, *([ids] if ids else [])} & set(self.header))
        if rows.empty:
            raise TraceError(f"{document.name}: header only, no rows; give at least one row")
        self.all_rows = rows
        self.frame = rows.drop(index=rows.index.intersection(list(document.left_out)))
        self._drop_blank_columns()
        if self.frame.empty:
            raise no_jobs_error(document, {})
        if ids is not None:
            self.frame[ids] = as_integers(self.frame[ids])

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        return _records(self.document, self.delimiter, self.quoting, self.sep_line_length)

    def _rows(self) -> Iterator[tuple[int, int, list[str]]]:
        """Yield (row, number of its first line, fields) of each row below the header."""
        for record, (line, fields) in enumerate(self._records()):
            if record >= self.headed:
                yield record - self.headed, line, fields

    def _check_format(self, first: list[str], required: Sequence[str]) -> None:
        """Raise for a file of another format (JSON, SWF, YAML) if the header does not fit."""
        fits = set(required) <= set(self.header) if self.headed else len(first) == len(required)
        message = None if fits else foreign_format(self.document.text, required)
        if message is not None:
            raise TraceError(f"{self.document.name}:1: {message}")

    def _check_header(self, line: int, required: Sequence[str]) -> None:
        """Raise for columns that are missing, repeated, or named with control characters."""
        absent = [name for name in required if name not in self.header]
        if absent:
            source = Source(self.document.name, line=lambda _: line)
            advice = ADD_OR_FORMAT if self.document.is_trace else ADD_COLUMNS
            raise source.missing(absent, self.header, advice, self.units, line)
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

    def _check_width(self, line: int, num_fields: int) -> None:
        """Raise for a first row with a wrong number of fields.

        If every row has that number, the file has another format: a TraceError. Otherwise only some
        rows are bad: `BadRows`. No error if the first row is already among the rows to leave out.
        """
        error = self._fields_error({0: (line, num_fields)})
        if all(len(fields) == num_fields for _, _, fields in self._rows()):
            raise TraceError(str(error))
        if 0 not in self.document.left_out:
            raise error

    def _check_delimiter(self, line: int, first: list[str]) -> None:
        """Raise if the first line has one field and another delimiter would split it."""
        if len(first) > 1 or first[0].lstrip().startswith("#"):
            return
        for delimiter, name in _DELIMITERS.items():
            if delimiter != self.delimiter and delimiter in first[0].strip():
                raise TraceError(
                    f"{self.document.name}:{line}: wrong delimiter: found {name} ({delimiter!r}), "
                    f"this format uses {_DELIMITERS[self.delimiter]} ({self.delimiter!r})"
                )

    def _fields_error(self, wrong_widths: Mapping[int, tuple[int, int]]) -> BadRows:
        """Error for rows with too few or too many fields: row -> (line, number of fields)."""
        line, num_fields = next(iter(wrong_widths.values()))
        rule = f"{num_fields} fields where {len(self.header)} are expected; one field per column"
        if len(wrong_widths) > 1:
            rule += f" ({len(wrong_widths) - 1:,} more like it)"
        reasons = dict.fromkeys(wrong_widths, "wrong number of fields")
        name = self.document.name
        return BadRows(f"{name}:{line}: {rule}", reasons, name)

    def _read(self, text: Collection[str]) -> pd.DataFrame:
        """Read the rows; ``text`` are the columns of text.

        Blank rows are skipped. Rows of the document's ``left_out`` are skipped if their number of
        fields is wrong; the caller removes the others.
        """
        body = self.document.raw
        if self.sep_line_length:
            body = self.document.text[self.sep_line_length :].encode()
        reason = ""
        try:
            frame = self._parse(body, text, headed=self.headed)
        except _UNREADABLE as error:
            reason = " ".join(str(error).split())
            if "EOF inside string" in reason:
                # the record with the open quote contains all rows below, so it is the last
                *_, (line, _) = self._records()
                raise TraceError(
                    f"{self.document.name}:{line}: not a readable row (a quote that is not "
                    "closed); close it"
                ) from None
        else:
            if self._is_rectangular(frame, body):
                return frame
        body, labels = self._rectangular_rows()
        if not labels:
            return pd.DataFrame(columns=self.header)
        try:
            frame = self._parse(body, text, headed=False)
        except _UNREADABLE as error:
            raise self._table_error(reason or " ".join(str(error).split())) from None
        frame.index = pd.Index(labels)
        return frame

    def _table_error(self, reason: str) -> TraceError:
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
                na_values={name: [""] if name in text else _MISSING for name in self.header},
                quoting=self.quoting,
                encoding="utf-8-sig",
                low_memory=False,
                **_EXACT,
            )
        return frame

    def _is_rectangular(self, frame: pd.DataFrame, body: bytes) -> bool:
        """Whether every row has one field per column and no row is blank."""
        first = frame[self.header[0]].isna()
        if first.any() and frame[first].isna().all(axis=1).any():
            return False
        if self.quoting == csv.QUOTE_MINIMAL and b'"' in body:
            return all(len(fields) == len(self.header) for _, _, fields in self._rows())
        expected = (len(self.header) - 1) * (len(frame) + self.headed)
        return body.count(self.delimiter.encode()) == expected

    def _rectangular_rows(self) -> tuple[bytes, list[int]]:
        """Rows rewritten to one field per column, and their labels.

        A row that cannot be rewritten raises, unless the document leaves it out. Blank rows are
        left out and counted. Blank fields beyond the last column are removed. A row may end after
        the last named column, and its missing fields become blank.
        """
        width = len(self.header)
        # a row reaches at least the last column that has a name
        min_fields = max(
            (number for number, name in enumerate(self.header, 1) if name != _unnamed(number)),
            default=0,
        )
        stream = io.StringIO(newline="")
        writer = csv.writer(
            stream,
            delimiter=self.delimiter,
            quoting=self.quoting,
            quotechar='"' if self.quoting == csv.QUOTE_MINIMAL else None,
            lineterminator="\n",
        )
        labels = []
        wrong_widths = {}
        self.blank_rows = 0
        for row, line, fields in self._rows():
            if not any(field.strip() for field in fields):
                self.blank_rows += 1
                continue
            num_fields = len(fields)
            while len(fields) > width and not fields[-1].strip():
                fields.pop()
            if min_fields <= len(fields) < width:
                fields += [""] * (width - len(fields))
            if len(fields) == width:
                writer.writerow(fields)
                labels.append(row)
            elif row not in self.document.left_out:
                wrong_widths[row] = (line, num_fields)
        if wrong_widths:
            raise self._fields_error(wrong_widths)
        return stream.getvalue().encode(), labels

    def _drop_blank_columns(self) -> None:
        """Leave out columns that have neither a name nor content."""
        nameless = [name for number, name in enumerate(self.header, 1) if name == _unnamed(number)]
        blank = [name for name in nameless if self.all_rows[name].isna().all()]
        self.nameless = [name for name in nameless if name not in blank]
        self.frame = self.frame.drop(columns=blank)

    def _record(self, row: int) -> tuple[int, list[str]]:
        return next((line, fields) for number, line, fields in self._rows() if number == row)

    def line(self, row: int) -> int:
        """Line number of row ``row`` (0 = first) in the file."""
        return self._record(row)[0]

    def cell(self, row: int, column: str) -> str | None:
        """Text of one field of the file; None if the file has no such column."""
        if column not in self.header:
            return None
        fields = self._record(row)[1]
        position = self.header.index(column)
        return fields[position] if position < len(fields) else ""

    def source(self, columns: Mapping[str, str]) -> Source:
        """Source of the rows of this file.

        ``columns`` maps names of the schema to names of the file.
        """
        return Source(self.document.name, columns, self.line, self.cell)

    def parsed(self, *unrenamed: str, also_read: Collection[str] = (), **columns: str) -> Parsed:
        """Jobs with the available columns, under their names in the schema.

        Parameters
        ----------
        *unrenamed : str
            Columns with the same name in schema and file.
        also_read : collection of str
            Further columns of the file that the format reads.
        **columns : str
            Name in the schema -> name in the file.
        """
        columns = {name: name for name in unrenamed} | columns
        available = {name: self.frame[column] for name, column in columns.items() if column in self}
        used = {*columns.values(), *also_read}
        unread = [str(name) for name in self.frame if name not in used]
        frame = pd.DataFrame(available, index=self.frame.index)
        notes = []
        if self.nameless:
            positions = [str(self.header.index(name) + 1) for name in self.nameless]
            subject = "columns" if len(positions) > 1 else "column"
            verb = "have" if len(positions) > 1 else "has"
            notes.append(f"{subject} {' and '.join(positions)} {verb} no name")
        dropped = {"blank row": self.blank_rows} if self.blank_rows else {}
        return Parsed(frame, self.source(columns), dropped, notes, unread)

    def __contains__(self, column: object) -> bool:
        """Whether the file has the column."""
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
        """Column as float64.

        Raises for text that is not a decimal number, for values out of bounds, and, if
        ``required``, for gaps.
        """
        values = numbers(self.frame[column], column, self.source({}), accepted, required=required)
        if low is not None:
            self.refuse(values < low, column, "negative" if low == 0 else "too small", accepted)
        self.refuse(values > high, column, "too large", accepted)
        return values

    def whole(
        self, column: str, least: int = 0, *, most: float = np.inf, required: bool = True
    ) -> Floats:
        """Column of whole numbers from ``least`` to ``most`` as float64.

        Raises for fractions, for numbers out of bounds, and, if ``required``, for gaps.
        """
        accepted = f"a whole number of {least} or more"
        if most < np.inf:
            accepted += f", at most {most:,}"
        values = self.numbers(column, accepted, low=least, high=most, required=required)
        self.refuse(values % 1 > 0, column, "not a whole number", accepted)
        return values

    def complete(self, text: Sequence[str], numbers: Sequence[str]) -> pd.DataFrame:
        """Columns of text and columns of numbers of 0 or more; a gap raises."""
        frame = self.frame[list(text)].copy()
        for name in text:
            missing = frame[name].isna().to_numpy(bool)
            self.refuse(missing, name, "missing value", "every row has one")
        for name in numbers:
            frame[name] = self.numbers(name, f"{name} is a number, 0 or more", low=0)
        return frame

    def refuse(self, bad: Flags, column: str, rule: str, accepted: str) -> None:
        """Raise for the first row flagged in ``bad``, with its value in ``column``."""
        refuse(bad, self.frame[column], column, self.source({}), rule, accepted)

    def times(self, column: str, *, required: bool = True) -> pd.Series[Any]:
        """Column as UTC dates, NaT where missing; text that is no date raises.

        Dates without an offset from UTC are read as UTC. A file that has dates with an offset and
        dates without raises.
        """
        series = self.frame[column]
        # the dates of a file have few shapes, so it is quick to match these
        shapes = _shapes(series)
        if not all(map(DATE.fullmatch, shapes)):
            series = series.str.strip()
            series = series.mask(series.str.lower().isin(NO_DATE))
            shapes = _shapes(series)
        filled = series.notna().to_numpy(bool)
        if not all(map(DATE.fullmatch, shapes)):
            is_date = [isinstance(cell, str) and bool(DATE.fullmatch(cell)) for cell in series]
            strange = filled & ~np.array(is_date)
            hint = date_advice(series.iloc[int(strange.argmax())])
            self.refuse(strange, column, "not a date", hint)
        self._check_offsets(series, column, shapes)
        dates = pd.to_datetime(series, format="ISO8601", errors="coerce", utc=True)
        missing = dates.isna().to_numpy()
        self.refuse(missing & filled, column, "not a date", DATE_ADVICE)
        if required:
            self.refuse(missing, column, "missing value", DATE_ADVICE)
        beyond = ~dates.dt.year.between(*DATE_YEARS).to_numpy(bool) & filled
        self.refuse(beyond, column, WRONG_YEAR, DATE_ADVICE)
        return dates

    def _check_offsets(self, series: pd.Series[Any], column: str, shapes: set[str]) -> None:
        """Raise for a date with an offset from UTC among dates without, or the other way round."""
        offset_flags = {bool(match[1]) for shape in shapes if (match := DATE.fullmatch(shape))}
        if self.dates_have_offset is None and offset_flags:
            first = DATE.fullmatch(series.dropna().iloc[0])
            self.dates_have_offset = bool(first and first[1])
        expected = self.dates_have_offset
        if offset_flags - {expected}:
            matches = (DATE.fullmatch(cell) if isinstance(cell, str) else None for cell in series)
            differs = [match is not None and bool(match[1]) != expected for match in matches]
            rule = "no offset from UTC" if expected else "an offset from UTC"
            accepted = "the dates of a file all have an offset from UTC (+08:00), or none has"
            self.refuse(np.array(differs), column, rule, accepted)


def header_of(document: Document, delimiter: str = ",") -> tuple[int, list[str]]:
    """Line number and column names of the header of a table."""
    records = _records(document, delimiter, csv.QUOTE_MINIMAL, _sep_line_length(document))
    line, first = next(records, (1, [""]))
    return line, [name.strip() for name in first]


def _sep_line_length(document: Document) -> int:
    """Characters of a first line ``sep=,``, which spreadsheets write; 0 without such a line."""
    match = _SEP_LINE.match(document.text)
    return match.end() if match else 0


def _records(
    document: Document, delimiter: str, quoting: Literal[0, 3], sep_line_length: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the first line, fields) of each record that is not blank."""
    stream = io.StringIO(document.text, newline="")
    stream.seek(sep_line_length)
    reader = csv.reader(stream, delimiter=delimiter, quoting=quoting)
    lines_before = 1 if sep_line_length else 0
    line = lines_before + 1
    try:
        for fields in reader:
            if len(fields) > 1 or (fields and fields[0].strip()):
                yield line, fields
            line = lines_before + reader.line_num + 1
    except csv.Error as error:
        raise TraceError(
            f"{document.name}:{line}: not a readable row ({error}); "
            "look for a quote that is not closed"
        ) from None


def no_jobs_error(document: Document, dropped: Mapping[str, int]) -> TraceError:
    """Error for a file whose rows were all left out; ``dropped``: reason -> rows."""
    counts = Counter(document.left_out.values())
    counts.update(dropped)
    reasons = ", ".join(f"{reason}: {count:,}" for reason, count in counts.items())
    note = f" ({reasons})" if reasons else ""
    return TraceError(f"{document.name}: no job left{note}; a trace holds at least one")


def date_advice(value: object) -> str:
    """Advice for a value that is not a date."""
    unit = epoch_unit(value)
    if unit is not None:
        return f"looks like {unit} since 1970: write dates as {DATE_EXAMPLE}"
    if _OTHER_DATE.fullmatch(str(value).strip()):
        return f"write dates as {DATE_EXAMPLE}"
    return DATE_ADVICE


def _shapes(series: pd.Series[Any]) -> set[str]:
    """Distinct texts after every digit is replaced by 0."""
    texts = series.dropna()
    if texts.empty:
        return set()
    return set("\n".join(texts).translate(_DIGITS_TO_ZERO).split("\n"))


def _unnamed(number: int) -> str:
    """Name for column ``number`` (from 1), whose header cell is blank."""
    return f"column {number} (unnamed)"


def as_integers(texts: pd.Series[Any]) -> pd.Series[Any]:
    """Ids as integers if every id is written like one (7, not 007); otherwise unchanged."""
    try:
        numbers = pd.to_numeric(texts)
    except (ValueError, TypeError, OverflowError):
        return texts
    if numbers.dtype != "int64":
        return texts
    canonical = numbers.astype(str).to_numpy(object)
    is_canonical = (canonical == texts.to_numpy(object)).all()
    if not is_canonical:
        is_canonical = (canonical == texts.str.strip().to_numpy(object)).all()
    return numbers if is_canonical else texts


def elapsed(dates: pd.Series[Any]) -> pd.Series[Any]:
    """Seconds since the earliest date."""
    seconds: pd.Series[Any] = (dates - dates.min()).dt.total_seconds()
    return seconds
