"""The Standard Workload Format (SWF): 18 numbers per job, processors read as GPUs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.base.counts import quantity
from repro.base.errors import TraceError
from repro.base.typing import Floats
from repro.files.checks import BadRows, Source, numbers, refuse, shown
from repro.files.guess import foreign_format
from repro.files.table import Document, Parsed, no_jobs_error
from repro.trace.formats import FORMATS
from repro.trace.lost import notes_on_lost
from repro.trace.runs import NO_GPU, set_run_times
from repro.trace.schema import MAX_EXACT, MAX_TIME_S, REQUIRED

#: Names of the 18 fields, in order.
FIELDS = (
    "job",
    "submit",
    "wait",
    "run_time",
    "allocated",
    "cpu_time",
    "memory",
    "processors",
    "requested_time",
    "requested_memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
)
_READ = (
    "job",
    "submit",
    "wait",
    "run_time",
    "allocated",
    "processors",
    "requested_time",
    "status",
    "user",
    "queue",
)
_COLUMNS = {
    "job_id": "job",
    "submit_time": "submit",
    "duration": "run_time",
    "num_gpus": "processors",
    "user": "user",
    "vc": "queue",
    "time_limit": "requested_time",
}
UNKNOWN = -1.0
_STATUS = {0: "failed", 1: "completed", 5: "cancelled", -1: "unknown"}
_PART_STATUSES = (2, 3, 4)
_PART = "part of a job that was swapped out (status 2 to 4)"
_QUEUE = re.compile(r"Queue:\s*(\d+)[\s,]+(\S+)", re.IGNORECASE)
#: Header lines that are not copied, because a written file gets its own.
_COUNTED = re.compile(r"(Queue|MaxJobs|MaxRecords)\s*:", re.IGNORECASE)
_NUMBER = "a field is a number, -1 if unknown"
#: Header lines that the notes show.
_SHOWN = ("Computer", "UnixStartTime", "TimeZoneString", "MaxNodes", "MaxProcs")


@FORMATS.register("swf")
def read(document: Document) -> Parsed:
    """Read the Standard Workload Format: 18 numbers per line, times in seconds.

    Columns: job, submit, run_time, processors; optional: wait, allocated, requested_time, status,
    user, queue. They are the fields 1, 2, 4, 8, 3, 5, 9, 11, 12 and 15 of a line without names.

    A processor is read as a GPU. ``num_gpus`` is the number of requested processors, or of
    allocated processors where none are requested. The run time is field 4, ``time_limit`` field 9,
    ``vc`` the queue. -1 is an unknown value. Lines that begin with ``;`` are comments: they are
    kept in ``attrs["header"]``, and ``; Queue: 1 name`` names a queue. A note shows the computer
    and its size. Submit times stay as they are, in seconds from the start of the log.

    Kept: jobs that ran, whatever their status: completed (1), failed (0), cancelled (5), unknown
    (-1). A note has the number of jobs by status. Dropped and counted: lines for parts of a job
    (status 2 to 4), because the line of the whole job has their sum; jobs that have no processor
    or submit time, never ran (run time -1), or ran for 0 s.

    A log of a CPU cluster reads as one of GPUs, with hundreds of them per job.

    Chapin et al., "Benchmarks and Standards for the Evaluation of Parallel Job Schedulers",
    JSSPP 1999; Parallel Workloads Archive.
    """
    frame, lines, header = _read_lines(document)
    source = Source(document.name, _COLUMNS, lines.__getitem__, _cells(document, lines))
    fields = {name: numbers(frame[name], name, source, _NUMBER) for name in _READ}
    for name, column in fields.items():
        refuse((column < 0) & (column != UNKNOWN), frame[name], name, source, "negative", _NUMBER)
    hint = f"a wait is at most {MAX_TIME_S:,.0f} s"
    refuse(fields["wait"] > MAX_TIME_S, frame["wait"], "wait", source, "too large", hint)
    status = fields["status"]
    hint = "a status is -1 to 5"
    known = np.isin(status, [*_STATUS, *_PART_STATUSES])
    refuse(~known, frame["status"], "status", source, "unknown status", hint)
    values = {name: np.where(column == UNKNOWN, np.nan, column) for name, column in fields.items()}
    gpus = np.where(values["processors"] > 0, values["processors"], values["allocated"])
    parsed = _parsed(frame, source, values, np.nan_to_num(gpus))
    times = pd.DataFrame(
        {
            "submitted": values["submit"],
            "started": np.where(
                np.isnan(values["run_time"]),
                np.nan,
                values["submit"] + np.nan_to_num(values["wait"]),
            ),
            "run": values["run_time"],
        },
        parsed.rows,
    )
    parts = np.isin(status, _PART_STATUSES)
    set_run_times(parsed, times, {_PART: parts, NO_GPU: ~(gpus > 0)})
    parsed.frame.attrs["header"] = header
    _name_queues(parsed, header)
    parsed.notes += _notes(parsed, pd.Series(status, parsed.rows), header)
    parsed.frame = parsed.frame.dropna(axis="columns", how="all")
    return parsed


def _read_lines(document: Document) -> tuple[pd.DataFrame, list[int], list[str]]:
    """Fields of the jobs as text, the line of each row, and the comments."""
    rows: dict[int, list[str]] = {}
    lines: list[int] = []
    header: list[str] = []
    wrong: dict[int, str] = {}
    for number, line in enumerate(document.text.split("\n"), 1):
        text = line.strip()
        if text.startswith(";"):
            header.append(text.lstrip("; \t"))
        elif text:
            row = len(lines)
            lines.append(number)
            fields = text.split()
            if row in document.left_out:
                continue
            if len(fields) == len(FIELDS):
                rows[row] = fields
            else:
                wrong[row] = f"{len(fields)} fields"
    if not rows and (foreign := foreign_format(document.text, REQUIRED)):
        raise TraceError(f"{document.name}:1: {foreign}")
    if wrong:
        row = next(iter(wrong))
        more = f" ({len(wrong) - 1:,} more like it)" if len(wrong) > 1 else ""
        message = (
            f"{document.name}:{lines[row]}: {wrong[row]} where {len(FIELDS)} are expected; a job "
            f"has {len(FIELDS)} numbers{more}"
        )
        if not rows:
            raise TraceError(message)
        raise BadRows(message, dict.fromkeys(wrong, "wrong number of fields"), document.name)
    if not rows and document.left_out:
        raise no_jobs_error(document, {})
    if not rows:
        raise TraceError(f"{document.name}: comments only; a trace holds at least one job")
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=list(FIELDS))
    return frame, lines, header


def _cells(document: Document, lines: Sequence[int]) -> Any:
    """Function that gives the text of a field, for messages."""

    def cell(row: int, column: str) -> str:
        line = document.text.split("\n")[lines[row] - 1]
        return line.split()[FIELDS.index(column)]

    return cell


def _parsed(frame: pd.DataFrame, source: Source, values: dict[str, Floats], gpus: Floats) -> Parsed:
    """Rows in the columns of the schema; submit times and run times follow."""
    jobs = pd.DataFrame(
        {
            "job_id": _whole(frame, "job", values["job"], source),
            "submit_time": values["submit"],
            "duration": values["run_time"],
            "num_gpus": gpus,
            "user": _names(values["user"]),
            "vc": _names(values["queue"]),
            "time_limit": np.where(values["requested_time"] > 0, values["requested_time"], np.nan),
        },
        frame.index,
    )
    return Parsed(jobs, source)


def _whole(frame: pd.DataFrame, column: str, values: Floats, source: Source) -> Any:
    """Column of whole numbers; -1, fractions and numbers that are too large raise."""
    bad = ~((values >= 0) & (values <= MAX_EXACT) & (values % 1 == 0))
    hint = f"a job number is whole, from 0 to {MAX_EXACT:,}"
    refuse(bad, frame[column], column, source, "no job number", hint)
    return values.astype(np.int64)


def _names(values: Floats) -> list[str | None]:
    """Numbers of users or queues as text, None where unknown."""
    return [None if np.isnan(value) else f"{value:.0f}" for value in values.tolist()]


def _name_queues(parsed: Parsed, header: Sequence[str]) -> None:
    """Replace the numbers of queues by the names that the header gives them."""
    matches = (_QUEUE.match(line) for line in header)
    names = {match[1]: match[2] for match in matches if match}
    if names:
        parsed.frame["vc"] = parsed.frame["vc"].map(lambda queue: names.get(queue, queue))


def _notes(parsed: Parsed, status: pd.Series[Any], header: Sequence[str]) -> list[str]:
    """Notes on the processors, the status of the jobs kept, and the header."""
    notes = ["processors are read as GPUs"]
    names = status[parsed.frame.index].map(_STATUS)
    by_status = [f"{name} {count:,}" for name, count in names.value_counts().items()]
    if by_status:
        notes.append(f"jobs kept by status: {', '.join(by_status)}")
    named = [line for line in header if line.partition(":")[0].strip() in _SHOWN]
    if named:
        notes.append(f"header: {shown('; '.join(named), 200)}")
    return notes


def text_of(frame: pd.DataFrame) -> tuple[str, list[str]]:
    """SWF text of a valid trace, and notes on what the format does not hold.

    Times are rounded to whole seconds, a run time to at least 1 s, a time limit up. A job keeps its
    number if all ids are whole numbers up to 2^53; otherwise jobs are numbered from 1. Users and
    queues get numbers in the order of their names. The comments of a trace that was read from SWF
    are written again.
    """
    notes = []
    submit = _rounded(frame["submit_time"])
    duration = np.maximum(_rounded(frame["duration"]), 1)
    exact = (submit == frame["submit_time"]) & (duration == frame["duration"])
    limit = np.full(len(frame), -1)
    if "time_limit" in frame:
        limits = frame["time_limit"].fillna(-1.0).to_numpy(float)
        limit = np.ceil(limits).astype(np.int64)
        exact &= limit == limits
    if not exact.all():
        jobs = quantity(int((~exact).sum()), "job")
        notes.append(f"times of {jobs} rounded to whole seconds")
    ids = frame["job_id"]
    if not (pd.api.types.is_integer_dtype(ids.dtype) and ids.between(0, MAX_EXACT).all()):
        notes.append("jobs numbered from 1, in order of submission: SWF has no names of jobs")
        ids = pd.Series(np.arange(1, len(frame) + 1))
    notes += notes_on_lost(frame, _COLUMNS, "SWF")
    users, user_numbers = _numbered(frame, "user")
    queues, queue_numbers = _numbered(frame, "vc")
    gpus = frame["num_gpus"].tolist()
    columns = {
        "job": ids.tolist(),
        "submit": submit.tolist(),
        "run_time": duration.tolist(),
        "allocated": gpus,
        "processors": gpus,
        "requested_time": limit.tolist(),
        "user": user_numbers,
        "queue": queue_numbers,
    }
    if any(name != str(number) for number, name in enumerate(users, 1)):
        notes.append("users written as numbers: SWF has no names of users")
    written_queues = _without_blanks(queues)
    changed = sum(name != written for name, written in zip(queues, written_queues, strict=True))
    if changed:
        names = quantity(changed, "queue")
        notes.append(f"names of {names} changed: SWF has no names with blanks, and _ replaces them")
    unknown = [-1] * len(frame)
    rows = zip(*(columns.get(name, unknown) for name in FIELDS), strict=True)
    comments = [f"; {line}" for line in _comments(frame, written_queues)]
    lines = comments + [" ".join(map(str, row)) for row in rows]
    return "\n".join(lines) + "\n", notes


def _rounded(seconds: pd.Series[Any]) -> Any:
    """Times in whole seconds, a half rounded up."""
    return np.floor(seconds.to_numpy(float) + 0.5).astype(np.int64)


def _numbered(frame: pd.DataFrame, column: str) -> tuple[list[str], list[int]]:
    """Names in a column, and the number of the name of each job, -1 without a name.

    Names that are whole numbers keep their number.
    """
    if column not in frame:
        return [], [-1] * len(frame)
    texts = [None if pd.isna(name) else str(name) for name in frame[column]]
    names = sorted({name for name in texts if name is not None})
    if all(re.fullmatch("0|[1-9][0-9]{0,8}", name) for name in names):
        return [], [-1 if name is None else int(name) for name in texts]
    number = {name: position for position, name in enumerate(names, 1)}
    return names, [-1 if name is None else number[name] for name in texts]


def _comments(frame: pd.DataFrame, queues: Sequence[str]) -> list[str]:
    """Comments of the header: those that the trace has, or the fields that a reader needs."""
    kept = [line for line in frame.attrs.get("header", ()) if not _COUNTED.match(line)]
    if not kept:
        name = shown(frame.attrs.get("name", "trace"))
        kept = ["Version: 2.2", f"Note: {name}; a processor is a GPU"]
    kept.append(f"MaxJobs: {len(frame)}")
    return kept + [f"Queue: {number} {name}" for number, name in enumerate(queues, 1)]


def _without_blanks(names: Sequence[str]) -> list[str]:
    """Names with _ in place of blanks; a number after them keeps them apart.

    >>> _without_blanks(["q 1", "q_1", "q_1_2"])
    ['q_1_3', 'q_1', 'q_1_2']
    """
    written = []
    taken = set(names)
    for name in names:
        text = re.sub(r"\s", "_", name)
        if text != name:
            candidates = itertools.chain([text], (f"{text}_{n}" for n in itertools.count(2)))
            text = next(candidate for candidate in candidates if candidate not in taken)
            taken.add(text)
        written.append(text)
    return written
