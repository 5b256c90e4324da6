"""Muri's testbed over time: queue, blocking index, how busy each resource is (Fig 8)."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro.base.typing import Floats
from repro.files.tables import ModelTable
from repro.model.records import Result

#: What the testbed measured and what it is called here.
LABELS = {
    "queue_length": "jobs waiting",
    "blocking_index": "blocking index",
    "gpu_percent": "GPU busy (%)",
    "cpu_percent": "CPU busy (%)",
    "io_mb_s": "reads (MB/s per node)",
}
#: Stages of a trace that keep a resource busy: kernels of the all-reduce run on the GPU.
STAGES = {"gpu_percent": ["stage_gpu", "stage_network"], "cpu_percent": ["stage_storage"]}
HOUR_S = 3600.0
_LOGS = ModelTable("muri_logs.csv", ("policy", "hour", *LABELS))
_NODE_GPUS = 8


def logs() -> pd.DataFrame:
    """Return what the testbed logged, at the instants that the paper draws, by policy and hour."""
    return _LOGS.frame


def over_time(
    result: Result, trace: pd.DataFrame, step: float, sample_kb: Mapping[str, float]
) -> pd.DataFrame:
    """Return the state of the cluster every ``step`` seconds up to the last completion."""
    times = np.arange(0.0, result.jobs["end_time"].max(), step)
    columns = {
        "hours": times / HOUR_S,
        "queue_length": queue_length(result, times),
        "blocking_index": blocking_index(result, times),
    }
    for name, stages in STAGES.items():
        columns[name] = 100 * busy_share(result, trace, stages, times)
    columns["io_mb_s"] = reads(result, trace, sample_kb, times)
    return pd.DataFrame(columns)


def smoothed(state: pd.DataFrame, hours: int) -> pd.DataFrame:
    """Return curves fit to be drawn: utilisation averaged over some hours around each instant.

    A blocking index of zero, for which a logarithmic axis has no place, becomes NaN.
    """
    noisy = ["gpu_percent", "cpu_percent", "io_mb_s"]
    at = state.set_index(pd.to_timedelta(state["hours"], unit="h"))
    means = at.groupby("policy", sort=False)[noisy].rolling(f"{hours}h", center=True).mean()
    waits = state["blocking_index"].where(state["blocking_index"] > 0)
    return state.assign(**{name: means[name].to_numpy() for name in noisy}, blocking_index=waits)


def queue_length(result: Result, times: npt.ArrayLike) -> Floats:
    """Return how many jobs have arrived and hold no GPUs; at an event, after it."""
    jobs = result.jobs
    spans = result.intervals
    here = _level(times, jobs["submit_time"], jobs["end_time"], np.ones(len(jobs)))
    return here - _level(times, spans["start"], spans["end"], np.ones(len(spans)))


def blocking_index(result: Result, times: npt.ArrayLike) -> Floats:
    """Return the mean over waiting jobs of time waited so far over time still to run alone, or 0.

    Progress is spread over the time on GPUs by speed (section 6.2; ``cluster_exp/log.py``).
    """
    at = np.asarray(times, dtype=float)
    total = np.zeros(at.size)
    waiting = np.zeros(at.size)
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
    result: Result, trace: pd.DataFrame, stages: Sequence[str], times: npt.ArrayLike
) -> Floats:
    """Return the share of GPUs whose group is in one of some stages of a trace.

    A model, not a measurement: members of a group use it one after the other in every period.
    """
    spans = result.intervals
    alone = result.jobs.set_index("job_id")["duration"]
    jobs = trace.set_index("job_id")
    stage = jobs[list(stages)].sum(axis=1) * jobs["iterations"] / alone
    part = spans.assign(share=spans["rate"] * spans["job_id"].map(stage)).sort_values("end")
    # a member that ends between two decisions leaves the others to go on
    members = part.groupby(["group", "start"])
    begin = members["end"].shift().fillna(part["start"])
    left = part[::-1].groupby(["group", "start"])["share"].cumsum().clip(upper=1)
    held = part["used"] / result.meta["num_gpus"]
    return _level(times, begin, part["end"], left.loc[part.index] * held)


def reads(
    result: Result, trace: pd.DataFrame, sample_kb: Mapping[str, float], times: npt.ArrayLike
) -> Floats:
    """Return what the jobs of a node read (MB/s), as logged: samples times their mean size."""
    spans = result.intervals
    alone = result.jobs.set_index("job_id")["duration"]
    jobs = trace.set_index("job_id")
    size = jobs["model"].map(sample_kb).fillna(0.0) / 1024
    rate = spans["job_id"].map(size * jobs["batch_size"] * jobs["iterations"] / alone)
    gpus = spans["used"] * _NODE_GPUS / result.meta["num_gpus"]
    return _level(times, spans["start"], spans["end"], spans["rate"] * rate * gpus)


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
