"""The published Philly job log (``cluster_job_log``): JSON with every attempt of every job."""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

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
    no_job_left,
)
from repro.trace.formats import FORMATS
from repro.trace.runs import NO_GPU, Attempt, Attempts, take_runs

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

    Times without an offset from UTC are local times of Los Angeles. A time in the hour that occurs
    twice in November is the first that is not before the time recorded ahead of it.

    Jeon et al., ATC 2019; schema in the ``philly-traces`` repository.
    """
    entries, lines = _entries(document)
    origin = Origin(document.name, _COLUMNS, lines.__getitem__)
    jobs = _jobs(entries, origin)
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
    parsed = Parsed(frame, origin, notes=joiner.notes(), unread=_unread(entries))
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


def _jobs(entries: dict[int, dict[str, Any]], origin: Origin) -> dict[int, _Job]:
    """Read every job by its row; what is no job raises, with all such rows."""
    jobs = {}
    faults = []
    for row, entry in entries.items():
        try:
            jobs[row] = _job(entry, row, origin)
        except BadRows as error:
            faults.append(error)
    if faults:
        raise BadRows.together(faults)
    return jobs


def _job(entry: dict[str, Any], row: int, origin: Origin) -> _Job:
    """Read one job."""
    name = entry["jobid"]
    if not (isinstance(name, str) and is_plain(name)) and type(name) is not int:
        hint = "an id is printable text or a whole number"
        raise origin.error(row, "job_id", "not an id", name, hint)
    for key in ("vc", "user"):
        value = entry.get(key)
        if value is not None and not (isinstance(value, str) and is_plain(value)):
            raise origin.error(row, key, "not a name", value, "a name is printable text, or null")
    submitted = _date(entry["submitted_time"], row, origin, "submit_time")
    submitted_s = _seconds(submitted, math.nan)
    attempts = []
    before = submitted_s
    for attempt in entry["attempts"]:
        gpus = _gpus(attempt)
        if gpus is None:
            hint = 'an attempt is {start_time, end_time, detail: [{ip, gpus: ["gpu0", …]}]}'
            raise origin.error(row, "duration", "not an attempt", attempt, hint)
        start = _seconds(_date(attempt.get("start_time"), row, origin, "duration"), before)
        before = before if math.isnan(start) else start
        end = _seconds(_date(attempt.get("end_time"), row, origin, "duration"), before)
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


def _date(value: Any, row: int, origin: Origin, column: str) -> datetime | None:
    if value is None or (isinstance(value, str) and value.strip().lower() in NO_DATE):
        return None
    try:
        date = datetime.fromisoformat(value if DATE.fullmatch(value) else "")
    except (TypeError, ValueError):
        raise origin.error(row, column, "not a date", value, DATE_LOOKS) from None
    if not DATE_YEARS[0] <= date.year <= DATE_YEARS[1]:
        raise origin.error(row, column, "a year that no trace is from", value, DATE_LOOKS)
    return date
