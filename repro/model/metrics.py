"""Metrics of the papers, computed from the records (`Result`) of a run."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Array
from repro.model.records import Result, durations, makespan, percent_over_fair

#: Fraction of a time step. If less of the last time step lies in the run, the step comes from a
#: rounding error and is left out.
_ROUNDING = 1e-9


def statistics(values: pd.Series[float] | Array) -> dict[str, float]:
    """Average, median and 95th percentile of values (linear interpolation).

    Parameters
    ----------
    values : array-like of float
        Such as JCTs or queueing delays (s), (values,).

    Returns
    -------
    dict of str to float
        avg, median and p95, in the unit of the values.

    Examples
    --------
    >>> statistics(np.array([1.0, 2.0, 6.0]))["avg"]
    3.0
    """
    data = np.asarray(values, dtype=float)
    median, p95 = np.percentile(data, [50, 95])
    return {"avg": float(data.mean()), "median": float(median), "p95": float(p95)}


def improvement(result: Result, reference: Result, metric: str = "jct") -> dict[str, float]:
    """Factors by which the reference improves on a run.

    Defined in Tiresias, NSDI 2019, section 5.1. A factor above 1 means that the reference is
    better.

    Parameters
    ----------
    result, reference : Result
        Records under the compared policy, and under the reference (Tiresias-L in the paper).
    metric : str
        Column of ``jobs``.

    Returns
    -------
    dict of str to float
        Run over reference: avg, median and p95 of the metric, and makespan. NaN where the value of
        the reference is 0. The makespan is NaN if a job of either run has no end. The other factors
        are NaN if a job lacks the metric, as an unfinished job lacks its JCT.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> run, reference = (simulate(small_trace(), "1x4", name) for name in ("yarn-cs", "srtf"))
    >>> {name: round(factor, 2) for name, factor in improvement(run, reference).items()}
    {'avg': 1.78, 'median': 4.17, 'p95': 0.94, 'makespan': 1.02}
    """
    values = statistics(result.jobs[metric]) | {"makespan": _makespan_of_all(result)}
    bases = statistics(reference.jobs[metric]) | {"makespan": _makespan_of_all(reference)}
    return {
        name: value / bases[name] if bases[name] else math.nan for name, value in values.items()
    }


def _makespan_of_all(result: Result) -> float:
    """Makespan (s); NaN if a job has no end."""
    return makespan(result) if result.jobs["end_time"].notna().all() else math.nan


def unfairness(result: Result, fair: Result) -> pd.Series[float]:
    """Unfairness of each job: increase of its JCT over its JCT under a fair policy (%), at least 0.

    Defined in PCS, arXiv 2401.10354, section 2: max(0, 100 (JCT / fair JCT - 1)).

    Parameters
    ----------
    result, fair : Result
        Records under the policy, and under a fair policy (``max-min`` for PCS Figure 1b). Jobs are
        compared by ``job_id``.

    Returns
    -------
    Series of float
        Percent, a value per job in order of ``result.jobs``; NaN for a job without an end.

    Raises
    ------
    ParamError
        If the fair run lacks a job of the run.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> fair = simulate(small_trace(), "1x4", "max-min")
    >>> float(unfairness(fair, fair).max())
    0.0
    """
    ids = result.jobs["job_id"]
    fair_jct = fair.jobs.set_index("job_id")["jct"]
    is_absent = ~ids.isin(fair_jct.index)
    if is_absent.any():
        absent = ids[is_absent].iloc[0]
        raise ParamError(f"the fair run lacks job {absent}; run both on the same trace")
    return percent_over_fair(result.jobs["jct"], fair_jct.loc[ids].to_numpy(float))


def _intervals(result: Result) -> pd.DataFrame:
    """Intervals of a run; ParamError if jobs held GPUs and the run kept no intervals."""
    if result.intervals.empty and result.jobs["start_time"].notna().any():
        raise ParamError("the run kept no intervals; simulate with keep_intervals=True")
    return result.intervals


def time_by_type(result: Result, until: float = np.inf) -> pd.DataFrame:
    """Time for which each job held GPUs of each type (s), a row per job and a column per type.

    Parameters
    ----------
    result : Result
        Records on a cluster with GPU types.
    until : float
        Instant up to which the time is counted (s).

    Returns
    -------
    DataFrame
        Seconds, with the job ids as index. The columns are the GPU types that jobs held.

    Raises
    ------
    ParamError
        If the run kept no intervals, if its cluster has no GPU types, or if the GPU type of an
        interval is not known: the policy chooses no types, or a gang ran on several at once.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> result = simulate(small_trace(), "1x4:v100,1x4:k80", "las-agnostic")
    >>> time_by_type(result, until=360.0).shape
    (6, 2)
    """
    intervals = _intervals(result)
    if "gpu_type" not in intervals:
        raise ParamError("the run has no GPU types; simulate on a cluster such as 1x4:v100,1x4:k80")
    without_type = int(intervals["gpu_type"].isna().sum())
    if without_type:
        raise ParamError(
            f"{without_type} of {len(intervals)} intervals have no GPU type; use a policy that "
            "runs each job on one type at a time, such as las-agnostic"
        )
    spans = intervals[["job_id", "gpu_type"]].copy()
    limit = (until - result.intervals["start"]).clip(lower=0)
    spans["seconds"] = durations(result).clip(upper=limit)
    table = spans.pivot_table("seconds", "job_id", "gpu_type", aggfunc="sum", fill_value=0.0)
    return table.reindex(result.jobs["job_id"], fill_value=0.0)


def bins(jobs: pd.DataFrame, small_gpus: int, short_s: float) -> pd.Series[str]:
    """Bin of each job by size, then length: SS, SL, LS, LL.

    Defined in Tiresias, NSDI 2019, Table 3. S is small, or short; L is large, or long.

    Parameters
    ----------
    jobs : DataFrame
        Jobs with num_gpus and duration (s).
    small_gpus : int
        Largest demand of a small job (GPUs).
    short_s : float
        Least duration of a long job (s).

    Returns
    -------
    Series of str
        Bin of each job, with the index of ``jobs``.

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
    """Average number of GPUs held in each time step, from first submission to end of last interval.

    Time steps begin at multiples of their length. The series is empty if no job held GPUs.

    Parameters
    ----------
    result : Result
        Records of a run.
    step : float
        Length of a time step (s).

    Returns
    -------
    Series of float
        GPUs, indexed by the start of each step (s).

    Raises
    ------
    ParamError
        If the run kept no intervals, or ``step`` is no finite number above 0.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> busy_gpus(simulate(small_trace(), "1x4", "srtf"), step=10.0).round(1).tolist()
    [2.9, 2.8, 4.0, 4.0, 2.4]
    """
    if not (isinstance(step, Real) and 0 < step < math.inf):
        raise ParamError(f"step={step!r:.60}: give a finite number of seconds above 0")
    spans = _intervals(result)
    if spans.empty:
        return pd.Series(dtype=float, index=pd.Index([], dtype=float, name="time_s"))
    # a job may start just before its submission, within the tolerance of simultaneous events
    begin = min(float(result.jobs["submit_time"].min()), float(spans["start"].min()))
    first_edge = begin // step * step
    end = float(spans["end"].max())
    num_steps = max(1, math.ceil((end - first_edge) / step - _ROUNDING))
    edges = np.arange(first_edge, end + step, step)[: num_steps + 1]
    times = np.concatenate([spans["start"].to_numpy(), spans["end"].to_numpy()])
    change = np.concatenate([spans["gpus"].to_numpy(), -spans["gpus"].to_numpy()])
    order = np.argsort(times, kind="stable")
    times = times[order]
    level = np.cumsum(change[order])
    area = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])
    area_at_edges = np.interp(edges, times, area)
    return pd.Series(np.diff(area_at_edges) / step, index=pd.Index(edges[:-1], name="time_s"))
