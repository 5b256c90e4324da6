"""Muri's testbed over time: queue, blocking index, utilisation of resources (Fig 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import nnls

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.base.units import HOUR_S
from repro.figures.points import thinned
from repro.files.tables import ModelTable
from repro.model.records import Result
from repro.papers.muri.job_log import Fit
from repro.perf.stages import MERGED_COLUMNS, busy_per_period

if TYPE_CHECKING:
    from repro.figures.figure import FigureRun

#: Measured column -> label.
LABELS = {
    "queue_length": "jobs waiting",
    "blocking_index": "blocking index",
    "gpu_percent": "GPU busy (%)",
    "cpu_percent": "CPU busy (%)",
    "io_mb_s": "reads (MB/s per node)",
}
_LOGS = ModelTable("muri_logs.csv", ("policy", "hour", *LABELS))
_NODE_GPUS = 8
#: A remainder of fewer iterations than this is a rounding error.
_ROUNDING = 1e-6


def logs() -> pd.DataFrame:
    """Log of the testbed at the instants of the paper's figure, by policy and hour."""
    return _LOGS.frame


def over_time(
    result: Result,
    trace: pd.DataFrame,
    step: float,
    sample_kb: Mapping[str, float],
    cpu_level: Mapping[str, float],
) -> pd.DataFrame:
    """State of the cluster every ``step`` seconds up to the last completion.

    ``sample_kb`` is the mean size of a sample (kB), and ``cpu_level`` the part of its CPUs that a
    job alone keeps busy, both by model. A job has CPUs in proportion to its GPUs.
    """
    times = np.arange(0.0, result.jobs["end_time"].max(), step)
    columns = {
        "hours": times / HOUR_S,
        "queue_length": queue_length(result, times),
        "blocking_index": blocking_index(result, trace, times),
        "gpu_percent": 100 * gpu_busy(result, trace, times),
        "cpu_percent": 100 * cpu_busy(result, trace, cpu_level, times),
        "io_mb_s": reads(result, trace, sample_kb, times),
    }
    return pd.DataFrame(columns)


def at_logged_instants(state: pd.DataFrame, log: pd.DataFrame) -> pd.DataFrame:
    """Log and state at the instants that are compared: policy, hour, quantity, published, ours.

    ``state`` has the rows of `over_time` by policy. Of several rows within 0.05 h of an instant the
    nearest counts. After the last completion the state is 0.

    Raises
    ------
    ParamError
        If ``state`` has no rows of a policy of the log, or none near an instant before its last
        completion.
    """
    logged = log.melt(["policy", "hour"], var_name="column", value_name="published")
    logged = thinned(logged, ["policy", "column"])
    simulated = state.melt(["policy", "hours"], list(LABELS), "column", "ours")
    logged["hours"] = logged["hour"].round(1)
    instants = simulated["hours"].round(1)
    distances = (simulated["hours"] - instants).abs().to_numpy()
    simulated = simulated.assign(hours=instants).iloc[np.argsort(distances, kind="stable")]
    simulated = simulated.drop_duplicates(["policy", "column", "hours"])
    rows = logged.merge(simulated, on=["policy", "column", "hours"], how="left")
    last_hours = rows["policy"].map(simulated.groupby("policy")["hours"].max())
    missing = rows.loc[last_hours.isna(), "policy"]
    if len(missing):
        raise ParamError(
            f"policy {missing.iloc[0]!r} of the log has no rows in the state; simulate it too, or "
            "leave it out of the log"
        )
    gaps = rows[rows["ours"].isna() & (rows["hours"] <= last_hours)]
    if len(gaps):
        policy, hour = gaps[["policy", "hour"]].iloc[0]
        raise ParamError(
            f"policy {policy!r} has no state within 0.05 h of hour {hour:g}; give a step_s of at "
            "most 360 s"
        )
    return rows.fillna({"ours": 0.0}).assign(quantity=rows["column"].map(LABELS))


def smoothed(state: pd.DataFrame, hours: int) -> pd.DataFrame:
    """Curves to plot: utilisation as a centred moving average over ``hours``.

    A blocking index of 0 becomes NaN because the axis is logarithmic.
    """
    noisy = ["gpu_percent", "cpu_percent", "io_mb_s"]
    by_time = state.set_index(pd.to_timedelta(state["hours"], unit="h"))
    means = by_time.groupby("policy", sort=False)[noisy].rolling(f"{hours}h", center=True).mean()
    # the means are in order of policies
    policy_numbers = state.groupby("policy", sort=False).ngroup().to_numpy()
    order = np.argsort(policy_numbers, kind="stable")
    rows_of_state = np.argsort(order)
    smooth = {name: means[name].to_numpy()[rows_of_state] for name in noisy}
    index = state["blocking_index"].where(state["blocking_index"] > 0)
    return state.assign(**smooth, blocking_index=index)


def queue_length(result: Result, times: npt.ArrayLike) -> Floats:
    """Number of jobs that wait for GPUs at each time, (times,).

    An event at one of the times has already happened.
    """
    jobs = result.jobs
    spans = result.intervals
    present = _level(times, jobs["submit_time"], jobs["end_time"], np.ones(len(jobs)))
    return present - _level(times, spans["start"], spans["end"], np.ones(len(spans)))


