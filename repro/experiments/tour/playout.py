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

    Until then it is what really happens: policies know nothing of later arrivals, and nothing is
    drawn outside seeded streams. ``end_time`` of the result holds the predictions.
    """
    arrived = trace.sort_values(["submit_time", "job_id"], kind="stable").head(seen)
    return simulate(arrived.reset_index(drop=True), cluster, policy, **settings)


def predictions(
    trace: pd.DataFrame, cluster: Cluster | str, policy: Policy | str, **settings: Any
) -> pd.DataFrame:
    """Return the predicted finish time of every unfinished job after each arrival (PCS 3.2).

    Columns: arrival (id of the newest job), time (s), job_id, predicted_end (s, absolute). One run
    per arrival: meant for examples and as the measure of faster ways.
    """
    order = trace.sort_values(["submit_time", "job_id"], kind="stable")
    tables = []
    for seen, (arrival, now) in enumerate(
        zip(order["job_id"], order["submit_time"], strict=True), start=1
    ):
        jobs = playout(trace, cluster, policy, seen, **settings).jobs
        left = jobs.loc[jobs["end_time"] > now, ["job_id", "end_time"]]
        tables.append(left.assign(arrival=arrival, time=now))
    found: pd.DataFrame = pd.concat(tables, ignore_index=True).rename(
        columns={"end_time": "predicted_end"}
    )
    return found.reindex(columns=["arrival", "time", "job_id", "predicted_end"])


def prediction_errors(result: Result, predicted: pd.DataFrame) -> pd.Series[float]:
    """Return Pred_err of every job: 100 |JCT - predicted JCT| / predicted JCT (%; PCS section 2).

    The prediction made at a job's own arrival counts; indexed by job id, in the order of the trace.
    """
    own = predicted[predicted["arrival"] == predicted["job_id"]].set_index("job_id")
    jobs = result.jobs.set_index("job_id")
    forecast = own["predicted_end"] - own["time"]
    error = 100 * (jobs["jct"] - forecast).abs() / forecast
    return error.reindex(jobs.index).rename("pred_err")
