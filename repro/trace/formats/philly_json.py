"""The published Philly job log (``cluster_job_log``): JSON with every attempt of every job."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from repro.errors import TraceError
from repro.files.checks import Origin, is_plain, shown
from repro.files.strict_json import elements
from repro.files.table import DATE, DATE_LOOKS, DATE_YEARS, Document, Parsed, elapsed
from repro.trace.formats import FORMATS

_ABSENT = (None, "", "None")
_KEYS = ("jobid", "submitted_time", "attempts")
_USED = (*_KEYS, "vc", "user")
_RUN = ("start_time", "end_time", "detail")
_ZONE = ZoneInfo("America/Los_Angeles")
_COLUMNS = {"job_id": "jobid", "submit_time": "submitted_time"} | dict.fromkeys(
    ("duration", "num_gpus"), "attempts"
)


@FORMATS.register("philly-json")
def read(document: Document) -> Parsed:
    """Read the published Philly job log, a JSON list with every attempt of every job.

    Columns: jobid, submitted_time, attempts; optional: vc, user.

    An attempt is {start_time, end_time, detail: [{ip, gpus: [...]}]}; times may be missing, null
    or the text "None". Duration is the summed run time of the attempts that have both times;
    ``num_gpus`` is that of the first attempt that names GPUs, as in the authors' notebook. Dropped
    and counted: jobs without attempts, without a finished attempt, without GPUs, without a submit
    time, or that ran for 0 s. Attempts left out for lack of a time are counted in a note. Times
    are Pacific local time, taken as they stand; an attempt that seems to end before it starts
    because the clocks went back in between is one hour longer.

    Jeon et al., ATC 2019; schema in the ``philly-traces`` repository.
    """
    entries, lines = _entries(document)
    origin = Origin(document.name, _COLUMNS, lines.__getitem__)
    jobs = [_job(entry, row, origin) for row, entry in enumerate(entries)]
    frame = pd.DataFrame(jobs, columns=["job_id", "submitted", "runs", "num_gpus", "vc", "user"])
    runs = frame.pop("runs")
    left_out = sum(len(entry["attempts"]) for entry in entries) - int(runs.map(len).sum())
    frame["duration"] = [sum(held, 0.0) for held in runs]
    parsed = Parsed(frame, origin, unread=_unread(entries))
    parsed.drop(
        {
            "never ran": np.array([not entry["attempts"] for entry in entries]),
            "no finished attempt": (runs.map(len) == 0).to_numpy(),
            "no GPU": (frame["num_gpus"] == 0).to_numpy(),
            "no submit time": frame["submitted"].isna().to_numpy(),
            "ran for 0 s": (frame["duration"] == 0).to_numpy(),
        }
    )
    if left_out:
        parsed.notes.append(f"{left_out} attempts without start or end time left out")
    parsed.frame["submit_time"] = elapsed(pd.to_datetime(parsed.frame.pop("submitted")))
    parsed.frame = parsed.frame.dropna(axis="columns", how="all")
    return parsed


def _entries(document: Document) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the jobs and the line on which each begins."""
    entries, lines = [], []
    for line, entry in elements(document, "job"):
        absent = [key for key in _KEYS if not isinstance(entry, dict) or key not in entry]
        if absent or not isinstance(entry["attempts"], list):
            raise TraceError(
                f"{document.name}:{line}:{','.join(absent) or 'attempts'}: missing key; "
                f"a job has {', '.join(_KEYS)} (a list)"
            )
        entries.append(entry)
        lines.append(line)
    if not entries:
        raise TraceError(f"{document.name}: no jobs; a trace holds at least one")
    return entries, lines


def _unread(entries: list[dict[str, Any]]) -> list[str]:
    """Return the keys, of jobs and below, that nothing is made from."""
    attempts = [attempt for entry in entries for attempt in entry["attempts"]]
    parts = [part for attempt in attempts for part in attempt.get("detail") or []]
    keys = {key: key in _USED for entry in entries for key in entry}
    keys |= {f"attempts.{key}": key in _RUN for attempt in attempts for key in attempt}
    keys |= {f"attempts.detail.{key}": key == "gpus" for part in parts for key in part}
    return [shown(key) for key, used in keys.items() if not used]


def _job(entry: dict[str, Any], row: int, origin: Origin) -> tuple[Any, ...]:
    """Return id, submit date, run times of finished attempts, GPUs, virtual cluster, user."""
    name = entry["jobid"]
    if not (isinstance(name, str) and is_plain(name)) and type(name) is not int:
        hint = "an id is printable text or a whole number"
        raise origin.error(row, "job_id", "not an id", name, hint)
    for key in ("vc", "user"):
        value = entry.get(key)
        if value is not None and not (isinstance(value, str) and is_plain(value)):
            raise origin.error(row, key, "not a name", value, "a name is printable text, or null")
    runs, gpus = [], 0
    for attempt in entry["attempts"]:
        held = _gpus(attempt)
        if held is None:
            hint = 'an attempt is {start_time, end_time, detail: [{ip, gpus: ["gpu0", …]}]}'
            raise origin.error(row, "duration", "not an attempt", attempt, hint)
        gpus = gpus or held
        times = attempt.get("start_time"), attempt.get("end_time")
        start, end = (_date(time, row, origin, "duration") for time in times)
        if start is None or end is None:
            continue
        run = (end - start).total_seconds()
        # summer time may have ended between two Pacific local times
        before, after = start.replace(tzinfo=_ZONE, fold=0), end.replace(tzinfo=_ZONE, fold=1)
        if run < 0 and before.utcoffset() != after.utcoffset():
            run += 3600.0
        if run < 0:
            hint = f"job {shown(name)}: an attempt ends at or after its start"
            raise origin.error(row, "duration", "negative run time", f"{run:g} s", hint)
        runs.append(run)
    submitted = _date(entry["submitted_time"], row, origin, "submit_time")
    return name, submitted, runs, gpus, entry.get("vc"), entry.get("user")


def _gpus(attempt: Any) -> int | None:
    """Return how many GPUs an attempt names, None if it is no attempt."""
    detail = attempt.get("detail") if isinstance(attempt, dict) else "none"
    if not isinstance(detail, list | None):
        return None
    held = 0
    for part in detail or []:
        named = part.get("gpus") if isinstance(part, dict) else None
        if not isinstance(named, list) or not all(isinstance(gpu, str) for gpu in named):
            return None
        held += len(named)
    return held


def _date(value: Any, row: int, origin: Origin, column: str) -> datetime | None:
    if value in _ABSENT:
        return None
    try:
        date = datetime.fromisoformat(value if DATE.fullmatch(value) else "")
    except (TypeError, ValueError):
        raise origin.error(row, column, "not a date", value, DATE_LOOKS) from None
    if not DATE_YEARS[0] <= date.year <= DATE_YEARS[1]:
        raise origin.error(row, column, "a year that no trace is from", value, DATE_LOOKS)
    return date
