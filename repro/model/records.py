"""The product of a run: one row per job, one row per interval of holding GPUs, nothing else."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from repro.base.typing import Floats
from repro.model.jobs import JobTable
from repro.model.rules import RULES

Nodes = tuple[tuple[int, int], ...]


class Intervals:
    """Who held GPUs when, in numbers.

    Job, leader, start, end, GPUs charged and used, rate, number of the GPU type in `types`.
    """

    def __init__(
        self, tracks_nodes: bool, gpu_types: Iterable[str], takes_wishes: bool = False
    ) -> None:
        #: one interval after the other, and many at once from compiled loops, a line per column
        self.rows = array("d")
        self.blocks = list[Floats]()
        self.nodes: list[Nodes] | None = [] if tracks_nodes else None
        #: nodes of the tasks, parameter servers first
        self.tasks: list[tuple[int, ...]] | None = [] if takes_wishes else None
        names = [*sorted(gpu_types), None]
        self.types = dict(zip(names, [*range(len(names) - 1), -1], strict=True))

    def frame(self, ids: np.ndarray[Any, Any]) -> pd.DataFrame:
        """Return the intervals of `Result`; ``ids`` are the names of the jobs."""
        columns = [np.array(self.rows).reshape(-1, 8).T, *self.blocks]
        job, leader, *numbers, gpu_type = np.concatenate(columns, axis=1)
        times = dict(zip(("start", "end", "gpus", "used", "rate"), numbers, strict=True))
        spans = pd.DataFrame(
            {"job_id": ids[job.astype(np.int64)], **times, "group": ids[leader.astype(np.int64)]}
        )
        if self.nodes is not None:
            # without rounds nobody has a place
            places = self.nodes + [()] * (len(spans) - len(self.nodes))
            spans["nodes"] = pd.Series(places, dtype=object)
        if self.tasks is not None:
            spans["tasks"] = pd.Series(self.tasks, dtype=object)
        if len(names := list(self.types)) > 1:
            types = [names[number] for number in gpu_type.astype(int).tolist()]
            spans["gpu_type"] = pd.Series(types, dtype=object)
        return spans


@dataclass(frozen=True)
class Result:
    """Records of one run.

    Parameters
    ----------
    jobs : DataFrame
        One row per job in trace order: job_id, submit_time, start_time, end_time, jct, num_gpus,
        duration (alone, at the GPUs asked for), queueing (= jct - duration), preemptions,
        promotions, model if known. Of divisible GPUs fair_jct (in a fair share of the cluster; PCS,
        section 2) and predicted_jct (at arrival; NaN: not predicted), with the bounds of its
        interval predicted_jct_low and predicted_jct_high if wanted, and job_class (from 0) under a
        policy with classes. Seconds.
    intervals : DataFrame
        job_id, start, end (s), gpus (of GPUs that several jobs use: its share), used (GPUs it
        runs on, shared or not), rate (speed relative to running alone), group (id of the first job
        of the group, its own for a job alone), nodes (if the placement tracks them), tasks (the
        node of each, parameter servers first, if policies wish for places), gpu_type (if the
        cluster has types; None where the policy chose none or several at once).
    meta : dict
        policy, trace, cluster, num_gpus, rules, placement, overhead_s, wall_s (of the run, without
        the time that compiling its loops took).
    """

    jobs: pd.DataFrame
    intervals: pd.DataFrame
    meta: dict[str, Any] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Return the headline numbers, as ``repro simulate --json`` prints them.

        Returns
        -------
        dict
            policy, trace, cluster, n_jobs, n_finished, avg_jct, median_jct, p95_jct, p99_jct,
            makespan, avg_queueing (s; percentiles interpolate linearly), preemptions, utilisation
            (held GPU-time over GPUs times makespan), wall_s, ignored (what the run was given and
            did not use), notes (what loader and run noted about the input), stand_in (what takes
            the place of public data that is not available). Of divisible GPUs avg_pred_err,
            p99_pred_err, avg_unfairness, max_unfairness (%). Of intervals interval_coverage (share
            of them that hold the JCT),
            interval_width (median of width over prediction), without_interval (predicted jobs).
        """
        jobs = self.jobs
        meta = self.meta
        jct = jobs["jct"].dropna().to_numpy()
        span = makespan(self)
        # without intervals it is mostly unknown who held what
        held = meta.get("held_s") or float((self.intervals["gpus"] * durations(self)).sum())
        known = held > 0 and len(jct) == len(jobs)
        percentiles = np.percentile(jct, [50, 95, 99]) if len(jct) else [np.nan] * 3
        if len(jct) and RULES[meta.get("rules", "paper")].p99_by_index:
            percentiles[2] = by_index(jct, 0.99)
            span = float(jobs["end_time"].max())
        return {
            "policy": meta["policy"],
            "trace": meta["trace"],
            "cluster": meta["cluster"],
            "n_jobs": len(jobs),
            "n_finished": len(jct),
            "avg_jct": float(jct.mean()) if len(jct) else float("nan"),
            "median_jct": float(percentiles[0]),
            "p95_jct": float(percentiles[1]),
            "p99_jct": float(percentiles[2]),
            "makespan": span,
            "avg_queueing": float(jobs["queueing"].mean()),
            "preemptions": int(jobs["preemptions"].sum()),
            "utilisation": held / (meta["num_gpus"] * span) if span > 0 and known else np.nan,
            **(_predictability(jobs) if "fair_jct" in jobs else {}),
            **(_intervals(jobs) if "predicted_jct_low" in jobs else {}),
            "wall_s": meta["wall_s"],
            "ignored": meta.get("ignored", {}),
            "notes": meta.get("notes", []),
            "stand_in": meta.get("stand_in", []),
        }


