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
from repro.files.checks import BadRows, Source, is_plain, shown
from repro.files.strict_json import elements
from repro.files.table import (
    DATE,
    DATE_ADVICE,
    DATE_YEARS,
    NO_DATE,
    WRONG_YEAR,
    Document,
    Parsed,
    date_advice,
    no_jobs_error,
)
from repro.trace.formats import FORMATS
from repro.trace.runs import NO_GPU, Attempt, AttemptJoiner, is_unset, note_unset, set_run_times

_REQUIRED_KEYS = ("jobid", "submitted_time", "attempts")
_JOB_KEYS = (*_REQUIRED_KEYS, "vc", "user")
_ATTEMPT_KEYS = ("start_time", "end_time", "detail")
_DETAIL_KEYS = ("ip", "gpus")
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
        of_attempts = [time for attempt in self.attempts for time in (attempt.start, attempt.end)]
        return [self.submitted, *of_attempts]

    def without(self, unset_times: Collection[float]) -> _Job:
        """Job with NaN in place of the times in ``unset_times``."""

        def or_nan(time: float) -> float:
            return math.nan if time in unset_times else time

        attempts = [
            attempt._replace(start=or_nan(attempt.start), end=or_nan(attempt.end))
            for attempt in self.attempts
        ]
        return self._replace(submitted=or_nan(self.submitted), attempts=attempts)


