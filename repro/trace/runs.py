"""Run times (end - start) of the jobs of a log, for all formats that read logs.

Rows of jobs that never ran are dropped and counted by reason. Attempts of one job are joined,
which conserves their GPU-seconds. Notes count contradictions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from repro.base.counts import quantity
from repro.base.typing import Flags, Floats
from repro.base.units import DAY_S, HOUR_S
from repro.files.table import Parsed
from repro.trace.schema import refuse_repeats

#: Largest difference (s) of a recorded duration from end - start that rounding explains.
ROUNDING_S = 1.0
#: 1970-01-01 is read as a missing date if all other dates are at least this much later (s).
EPOCH_GAP_S = 20 * 365 * DAY_S
NO_GPU = "no GPU"
NO_SUBMIT = "no submit time"
NEVER_RAN = "never ran"
RUNNING = "still running"
BACKWARDS = "ended before it started"
INSTANT = "ran for 0 s"
#: Treatments of a second row of an id.
ATTEMPTS = ("refuse", "join")
JOIN_HINT = "attempts=join (--set attempts=join) joins the rows of an id into one job"
_RUNNING_STATES = ("RUNNING", "R", "SUSPENDED", "S", "COMPLETING", "CG")
_WAITING_STATES = ("PENDING", "PD", "QUEUED", "WAITING", "CONFIGURING", "CF")


class Attempt(NamedTuple):
    """One attempt of a job: start and end (s), NaN if missing, and names of the GPUs held."""

    start: float
    end: float
    gpus: Collection[Any]


class Rigid(NamedTuple):
    """The attempts of one job, joined into a job with a fixed number of GPUs.

    ``gpus`` is 0 if no attempt held a GPU. ``start`` is the first start (s), NaN if the job never
    ran. ``run_s`` is the run time (s): NaN if the job never ran or still runs, negative if every
    attempt ends before it starts.
    """

    gpus: int
    start: float
    run_s: float


@dataclass
class AttemptJoiner:
    """Joins the attempts of jobs; counts contradictions and the attempts that it leaves out."""

    counts: Counter[str] = field(default_factory=Counter)

    def join(self, attempts: Sequence[Attempt]) -> Rigid:
        """Join the attempts of one job; their GPU-seconds are conserved."""
        started = [attempt for attempt in attempts if not math.isnan(attempt.start)]
        timed = [attempt for attempt in started if not math.isnan(attempt.end)]
        forward = [attempt for attempt in timed if attempt.end >= attempt.start]
        with_gpus = [attempt for attempt in forward if attempt.gpus]
        self.counts["without times"] += len(attempts) - len(timed)
        self.counts["reversed"] += len(timed) - len(forward)
        self.counts["without GPUs"] += len(forward) - len(with_gpus)
        most_gpus = max((len(attempt.gpus) for attempt in attempts), default=0)
        if not started:
            return Rigid(most_gpus, math.nan, math.nan)
        first_start = min(attempt.start for attempt in started)
        last = max(started, key=lambda attempt: attempt.start)
        if math.isnan(last.end):
            # the job still runs
            return Rigid(most_gpus, first_start, math.nan)
        if not forward:
            return Rigid(most_gpus, first_start, -math.inf)
        if not with_gpus:
            return Rigid(0, first_start, 0.0)
        return self._joined(with_gpus)

    def _joined(self, attempts: Sequence[Attempt]) -> Rigid:
        """Join attempts that held GPUs: number of GPUs held longest, GPU-seconds conserved."""
        ordered = sorted(attempts, key=lambda attempt: attempt.start)
        gpu_counts = {len(attempt.gpus) for attempt in ordered}
        disjoint = all(earlier.end <= later.start for earlier, later in pairwise(ordered))
        start = ordered[0].start
        if len(gpu_counts) == 1 and disjoint:
            run_s = math.fsum(attempt.end - attempt.start for attempt in ordered)
            return Rigid(gpu_counts.pop(), start, run_s)
        self.counts["overlapping"] += not disjoint
        self.counts["different GPU counts"] += len(gpu_counts) > 1
        seconds = _seconds_by_gpus(ordered)
        if not seconds:
            # every attempt ran for 0 s
            return Rigid(max(gpu_counts), start, 0.0)
        gpus_held_longest = max(seconds, key=lambda gpus: (seconds[gpus], gpus))
        work = math.fsum(gpus * time for gpus, time in seconds.items())
        return Rigid(gpus_held_longest, start, work / gpus_held_longest)

    def notes(self) -> list[str]:
        """Lines on the attempts left out and on the contradictions, with their numbers."""
        texts = {
            "without times": "{} without start or end time left out",
            "reversed": "{} left out because the end is before the start",
            "without GPUs": "{} without GPUs left out",
        }
        notes = [
            text.format(quantity(self.counts[name], "attempt"))
            for name, text in texts.items()
            if self.counts[name]
        ]
        if jobs := self.counts["overlapping"]:
            notes.append(
                f"{quantity(jobs, 'job')} with overlapping attempts: these are merged, the time "
                "of a GPU counts once"
            )
        if jobs := self.counts["different GPU counts"]:
            notes.append(
                f"{quantity(jobs, 'job')} with attempts on different numbers of GPUs: such a job "
                "demands the number held longest, its duration is its GPU-seconds / that number"
            )
        return notes


def _seconds_by_gpus(attempts: Sequence[Attempt]) -> dict[int, float]:
    """Number of different GPUs held -> time (s) for which that number was held."""
    changes = [(attempt.start, 1, attempt.gpus) for attempt in attempts]
    changes += [(attempt.end, -1, attempt.gpus) for attempt in attempts]
    changes.sort(key=lambda change: change[0])
    attempts_by_gpu: Counter[Any] = Counter()
    seconds: dict[int, float] = {}
    before = changes[0][0]
    for time, change, gpus in changes:
        if attempts_by_gpu and time > before:
            seconds[len(attempts_by_gpu)] = seconds.get(len(attempts_by_gpu), 0.0) + time - before
        before = time
        for gpu in gpus:
            attempts_by_gpu[gpu] += change
            if not attempts_by_gpu[gpu]:
                del attempts_by_gpu[gpu]
    return seconds


def without_epoch(dates: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Replace 1970-01-01 by NaT where all other dates are decades later.

    Parameters
    ----------
    dates : DataFrame
        Columns of UTC dates, NaT where missing.
    notes : list of str
        Gets a line with the number of such dates.
    """
    start = pd.Timestamp(0, tz="UTC")
    seconds = dates.apply(lambda column: (column - start).dt.total_seconds())
    unset = is_unset(seconds.to_numpy(np.float64))
    note_unset(int(unset.sum()), notes)
    return dates.mask(unset)


