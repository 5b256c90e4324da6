"""Muri's testbed over time: queue, blocking index, utilisation of resources (Fig 8)."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro.base.typing import Floats
from repro.figures.points import thinned
from repro.files.tables import ModelTable
from repro.model.records import Result

#: Measured column -> label.
LABELS = {
    "queue_length": "jobs waiting",
    "blocking_index": "blocking index",
    "gpu_percent": "GPU busy (%)",
    "cpu_percent": "CPU busy (%)",
    "io_mb_s": "reads (MB/s per node)",
}
#: Resource of the log -> stages of a trace that keep it busy. The all-reduce runs kernels on the
#: GPU. Muri's traces have one data stage, ``stage_storage``, which includes preprocessing on CPUs.
STAGES = {"gpu_percent": ["stage_gpu", "stage_network"], "cpu_percent": ["stage_storage"]}
HOUR_S = 3600.0
_LOGS = ModelTable("muri_logs.csv", ("policy", "hour", *LABELS))
_NODE_GPUS = 8


def logs() -> pd.DataFrame:
    """Log of the testbed at the instants of the paper's figure, by policy and hour."""
    return _LOGS.frame


def over_time(
    result: Result, trace: pd.DataFrame, step: float, sample_kb: Mapping[str, float]
) -> pd.DataFrame:
    """State of the cluster every ``step`` seconds up to the last completion."""
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


def at_logged_instants(state: pd.DataFrame, log: pd.DataFrame) -> pd.DataFrame:
    """Log and state at the instants that are compared: policy, hour, quantity, published, ours.

    ``state`` has the rows of `over_time` by policy. After the last completion it is 0.
    """
    logged = log.melt(["policy", "hour"], var_name="column", value_name="published")
    logged = thinned(logged, ["policy", "column"])
    simulated = state.melt(["policy", "hours"], list(LABELS), "column", "ours")
    logged["hours"] = logged["hour"].round(1)
    simulated["hours"] = simulated["hours"].round(1)
    rows = logged.merge(simulated, on=["policy", "column", "hours"], how="left")
    return rows.fillna({"ours": 0.0}).assign(quantity=rows["column"].map(LABELS))


def smoothed(state: pd.DataFrame, hours: int) -> pd.DataFrame:
    """Curves to plot: utilisation as a centred moving average over ``hours``.

    A blocking index of 0 becomes NaN because the axis is logarithmic.
    """
    noisy = ["gpu_percent", "cpu_percent", "io_mb_s"]
    by_time = state.set_index(pd.to_timedelta(state["hours"], unit="h"))
    means = by_time.groupby("policy", sort=False)[noisy].rolling(f"{hours}h", center=True).mean()
    index = state["blocking_index"].where(state["blocking_index"] > 0)
    return state.assign(**{name: means[name].to_numpy() for name in noisy}, blocking_index=index)


def queue_length(result: Result, times: npt.ArrayLike) -> Floats:
    """Number of jobs that wait for GPUs at each time, (times,).

    An event at one of the times has already happened.
    """
    jobs = result.jobs
    spans = result.intervals
    present = _level(times, jobs["submit_time"], jobs["end_time"], np.ones(len(jobs)))
    return present - _level(times, spans["start"], spans["end"], np.ones(len(spans)))


def blocking_index(result: Result, times: npt.ArrayLike) -> Floats:
    """Mean of queueing delay / remaining work of the waiting jobs, (times,); 0 if no job waits.

    Progress accrues on GPUs in proportion to the rate (section 6.2; ``cluster_exp/log.py``).
    """
    instants = np.asarray(times, dtype=float)
    total = np.zeros(instants.size)
    waiting = np.zeros(instants.size)
    spans = result.intervals.sort_values("start")
    for job in result.jobs.itertuples():
        rows = spans[spans["job_id"] == job.job_id]
        edges = rows[["start", "end"]].to_numpy(float).ravel()
        length = edges[1::2] - edges[::2]
        gpu_time = np.interp(instants, edges, _accumulated(length))
        progress = _accumulated(length * rows["rate"].to_numpy(float))
        share = np.interp(instants, edges, progress) / progress[-1]
        # an odd number of edges lies before an instant within an interval
        is_running = np.searchsorted(edges, instants, side="right") % 2 == 1
        waits = (instants >= job.submit_time) & (instants < job.end_time) & ~is_running
        remaining = job.duration * (1 - share[waits])
        total[waits] += (instants[waits] - job.submit_time - gpu_time[waits]) / remaining
        waiting[waits] += 1
    return np.divide(total, waiting, out=np.zeros(instants.size), where=waiting > 0)


def busy_share(
    result: Result, trace: pd.DataFrame, stages: Sequence[str], times: npt.ArrayLike
) -> Floats:
    """Part of the GPUs whose group is in one of these stages, (times,).

    A model: the members of a group use a resource one after the other in every period.
    """
    spans = result.intervals
    duration = result.jobs.set_index("job_id")["duration"]
    trace_rows = trace.set_index("job_id")
    stage = trace_rows[list(stages)].sum(axis=1) * trace_rows["iterations"] / duration
    busy = spans.assign(share=spans["rate"] * spans["job_id"].map(stage)).sort_values("end")
    # if a member of a group ends between two decisions, the other members go on
    members = busy.groupby(["group", "start"])
    begin = members["end"].shift().fillna(busy["start"])
    group_share = busy[::-1].groupby(["group", "start"])["share"].cumsum().clip(upper=1)
    gpu_share = busy["used"] / result.meta["num_gpus"]
    return _level(times, begin, busy["end"], group_share.loc[busy.index] * gpu_share)


def reads(
    result: Result, trace: pd.DataFrame, sample_kb: Mapping[str, float], times: npt.ArrayLike
) -> Floats:
    """Mean read rate of a node, (times,) MB/s, as the artifact's log computes it.

    It is samples per second times the mean size of a sample.
    """
    spans = result.intervals
    duration = result.jobs.set_index("job_id")["duration"]
    rows = trace.set_index("job_id")
    size = rows["model"].map(sample_kb).fillna(0.0) / 1024
    rate = spans["job_id"].map(size * rows["batch_size"] * rows["iterations"] / duration)
    gpus = spans["used"] * _NODE_GPUS / result.meta["num_gpus"]
    return _level(times, spans["start"], spans["end"], spans["rate"] * rate * gpus)


def _level(times: npt.ArrayLike, start: pd.Series, end: pd.Series, weight: npt.ArrayLike) -> Floats:
    """Total weight of the spans [start, end) that cover each instant, (times,)."""
    edges = np.concatenate([start.to_numpy(float), end.to_numpy(float)])
    change = np.concatenate([np.asarray(weight, float), -np.asarray(weight, float)])
    order = np.argsort(edges, kind="stable")
    level = np.concatenate([[0.0], np.cumsum(change[order])])
    total = level[np.searchsorted(edges[order], np.asarray(times, float), side="right")]
    return np.asarray(np.where(np.abs(total) < 1e-9, 0.0, total))


def _accumulated(lengths: Floats) -> Floats:
    """Accumulated length at the beginning and end of each span, (2 * spans,)."""
    ends = np.cumsum(lengths)
    return np.column_stack([ends - lengths, ends]).ravel()
