"""Slurm's accounting records, as ``sacct -P`` prints them."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from repro.base.counts import quantity
from repro.base.errors import ParamError, TraceError
from repro.base.typing import Flags, Floats
from repro.base.units import DAY_S, HOUR_S
from repro.files.checks import shown
from repro.files.table import Document, Parsed, Table, as_integers, header_of
from repro.trace.formats import FORMATS
from repro.trace.runs import (
    ATTEMPTS,
    NO_GPU,
    ROUNDING_S,
    set_run_times,
    without_epoch,
)

COMMAND = "sacct -P -o JobID,Submit,Start,End,ElapsedRaw,State,AllocTRES,User,Partition,Timelimit"
#: Columns of which one at least must be there, the preferred column first.
_CHOICES = (
    ("JobID", "JobIDRaw"),
    ("Submit",),
    ("Start",),
    ("State",),
    ("AllocTRES", "ReqTRES"),
    ("ElapsedRaw", "Elapsed", "End"),
)
_DATES = {"submitted": "Submit", "started": "Start", "ended": "End"}
_VC_COLUMNS = ("Partition", "Account")
_TEXT = ("JobID", "JobIDRaw", "State", "AllocTRES", "ReqTRES", "Elapsed", "Timelimit", "User")
_SPAN = re.compile(r"(?:(?:([0-9]+)-)?([0-9]+):)?([0-9]+):([0-9]+(?:\.[0-9]+)?)")
_DAYS_AND_HOURS = re.compile(r"([0-9]+)-([0-9]+)")
_SPAN_ADVICE = "a time is [days-]hours:minutes:seconds"
_NO_LIMIT = ("", "UNLIMITED", "PARTITION_LIMIT", "INVALID")
_GPUS = re.compile(r"gres/gpu(?::([^=,]+))?=([^,]*)")
_CPUS = re.compile(r"(?:^|,)cpu=([^,]*)")
_COMPONENT = re.compile(r"[0-9]+\+[0-9]+")
_STEP = "job step"


@FORMATS.register("slurm")
def read(document: Document, attempts: str = "refuse") -> Parsed:
    """Read the accounting records of Slurm, as ``sacct -P`` prints them.

    Columns: JobID, Submit, Start, State, AllocTRES; optional: End, ElapsedRaw, Elapsed, JobIDRaw,
    ReqTRES, User, Partition, Account, Timelimit. One of End, ElapsedRaw and Elapsed is needed.
    JobIDRaw stands in for JobID, ReqTRES for AllocTRES. The columns may have any order. The
    delimiter is the bar of ``sacct -P``, or a comma in a file saved as CSV, with quotes around
    AllocTRES.

    The number of GPUs is ``gres/gpu=N`` of AllocTRES, or the sum of the ``gres/gpu:TYPE=N`` if the
    record has no total. Where AllocTRES is empty, ReqTRES counts. ``gpu_type`` is TYPE if a job
    holds one type. ``num_cpus`` is ``cpu=N``, ``vc`` is the partition (or the account, in a file
    without partitions), ``time_limit`` is Timelimit in seconds.

    The run time is ElapsedRaw or Elapsed, else End - Start. Dates are local times: where clocks
    change, End - Start is off by an hour. A note counts the jobs whose times differ by more than a
    second. Time in suspension is no part of Elapsed. Unknown, None and an empty cell are missing
    dates. Submit times count from the earliest job kept.

    Kept: every job that ran and ended, also FAILED, TIMEOUT, CANCELLED, PREEMPTED, NODE_FAIL and
    OUT_OF_MEMORY. A note has the number of jobs by state. Dropped and counted: job steps
    (1234.batch), jobs that have no GPU or submit time, never ran (no start, or PENDING), still run
    (no end, or RUNNING), end before they start, or ran for 0 s.

    A component of a heterogeneous job (1234+0) is a job of its own; a note counts them. A MIG slice
    counts as a GPU of its own type. A ``gres/shard`` is no GPU. A cluster that does not track
    ``gres/gpu`` (AccountingStorageTRES) has no GPUs in its records.

    Options: ``attempts`` is the treatment of a second record of an id, which ``sacct -D`` prints
    for a requeued job: ``refuse`` (an error) or ``join`` (another attempt of the job, joined as in
    format ``helios``). A joined job whose last record is PENDING still runs.

    Slurm manual, ``sacct``.
    """
    if attempts not in ATTEMPTS:
        raise ParamError(f"attempts={attempts}: give {' or '.join(ATTEMPTS)}")
    delimiter = "|" if "|" in document.text.lstrip().split("\n", 1)[0] else ","
    header = _header(document, delimiter)
    job_column = _first(("JobID", "JobIDRaw"), header)
    vc_column = _first(_VC_COLUMNS, header)
    required = [_first(choice, header) for choice in _CHOICES]
    units = dict.fromkeys(_DATES.values(), "date")
    table = Table(
        document,
        required[:-1],
        text=(*_TEXT, *_VC_COLUMNS, *_DATES.values()),
        delimiter=delimiter,
        quoted=delimiter == ",",
        units=units,
    )
    steps = table.frame[job_column].str.contains(".", regex=False).fillna(value=False)
    if steps.all():
        raise TraceError(f"{document.name}: only job steps; call sacct with -X, which prints jobs")
    table.frame = table.frame[~steps.to_numpy(bool)].copy()
    table.frame[job_column] = as_integers(table.frame[job_column])
    parsed = table.parsed(
        job_id=job_column,
        submit_time="Submit",
        duration=required[-1],
        num_gpus=required[-2],
        user="User",
        vc=vc_column,
        also_read=(*_DATES.values(), "State", "Timelimit", "ReqTRES", "ElapsedRaw", "Elapsed"),
    )
    if steps.any():
        parsed.dropped[_STEP] = int(steps.sum())
    resources = _resources(table)
    gpus = _set_gpus(table, parsed, resources)
    dates = {
        name: table.times(column, required=False)
        for name, column in _DATES.items()
        if column in table
    }
    times = _seconds(pd.DataFrame(dates), parsed.notes)
    elapsed = _elapsed(table, required[-1])
    recorded_ends = times.get("ended")
    if elapsed is not None:
        ends = times["started"] + elapsed
        # a job without an end still runs, and its elapsed time grows
        times["ended"] = ends if recorded_ends is None else ends.mask(recorded_ends.isna())
    times["state"] = table.frame["State"]
    if "Timelimit" in table:
        parsed.frame["time_limit"] = _limits(table)
    # a job without an allocation has not run yet, whatever it asked for
    waits = resources.isna().to_numpy(bool) & times["started"].isna().to_numpy(bool)
    set_run_times(parsed, times, {NO_GPU: (gpus == 0) & ~waits}, attempts=attempts)
    parsed.frame["submit_time"] -= parsed.frame["submit_time"].min()
    # the state of a requeued job is that of its last record
    states = times["state"].groupby(table.frame[job_column]).last()
    _note_states(parsed, states)
    _note_components(parsed)
    if elapsed is not None and recorded_ends is not None:
        between_dates = recorded_ends - times["started"]
        _note_clocks(parsed, between_dates, elapsed, required[-1])
        if parsed.log is not None:
            recorded = between_dates[parsed.log.index]
            if "joined" in parsed.log:
                recorded = recorded.mask(parsed.log["joined"])
            parsed.log = parsed.log.assign(recorded=recorded)
    return parsed


def _header(document: Document, delimiter: str) -> list[str]:
    """Names of the columns; raises for a file of another format and for missing columns."""
    line, header = header_of(document, delimiter)
    if "JobID" not in header and "JobIDRaw" not in header:
        return header
    for choice in _CHOICES:
        if not set(choice) & set(header):
            raise TraceError(
                f"{document.name}:{line}:{choice[0]}: missing column (found "
                f"{shown(', '.join(header), 200)}); write the file by {COMMAND}"
            )
    return header


def _first(names: tuple[str, ...], header: list[str]) -> str:
    """First of the names that the header has, else the first name."""
    return next((name for name in names if name in header), names[0])


def _resources(table: Table) -> pd.Series[Any]:
    """Allocated resources of each record as text; the requested ones where there are none."""
    columns = [table.frame[name] for name in ("AllocTRES", "ReqTRES") if name in table]
    return columns[0] if len(columns) == 1 else columns[0].fillna(columns[1])


def _set_gpus(table: Table, parsed: Parsed, resources: pd.Series[Any]) -> Floats:
    """Set ``num_gpus``, ``gpu_type`` and ``num_cpus``; return the number of GPUs, (records,)."""
    column = "AllocTRES" if "AllocTRES" in table else "ReqTRES"
    by_text: dict[Any, tuple[float, str | None, float]] = {}
    for text in resources.dropna().unique():
        by_text[text] = _counts(text)
    none = (0.0, None, np.nan)
    counts = [by_text.get(text, none) for text in resources]
    gpus = np.array([count for count, _, _ in counts])
    types = pd.Series([gpu_type for _, gpu_type, _ in counts], resources.index, object)
    cpus = np.array([cpu for _, _, cpu in counts])
    accepted = "resources are NAME=NUMBER with commas, GPUs such as gres/gpu=2"
    table.refuse(np.isnan(gpus), column, "no whole number of GPUs", accepted)
    parsed.frame["num_gpus"] = gpus.astype(np.int64)
    several = (types == "").to_numpy(bool)
    if several.any():
        parsed.notes.append(
            f"{quantity(int(several.sum()), 'record')} with GPUs of several types: their gpu_type "
            "is left empty"
        )
        types = types.mask(several)
    if types.notna().any():
        parsed.frame["gpu_type"] = types
    if not np.isnan(cpus).all():
        parsed.frame["num_cpus"] = cpus
    return gpus


def _counts(text: str) -> tuple[float, str | None, float]:
    """GPUs, GPU type and CPU cores of a text of resources.

    GPUs are NaN if their number is not whole. The type is None without a type, "" with several.
    """
    total: float | None = None
    by_type: Counter[str] = Counter()
    for gpu_type, number in _GPUS.findall(text):
        if not re.fullmatch("[0-9]{1,9}", number):
            return np.nan, None, np.nan
        if gpu_type:
            by_type[gpu_type] += int(number)
        else:
            total = float(number)
    held = [gpu_type for gpu_type, number in by_type.items() if number]
    name = None if not held else ""
    if len(held) == 1:
        name = held[0]
    cpu = _CPUS.search(text)
    cpus = float(cpu[1]) if cpu and re.fullmatch("[0-9]{1,9}", cpu[1]) else np.nan
    return float(by_type.total()) if total is None else total, name, cpus


def _seconds(dates: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Dates as seconds from the earliest date."""
    dates = without_epoch(dates, notes)
    earliest = dates.min().min()
    seconds: pd.DataFrame = dates.apply(lambda column: (column - earliest).dt.total_seconds())
    return seconds


