"""Times of a trace: contradictions of a log, changes of clocks, the order of the file."""

from __future__ import annotations

import numpy as np
import pandas as pd

from repro.base.counts import quantity
from repro.base.typing import Flags, Floats
from repro.base.units import HOUR_S
from repro.files.table import Parsed
from repro.trace.doctor.findings import Finding, first_ids
from repro.trace.runs import BACKWARDS, ROUNDING_S, differing

#: Largest part of rows earlier than the row above, in a file that counts as sorted by submit time.
_MOST_STEPS_BACK = 0.01
#: A change of clocks moves recorded times by one hour. The two submissions around the change are
#: at most this much real time apart (s). So a step back is up to this much shorter than an hour,
#: and a gap up to this much longer.
_MOST_REAL_TIME_S = 600.0
#: The largest gap may be a clock change if all other gaps are at most this part of it.
_OTHER_GAPS = 0.25
#: Least number of submissions for a finding on a single gap.
_LEAST_JOBS = 20


def check_log(parsed: Parsed, num_gpus: int) -> list[Finding]:
    """Findings on the start and end times of a log; none if the file has no such times.

    Parameters
    ----------
    parsed : Parsed
        Jobs of the file. Its ``log`` has their times in the file, or is None.
    num_gpus : int
        GPUs of the cluster.
    """
    findings = _left_out(parsed)
    if parsed.log is None:
        return findings
    # the reader may have dropped rows after it set the times
    jobs = parsed.frame
    log = parsed.log.loc[jobs.index]
    findings += _contradicting_durations(jobs, log)
    early = (log["started"] < log["submitted"]).to_numpy(bool)
    if early.any():
        number = int(early.sum())
        findings.append(
            Finding(
                "warning",
                "start-before-submit",
                f"{quantity(number, 'job', 'starts', 'start')} before the submission",
                number,
                first_ids(jobs, early),
                "submit times are as recorded, so these jobs queue for less than 0 s in the log; "
                "compare the clocks of the two columns",
            )
        )
    return findings + _above_capacity(jobs, log, num_gpus)


def _left_out(parsed: Parsed) -> list[Finding]:
    """Findings on the rows that the reader left out."""
    findings = []
    for reason, number in parsed.dropped.items():
        is_backwards = reason == BACKWARDS
        findings.append(
            Finding(
                "warning" if is_backwards else "note",
                "end-before-start" if is_backwards else "left-out",
                f"{quantity(number, 'row')} left out: {reason}",
                number,
                tuple(parsed.dropped_jobs.get(reason, ())),
                "correct the times, or leave the rows out" if is_backwards else "",
            )
        )
    return findings


def _contradicting_durations(jobs: pd.DataFrame, log: pd.DataFrame) -> list[Finding]:
    """Findings on jobs with two durations that differ."""
    if "recorded" not in log:
        return []
    differs = differing(log["recorded"], log["run"]).to_numpy(bool)
    if not differs.any():
        return []
    seconds = pd.to_numeric(log["recorded"], errors="coerce")
    distance = (seconds - log["run"]).abs()
    by_hour = ((distance - HOUR_S).abs() <= ROUNDING_S).to_numpy(bool)
    findings = []
    if by_hour.any():
        number = int(by_hour.sum())
        findings.append(
            Finding(
                "warning",
                "clock-change",
                f"{quantity(number, 'job', 'has', 'have')} a duration that differs from end - "
                "start by one hour, as where clocks change",
                number,
                first_ids(jobs, by_hour),
                "write dates in UTC, or with their offset from UTC",
            )
        )
    other = differs & ~by_hour
    if other.any():
        number = int(other.sum())
        findings.append(
            Finding(
                "warning",
                "duration-contradicts",
                f"{quantity(number, 'job', 'has', 'have')} a duration that is not end - start",
                number,
                first_ids(jobs, other),
                "a note of the reader says which of the two it takes; correct the other column",
            )
        )
    return findings


def _above_capacity(jobs: pd.DataFrame, log: pd.DataFrame, num_gpus: int) -> list[Finding]:
    """Finding on times at which the log runs more GPUs at once than the cluster has."""
    has_one_attempt = np.ones(len(log), np.bool_)
    if "joined" in log:
        # the times between the attempts of a job are not known here
        has_one_attempt = ~log["joined"].to_numpy(bool)
    started = log["started"].to_numpy(float)[has_one_attempt]
    run = log["run"].to_numpy(float)[has_one_attempt]
    gpus = jobs["num_gpus"].to_numpy(float)[has_one_attempt]
    if "gpu_share" in jobs:
        gpus = gpus * jobs["gpu_share"].fillna(1.0).to_numpy(float)[has_one_attempt]
    if not len(started):
        return []
    times, held = gpus_over_time(started, started + run, gpus)
    peak = int(np.argmax(held))
    # rounding errors of shares of GPUs may put the sum just above a full cluster
    above = held > num_gpus * (1 + 1e-9)
    if not above.any():
        return []
    lengths = np.diff(times, append=times[-1])
    origin = float((log["submitted"] - jobs["submit_time"]).iloc[0])
    running = np.zeros(len(log), np.bool_)
    running[has_one_attempt] = (started <= times[peak]) & (times[peak] < started + run)
    number = int(running.sum())
    return [
        Finding(
            "warning",
            "above-capacity",
            f"the log runs {held[peak]:,.6g} GPUs at once at {times[peak] - origin:,.0f} s, in "
            f"{quantity(number, 'job')}, where the cluster has {num_gpus:,}; it runs more GPUs "
            f"than the cluster has for {lengths[above].sum():,.0f} s in all",
            number,
            first_ids(jobs, running),
            "take the cluster of the log, or expect longer queues than the log has",
        )
    ]