def prediction_errors(jobs: pd.DataFrame) -> pd.Series[float]:
    """Return Pred_err of every job (%): 100 |JCT - predicted JCT| / predicted JCT (PCS, section 2).

    Parameters
    ----------
    jobs : DataFrame
        Records with jct and predicted_jct (s); NaN where nothing was predicted.
    """
    return 100 * (jobs["jct"] - jobs["predicted_jct"]).abs() / jobs["predicted_jct"]


def finish_time_unfairness(jobs: pd.DataFrame) -> pd.Series[float]:
    """Return by how much each job ends later than in a fair share of the cluster (%), 0 if sooner.

    Parameters
    ----------
    jobs : DataFrame
        Records with jct and fair_jct (s), work on one GPU over min(G / N, GPUs asked for) with N
        the mean number of jobs present over the events of the job's life (PCS, section 2).
    """
    return (100 * (jobs["jct"] / jobs["fair_jct"] - 1)).clip(lower=0)


def _predictability(jobs: pd.DataFrame) -> dict[str, float]:
    """Return the summary of predictions and fairness (%)."""
    errors = prediction_errors(jobs)
    unfair = finish_time_unfairness(jobs)
    return {
        "avg_pred_err": float(errors.mean()),
        "p99_pred_err": float(errors.quantile(0.99)),
        "avg_unfairness": float(unfair.mean()),
        "max_unfairness": float(unfair.max()),
    }


def _intervals(jobs: pd.DataFrame) -> dict[str, float]:
    """Return the summary of intervals around predictions."""
    low, high, predicted = (jobs[f"predicted_jct{end}"] for end in ("_low", "_high", ""))
    # the clock knows times to a microsecond
    held = jobs["jct"].between(low - 1e-6, high + 1e-6)[low.notna()]
    return {
        "interval_coverage": float(held.mean()),
        "interval_width": float(((high - low) / predicted).median()),
        "without_interval": int((predicted.notna() & low.isna()).sum()),
    }


def by_index(values: pd.Series[float] | Floats, share: float) -> float:
    """Return value floor(share * N) of the ascending list, as Muri's artifact reads percentiles."""
    data = np.sort(np.asarray(values, dtype=float))
    return float(data[int(share * len(data))])


def durations(result: Result) -> pd.Series[float]:
    """Return the length of every interval (s)."""
    return result.intervals["end"] - result.intervals["start"]


def makespan(result: Result) -> float:
    """Return last completion minus first submission (s)."""
    return float(result.jobs["end_time"].max() - result.jobs["submit_time"].min())


def collect(table: JobTable, intervals: Intervals, index: pd.Index, meta: dict[str, Any]) -> Result:
    """Turn the engine's columns into a `Result` in the order of the trace."""
    frame = table.frame
    submit = np.array(table.submit)
    end = np.array(table.end)
    work = np.array(table.work) * np.array(table.solo)
    start = np.array(table.first_start)
    jobs = pd.DataFrame(
        {
            "job_id": frame["job_id"],
            "submit_time": submit + table.clock_start_s,
            "start_time": np.where(np.isinf(start), np.nan, start) + table.clock_start_s,
            "end_time": end + table.clock_start_s,
            "jct": end - submit,
            "num_gpus": np.array(table.gpus),
            "duration": work,
            "queueing": end - submit - work,
            "preemptions": np.array(table.preemptions),
            "promotions": np.array(table.promotions),
        }
    )
    if "model" in frame:
        jobs["model"] = frame["model"]
    jobs.index = index
    jobs = jobs.sort_index().reset_index(drop=True)
    spans = intervals.frame(frame["job_id"].to_numpy())
    spans[["start", "end"]] += table.clock_start_s
    return Result(jobs, spans, meta)
