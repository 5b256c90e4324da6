"""Tables of the Philly trace for its stand-in: rates, gaps, ranks, quantiles."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pandas as pd

from repro.base.errors import TraceError
from repro.base.typing import Flags
from repro.trace.synth.philly import (
    HOUR_S,
    PROBE_PERIOD_S,
    RANK_UNIT,
    RATES,
    SINGLE_LEVELS,
    WIDE_LEVELS,
    rank_columns,
)

WEEK_H = 168
#: Successive jobs whose durations are summarised together, for single-GPU and for wider jobs. Runs
#: are short, so that bursts of similar jobs and rare long jobs stay in place. Queueing depends on
#: them.
SINGLE_RUN = 48
WIDE_RUN = 5
#: Largest deviation of a probe from the period (s), and longest probe (s).
PROBE_TOLERANCE_S = 20
PROBE_LONGEST_S = 300
_EVEN_LEVELS = np.linspace(0, 1, 41)[:-1]
GAP_LEVELS = (*_EVEN_LEVELS, 0.985, 0.99, 0.995, 0.999, 1.0)
DURATION_LEVELS = (
    0.0,
    0.002,
    0.005,
    0.01,
    0.02,
    0.035,
    *np.linspace(0.05, 0.95, 37),
    0.96,
    0.97,
    0.98,
    0.985,
    0.99,
    0.9925,
    0.995,
    0.9965,
    0.998,
    0.999,
    0.9994,
    0.9997,
    0.9999,
    1.0,
)


#: The flat file has local times: from 2 a.m. on 5 November 2017, this time (s) of the trace, the
#: clocks are an hour behind. PCS's files have no such change.
CLOCKS_BACK_S = 5_326_159.0


def clocks(flat: pd.DataFrame, files: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Start of each virtual cluster's file (s) on the clock of the earliest file.

    The flat file has part of the jobs of every virtual cluster, on one clock. A job is matched by
    its duration and GPUs. Most matches have the same difference of submit times, which is that of
    the two clocks; ``matched`` is their number.
    """
    rows = []
    for vc, jobs in files.items():
        dated = flat[flat["vc"] == vc]
        dated = dated.assign(
            submit_time=dated["submit_time"] + 3600.0 * (dated["submit_time"] > CLOCKS_BACK_S)
        )
        both = [frame.assign(rounded=frame["duration"].round(3)) for frame in (jobs, dated)]
        pairs = both[0].merge(both[1], on=["rounded", "num_gpus"])
        apart = (pairs["submit_time_y"] - pairs["submit_time_x"]).round().value_counts()
        rows.append((vc, float(apart.index[0]), len(jobs), int(apart.iloc[0])))
    table = pd.DataFrame(rows, columns=["vc", "start_s", "jobs", "matched"])
    table["start_s"] -= table["start_s"].min()
    return table


