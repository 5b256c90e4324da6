"""The Helios job log: a Slurm record of GPU and CPU jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from repro.base.errors import ParamError
from repro.files.table import Document, Parsed, Table
from repro.model.jobs import MAX_GPUS_PER_JOB
from repro.trace.formats import FORMATS
from repro.trace.runs import ATTEMPTS, NO_GPU, ROUNDING_S, set_run_times, without_epoch

_REQUIRED = ("job_id", "gpu_num", "submit_time", "start_time", "end_time")
_DATES = {"submitted": "submit_time", "started": "start_time", "ended": "end_time"}


@FORMATS.register("helios")
def read(document: Document, attempts: str = "refuse") -> Parsed:
    """Read ``cluster_log.csv`` of Helios, a Slurm record of GPU and CPU jobs.

    Columns: job_id, gpu_num, submit_time, start_time, end_time; optional: cpu_num,
    duration, state, user, vc.

    The run time is ``end_time`` - ``start_time``. Notes count the rows whose ``duration`` differs
    from it by more than a second, and the jobs that start before they are submitted. Dates may have
    an offset from UTC. Unknown, None and an empty cell are missing dates; so is 1970-01-01 where
    all other dates are decades later, which a note counts. Submit times count from the earliest job
    kept.

    Dropped and counted: jobs that have no GPU or submit time, never ran (no start, or pending by
    ``state``), still run (no end, or running by ``state``), end before they start, or ran for 0 s.

    Options: ``attempts`` is the treatment of a second record of an id: ``refuse`` (an error) or
    ``join`` (another attempt of a requeued job). A joined job arrives at its earliest submission,
    demands the number of GPUs held longest, and its duration is its GPU-seconds divided by that
    number. It has the user, virtual cluster and CPU cores with which it ran longest on that number
    of GPUs; run times of records that are equal in these are added. Records that overlap in time
    are taken to hold the same GPUs, so each GPU-second counts once. A job whose last record is
    pending still runs.

    Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU
    Datacenters", SC 2021.
    """
    return read_log(document, _REQUIRED, attempts)


def read_log(
    document: Document, required: Sequence[str], attempts: str, *, with_queue: bool = False
) -> Parsed:
    """Read a log with the columns of Helios.

    Parameters
    ----------
    document : Document
        The file.
    required : sequence of str
        Columns that the file must have.
    attempts : {"refuse", "join"}
        Treatment of a second record of an id.
    with_queue : bool
        Whether recorded durations may include the time in the queue, in the column ``queue``.
    """
    if attempts not in ATTEMPTS:
        raise ParamError(f"attempts={attempts}: give {' or '.join(ATTEMPTS)}")
    text = ("user", "vc", "state", *_DATES.values())
    units = dict.fromkeys(_DATES.values(), "date")
    table = Table(document, required, text=text, ids="job_id", units=units)
    parsed = table.parsed(
        *("job_id", "submit_time", "user", "vc"),
        num_gpus="gpu_num",
        num_cpus="cpu_num",
        duration="duration",
        also_read=("state", "start_time", "end_time", *(["queue"] if with_queue else [])),
    )
    gpus = table.whole("gpu_num", most=MAX_GPUS_PER_JOB)
    dates = pd.DataFrame(
        {name: table.times(column, required=False) for name, column in _DATES.items()}
    )
    dates = without_epoch(dates, parsed.notes)
    earliest = dates.min().min()
    times = dates.apply(lambda column: (column - earliest).dt.total_seconds())
    for name, column in {"recorded": "duration", "state": "state"}.items():
        if column in table:
            times[name] = table.frame[column]
    if with_queue and "recorded" in times:
        times["recorded"] = _without_queue(table, times, parsed.notes)
    set_run_times(parsed, times, {NO_GPU: gpus == 0}, attempts=attempts)
    parsed.frame["submit_time"] -= parsed.frame["submit_time"].min()
    return parsed


def _without_queue(table: Table, times: pd.DataFrame, notes: list[str]) -> pd.Series[Any]:
    """Recorded durations, less the time in the queue where they include it; note how many do."""
    recorded = times["recorded"]
    run = times["ended"] - times["started"]
    queue = pd.to_numeric(table.frame["queue"], errors="coerce")
    seconds = pd.to_numeric(recorded, errors="coerce")
    waits = (seconds - run).abs() > ROUNDING_S
    includes = waits & ((seconds - queue - run).abs() <= ROUNDING_S)
    if includes.any():
        notes.append(
            f"duration includes the time in the queue in {int(includes.sum()):,} of "
            f"{len(recorded):,} rows: run time is end - start"
        )
    return recorded.mask(includes, run)
