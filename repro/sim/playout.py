"""Prediction by playout: the same policy run forward without further arrivals (PCS)."""

from __future__ import annotations

from typing import Any

import pandas as pd

from repro.cluster.spec import Cluster
from repro.core.policy import Policy
from repro.core.records import Result
from repro.sim.simulate import simulate


def playout(
    trace: pd.DataFrame, cluster: Cluster | str, policy: Policy | str, seen: int, **settings: Any
) -> Result:
    """Return what would happen if nothing arrived after the first ``seen`` jobs.

    Until the last of them arrives this is what really happens, because policies know nothing of
    later arrivals and nothing is drawn outside seeded streams. Running the shortened trace from
    its beginning thus arrives at the very state (queues, leases, clocks) a snapshot would hold.

    Parameters
    ----------
    trace : DataFrame
        Validated trace.
    cluster, policy, **settings
        As for `repro.simulate`.
    seen : int
        Arrivals so far, in order of (submission, job id): jobs of one instant arrive one by one.

    Returns
    -------
    Result
        Records of the jobs seen; ``end_time`` holds the predictions.

    Examples
    --------
    >>> from repro.testing import small_trace
    >>> playout(small_trace(), "1x4", "srsf-elastic", 2).jobs["end_time"].tolist()
    [10.0, 5.0]
    """
    arrived = trace.sort_values(["submit_time", "job_id"], kind="stable").head(seen)
    return simulate(arrived.reset_index(drop=True), cluster, policy, **settings)


def predictions(
    trace: pd.DataFrame, cluster: Cluster | str, policy: Policy | str, **settings: Any
) -> pd.DataFrame:
    """Return the predicted finish time of every unfinished job after each arrival.

    Parameters
    ----------
    trace, cluster, policy, **settings
        As for `repro.simulate`. One run per arrival: meant for examples and as the measure of
        faster ways.

    Returns
    -------
    DataFrame
        arrival (job id of the newest job), time (s), job_id, predicted_end (s, absolute).

    References
    ----------
    PCS, arXiv 2401.10354, section 3.2.

    Examples
    --------
    >>> from repro.testing import small_trace
    >>> table = predictions(small_trace().head(3), "1x4", "fifo-elastic")
    >>> table[table["arrival"] == 2]["predicted_end"].tolist()
    [10.0, 5.0, 31.5]
    """
    order = trace.sort_values(["submit_time", "job_id"], kind="stable")
    tables = []
    for seen, (arrival, now) in enumerate(
        zip(order["job_id"], order["submit_time"], strict=True), start=1
    ):
        jobs = playout(trace, cluster, policy, seen, **settings).jobs
        left = jobs[jobs["end_time"] > now]
        tables.append(
            pd.DataFrame(
                {
                    "arrival": arrival,
                    "time": now,
                    "job_id": left["job_id"],
                    "predicted_end": left["end_time"],
                }
            )
        )
    return pd.concat(tables, ignore_index=True)


def prediction_errors(result: Result, predicted: pd.DataFrame) -> pd.Series[float]:
    """Return Pred_err of every job: 100 |JCT - predicted JCT| / predicted JCT (%).

    Parameters
    ----------
    result : Result
        What happened.
    predicted : DataFrame
        From `predictions`; that made at a job's own arrival counts.

    Returns
    -------
    Series
        Indexed by job id, in the order of the trace.

    References
    ----------
    PCS, arXiv 2401.10354, section 2 (the absolute value as in its simulator).

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> result = simulate(small_trace(), "1x4", "fifo-elastic")
    >>> errors = prediction_errors(result, predictions(small_trace(), "1x4", "fifo-elastic"))
    >>> float(errors.max())
    0.0
    """
    own = predicted[predicted["arrival"] == predicted["job_id"]].set_index("job_id")
    jobs = result.jobs.set_index("job_id")
    forecast = own["predicted_end"] - own["time"]
    error = 100 * (jobs["jct"] - forecast).abs() / forecast
    return error.reindex(jobs.index).rename("pred_err")
