"""Muri's testbed over time: queue length, blocking index, and how busy each resource is (Fig 8)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro.core.records import Result, durations
from repro.typing import Floats

#: Resource to the stage column of a trace.
STAGES = {"data": "stage_storage", "gpu": "stage_gpu", "network": "stage_network"}
#: Columns of Figure 8 and what they are called.
LABELS = {
    "queue_length": "jobs waiting",
    "blocking_index": "blocking index",
    "gpu_percent": "GPU busy (%)",
    "data_percent": "data stage busy (%)",
}
HOUR_S = 3600.0


def series(
    results: Mapping[str, Result], trace: pd.DataFrame, step: float, drawn: float
) -> pd.DataFrame:
    """Return `over_time` under several policies, averaged over spans of ``drawn`` seconds."""
    parts = []
    for policy, result in results.items():
        table = over_time(result, trace, step)
        spans = (table["hours"] * HOUR_S // drawn * drawn / HOUR_S).rename("hours")
        mean = table.drop(columns="hours").groupby(spans).mean().reset_index()
        mean.insert(0, "policy", policy)
        parts.append(mean)
    return pd.concat(parts, ignore_index=True)


def means(
    results: Mapping[str, Result],
    trace: pd.DataFrame,
    step: float,
    published: Sequence[Mapping[str, Any]] = (),
) -> pd.DataFrame:
    """Return means over each run, and those of the testbed's logs (``<column>_log``)."""
    rows = []
    for policy, result in results.items():
        mean, longest = queue_summary(result)
        row = {"policy": policy, "queue_length": mean, "queue_max": longest}
        row["blocking_index"] = float(blocking_index(result, _instants(result, step)).mean())
        for name in STAGES:
            row[f"{name}_percent"] = 100 * float(busy_share(result, trace, name))
        rows.append(row)
    logs = pd.DataFrame(list(published), columns=["policy", *LABELS])
    return pd.DataFrame(rows).merge(logs, on="policy", how="left", suffixes=("", "_log"))


def over_time(result: Result, trace: pd.DataFrame, step: float) -> pd.DataFrame:
    """Return the state of the cluster every ``step`` seconds up to the last completion."""
    times = _instants(result, step)
    columns = {
        "hours": times / HOUR_S,
        "queue_length": queue_length(result, times),
        "blocking_index": blocking_index(result, times),
    }
    for name in STAGES:
        columns[f"{name}_percent"] = 100 * busy_share(result, trace, name, times)
    return pd.DataFrame(columns)


def _instants(result: Result, step: float) -> Floats:
    return np.arange(0.0, result.jobs["end_time"].max(), step)


def queue_length(result: Result, times: npt.ArrayLike) -> Floats:
    """Return how many jobs have arrived and hold no GPUs; at an event, after it."""
    jobs, spans = result.jobs, result.intervals
    here = _level(times, jobs["submit_time"], jobs["end_time"], np.ones(len(jobs)))
    return here - _level(times, spans["start"], spans["end"], np.ones(len(spans)))


def queue_summary(result: Result) -> tuple[float, float]:
    """Return the mean from time 0 to the last completion, and the maximum, of the queue length."""
    jobs, spans = result.jobs, result.intervals
    waited = float(jobs["jct"].sum()) - float(durations(result).sum())
    events = np.unique(np.concatenate([jobs["submit_time"], spans["start"], spans["end"]]))
    return waited / float(jobs["end_time"].max()), float(queue_length(result, events).max())


def blocking_index(result: Result, times: npt.ArrayLike) -> Floats:
    """Return the mean over waiting jobs of time waited so far over time still to run alone, or 0.

    Progress is spread over the time on GPUs by speed (section 6.2; ``cluster_exp/log.py``).
    """
    at = np.asarray(times, dtype=float)
    total, waiting = np.zeros(at.size), np.zeros(at.size)
    spans = result.intervals.sort_values("start")
    for job in result.jobs.itertuples():
        rows = spans[spans["job_id"] == job.job_id]
        edges = rows[["start", "end"]].to_numpy(float).ravel()
        length = edges[1::2] - edges[::2]
        held = np.interp(at, edges, _stairs(length))
        progress = _stairs(length * rows["rate"].to_numpy(float))
        share = np.interp(at, edges, progress) / progress[-1]
        inside = np.searchsorted(edges, at, side="right")
        idle = (at >= job.submit_time) & (at < job.end_time) & (inside % 2 == 0)
        left = job.duration * (1 - share[idle])
        total[idle] += (at[idle] - job.submit_time - held[idle]) / left
        waiting[idle] += 1
    return np.divide(total, waiting, out=np.zeros(at.size), where=waiting > 0)


def busy_share(
    result: Result, trace: pd.DataFrame, resource: str, times: npt.ArrayLike | None = None
) -> Floats:
    """Return the share of GPUs whose group uses a resource of `STAGES`; its mean without times.

    A model, not a measurement: members of a group use it one after the other in every period.
    """
    alone = result.jobs.set_index("job_id")["duration"]
    jobs = trace.set_index("job_id")
    stage = jobs[STAGES[resource]] * jobs["iterations"] / alone
    spans = result.intervals
    share = spans["rate"] * spans["job_id"].map(stage)
    keys = [spans["group"], spans["start"], spans["end"]]
    grouped = share.groupby(keys).sum().clip(upper=1).rename("share")
    held = spans["used"].groupby(keys).first()
    part = (grouped * held / result.meta["num_gpus"]).reset_index(name="share")
    if times is None:
        length = part["end"] - part["start"]
        return np.asarray((part["share"] * length).sum() / result.jobs["end_time"].max())
    return _level(times, part["start"], part["end"], part["share"])


def _level(times: npt.ArrayLike, start: pd.Series, end: pd.Series, weight: npt.ArrayLike) -> Floats:
    """Return the summed weight of the spans that cover each instant (start in, end out)."""
    edges = np.concatenate([start.to_numpy(float), end.to_numpy(float)])
    change = np.concatenate([np.asarray(weight, float), -np.asarray(weight, float)])
    order = np.argsort(edges, kind="stable")
    level = np.concatenate([[0.0], np.cumsum(change[order])])
    found = level[np.searchsorted(edges[order], np.asarray(times, float), side="right")]
    return np.asarray(np.where(np.abs(found) < 1e-9, 0.0, found))


def _stairs(lengths: Floats) -> Floats:
    """Return what has accumulated at the beginning and end of each of several spans."""
    ends = np.cumsum(lengths)
    return np.column_stack([ends - lengths, ends]).ravel()
