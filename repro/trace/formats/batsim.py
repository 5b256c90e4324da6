"""Batsim's workloads: one JSON object with jobs and the profiles that say what they do."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd

from repro.base.counts import quantity
from repro.base.errors import TraceError
from repro.files.checks import BadRows, Source, shown
from repro.files.strict_json import parse
from repro.files.table import Document, Parsed, no_jobs_error
from repro.trace.formats import FORMATS
from repro.trace.lost import notes_on_lost
from repro.trace.runs import INSTANT, NO_GPU

_KEYS = ("nb_res", "jobs", "profiles")
_JOB_KEYS = ("id", "subtime", "res", "profile")
_READ_KEYS = (*_JOB_KEYS, "walltime")
_COLUMNS = {
    "job_id": "id",
    "submit_time": "subtime",
    "duration": "profile",
    "num_gpus": "res",
    "time_limit": "walltime",
}
NO_TIME = "profile without a run time"


@FORMATS.register("batsim")
def read(document: Document) -> Parsed:
    """Read a workload of Batsim, a JSON object with jobs and profiles, times in seconds.

    Columns: nb_res, jobs, profiles.

    A job has id, subtime, res and profile, and may have a walltime. A resource is read as a GPU:
    ``num_gpus`` is ``res``. The run time is the ``delay`` of the job's profile, or ``walltime`` if
    that is less, as Batsim stops the job then; a note counts these jobs. ``time_limit`` is
    ``walltime``; -1 is none. A note and ``attrs["nb_res"]`` have ``nb_res``, the size of the
    cluster. Submit times stay as they are.

    Dropped and counted: jobs whose profile is not of type ``delay``, because their run time follows
    from a simulation of the machine; jobs without a resource; jobs of 0 s.

    Dutot et al., "Batsim: A Realistic Language-Independent Resources and Jobs Management Systems
    Simulator", JSSPP 2015.
    """
    workload = parse(document)
    absent = [key for key in _KEYS if not isinstance(workload, dict) or key not in workload]
    if absent:
        raise TraceError(
            f"{document.name}:1:{','.join(absent)}: missing key; a workload of Batsim is "
            '{"nb_res": 8, "jobs": [{"id", "subtime", "res", "profile"}], "profiles": {…}}'
        )
    jobs, profiles = workload["jobs"], workload["profiles"]
    if not isinstance(jobs, list) or not isinstance(profiles, dict):
        raise TraceError(f"{document.name}:1:jobs,profiles: not a list and an object")
    if not jobs:
        raise TraceError(f"{document.name}: no jobs; a trace holds at least one")
    rows = _rows(document, jobs, profiles)
    if not rows:
        raise no_jobs_error(document, {})
    frame = pd.DataFrame(
        {column: [jobs[row].get(key) for row in rows] for column, key in _COLUMNS.items()},
        index=pd.Index(rows),
    )
    delays = np.array([_delay(profiles[jobs[row]["profile"]]) for row in rows])
    limits = np.array([_limit(jobs[row].get("walltime")) for row in rows])
    frame["duration"] = np.fmin(delays, limits)
    frame["time_limit"] = limits
    unread = [shown(key) for key in workload if key not in _KEYS]
    unread += [f"jobs.{shown(key)}" for key in _other_keys(jobs)]
    parsed = Parsed(frame, _source(document), unread=unread)
    parsed.drop(
        {
            NO_TIME: np.isnan(delays),
            NO_GPU: np.array([jobs[row]["res"] == 0 for row in rows]),
            INSTANT: delays == 0,
        }
    )
    parsed.notes.append(f"resources are read as GPUs; nb_res is {shown(workload['nb_res'])}")
    stopped = pd.Series(limits < delays, parsed.rows)[parsed.frame.index]
    if stopped.any():
        parsed.notes.append(f"{quantity(int(stopped.sum()), 'job')} stopped at walltime")
    parsed.frame = parsed.frame.dropna(axis="columns", how="all")
    parsed.frame.attrs["nb_res"] = workload["nb_res"]
    return parsed


def text_of(frame: pd.DataFrame) -> tuple[str, list[str]]:
    """Workload of Batsim with the jobs of a valid trace, and notes on what it does not hold.

    A job is a delay of its duration on ``num_gpus`` resources. Jobs of equal duration share a
    profile. ``walltime`` is the time limit, -1 without one. Batsim stops a job at its walltime, so
    a job that ran longer than its limit gets none. ``nb_res`` is that of the workload that the
    trace was read from, at least the GPUs of the widest job.
    """
    notes = notes_on_lost(frame, _COLUMNS, "Batsim")
    durations = frame["duration"].tolist()
    limits = [math.nan] * len(frame)
    if "time_limit" in frame:
        limits = frame["time_limit"].tolist()
    late = sum(limit < duration for limit, duration in zip(limits, durations, strict=True))
    if late:
        notes.append(
            f"{quantity(late, 'job')} written without a time limit: Batsim stops a job at its "
            "limit, and the run is longer"
        )
    widest = int(frame["num_gpus"].max())
    nb_res = frame.attrs.get("nb_res")
    if type(nb_res) is not int or nb_res < widest:
        nb_res = widest
        notes.append(
            f"nb_res is {widest}, the GPUs of the widest job: a trace has no cluster; write the "
            "GPUs of yours"
        )
    columns = zip(
        frame["job_id"].tolist(),
        frame["submit_time"].tolist(),
        frame["num_gpus"].tolist(),
        durations,
        limits,
        strict=True,
    )
    jobs = []
    profiles = {}
    for job_id, submit, gpus, duration, limit in columns:
        delay = _number(duration)
        name = f"delay_{delay}"
        profiles[name] = {"type": "delay", "delay": delay}
        jobs.append(
            {
                "id": job_id,
                "subtime": _number(submit),
                "res": gpus,
                "walltime": _number(limit) if limit >= duration else -1,
                "profile": name,
            }
        )
    job_lines = ",\n".join(f"    {_json(job)}" for job in jobs)
    profile_lines = ",\n".join(
        f"    {_json(name)}: {_json(profile)}" for name, profile in profiles.items()
    )
    text = (
        f'{{\n  "nb_res": {nb_res},\n  "jobs": [\n{job_lines}\n  ],\n'
        f'  "profiles": {{\n{profile_lines}\n  }}\n}}\n'
    )
    return text, notes


def _number(seconds: float) -> int | float:
    """Time (s) without a decimal point where it is whole."""
    return int(seconds) if seconds == int(seconds) else seconds


def _json(value: Any) -> str:
    """Value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def _source(document: Document) -> Source:
    """Source of the jobs. The line of a job is not known, so errors name its row in the list."""
    return Source(document.name, _COLUMNS)