class _Dates:
    """Reads the dates of a log, and counts dates with and without an offset from UTC."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.by_offset: Counter[bool] = Counter()

    def read(self, value: Any, row: int, column: str) -> datetime | None:
        """Read a date; None if it is missing."""
        text = value.strip() if isinstance(value, str) else value
        if text is None or (isinstance(text, str) and text.lower() in NO_DATE):
            return None
        try:
            date = datetime.fromisoformat(text if DATE.fullmatch(text) else "")
        except (TypeError, ValueError):
            hint = date_advice(text)
            raise self.source.error(row, column, "not a date", value, hint) from None
        if not DATE_YEARS[0] <= date.year <= DATE_YEARS[1]:
            raise self.source.error(row, column, WRONG_YEAR, value, DATE_ADVICE)
        self.by_offset[date.tzinfo is not None] += 1
        return date

    def notes(self) -> list[str]:
        """Note a log that has dates with an offset and dates without."""
        without = self.by_offset[False]
        total = self.by_offset.total()
        if without in (0, total):
            return []
        return [
            f"{without:,} of {total:,} dates without an offset from UTC, read as local times of "
            "Los Angeles"
        ]


@FORMATS.register("philly-json")
def read(document: Document) -> Parsed:
    """Read the published Philly job log, a JSON list with every attempt of every job.

    Columns: jobid, submitted_time, attempts; optional: vc, user.

    An attempt is {start_time, end_time, detail: [{ip, gpus: [...]}]}; times may be missing, null
    or the text "None". A job demands the number of GPUs it held longest. Its duration is its
    GPU-seconds divided by that number, which conserves the work of all attempts. Overlapping
    attempts are merged, so that the time of a GPU counts once. Attempts that lack a time or GPUs,
    or end before they start, are left out. Notes count the attempts left out, the jobs with
    overlapping attempts or different numbers of GPUs, and the jobs that start before they are
    submitted.

    Dropped and counted: jobs that have no GPUs or submit time, never ran, still run (the last
    attempt has no end), end before they start, or ran for 0 s.

    Times without an offset from UTC are read as local times of Los Angeles. A note counts them if
    other times have an offset. 1970-01-01 is a missing date where all other dates are decades
    later. In November the local hour from one to two occurs twice. A time in it means the first of
    the two instants, unless only the second is at or after the preceding time of the job.

    Jeon et al., ATC 2019; schema in the ``philly-traces`` repository.
    """
    entries, lines = _read_entries(document)
    source = Source(document.name, _COLUMNS, lines.__getitem__)
    dates = _Dates(source)
    jobs = _jobs(entries, source, dates)
    notes = dates.notes()
    jobs = _without_epoch(jobs, notes)
    joiner = AttemptJoiner()
    joined_jobs = [joiner.join(job.attempts) for job in jobs.values()]
    rows = pd.Index(jobs)
    frame = pd.DataFrame(
        {name: [getattr(job, name) for job in jobs.values()] for name in ("job_id", "vc", "user")},
        index=rows,
    )
    frame["num_gpus"] = [job.gpus for job in joined_jobs]
    times = pd.DataFrame(
        {
            "submitted": [job.submitted for job in jobs.values()],
            "started": [job.start for job in joined_jobs],
            "run": [job.run_s for job in joined_jobs],
            "joined": [len(job.attempts) > 1 for job in jobs.values()],
        },
        index=rows,
    )
    notes += joiner.notes()
    parsed = Parsed(frame, source, notes=notes, unread=_unread(entries))
    no_gpu = (frame["num_gpus"] == 0) & times["started"].notna()
    set_run_times(parsed, times, {NO_GPU: no_gpu.to_numpy()})
    parsed.frame["submit_time"] -= parsed.frame["submit_time"].min()
    parsed.frame = parsed.frame.dropna(axis="columns", how="all")
    return parsed


def _read_entries(document: Document) -> tuple[dict[int, dict[str, Any]], list[int]]:
    """Read the jobs by row, and the line on which each row begins."""
    entries = {}
    lines = []
    faults = []
    for row, (line, entry) in enumerate(elements(document, "job")):
        lines.append(line)
        if row in document.left_out:
            continue
        absent = [key for key in _REQUIRED_KEYS if not isinstance(entry, dict) or key not in entry]
        if absent or not isinstance(entry["attempts"], list):
            keys = ",".join(absent) or "attempts"
            message = (
                f"{document.name}:{line}:{keys}: missing key; "
                f"a job has {', '.join(_REQUIRED_KEYS)} (a list)"
            )
            faults.append(BadRows(message, {row: f"{keys}: missing key"}, document.name))
        else:
            entries[row] = entry
    if faults:
        raise BadRows.joined(faults)
    if not entries and document.left_out:
        raise no_jobs_error(document, {})
    if not entries:
        raise TraceError(f"{document.name}: no jobs; a trace holds at least one")
    return entries, lines


def _unread(entries: dict[int, dict[str, Any]]) -> list[str]:
    """Keys of jobs and attempts that the format does not read."""
    jobs: Sequence[dict[str, Any]] = list(entries.values())
    attempts = [attempt for job in jobs for attempt in job["attempts"]]
    details = [detail for attempt in attempts for detail in attempt.get("detail") or []]
    is_read = {key: key in _JOB_KEYS for job in jobs for key in job}
    is_read |= {f"attempts.{key}": key in _ATTEMPT_KEYS for attempt in attempts for key in attempt}
    is_read |= {
        f"attempts.detail.{key}": key in _DETAIL_KEYS for detail in details for key in detail
    }
    return [shown(key) for key in is_read if not is_read[key]]


def _jobs(entries: dict[int, dict[str, Any]], source: Source, dates: _Dates) -> dict[int, _Job]:
    """Read every job, by its row; one error lists all invalid rows."""
    jobs = {}
    faults = []
    for row, entry in entries.items():
        try:
            jobs[row] = _job(entry, row, source, dates)
        except BadRows as error:
            faults.append(error)
    if faults:
        raise BadRows.joined(faults)
    return jobs


def _without_epoch(jobs: dict[int, _Job], notes: list[str]) -> dict[int, _Job]:
    """Replace times of 1970-01-01 that mean a missing time by NaN, and note their number."""
    seconds = [time for job in jobs.values() for time in job.times()]
    unset = is_unset(np.array(seconds, np.float64))
    note_unset(int(unset.sum()), notes)
    if not unset.any():
        return jobs
    unset_times = {time for time, flag in zip(seconds, unset, strict=True) if flag}
    return {row: job.without(unset_times) for row, job in jobs.items()}


def _job(entry: dict[str, Any], row: int, source: Source, dates: _Dates) -> _Job:
    """Read one job; an invalid entry raises."""
    name = entry["jobid"]
    if not (isinstance(name, str) and is_plain(name)) and type(name) is not int:
        hint = "an id is printable text or a whole number"
        raise source.error(row, "job_id", "not an id", name, hint)
    for key in ("vc", "user"):
        value = entry.get(key)
        if value is not None and not (isinstance(value, str) and is_plain(value)):
            raise source.error(row, key, "not a name", value, "a name is printable text, or null")
    submitted = dates.read(entry["submitted_time"], row, "submit_time")
    submitted_s = _seconds(submitted, math.nan)
    attempts = []
    preceding_s = submitted_s
    for attempt in entry["attempts"]:
        gpus = _gpus(attempt)
        if gpus is None:
            hint = 'an attempt is {start_time, end_time, detail: [{ip, gpus: ["gpu0", …]}]}'
            raise source.error(row, "duration", "not an attempt", attempt, hint)
        start = _seconds(dates.read(attempt.get("start_time"), row, "duration"), preceding_s)
        preceding_s = preceding_s if math.isnan(start) else start
        end = _seconds(dates.read(attempt.get("end_time"), row, "duration"), preceding_s)
        preceding_s = preceding_s if math.isnan(end) else end
        attempts.append(Attempt(start, end, gpus))
    return _Job(name, entry.get("vc"), entry.get("user"), submitted_s, attempts)


def _seconds(date: datetime | None, preceding_s: float) -> float:
    """Seconds since 1970.

    A local time in the repeated hour of November means two instants. The second is taken if it is
    at or after ``preceding_s`` and the first is not. Otherwise the first is taken.
    """
    if date is None:
        return math.nan
    if date.tzinfo is not None:
        return date.timestamp()
    earlier, later = (date.replace(tzinfo=_ZONE, fold=fold).timestamp() for fold in (0, 1))
    return later if earlier < preceding_s <= later else earlier


def _gpus(attempt: Any) -> set[tuple[Any, str]] | None:
    """GPUs that an attempt held, as (machine, name); None if it is not an attempt."""
    if not isinstance(attempt, dict):
        return None
    detail = attempt.get("detail")
    if not isinstance(detail, list | None):
        return None
    held_gpus: set[tuple[Any, str]] = set()
    for index, item in enumerate(detail or []):
        names = item.get("gpus") if isinstance(item, dict) else None
        if not isinstance(names, list) or not all(isinstance(gpu, str) for gpu in names):
            return None
        address = item.get("ip")
        machine = address if isinstance(address, str) else index
        held_gpus.update((machine, gpu) for gpu in names)
    return held_gpus