def is_unset(seconds: Floats) -> Flags:
    """Flag the times on 1970-01-01 if all other times are decades later."""
    epoch = (seconds >= 0) & (seconds < DAY_S)
    others = seconds[~epoch & ~np.isnan(seconds)]
    decades_later = len(others) > 0 and others.min() >= EPOCH_GAP_S
    return epoch & decades_later


def note_unset(number: int, notes: list[str]) -> None:
    """Note the number of dates of 1970-01-01 that were read as missing."""
    if number:
        notes.append(f"{quantity(number, 'date')} of 1970-01-01 read as missing")


def set_run_times(
    parsed: Parsed,
    times: pd.DataFrame,
    prior_reasons: Mapping[str, Flags],
    *,
    attempts: str | None = None,
) -> None:
    """Set submit times and durations of a log, drop jobs that never ran, note contradictions.

    Parameters
    ----------
    parsed : Parsed
        Rows with ``job_id`` and ``num_gpus``.
    times : DataFrame
        ``submitted``, ``started``, and either ``ended`` or ``run`` (s); NaN where missing.
        Optional: ``recorded`` (durations in the file), ``state``, and ``joined`` (whether a job has
        several attempts). ``parsed.log`` gets these columns for the jobs that are kept.
    prior_reasons : mapping of str to flags
        Reasons to drop a row that go before the reasons of this function.
    attempts : {"refuse", "join"}, optional
        Treatment of a second row of an id, in formats that record attempts as rows: ``refuse``
        raises, ``join`` makes the row another attempt of the job.
    """
    parsed.drop(prior_reasons)
    times = times.loc[parsed.frame.index].copy()
    if "state" in times:
        times.loc[_in_state(times["state"], _WAITING_STATES), "started"] = np.nan
        times.loc[_in_state(times["state"], _RUNNING_STATES), "ended"] = np.nan
    if "run" not in times:
        times["run"] = times["ended"] - times["started"]
    if attempts == "join":
        _join_rows(parsed, times)
        times = times.loc[parsed.frame.index]
    elif attempts is not None:
        refuse_repeats(parsed.frame["job_id"], parsed.source, JOIN_HINT)
    parsed.frame["submit_time"] = times["submitted"]
    parsed.frame["duration"] = times["run"]
    reasons = {
        NO_SUBMIT: times["submitted"].isna(),
        NEVER_RAN: times["started"].isna(),
        RUNNING: times["run"].isna(),
        BACKWARDS: times["run"] < 0,
        INSTANT: times["run"] == 0,
    }
    parsed.drop(
        {
            reason: flags.reindex(parsed.rows, fill_value=False).to_numpy()
            for reason, flags in reasons.items()
        }
    )
    parsed.log = times.loc[parsed.frame.index]
    _note_contradictions(parsed, parsed.log)


def _in_state(states: pd.Series[Any], names: Collection[str]) -> Flags:
    """Flags of the rows in one of these states. Only the first word of a state counts."""
    matching = [state for state in states.dropna().unique() if _first_word(state) in names]
    return states.isin(matching).to_numpy(np.bool_)


def _first_word(state: object) -> str:
    """First word of a state in capitals; empty without a word."""
    words = str(state).split()
    return words[0].upper() if words else ""


