"""Values of a trace that are likely in another unit, or that decide a result alone."""

from __future__ import annotations

import numpy as np
import pandas as pd

from repro.base.counts import quantity
from repro.base.typing import Floats
from repro.base.units import DAY_S, HOUR_S
from repro.trace.doctor.findings import Finding, first_ids
from repro.trace.load import gpu_seconds

YEAR_S = 365 * DAY_S
#: If the span of the submissions or the first submission exceeds this, the unit is likely not s.
_LONGEST_SPAN_S = 20 * YEAR_S
#: Durations are likely in another unit if half of them are longer than this (s), and also longer
#: than the span of the submissions.
_LONG_S = 30 * DAY_S
#: Least number of jobs for findings on long durations, whole minutes or hours, one job's part of
#: all GPU-seconds, and gaps.
_LEAST_JOBS = 20
#: A finding names a job with at least this part of all GPU-seconds, because it decides averages.
_DOMINANT = 0.25
#: A finding counts the gaps between submissions that are longer than this part of the span and
#: longer than a day.
_LONG_GAP = 0.1


def check_units(frame: pd.DataFrame) -> list[Finding]:
    """Findings on times that are likely in another unit than seconds."""
    submit = frame["submit_time"].to_numpy(float)
    duration = frame["duration"].to_numpy(float)
    span = float(submit.max() - submit.min())
    median = float(np.median(duration))
    total = len(frame)
    findings = []
    if median < 1:
        findings.append(
            Finding(
                "warning",
                "unit-too-large",
                f"half of the durations are below 1 s (median {median:.3g} s)",
                int((duration < 1).sum()),
                first_ids(frame, duration < 1),
                "if all times are minutes or hours, give --unit min or --unit h; if only durations "
                "are, convert them to seconds in the file",
            )
        )
    is_long = total >= _LEAST_JOBS and median > max(_LONG_S, span)
    if median > YEAR_S or is_long:
        limit = YEAR_S if median > YEAR_S else max(_LONG_S, span)
        findings.append(
            Finding(
                "warning",
                "unit-too-small",
                f"half of the durations are longer than {median / DAY_S:,.0f} days, the jobs are "
                f"submitted within {span / DAY_S:,.1f} days",
                int((duration > limit).sum()),
                first_ids(frame, duration > limit),
                "if all times are milliseconds, give --unit ms; if only durations are, convert "
                "them to seconds in the file; services that never end are no jobs",
            )
        )
    if span > _LONGEST_SPAN_S:
        findings.append(
            Finding(
                "warning",
                "unit-of-submit-times",
                f"submissions span {span / YEAR_S:,.0f} years",
                total,
                (),
                "if all times are milliseconds, give --unit ms; if only submit times are, convert "
                "them to seconds in the file; else look for a wrong date",
            )
        )
    first = float(submit.min())
    if first > DAY_S:
        is_epoch = first > _LONGEST_SPAN_S
        findings.append(
            Finding(
                "warning" if is_epoch else "note",
                "first-submission",
                f"the first submission is at {first:,.0f} s"
                + (", as in seconds since 1970" if is_epoch else ""),
                1,
                first_ids(frame, submit == first),
                "rules tiresias and muri start their clock at 0; subtract it from all submit times",
            )
        )
    return findings + _whole_hours_or_minutes(frame)


def _whole_hours_or_minutes(frame: pd.DataFrame) -> list[Finding]:
    """Finding on durations that are all whole minutes or hours."""
    duration = frame["duration"].to_numpy(float)
    if len(frame) < _LEAST_JOBS or len(np.unique(duration)) < 2:
        return []
    for name, length in (("hours", HOUR_S), ("minutes", 60.0)):
        if (duration % length == 0).all():
            return [
                Finding(
                    "note",
                    "whole-" + name,
                    f"all durations are whole {name}",
                    len(frame),
                    (),
                    f"the log rounds to {name}, or they were converted; short jobs are inexact",
                )
            ]
    return []


def check_extremes(frame: pd.DataFrame) -> list[Finding]:
    """Findings on single jobs and gaps that decide averages, and on very short and long jobs."""
    submit = frame["submit_time"].to_numpy(float)
    duration = frame["duration"].to_numpy(float)
    span = float(submit.max() - submit.min())
    median = float(np.median(duration))
    findings = []
    short = duration < 1
    if short.any() and median >= 1:
        number = int(short.sum())
        findings.append(
            Finding(
                "note",
                "below-one-second",
                f"{quantity(number, 'job', 'is', 'are')} shorter than 1 s",
                number,
                first_ids(frame, short),
                "rules that cut durations to whole seconds run them for 0 s",
            )
        )
    long = duration > YEAR_S
    if long.any() and median <= YEAR_S:
        number = int(long.sum())
        findings.append(
            Finding(
                "warning",
                "longer-than-a-year",
                f"{quantity(number, 'job', 'runs', 'run')} longer than a year (longest "
                f"{duration.max() / YEAR_S:,.1f} years)",
                number,
                first_ids(frame, long),
                "look for a wrong date or a service that never ended",
            )
        )
    work = gpu_seconds(frame)
    largest = int(np.argmax(work))
    share = float(work[largest] / work.sum())
    if share >= _DOMINANT and len(frame) >= _LEAST_JOBS:
        findings.append(
            Finding(
                "note",
                "one-job-dominates",
                f"one job has {share:.0%} of all GPU-seconds",
                1,
                first_ids(frame, np.arange(len(frame)) == largest),
                "averages and loads hang on it; compare with and without",
            )
        )
    if span == 0 and len(frame) > 1:
        findings.append(
            Finding(
                "note", "all-at-once", "all jobs arrive at once: no load is defined", len(frame)
            )
        )
    return findings + _long_gaps(frame, submit, span)


def _long_gaps(frame: pd.DataFrame, submit: Floats, span: float) -> list[Finding]:
    """Finding on times without submissions that are a large part of the span."""
    ordered = np.sort(submit)
    gaps = np.diff(ordered)
    long = gaps > max(_LONG_GAP * span, DAY_S)
    if not long.any() or len(frame) < _LEAST_JOBS:
        return []
    largest = int(np.argmax(gaps))
    number = int(long.sum())
    return [
        Finding(
            "note",
            "long-gap",
            f"{quantity(number, 'gap')} without submissions, longer than a tenth of the span "
            f"(largest {gaps[largest] / DAY_S:,.1f} days, from {ordered[largest]:,.0f} s)",
            number,
            (),
            "loads over the whole span are too low; cut the trace there",
        )
    ]
