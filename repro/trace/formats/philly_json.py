"""The published Philly job log (``cluster_job_log``): JSON with every attempt of every job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from repro.errors import TraceError
from repro.trace.checks import Origin
from repro.trace.formats import FORMATS, Parsed
from repro.trace.table import Document, elapsed

_ABSENT = (None, "", "None")
_KEYS = ("jobid", "submitted_time", "attempts")
_ZONE = ZoneInfo("America/Los_Angeles")
_COLUMNS = {
    "job_id": "jobid",
    "submit_time": "submitted_time",
    "duration": "attempts",
    "num_gpus": "attempts",
}


@FORMATS.register("philly-json")
def read(document: Document) -> Parsed:
    """Read a list of {status, vc, jobid, attempts, submitted_time, user}.

    An attempt is {start_time, end_time, detail: [{ip, gpus: [...]}]}; times may be missing, null
    or the text "None". Duration is the summed run time of the attempts that have both times;
    ``num_gpus`` is that of the first attempt that names GPUs, as in the authors' notebook. Dropped
    and counted: jobs without attempts, without a finished attempt, without GPUs, without a submit
    time, or that ran for 0 s. Attempts left out for lack of a time are counted in a note. Times
    are Pacific local time, taken as they stand; an attempt that seems to end before it starts
    because the clocks went back in between is one hour longer.

    Parameters
    ----------
    document : Document
        The file.

    Returns
    -------
    Parsed
        Jobs that ran on GPUs; submit times from the earliest of them.

    Raises
    ------
    TraceError
        If the file is no such log, or an attempt ends before it starts.

    References
    ----------
    Jeon et al., ATC 2019; schema in the ``philly-traces`` repository.

    Examples
    --------
    >>> attempt = {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23"}
    >>> attempt["detail"] = [{"ip": "m47", "gpus": ["gpu0", "gpu1"]}]
    >>> job = {"jobid": "a", "submitted_time": "2017-10-07 01:11:39", "attempts": [attempt]}
    >>> read(Document("log", json.dumps([job]).encode())).frame[["duration", "num_gpus"]]
       duration  num_gpus
    0      74.0         2
    """
    entries, lines = _entries(document)
    origin = Origin(document.name, _COLUMNS, lines.__getitem__)
    jobs = [_job(entry, row, origin) for row, entry in enumerate(entries)]
    frame = pd.DataFrame(jobs, columns=["job_id", "submitted", "runs", "num_gpus", "vc", "user"])
    left_out = sum(
        len(entry["attempts"]) - len(job[2]) for entry, job in zip(entries, jobs, strict=True)
    )
    runs = frame.pop("runs")
    frame["duration"] = [sum(held, 0.0) for held in runs]
    parsed = Parsed(frame, origin)
    reasons = {
        "never ran": np.array([not entry["attempts"] for entry in entries]),
        "no finished attempt": (runs.map(len) == 0).to_numpy(),
        "no GPU": (frame["num_gpus"] == 0).to_numpy(),
        "no submit time": frame["submitted"].isna().to_numpy(),
        "ran for 0 s": (frame["duration"] == 0).to_numpy(),
    }
    for reason, rows in reasons.items():
        parsed.drop(rows[parsed.frame.index], reason)
    if left_out:
        parsed.notes.append(f"{left_out} attempts without start or end time left out")
    parsed.frame["submit_time"] = elapsed(pd.to_datetime(parsed.frame.pop("submitted")))
    parsed.frame = parsed.frame.dropna(axis="columns", how="all")
    return parsed


def _entries(document: Document) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the jobs and the line on which each begins."""
    text = document.text.lstrip()
    line = 1 + document.text[: len(document.text) - len(text)].count("\n")
    if text[:1] != "[":
        raise TraceError(f"{document.name}:{line}: not a JSON list; expected [{{job}}, …]")
    entries, lines, last = [], [], 0
    try:
        for start, entry in _elements(text):
            line += text.count("\n", last, start)
            last = start
            absent = [key for key in _KEYS if not isinstance(entry, dict) or key not in entry]
            if absent or not isinstance(entry["attempts"], list):
                raise TraceError(
                    f"{document.name}:{line}:{','.join(absent) or 'attempts'}: missing key; "
                    f"a job has {', '.join(_KEYS)} (a list)"
                )
            entries.append(entry)
            lines.append(line)
    except json.JSONDecodeError as error:
        spot = line - text.count("\n", 0, last) + text.count("\n", 0, error.pos)
        raise TraceError(
            f"{document.name}:{spot}: broken JSON ({error.msg}); fetch the file again"
        ) from None
    if not entries:
        raise TraceError(f"{document.name}: no jobs; a trace holds at least one")
    return entries, lines


def _elements(text: str) -> Iterator[tuple[int, Any]]:
    """Yield (offset, value) of each element of the JSON list ``text``."""
    decoder, spaces = json.JSONDecoder(), " \t\r\n"
    position = 1
    while True:
        while position < len(text) and text[position] in spaces:
            position += 1
        if text[position : position + 1] == "]":
            return
        value, end = decoder.raw_decode(text, position)
        yield position, value
        position = end
        while position < len(text) and text[position] in spaces:
            position += 1
        if text[position : position + 1] == ",":
            position += 1
        elif text[position : position + 1] != "]":
            raise json.JSONDecodeError("Expecting ',' or ']'", text, position)


def _job(entry: dict[str, Any], row: int, origin: Origin) -> tuple[Any, ...]:
    """Return id, submit date, run times of finished attempts, GPUs, virtual cluster, user."""
    runs, gpus = [], 0
    for attempt in entry["attempts"]:
        try:
            held = sum(len(part["gpus"]) for part in attempt.get("detail") or [])
            times = attempt.get("start_time"), attempt.get("end_time")
        except (AttributeError, KeyError, TypeError):
            rule = "not an attempt"
            hint = "an attempt is {start_time, end_time, detail: [{ip, gpus: [...]}]}"
            raise origin.error(row, "duration", rule, attempt, hint) from None
        gpus = gpus or held
        start, end = (_date(time, row, origin, "duration") for time in times)
        if start is None or end is None:
            continue
        run = (end - start).total_seconds()
        if run < 0 and _clocks_went_back(start, end):
            run += 3600.0
        if run < 0:
            hint = f"job {entry['jobid']}: an attempt ends at or after its start"
            raise origin.error(row, "duration", "negative run time", f"{run:g} s", hint)
        runs.append(run)
    submitted = _date(entry["submitted_time"], row, origin, "submit_time")
    return entry["jobid"], submitted, runs, gpus, entry.get("vc"), entry.get("user")


def _clocks_went_back(start: datetime, end: datetime) -> bool:
    """Tell whether summer time may have ended between two Pacific local times."""
    before = start.replace(tzinfo=_ZONE, fold=0).utcoffset()
    return before != end.replace(tzinfo=_ZONE, fold=1).utcoffset()


def _date(value: Any, row: int, origin: Origin, column: str) -> datetime | None:
    if value in _ABSENT:
        return None
    try:
        return datetime.fromisoformat(value).replace(tzinfo=None)
    except (TypeError, ValueError):
        hint = "a date looks like 2017-10-09 07:01:55"
        raise origin.error(row, column, "not a date", value, hint) from None