def _join_rows(parsed: Parsed, times: pd.DataFrame) -> None:
    """Join all rows of an id into its first row.

    One row gives the columns besides the times. It has the number of GPUs held longest. Among such
    rows, its columns (times excepted) were held longest. The first row wins a tie. A job that waits
    in its last row, as after a preemption, counts as still running.
    """
    frame = parsed.frame
    shared = frame.index[frame["job_id"].duplicated(keep=False)]
    if shared.empty:
        return
    rows: dict[Any, list[int]] = {}
    for label, job in frame.loc[shared, "job_id"].items():
        rows.setdefault(job, []).append(label)
    attempts = zip(times["started"], times["ended"], frame["num_gpus"], strict=True)
    by_row = dict(zip(frame.index, attempts, strict=True))
    waiting: set[int] = set()
    if "state" in times:
        waiting = set(times.index[_in_state(times["state"], _WAITING_STATES)])
    joiner = AttemptJoiner()
    run = times.loc[shared, "run"].clip(lower=0).fillna(0.0)
    configuration_s = _configuration_seconds(frame.loc[shared], run).to_dict()
    chosen_rows: dict[int, int] = {}
    started: dict[int, float] = {}
    run_s: dict[int, float] = {}
    for labels in rows.values():
        first_row = labels[0]
        records = (by_row[label] for label in labels)
        job = joiner.join([Attempt(start, end, range(int(gpus))) for start, end, gpus in records])
        candidates = [label for label in labels if by_row[label][-1] == job.gpus]
        chosen_rows[first_row] = max(candidates, key=configuration_s.__getitem__)
        started[first_row] = job.start
        has_ended = labels[-1] not in waiting
        run_s[first_row] = job.run_s if has_ended else np.nan
    joined_rows = list(chosen_rows)
    times["joined"] = times.index.isin(joined_rows)
    times.loc[joined_rows, "started"] = pd.Series(started)
    times.loc[joined_rows, "run"] = pd.Series(run_s)
    times["submitted"] = times["submitted"].groupby(frame["job_id"]).transform("min")
    if "recorded" in times:
        times.loc[joined_rows, "recorded"] = np.nan
    first_rows = frame.index[~frame["job_id"].duplicated()]
    joined = frame.loc[[chosen_rows.get(label, label) for label in first_rows]]
    parsed.frame = joined.set_axis(first_rows)
    jobs = quantity(len(rows), "job")
    parsed.notes.append(f"{quantity(len(shared), 'record')} joined into {jobs}")
    parsed.notes += joiner.notes()
    if num_jobs := _num_jobs_of_different_resources(frame.loc[run.index[run > 0]]):
        parsed.notes.append(
            f"{quantity(num_jobs, 'job')} with attempts that differ in gpu_type or num_cpus: such "
            "a job has the columns of the attempts that ran longest on its number of GPUs"
        )


def _configuration_seconds(frame: pd.DataFrame, run: pd.Series[float]) -> pd.Series[float]:
    """Run time (s) of each row's job, summed over its rows with equal columns, times excepted."""
    columns = [name for name in frame if name not in ("submit_time", "duration")]
    configurations = frame.groupby(columns, dropna=False, sort=False).ngroup()
    return run.groupby(configurations).transform("sum")


def _num_jobs_of_different_resources(attempts: pd.DataFrame) -> int:
    """Number of jobs whose attempts differ in GPU type or number of CPU cores."""
    resources = [name for name in ("gpu_type", "num_cpus") if name in attempts]
    different = attempts[["job_id", *resources]].drop_duplicates()
    return int((different["job_id"].value_counts() > 1).sum())


def _note_contradictions(parsed: Parsed, times: pd.DataFrame) -> None:
    """Note starts before the submission, and recorded durations that are not end - start."""
    if early := int((times["started"] < times["submitted"]).sum()):
        parsed.notes.append(
            f"{quantity(early, 'job')} with a start before the submission: submit time as recorded"
        )
    if "recorded" in times:
        recorded = times["recorded"]
        seconds = pd.to_numeric(recorded, errors="coerce")
        differs = differing(recorded, times["run"])
        if wrong_count := int(differs.sum()):
            note = (
                f"duration contradicts end - start in {wrong_count:,} of {len(times):,} rows: "
                "run time is end - start"
            )
            off_by_hour = ((seconds - times["run"]).abs() - HOUR_S).abs() <= ROUNDING_S
            if hour_count := int(off_by_hour.sum()):
                note += f" ({hour_count:,} by one hour, as where clocks change)"
            parsed.notes.append(note)


def differing(recorded: pd.Series[Any], run: pd.Series[Any]) -> pd.Series[bool]:
    """Flag the recorded durations (s) that differ from the run time by more than rounding."""
    seconds = pd.to_numeric(recorded, errors="coerce")
    written = recorded.notna() & (recorded.astype(str).str.strip() != "")
    return ~((seconds - run).abs() <= ROUNDING_S) & written
