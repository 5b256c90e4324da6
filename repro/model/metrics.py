"""Metrics of the papers, computed from the records (`Result`) of a run."""

from __future__ import annotations

import numpy as np
import pandas as pd

from repro.base.typing import Array
from repro.model.records import Result, durations, makespan


def statistics(values: pd.Series[float] | Array) -> dict[str, float]:
    """Average, median and 95th percentile of values (linear interpolation).

    Parameters
    ----------
    values : array-like of float
        Such as JCTs or queueing delays (s).

    Examples
    --------
    >>> statistics(np.array([1.0, 2.0, 6.0]))["avg"]
    3.0
    """
    data = np.asarray(values, dtype=float)
    median, p95 = np.percentile(data, [50, 95])
    return {"avg": float(data.mean()), "median": float(median), "p95": float(p95)}


def improvement(result: Result, reference: Result, metric: str = "jct") -> dict[str, float]:
    """Factors by which the reference improves on a run (Tiresias section 5.1).

    Parameters
    ----------
    result, reference : Result
        Records under the compared policy, and under the reference (Tiresias-L in the paper).
    metric : str
        Column of ``jobs``.

    Returns
    -------
    dict
        Run over reference: avg, median and p95 of the metric, and makespan.
    """
    values = statistics(result.jobs[metric])
    bases = statistics(reference.jobs[metric])
    factors = {
        name: value / bases[name] if bases[name] else float("nan") for name, value in values.items()
    }
    return factors | {"makespan": makespan(result) / makespan(reference)}


def unfairness(result: Result, fair: Result) -> pd.Series[float]:
    """Unfairness of each job: increase of its JCT over its JCT under a fair policy (%), at least 0.

    Parameters
    ----------
    result, fair : Result
        Records under the policy, and under a fair policy (``max-min`` for PCS Figure 1b).

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> fair = simulate(small_trace(), "1x4", "max-min")
    >>> float(unfairness(fair, fair).max())
    0.0
    """
    return (100 * (result.jobs["jct"] / fair.jobs["jct"] - 1)).clip(lower=0)


def time_by_type(result: Result, until: float = np.inf) -> pd.DataFrame:
    """Time for which each job held GPUs of each type (s), a row per job and a column per type.

    Parameters
    ----------
    result : Result
        Records on a cluster with GPU types.
    until : float
        Instant up to which the time is counted (s).

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> result = simulate(small_trace(), "1x4:v100,1x4:k80", "las-agnostic")
    >>> time_by_type(result, until=360.0).shape
    (6, 2)
    """
    spans = result.intervals[["job_id", "gpu_type"]].copy()
    limit = (until - result.intervals["start"]).clip(lower=0)
    spans["seconds"] = durations(result).clip(upper=limit)
    table = spans.pivot_table("seconds", "job_id", "gpu_type", aggfunc="sum", fill_value=0.0)
    return table.reindex(result.jobs["job_id"], fill_value=0.0)


def bins(jobs: pd.DataFrame, small_gpus: int, short_s: float) -> pd.Series[str]:
    """Bin of each job by size, then length: SS, SL, LS, LL (Tiresias Table 3).

    Parameters
    ----------
    jobs : DataFrame
        Jobs with num_gpus and duration (s).
    small_gpus : int
        Largest demand of a small job (GPUs).
    short_s : float
        Least duration of a long job (s).

    Examples
    --------
    >>> frame = pd.DataFrame({"num_gpus": [1, 8], "duration": [10.0, 900.0]})
    >>> bins(frame, 4, 800).tolist()
    ['SS', 'LL']
    """
    size = np.where(jobs["num_gpus"] <= small_gpus, "S", "L")
    length = np.where(jobs["duration"] < short_s, "S", "L")
    return pd.Series(np.char.add(size, length), index=jobs.index)


def busy_gpus(result: Result, step: float) -> pd.Series[float]:
    """Average number of GPUs held in each time step up to the last completion.

    Parameters
    ----------
    result : Result
        Records of a run.
    step : float
        Length of a time step (s).

    Returns
    -------
    Series
        GPUs, indexed by the start of each step (s).
    """
    spans = result.intervals
    last = float(spans["end"].max()) if len(spans) else 0.0
    edges = np.arange(0.0, last + step, step)
    times = np.concatenate([spans["start"].to_numpy(), spans["end"].to_numpy()])
    change = np.concatenate([spans["gpus"].to_numpy(), -spans["gpus"].to_numpy()])
    order = np.argsort(times, kind="stable")
    times = times[order]
    level = np.cumsum(change[order])
    area = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])
    area_at_edges = np.interp(edges, times, area)
    return pd.Series(np.diff(area_at_edges) / step, index=pd.Index(edges[:-1], name="time_s"))
