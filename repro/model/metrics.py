"""Records to numbers: every metric of the papers, computed after the run from `Result` alone."""

from __future__ import annotations

import numpy as np
import pandas as pd

from repro.base.typing import Array
from repro.model.records import Result, durations, makespan


def statistics(values: pd.Series[float] | Array) -> dict[str, float]:
    """Return average, median and 95th percentile (linear interpolation).

    Parameters
    ----------
    values : array-like of float
        For example JCTs or queueing delays (s).

    Examples
    --------
    >>> statistics(np.array([1.0, 2.0, 6.0]))["avg"]
    3.0
    """
    data = np.asarray(values, dtype=float)
    median, p95 = np.percentile(data, [50, 95])
    return {"avg": float(data.mean()), "median": float(median), "p95": float(p95)}


def improvement(result: Result, reference: Result, metric: str = "jct") -> dict[str, float]:
    """Return avg, median, p95 and makespan of a run over the reference's (Tiresias section 5.1).

    Parameters
    ----------
    result, reference : Result
        Value under X and value under Tiresias-L.
    metric : str
        Column of ``jobs``.
    """
    ours = statistics(result.jobs[metric])
    base = statistics(reference.jobs[metric])
    factors = {k: ours[k] / base[k] if base[k] else float("nan") for k in ours}
    return factors | {"makespan": makespan(result) / makespan(reference)}


def unfairness(result: Result, fair: Result) -> pd.Series[float]:
    """Return by how much each job finishes later than under a fair policy (%), 0 if sooner.

    Parameters
    ----------
    result, fair : Result
        Records under the policy and under the fair one (``max-min`` for PCS Figure 1b).

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
    """Return the seconds each job has held GPUs of each type (one column per type).

    Parameters
    ----------
    result : Result
        Records on a cluster with GPU types.
    until : float
        Count up to this instant (s).

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> result = simulate(small_trace(), "1x4:v100,1x4:k80", "las-agnostic")
    >>> time_by_type(result, until=360.0).shape
    (6, 2)
    """
    spans = result.intervals[["job_id", "gpu_type"]].copy()
    left = (until - result.intervals["start"]).clip(lower=0)
    spans["seconds"] = durations(result).clip(upper=left)
    table = spans.pivot_table("seconds", "job_id", "gpu_type", aggfunc="sum", fill_value=0.0)
    return table.reindex(result.jobs["job_id"], fill_value=0.0)


def bins(jobs: pd.DataFrame, small_gpus: int, short_s: float) -> pd.Series[str]:
    """Return the bin of every job: SS, SL, LS, LL (Tiresias Table 3: size, then length).

    Parameters
    ----------
    jobs : DataFrame
        With num_gpus and duration (s).
    small_gpus, short_s
        Largest GPU count called small; durations below are short (s).

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
    """Return the average number of GPUs held in each time step up to the last completion.

    Parameters
    ----------
    result : Result
        Records.
    step : float
        Step length (s); the index of the series is the beginning of each.
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
    at = np.interp(edges, times, area)
    return pd.Series(np.diff(at) / step, index=pd.Index(edges[:-1], name="time_s"))