def _elapsed(table: Table, column: str) -> Floats | None:
    """Elapsed time of each record (s); None in a file that has End alone."""
    if column == "ElapsedRaw":
        return table.numbers(column, "an elapsed time is seconds, 0 or more", low=0)
    return _spans(table, column) if column == "Elapsed" else None


def _limits(table: Table) -> Floats:
    """Time limits (s), NaN for none; a limit of zero is none, as for ``sbatch --time=0``."""
    limits = _spans(table, "Timelimit", _NO_LIMIT)
    return np.where(limits == 0, np.nan, limits)


def _spans(table: Table, column: str, missing: tuple[str, ...] = ()) -> Floats:
    """Column of times such as 1-02:03:04 in seconds; NaN for the texts in ``missing``."""
    texts = table.frame[column].fillna("").str.strip()
    seconds = texts.map({text: _span_s(text) for text in texts.unique()}).to_numpy(float)
    strange = ~np.isfinite(seconds) & ~texts.str.upper().isin(missing).to_numpy(bool)
    table.refuse(strange, column, "not a time", _SPAN_ADVICE)
    return seconds


def _span_s(text: str) -> float:
    """Seconds of a text [days-]hours:minutes:seconds, infinite beyond floats, NaN for others."""
    if match := _DAYS_AND_HOURS.fullmatch(text):
        return DAY_S * float(match[1]) + HOUR_S * float(match[2])
    match = _SPAN.fullmatch(text)
    if match is None:
        return np.nan
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return DAY_S * days + HOUR_S * hours + 60.0 * minutes + seconds


