"""Batsim's workloads: one JSON object with jobs and the profiles that say what they do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from repro.base.errors import TraceError
from repro.files.checks import BadRows, Origin, shown
from repro.files.strict_json import parse
from repro.files.table import Document, Parsed, no_jobs_error
from repro.trace.formats import FORMATS
from repro.trace.runs import INSTANT, NO_GPU, quantity

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
    ``walltime``; -1 is none. A note has ``nb_res``, the size of the cluster. Submit times stay as
    they are.

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
    parsed = Parsed(frame, _origin(document), unread=unread)
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
    return parsed


def _origin(document: Document) -> Origin:
    """Origin of the jobs. A job has no line: the error names its row in the list."""
    return Origin(document.name, _COLUMNS)


def _rows(document: Document, jobs: list[Any], profiles: dict[str, Any]) -> list[int]:
    """Rows of the jobs to read; one error lists all invalid jobs."""
    origin = _origin(document)
    rows = []
    faults = []
    for row, job in enumerate(jobs):
        if row in document.left_out:
            continue
        try:
            _check_job(row, job, profiles, origin)
            rows.append(row)
        except BadRows as error:
            faults.append(error)
    if faults:
        raise BadRows.joined(faults)
    return rows


def _check_job(row: int, job: Any, profiles: dict[str, Any], origin: Origin) -> None:
    """Raise for a job without its keys, with a profile that is missing or invalid."""
    absent = [key for key in _JOB_KEYS if not isinstance(job, dict) or key not in job]
    if absent:
        hint = f"a job has {', '.join(_JOB_KEYS)}"
        raise origin.error(row, ",".join(absent), "missing key", job, hint)
    walltime = job.get("walltime")
    if walltime is not None and not _is_number(walltime):
        hint = "a walltime is seconds, or -1 for none"
        raise origin.error(row, "time_limit", "not a number", walltime, hint)
    name = job["profile"]
    profile = profiles.get(name) if isinstance(name, str) else None
    if not isinstance(profile, dict) or "type" not in profile:
        hint = "a profile is an object of profiles with a type"
        raise origin.error(row, "duration", "no such profile", name, hint)
    delay: Any = profile.get("delay")
    if profile["type"] == "delay" and not (_is_number(delay) and delay >= 0):
        raise origin.error(row, "duration", "not a delay", delay, "a delay is seconds, 0 or more")


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