def _rows(document: Document, jobs: list[Any], profiles: dict[str, Any]) -> list[int]:
    """Rows of the jobs to read; one error lists all invalid jobs."""
    source = _source(document)
    rows = []
    faults = []
    for row, job in enumerate(jobs):
        if row in document.left_out:
            continue
        try:
            _check_job(row, job, profiles, source)
            rows.append(row)
        except BadRows as error:
            faults.append(error)
    if faults:
        raise BadRows.joined(faults)
    return rows


def _check_job(row: int, job: Any, profiles: dict[str, Any], source: Source) -> None:
    """Raise for a key or profile that is missing, and for an invalid walltime or profile."""
    absent = [key for key in _JOB_KEYS if not isinstance(job, dict) or key not in job]
    if absent:
        hint = f"a job has {', '.join(_JOB_KEYS)}"
        raise source.error(row, ",".join(absent), "missing key", job, hint)
    walltime = job.get("walltime")
    hint = "a walltime is seconds above 0, or -1 for none"
    if walltime is not None and not _is_number(walltime):
        raise source.error(row, "time_limit", "not a number", walltime, hint)
    if walltime is not None and walltime <= 0 and walltime != -1:
        raise source.error(row, "time_limit", "not positive", walltime, hint)
    name = job["profile"]
    profile = profiles.get(name) if isinstance(name, str) else None
    if not isinstance(profile, dict) or "type" not in profile:
        hint = "a profile is an object of profiles with a type"
        raise source.error(row, "duration", "no such profile", name, hint)
    delay: Any = profile.get("delay")
    if profile["type"] == "delay" and not (_is_number(delay) and delay >= 0):
        raise source.error(row, "duration", "not a delay", delay, "a delay is seconds, 0 or more")


def _is_number(value: Any) -> bool:
    """Whether a value of JSON is a finite number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def _delay(profile: dict[str, Any]) -> float:
    """Run time of a profile (s), NaN if only a simulation of the machine tells it."""
    return float(profile["delay"]) if profile["type"] == "delay" else math.nan


def _limit(walltime: Any) -> float:
    """Time limit (s), NaN for none."""
    return float(walltime) if walltime is not None and walltime > 0 else math.nan


def _other_keys(jobs: list[Any]) -> list[str]:
    """Keys of jobs that the format does not read."""
    keys = dict.fromkeys(key for job in jobs if isinstance(job, dict) for key in job)
    return [key for key in keys if key not in _READ_KEYS]