def gpus_over_time(start: Floats, end: Floats, gpus: Floats) -> tuple[Floats, Floats]:
    """Instants of change (s), and GPUs held from each instant to the next.

    A job holds its GPUs from its start up to its end, without the end itself.
    """
    instants = np.concatenate([start, end])
    changes = np.concatenate([gpus, -gpus])
    times, position = np.unique(instants, return_inverse=True)
    held: Floats = np.cumsum(np.bincount(position, changes, len(times)))
    return times, held


def check_order(jobs: pd.DataFrame) -> list[Finding]:
    """Findings on the submit times in file order: steps back, and a gap of one hour.

    Parameters
    ----------
    jobs : DataFrame
        Jobs in the order of the file.
    """
    submit = jobs["submit_time"].to_numpy(float)
    if len(submit) < 2:
        return []
    steps = np.diff(submit)
    back = np.concatenate([[False], steps < 0])
    number = int(back.sum())
    if number > max(1, _MOST_STEPS_BACK * len(submit)):
        return [
            Finding(
                "note",
                "unsorted",
                f"the file is not in order of submission: {number:,} of {len(submit):,} rows are "
                "earlier than the row above",
                number,
                first_ids(jobs, back),
                "the reader sorts them; steps of the clock cannot be told from the order",
            )
        ]
    return _steps_back(jobs, steps, back) + _gap_of_an_hour(submit)


def _steps_back(jobs: pd.DataFrame, steps: Floats, back: Flags) -> list[Finding]:
    """Findings on the few rows that are earlier than the row above."""
    sizes = np.concatenate([[0.0], -steps])
    hour = back & (sizes <= HOUR_S + ROUNDING_S) & (sizes >= HOUR_S - _MOST_REAL_TIME_S)
    findings = []
    for flags, code, reason, advice in (
        (
            hour,
            "clock-back",
            "by about one hour, as where clocks change to winter time",
            "write dates in UTC, or with their offset from UTC",
        ),
        (back & ~hour, "steps-back", "", "the reader sorts them; check that the times are right"),
    ):
        if flags.any():
            number = int(flags.sum())
            largest = float(sizes[flags].max())
            findings.append(
                Finding(
                    "warning" if flags is hour else "note",
                    code,
                    f"{quantity(number, 'submission', 'is', 'are')} earlier than "
                    f"the one before{f', {reason}' if reason else ''}; the file is otherwise in "
                    f"order (largest step {largest:,.0f} s)",
                    number,
                    first_ids(jobs, flags),
                    advice,
                )
            )
    return findings


def _gap_of_an_hour(submit: Floats) -> list[Finding]:
    """Finding on a single gap of one hour among much shorter gaps."""
    gaps = np.diff(np.sort(submit))
    if len(submit) < _LEAST_JOBS:
        return []
    second, largest = np.partition(gaps, -2)[-2:].tolist()
    is_hour = HOUR_S - ROUNDING_S <= largest <= HOUR_S + _MOST_REAL_TIME_S
    if not is_hour or second > _OTHER_GAPS * largest:
        return []
    at_s = float(np.sort(submit)[int(np.argmax(gaps))])
    return [
        Finding(
            "note",
            "clock-gap",
            f"a single gap of {largest:,.0f} s between submissions, from {at_s:,.0f} s; all others "
            f"are at most {second:,.0f} s, as where clocks change to summer time",
            1,
            (),
            "write dates in UTC, or with their offset from UTC",
        )
    ]


def check_repeats(frame: pd.DataFrame) -> list[Finding]:
    """Finding on jobs that equal an earlier job in all but the id."""
    same = [name for name in ("user", "submit_time", "duration", "num_gpus") if name in frame]
    repeated = frame.duplicated(same).to_numpy(bool)
    if not repeated.any():
        return []
    number = int(repeated.sum())
    words = ["submit time", "duration", "number of GPUs"]
    if "user" in frame:
        words.insert(0, "user")
    return [
        Finding(
            "note",
            "repeats",
            f"{quantity(number, 'job', 'equals', 'equal')} an earlier job in {', '.join(words)}",
            number,
            first_ids(frame, repeated),
            "fine for arrays of jobs; leave them out if rows were written twice",
        )
    ]


def bad_rows(rows: dict[int, str], fault: str, *, dropped_by_user: bool) -> list[Finding]:
    """Findings on rows that break a rule of the schema, by reason.

    Parameters
    ----------
    rows : dict of int to str
        Row number -> reason.
    fault : str
        Message on the first of them.
    dropped_by_user : bool
        Whether the caller asked to leave such rows out.
    """
    numbers: dict[str, int] = {}
    for reason in rows.values():
        numbers[reason] = numbers.get(reason, 0) + 1
    findings: list[Finding] = []
    for reason, number in numbers.items():
        what = f"{quantity(number, 'row')} left out: {reason}"
        if not findings:
            what += f"; first: {fault}"
        findings.append(
            Finding(
                "warning" if dropped_by_user else "error",
                "bad-rows",
                what,
                number,
                (),
                "" if dropped_by_user else "correct them, or give --drop-bad-rows to all commands",
            )
        )
    return findings