def _note_states(parsed: Parsed, states: pd.Series[Any]) -> None:
    """Note the number of jobs kept by state.

    ``states`` has the state of each job by id. Only the first word of a state counts.
    """
    names = states.reindex(parsed.frame["job_id"]).fillna("UNKNOWN")
    words = names.str.split().str[0].str.upper()
    if len(words):
        counts = ", ".join(f"{state} {count:,}" for state, count in words.value_counts().items())
        parsed.notes.append(f"jobs kept by state: {counts}")


def _note_components(parsed: Parsed) -> None:
    """Note the number of jobs that are components of heterogeneous jobs, with ids such as 200+0."""
    components = parsed.frame["job_id"].astype(str).str.fullmatch(_COMPONENT)
    if components.any():
        first = parsed.frame["job_id"][components].iloc[0]
        parsed.notes.append(
            "components of heterogeneous jobs, which Slurm starts together, read as jobs of their "
            f"own: {int(components.sum()):,} (first: {first})"
        )


def _note_clocks(
    parsed: Parsed, between_dates: pd.Series[Any], elapsed: Floats, column: str
) -> None:
    """Note the jobs whose elapsed time is not End - Start."""
    rows = parsed.frame.index
    difference = (between_dates - pd.Series(elapsed, between_dates.index))[rows].abs()
    differs: Flags = (difference > ROUNDING_S).to_numpy(bool)
    if differs.any():
        by_hour = int(((difference - HOUR_S).abs() <= ROUNDING_S).sum())
        parsed.notes.append(
            f"{column} contradicts End - Start in {int(differs.sum()):,} of {len(rows):,} jobs: "
            f"run time is {column}"
            + (f" ({by_hour:,} by one hour, as where clocks change)" if by_hour else "")
        )
