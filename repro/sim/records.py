"""The product of a run: one row per job, one row per interval of holding GPUs, nothing else."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from repro.sim.jobs import JobTable

Nodes = tuple[tuple[int, int], ...]


class Intervals:
    """Growing columns: job, start, end, GPUs charged and used, rate, leader, nodes, GPU type."""

    def __init__(self, tracks_nodes: bool, typed: bool) -> None:
        self.job = array("q")
        self.start = array("d")
        self.end = array("d")
        self.gpus = array("d")
        self.used = array("d")
        self.rate = array("d")
        self.leader = array("q")
        self.nodes: list[Nodes] | None = [] if tracks_nodes else None
        self.gpu_type: list[str | None] | None = [] if typed else None

    def add(
        self,
        job: int,
        start: float,
        end: float,
        gpus: float,
        used: float,
        rate: float,
        leader: int,
        nodes: Nodes,
        gpu_type: str | None = None,
    ) -> None:
        """Append one interval."""
        self.job.append(job)
        self.start.append(start)
        self.end.append(end)
        self.gpus.append(gpus)
        self.used.append(used)
        self.rate.append(rate)
        self.leader.append(leader)
        if self.nodes is not None:
            self.nodes.append(nodes)
        if self.gpu_type is not None:
            self.gpu_type.append(gpu_type)


@dataclass(frozen=True)
class Result:
    """Records of one run.

    Parameters
    ----------
    jobs : DataFrame
        One row per job in trace order: job_id, submit_time, start_time, end_time, jct, num_gpus,
        duration (alone, at the GPUs asked for), queueing (= jct - duration), preemptions,
        promotions, model if known. Seconds.
    intervals : DataFrame
        job_id, start, end (s), gpus (of GPUs that several jobs use: its share), used (GPUs it
        runs on, shared or not), rate (speed relative to running alone), group (id of the first job
        of the group, its own for a job alone), nodes (if the placement tracks them), gpu_type (if
        the cluster has types; None where the policy chose none or several at once).
    meta : dict
        policy, trace, cluster, num_gpus, rules, placement, overhead_s, wall_s.
    """

    jobs: pd.DataFrame
    intervals: pd.DataFrame
    meta: dict[str, Any] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Return the object ``repro simulate --json`` prints.

        Returns
        -------
        dict
            Times in seconds; percentiles interpolate linearly; utilisation is held GPU-time over
            GPUs times makespan.
        """
        from repro.metrics import summarise

        return summarise(self)


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
            "submit_time": submit,
            "start_time": np.where(np.isinf(start), np.nan, start),
            "end_time": end,
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
    ids = frame["job_id"].to_numpy()
    rows, leaders = (np.array(column, np.int64) for column in (intervals.job, intervals.leader))
    spans = pd.DataFrame(
        {
            "job_id": ids[rows],
            "start": np.array(intervals.start),
            "end": np.array(intervals.end),
            "gpus": np.array(intervals.gpus),
            "used": np.array(intervals.used),
            "rate": np.array(intervals.rate),
            "group": ids[leaders],
        }
    )
    if intervals.nodes is not None:
        spans["nodes"] = pd.Series(intervals.nodes, dtype=object)
    if intervals.gpu_type is not None:
        spans["gpu_type"] = pd.Series(intervals.gpu_type, dtype=object)
    return Result(jobs, spans, meta)
