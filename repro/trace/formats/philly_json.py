"""The published Philly job log (``cluster_job_log``): JSON with every attempt of every job."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from repro.base.errors import TraceError
from repro.files.checks import BadRows, Origin, is_plain, shown
from repro.files.strict_json import elements
from repro.files.table import (
    DATE,
    DATE_LOOKS,
    DATE_YEARS,
    NO_DATE,
    Document,
    Parsed,
    date_looks,
    no_job_left,
)
from repro.trace.formats import FORMATS
from repro.trace.runs import NO_GPU, Attempt, Attempts, is_unset, note_unset, take_runs

_KEYS = ("jobid", "submitted_time", "attempts")
_USED = (*_KEYS, "vc", "user")
_RUN = ("start_time", "end_time", "detail")
_ZONE = ZoneInfo("America/Los_Angeles")
_COLUMNS = {"job_id": "jobid", "submit_time": "submitted_time"} | dict.fromkeys(
    ("duration", "num_gpus"), "attempts"
)


class _Job(NamedTuple):
    """One job of the log; times in seconds since 1970, NaN where missing."""

    job_id: Any
    vc: str | None
    user: str | None
    submitted: float
    attempts: list[Attempt]

    def times(self) -> list[float]:
        """All times of the job."""
        ends = (time for attempt in self.attempts for time in (attempt.start, attempt.end))
        return [self.submitted, *ends]

    def without(self, gone: Collection[float]) -> _Job:
        """Return the job with NaN in place of some times."""

        def kept(time: float) -> float:
            return math.nan if time in gone else time

        attempts = [
            attempt._replace(start=kept(attempt.start), end=kept(attempt.end))
            for attempt in self.attempts
        ]
        return self._replace(submitted=kept(self.submitted), attempts=attempts)


class _Dates:
    """Reads the dates of a log, and counts those with and without an offset from UTC."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.by_offset: Counter[bool] = Counter()

    def read(self, value: Any, row: int, column: str) -> datetime | None:
        """Read a date; None if it is missing."""
        text = value.strip() if isinstance(value, str) else value
        if text is None or (isinstance(text, str) and text.lower() in NO_DATE):
            return None
        try:
            date = datetime.fromisoformat(text if DATE.fullmatch(text) else "")
        except (TypeError, ValueError):
            hint = date_looks(text)
            raise self.origin.error(row, column, "not a date", value, hint) from None
        if not DATE_YEARS[0] <= date.year <= DATE_YEARS[1]:
            rule = "a year that no trace is from"
            raise self.origin.error(row, column, rule, value, DATE_LOOKS)
        self.by_offset[date.tzinfo is not None] += 1
        return date

    def notes(self) -> list[str]:
        """Note a log of both sorts."""
        bare = self.by_offset[False]
        every = self.by_offset.total()
        if bare in (0, every):
            return []
        return [
            f"{bare:,} of {every:,} dates without an offset from UTC: these are local times of Los "
            "Angeles"
        ]


@FORMATS.register("philly-json")
def read(document: Document) -> Parsed:
    """Read the published Philly job log, a JSON list with every attempt of every job.

    Columns: jobid, submitted_time, attempts; optional: vc, user.

    An attempt is {start_time, end_time, detail: [{ip, gpus: [...]}]}; times may be missing, null
    or the text "None". A job asks for the number of GPUs it held longest and runs for its
    GPU-seconds over that number, which conserves the work of all attempts. Overlapping attempts are
    merged, so that the time of a GPU counts once. Attempts without both times or without GPUs are
    left out. Notes count all of these, and jobs that start before they are submitted. Dropped and
    counted: jobs without GPUs, without a submit time, never run, still running (the last attempt
    has no end), that end before they start, or that ran for 0 s.

    Times without an offset from UTC are local times of Los Angeles; a note counts them where others
    have one. 1970-01-01 is no date where all others are decades later. A time in the hour that
    occurs twice in November is the first that is not before the time recorded ahead of it.

    Jeon et al., ATC 2019; schema in the ``philly-traces`` repository.
    """
    entries, lines = _entries(document)
    origin = Origin(document.name, _COLUMNS, lines.__getitem__)
    dates = _Dates(origin)
    jobs = _jobs(entries, origin, dates)
    notes = dates.notes()
    jobs = _without_epoch(jobs, notes)
    joiner = Attempts()
    rigid = [joiner.join(job.attempts) for job in jobs.values()]
    rows = pd.Index(jobs)
    frame = pd.DataFrame(
        {name: [getattr(job, name) for job in jobs.values()] for name in ("job_id", "vc", "user")},
        index=rows,
    )
    frame["num_gpus"] = [job.gpus for job in rigid]
    times = pd.DataFrame(
        {
            "submitted": [job.submitted for job in jobs.values()],
            "started": [job.start for job in rigid],
            "run": [job.run_s for job in rigid],
        },
        index=rows,
    )
    notes += joiner.notes()
    parsed = Parsed(frame, origin, notes=notes, unread=_unread(entries))
    bare = (frame["num_gpus"] == 0) & times["started"].notna()
    take_runs(parsed, times, {NO_GPU: bare.to_numpy()})
    parsed.frame["submit_time"] -= parsed.frame["submit_time"].min()
    parsed.frame = parsed.frame.dropna(axis="columns", how="all")
    return parsed


