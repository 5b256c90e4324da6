"""Muri's testbed over time: queue length, blocking index, and how busy each resource is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro.core.records import Result

#: Resource to the stage column of a trace.
STAGES = {"data": "stage_storage", "gpu": "stage_gpu", "network": "stage_network"}
HOUR_S = 3600.0

_Floats = npt.NDArray[np.float64]


def over_time(result: Result, trace: pd.DataFrame, step: float) -> pd.DataFrame:
    """Return the state of the cluster at regular instants up to the last completion.

    Parameters
    ----------
    result : Result
        Records of a run.
    trace : DataFrame
        What was run: iterations and stage times (s per iteration).
    step : float
        Seconds between two instants.

    Returns
    -------
    DataFrame
        hours, queue_length (jobs), blocking_index, gpu_busy, data_busy, network_busy (shares of
        the cluster).

    References
    ----------
    Muri, SIGCOMM 2022, Figure 8.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> trace = small_trace().assign(iterations=1.0, stage_storage=0.0, stage_gpu=1.0,
    ...                              stage_network=0.0)
    >>> over_time(simulate(trace, "1x4", "srtf"), trace, 10.0)["queue_length"].tolist()
    [0.0, 1.0, 0.0, 1.0, 0.0]
    """
    times = np.arange(0.0, result.jobs["end_time"].max(), step)
    busy = {f"{name}_busy": busy_share(result, trace, name, times) for name in STAGES}
    columns = {
        "hours": times / HOUR_S,
        "queue_length": queue_length(result, times),
        "blocking_index": blocking_index(result, times),
    }
    return pd.DataFrame(columns | {name: busy[name] for name in sorted(busy)})


def queue_length(result: Result, times: npt.ArrayLike) -> _Floats:
    """Return how many jobs have arrived and hold no GPUs.

    Parameters
    ----------
    result : Result
        Records of a run.
    times : array-like
        Instants (s); at the instant of an event the state after it counts.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> queue_length(simulate(small_trace(), "1x4", "srtf"), [0.0, 10.0]).tolist()
    [0.0, 1.0]
    """
    jobs, spans = result.jobs, result.intervals
    here = _level(times, jobs["submit_time"], jobs["end_time"], np.ones(len(jobs)))
    return here - _level(times, spans["start"], spans["end"], np.ones(len(spans)))


def queue_summary(result: Result) -> tuple[float, float]:
    """Return time-weighted mean and maximum of the queue length.

    Parameters
    ----------
    result : Result
        Records of a run; the mean is over time 0 to the last completion.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> mean, longest = queue_summary(simulate(small_trace(), "1x4", "srtf"))
    >>> round(mean, 2), longest
    (0.43, 1.0)
    """
    jobs, spans = result.jobs, result.intervals
    held = float((spans["end"] - spans["start"]).sum())
    waited = float(jobs["jct"].sum()) - held
    events = np.unique(np.concatenate([jobs["submit_time"], spans["start"], spans["end"]]))
    return waited / float(jobs["end_time"].max()), float(queue_length(result, events).max())


def blocking_index(result: Result, times: npt.ArrayLike) -> _Floats:
    """Return the mean over waiting jobs of time waited so far over time still to run alone.

    The progress of a job is spread over the time it holds GPUs in proportion to its speed.

    Parameters
    ----------
    result : Result
        Records of a run.
    times : array-like
        Instants (s).

    Returns
    -------
    ndarray
        0 where no job waits.

    References
    ----------
    Muri, SIGCOMM 2022, section 6.2; artifact ``cluster_exp/log.py``.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> blocking_index(simulate(small_trace(), "1x4", "srtf"), [0.0, 4.0]).round(2).tolist()
    [0.0, 0.12]
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
) -> _Floats:
    """Return the share of the cluster's GPUs whose group uses a resource.

    A group of jobs on g GPUs keeps a resource busy for the sum of its members' stage times in
    every period, at most always; the shares of groups are weighted with g. This is a model: the
    testbed measured utilisation.

    Parameters
    ----------
    result : Result
        Records of a run.
    trace : DataFrame
        What was run: iterations and stage times (s per iteration).
    resource : {"data", "gpu", "network"}
        Which stage; data is storage and CPU.
    times : array-like, optional
        Instants (s); when not given, the mean from 0 to the last completion.

    Returns
    -------
    ndarray
        One share per instant, or a single one.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> trace = small_trace().assign(iterations=small_trace()["duration"], stage_gpu=0.5)
    >>> busy_share(simulate(trace, "1x4", "srtf"), trace, "gpu", [0.0]).tolist()
    [0.25]
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


def _level(
    times: npt.ArrayLike, start: pd.Series, end: pd.Series, weight: npt.ArrayLike
) -> _Floats:
    """Return the summed weight of the spans that cover each instant (start in, end out)."""
    edges = np.concatenate([start.to_numpy(float), end.to_numpy(float)])
    change = np.concatenate([np.asarray(weight, float), -np.asarray(weight, float)])
    order = np.argsort(edges, kind="stable")
    level = np.concatenate([[0.0], np.cumsum(change[order])])
    found = level[np.searchsorted(edges[order], np.asarray(times, float), side="right")]
    return np.asarray(np.where(np.abs(found) < 1e-9, 0.0, found))


def _stairs(lengths: _Floats) -> _Floats:
    """Return what has accumulated at the beginning and end of each of several spans."""
    ends = np.cumsum(lengths)
    return np.column_stack([ends - lengths, ends]).ravel()
