"""Tiresias's worked examples: traces of a few jobs, unit slots, queue histories, brute force."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro.base.errors import ParamError
from repro.model.records import Result


def job_list(jobs: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Trace of named jobs (gpus, submit = 0, duration; s) in order of submission."""
    rows = [
        (name, float(job.get("submit", 0.0)), float(job["duration"]), int(job["gpus"]))
        for name, job in jobs.items()
    ]
    frame = pd.DataFrame(rows, columns=["job_id", "submit_time", "duration", "num_gpus"])
    return frame.sort_values("submit_time", kind="stable", ignore_index=True)


def slots(result: Result) -> list[str]:
    """Job of each second in a schedule of one job at a time (Figure 7)."""
    spans = result.intervals
    names = []
    for second in range(math.ceil(float(result.jobs["end_time"].max()))):
        running = spans[(spans["start"] < second + 1) & (spans["end"] > second)]
        fills = (running["start"] <= second) & (running["end"] >= second + 1)
        if len(running) != 1 or not fills.all():
            raise ParamError(
                f"slot {second:g} to {second + 1:g} s: {len(running)} intervals; each slot needs "
                f"one job that fills it"
            )
        names.append(str(running["job_id"].iloc[0]))
    return names


def queue_spans(
    result: Result, thresholds: Sequence[float], promote_knob: float = math.inf
) -> pd.DataFrame:
    """Intervals of a run, cut where a job changes queue (section 3.2.3).

    A job returns to the first queue after a wait of ``promote_knob`` times its run time so far. The
    run time counts from zero again.
    """
    limits = [*thresholds, math.inf]
    rows: list[tuple[object, float, float, float, int, str]] = []
    for job, spans in result.intervals.groupby("job_id", sort=False):
        clock = 0.0
        queue = 0
        last_end = math.nan
        ordered = spans.sort_values("start")[["start", "end", "gpus"]].to_numpy(float)
        for at, end, gpus in ordered.tolist():
            event = "start" if math.isnan(last_end) else "resume"
            if at - last_end >= promote_knob * clock:
                clock = 0.0
                queue = 0
                event = "promoted"
            while at < end:
                until = min(end, at + limits[queue] / gpus - clock)
                if until > at:
                    rows.append((job, at, until, gpus, queue + 1, event))
                clock = clock + until - at
                at = until
                event = "demoted"
                # A cut before the end is at the threshold, although the rounded service may be
                # below. At the end of an interval the service may still be below the threshold.
                queue += until < end or clock * gpus >= limits[queue]
            last_end = end
    columns = ["job_id", "start", "end", "gpus", "queue", "event"]
    return pd.DataFrame(rows, columns=columns).sort_values("start", ignore_index=True)


def attained(result: Result, times: Sequence[float]) -> pd.DataFrame:
    """Attained service W_J t_J (GPU-seconds) of each job at some times; NaN if it is absent."""
    rows = []
    jobs = result.jobs
    lifetimes = zip(jobs["job_id"], jobs["submit_time"], jobs["end_time"], strict=True)
    for job, submitted, ended in lifetimes:
        of_job = result.intervals[result.intervals["job_id"] == job]
        start, end, gpus = of_job[["start", "end", "gpus"]].to_numpy(float).T
        for time in map(float, times):
            served = float((np.clip(np.minimum(end, time) - start, 0.0, None) * gpus).sum())
            rows.append((job, time, served if submitted <= time <= ended else math.nan))
    return pd.DataFrame(rows, columns=["job_id", "time", "attained"])


def gittins_by_definition(
    samples: Sequence[float], attained_service: float, quanta: npt.ArrayLike
) -> float:
    """Gittins index by Pseudocode 1: max_D P(S - a <= D | S > a) / E[min(S - a, D) | S > a]."""
    remaining = np.asarray(samples, float)[:, None] - attained_service
    remaining = remaining[remaining[:, 0] > 0]
    if not len(remaining):
        return 0.0
    quantum = np.atleast_1d(np.asarray(quanta, float))[None, :]
    ending = (remaining <= quantum).mean(axis=0)
    return float((ending / np.minimum(remaining, quantum).mean(axis=0)).max())