def _entries(document: Document) -> tuple[dict[int, dict[str, Any]], list[int]]:
    """Read the jobs by row, and the line on which each row begins."""
    entries = {}
    lines = []
    faults = []
    for row, (line, entry) in enumerate(elements(document, "job")):
        lines.append(line)
        if row in document.left_out:
            continue
        absent = [key for key in _KEYS if not isinstance(entry, dict) or key not in entry]
        if absent or not isinstance(entry["attempts"], list):
            keys = ",".join(absent) or "attempts"
            message = (
                f"{document.name}:{line}:{keys}: missing key; a job has {', '.join(_KEYS)} (a list)"
            )
            faults.append(BadRows(message, {row: f"{keys}: missing key"}, document.name))
        else:
            entries[row] = entry
    if faults:
        raise BadRows.together(faults)
    if not entries and document.left_out:
        raise no_job_left(document, {})
    if not entries:
        raise TraceError(f"{document.name}: no jobs; a trace holds at least one")
    return entries, lines


def _unread(entries: dict[int, dict[str, Any]]) -> list[str]:
    """Return the keys, of jobs and below, that nothing is made from."""
    jobs: Sequence[dict[str, Any]] = list(entries.values())
    attempts = [attempt for job in jobs for attempt in job["attempts"]]
    parts = [part for attempt in attempts for part in attempt.get("detail") or []]
    keys = {key: key in _USED for job in jobs for key in job}
    keys |= {f"attempts.{key}": key in _RUN for attempt in attempts for key in attempt}
    keys |= {f"attempts.detail.{key}": key in ("ip", "gpus") for part in parts for key in part}
    return [shown(key) for key, used in keys.items() if not used]


def _jobs(entries: dict[int, dict[str, Any]], origin: Origin, dates: _Dates) -> dict[int, _Job]:
    """Read every job by its row; what is no job raises, with all such rows."""
    jobs = {}
    faults = []
    for row, entry in entries.items():
        try:
            jobs[row] = _job(entry, row, origin, dates)
        except BadRows as error:
            faults.append(error)
    if faults:
        raise BadRows.together(faults)
    return jobs


def _without_epoch(jobs: dict[int, _Job], notes: list[str]) -> dict[int, _Job]:
    """Take out times that stand for none, and note their number."""
    seconds = [time for job in jobs.values() for time in job.times()]
    unset = is_unset(np.array(seconds, np.float64))
    note_unset(int(unset.sum()), notes)
    if not unset.any():
        return jobs
    gone = {time for time, is_gone in zip(seconds, unset, strict=True) if is_gone}
    return {row: job.without(gone) for row, job in jobs.items()}


def _job(entry: dict[str, Any], row: int, origin: Origin, dates: _Dates) -> _Job:
    """Read one job."""
    name = entry["jobid"]
    if not (isinstance(name, str) and is_plain(name)) and type(name) is not int:
        hint = "an id is printable text or a whole number"
        raise origin.error(row, "job_id", "not an id", name, hint)
    for key in ("vc", "user"):
        value = entry.get(key)
        if value is not None and not (isinstance(value, str) and is_plain(value)):
            raise origin.error(row, key, "not a name", value, "a name is printable text, or null")
    submitted = dates.read(entry["submitted_time"], row, "submit_time")
    submitted_s = _seconds(submitted, math.nan)
    attempts = []
    before = submitted_s
    for attempt in entry["attempts"]:
        gpus = _gpus(attempt)
        if gpus is None:
            hint = 'an attempt is {start_time, end_time, detail: [{ip, gpus: ["gpu0", …]}]}'
            raise origin.error(row, "duration", "not an attempt", attempt, hint)
        start = _seconds(dates.read(attempt.get("start_time"), row, "duration"), before)
        before = before if math.isnan(start) else start
        end = _seconds(dates.read(attempt.get("end_time"), row, "duration"), before)
        before = before if math.isnan(end) else end
        attempts.append(Attempt(start, end, gpus))
    return _Job(name, entry.get("vc"), entry.get("user"), submitted_s, attempts)


def _seconds(date: datetime | None, before: float) -> float:
    """Turn a date into seconds since 1970, of two possible instants the first not ``before``."""
    if date is None:
        return math.nan
    if date.tzinfo is not None:
        return date.timestamp()
    first, second = (date.replace(tzinfo=_ZONE, fold=fold).timestamp() for fold in (0, 1))
    return second if first < before <= second else first


def _gpus(attempt: Any) -> set[tuple[Any, str]] | None:
    """Name the GPUs that an attempt held, by machine; None if it is no attempt."""
    detail = attempt.get("detail") if isinstance(attempt, dict) else "none"
    if not isinstance(detail, list | None):
        return None
    held: set[tuple[Any, str]] = set()
    for place, part in enumerate(detail or []):
        named = part.get("gpus") if isinstance(part, dict) else None
        if not isinstance(named, list) or not all(isinstance(gpu, str) for gpu in named):
            return None
        machine = part.get("ip")
        held.update((machine if isinstance(machine, str) else place, gpu) for gpu in named)
    return held