def blocking_index(result: Result, trace: pd.DataFrame, times: npt.ArrayLike) -> Floats:
    """Mean of queueing delay / remaining work of the waiting jobs, (times,); 0 if no job waits.

    Remaining work is the number of iterations left, rounded up, times the iteration time of the
    trace. Progress accrues on GPUs in proportion to the rate (section 6.2; ``cluster_exp/log.py``).
    """
    instants = np.asarray(times, dtype=float)
    total = np.zeros(instants.size)
    waiting = np.zeros(instants.size)
    spans = result.intervals.sort_values("start")
    rows_of_job: Any = spans.groupby("job_id").indices
    bounds = spans[["start", "end"]].to_numpy(float)
    rates = spans["rate"].to_numpy(float)
    iterations_of = trace.set_index("job_id")[["iterations", "iteration_time"]].T.to_dict("list")
    for job in result.jobs.itertuples():
        rows = rows_of_job[job.job_id]
        edges = bounds[rows].ravel()
        length = edges[1::2] - edges[::2]
        # a job waits only between its submission and its end
        present = np.flatnonzero((instants >= job.submit_time) & (instants < job.end_time))
        # an odd number of edges lies before an instant within an interval
        edges_before = np.searchsorted(edges, instants[present], side="right")
        waits = present[edges_before % 2 == 0]
        waited = instants[waits]
        gpu_time = np.interp(waited, edges, _accumulated(length))
        progress = _accumulated(length * rates[rows])
        share = np.interp(waited, edges, progress) / progress[-1]
        iterations, iteration_s = iterations_of[job.job_id]
        left = np.maximum(1.0, np.ceil(iterations * (1 - share) - _ROUNDING))
        total[waits] += (waited - job.submit_time - gpu_time) / (left * iteration_s)
        waiting[waits] += 1
    return np.divide(total, waiting, out=np.zeros(instants.size), where=waiting > 0)


def gpu_busy(result: Result, trace: pd.DataFrame, times: npt.ArrayLike) -> Floats:
    """Part of the GPUs that are busy, (times,).

    The values are modelled. A GPU is busy in the GPU stages of its group, and in the network stages
    because the all-reduce runs kernels. The GPU stage of a member may overlap the network stage of
    another (`repro.perf.stages.busy_per_period`).
    """
    spans = result.intervals
    rows = trace.set_index("job_id")
    stages = dict(
        zip(rows.index, rows[list(MERGED_COLUMNS)].itertuples(index=False, name=None), strict=True)
    )
    # seconds per iteration alone
    alone_s = result.jobs.set_index("job_id")["duration"] / rows["iterations"]
    spans = spans.assign(iteration_s=spans["job_id"].map(alone_s) / spans["rate"])
    starts: list[float] = []
    ends: list[float] = []
    shares: list[float] = []
    spans = spans.sort_values("end")
    group_numbers = spans.groupby(["group", "start"], sort=False).ngroup().to_numpy()
    # the spans of a group follow one another, sorted by end
    spans = spans.iloc[np.argsort(group_numbers, kind="stable")]
    job_of_span = spans["job_id"].tolist()
    start_of_span = spans["start"].tolist()
    used_of_span = (spans["used"].astype(float) / result.meta["num_gpus"]).tolist()
    end_of_span = spans["end"].tolist()
    iteration_s_of_span = spans["iteration_s"].tolist()
    last = 0
    for size in np.bincount(group_numbers).tolist():
        first = last
        last += size
        begin = start_of_span[first]
        # if a member ends between two decisions, the others go on
        for span in range(first, last):
            group = tuple(sorted(stages[job] for job in job_of_span[span:last]))
            busy = min(1.0, busy_per_period(group) / iteration_s_of_span[span])
            starts.append(begin)
            ends.append(end_of_span[span])
            shares.append(used_of_span[first] * busy)
            begin = end_of_span[span]
    return _level(times, pd.Series(starts), pd.Series(ends), shares)


def cpu_busy(
    result: Result, trace: pd.DataFrame, cpu_level: Mapping[str, float], times: npt.ArrayLike
) -> Floats:
    """Part of the CPUs that are busy, (times,): the level of each model times the rate of its jobs.

    ``cpu_level`` is the part of its CPUs that a job alone keeps busy, by model. A job has CPUs in
    proportion to its GPUs.
    """
    spans = result.intervals
    models = spans["job_id"].map(trace.set_index("job_id")["model"])
    level = models.map(cpu_level).fillna(0.0)
    gpus = spans["used"] / result.meta["num_gpus"]
    return _level(times, spans["start"], spans["end"], gpus * spans["rate"] * level)


def fitted_cpu_levels(fig: FigureRun, trace: pd.DataFrame, fit: Fit) -> dict[str, float]:
    """`cpu_levels` of a run of the fitted policy on the cluster of the parameter file.

    The input ``fitted`` names the policy. Its log is that of the paper's cluster, whatever cluster
    the figure runs on.
    """
    inputs = fig.inputs
    name = inputs.fitted
    settings = fit.settings(inputs.interval, inputs.warm_up[name])
    cluster = fig.file_inputs.cluster
    runs = fig.run_all(trace, {name: inputs.policies[name]}, cluster=cluster, **settings)
    log = logs()
    return cpu_levels(runs[name], trace, log[log["policy"] == name])


def cpu_levels(result: Result, trace: pd.DataFrame, log: pd.DataFrame) -> dict[str, float]:
    """CPU level of each model, fitted to the CPU use in the log of one run.

    Non-negative least squares of the relative errors at the instants of the log at which CPUs were
    busy. ``result`` is the simulation of this run.
    """
    busy = log[log["cpu_percent"] > 0]
    instants = busy["hour"].to_numpy() * HOUR_S
    models = sorted(trace["model"].unique())
    parts = [cpu_busy(result, trace, {model: 1.0}, instants) for model in models]
    factors = np.column_stack(parts) * 100 / busy["cpu_percent"].to_numpy()[:, None]
    levels, _ = nnls(factors, np.ones(len(busy)))
    return dict(zip(models, map(float, levels), strict=True))


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