def calibrate(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Measure the tables of the ``philly-like`` generator."""
    if "vc" not in frame:
        raise TraceError("calibrate: the trace has no column vc (virtual cluster); load it whole")
    frame = frame.sort_values("submit_time", kind="stable")
    probe = probes(frame)
    jobs = frame[~probe]
    return {
        "philly_hours": _hours(frame, probe),
        "philly_gaps": _gaps(jobs),
        "philly_durations": _durations(frame, probe),
        "philly_single_runs": _runs(jobs[jobs["num_gpus"] == 1], SINGLE_RUN, SINGLE_LEVELS),
        "philly_wide_runs": _runs(jobs[jobs["num_gpus"] > 1], WIDE_RUN, WIDE_LEVELS),
    }


def probes(frame: pd.DataFrame) -> Flags:
    """Flags of the probes, the short jobs that one virtual cluster submits every ten minutes."""
    candidate = (frame["num_gpus"] == 1) & (frame["duration"] < PROBE_LONGEST_S)
    gaps = frame[candidate].groupby("vc")["submit_time"].diff()
    exact = frame.loc[gaps.index[gaps == PROBE_PERIOD_S]]
    is_probe = np.zeros(len(frame), bool)
    if exact.empty:
        return is_probe
    vc = exact["vc"].value_counts().index[0]
    submit = frame["submit_time"].to_numpy(float)
    phase = float(np.median(exact.loc[exact["vc"] == vc, "submit_time"] % PROBE_PERIOD_S))
    period_number = np.round((submit - phase) / PROBE_PERIOD_S)
    deviation_s = np.abs(submit - phase - period_number * PROBE_PERIOD_S)
    is_on_time = deviation_s <= PROBE_TOLERANCE_S
    rows = np.flatnonzero((candidate & (frame["vc"] == vc)).to_numpy() & is_on_time)
    # The first job of each period is the probe.
    is_probe[rows[np.unique(period_number[rows], return_index=True)[1]]] = True
    return is_probe


def _hours(frame: pd.DataFrame, probe: Flags) -> pd.DataFrame:
    """Number of jobs and of probes submitted in each hour."""
    hour = (frame["submit_time"].to_numpy(float) // HOUR_S).astype(np.int64)
    hours = np.arange(hour[-1] + 1)
    return pd.DataFrame(
        {
            "hour": hours,
            "week": hours // WEEK_H,
            "hour_of_week": hours % WEEK_H,
            "jobs": np.bincount(hour[~probe], minlength=hours.size),
            "probes": np.bincount(hour[probe], minlength=hours.size),
        }
    )


def _gaps(jobs: pd.DataFrame) -> pd.DataFrame:
    """Quantiles of the seconds to the next job, by the jobs submitted in the hour."""
    submit = jobs["submit_time"].to_numpy(float)
    hour = (submit // HOUR_S).astype(np.int64)
    rate = np.searchsorted(RATES, np.bincount(hour)[hour])[:-1]
    gaps = pd.Series(np.diff(submit)).groupby(rate).quantile(np.asarray(GAP_LEVELS))
    table = gaps.rename_axis(["rate", "level"]).rename("gap_s").reset_index()
    table.insert(0, "jobs_per_hour", np.asarray(RATES)[table.pop("rate").astype(int)])
    return table.round({"level": 4, "gap_s": 2})


def _durations(frame: pd.DataFrame, probe: Flags) -> pd.DataFrame:
    """Quantiles of the durations (s) of probes and of jobs, by GPU count."""
    levels = np.asarray(DURATION_LEVELS)
    rows = []
    for stream, jobs in (("probe", frame[probe]), ("job", frame[~probe])):
        for gpus, seconds in jobs.groupby("num_gpus")["duration"]:
            values = np.quantile(seconds, levels).round(1)
            columns = {"stream": stream, "num_gpus": gpus, "jobs": len(seconds)}
            rows.append(pd.DataFrame({**columns, "level": levels.round(4), "duration_s": values}))
    return pd.concat(rows, ignore_index=True)


def _runs(jobs: pd.DataFrame, jobs_per_run: int, levels: tuple[float, ...]) -> pd.DataFrame:
    """Hours, jobs and quantiles of duration ranks of runs of jobs of one GPU count."""
    rows = []
    for gpus, group in jobs.groupby("num_gpus"):
        rank = ((group["duration"].rank() - 0.5) / len(group)).to_numpy(float)
        hour = (group["submit_time"].to_numpy(float) // HOUR_S).astype(np.int64)
        runs = max(1, round(len(group) / jobs_per_run))
        ends = np.round(np.linspace(0, len(group), runs + 1)).astype(int)
        for start, stop in pairwise(ends):
            ranks = np.round(np.quantile(rank[start:stop], levels) * RANK_UNIT).astype(int)
            rows.append((gpus, hour[start], hour[stop - 1], stop - start, *ranks))
    names = ["num_gpus", "first_hour", "last_hour", "jobs", *rank_columns(levels)]
    return pd.DataFrame(rows, columns=names)
