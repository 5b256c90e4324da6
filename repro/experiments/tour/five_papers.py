"""The tour's worked examples: what the papers say about each, computed from the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.core.decision import Run
from repro.core.records import Result
from repro.metrics import time_by_type, unfairness
from repro.sim.playout import prediction_errors
from repro.sim.rounds.settings import realised

Results = Mapping[str, Result]


def schedule(results: Results) -> pd.DataFrame:
    """Return who ran when, one lane per run.

    Parameters
    ----------
    results : mapping of str to Result
        Lane to records.

    Returns
    -------
    DataFrame
        Columns lane, job_id, start, end (s) and the other columns of the records.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> schedule({"srtf": simulate(small_trace(), "1x4", "srtf")})["lane"].unique().tolist()
    ['srtf']
    """
    frames = {lane: result.intervals for lane, result in results.items()}
    return pd.concat(frames, names=["lane"]).reset_index("lane").reset_index(drop=True)


def tiresias_values(orders: Results) -> dict[str, Any]:
    """Return completion times and average JCT of each policy (Tiresias Fig 7)."""
    return {
        "tiresias_ends": [result.jobs["end_time"].tolist() for result in orders.values()],
        "tiresias_averages": [result.jobs["jct"].mean() for result in orders.values()],
    }


def first_rounds(rounds: Result, number: int, round_s: float) -> pd.DataFrame:
    """Return the first ``number`` rounds of ``round_s`` seconds, one lane per GPU type."""
    spans = rounds.intervals[rounds.intervals["start"] < number * round_s]
    return spans.assign(lane=spans["gpu_type"], end=spans["end"].clip(upper=number * round_s))


def gavel_values(
    rounds: Result,
    ideal: Sequence[Result],
    example: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what the lecture example says of allocation and rounds.

    Parameters
    ----------
    rounds : Result
        Aware LAS realised by rounds.
    ideal : sequence of Result
        Ideal execution of aware and of agnostic LAS.
    example : mapping
        The inputs: ``steps_per_s``, ``reference``, ``round_s``, ``rounds``, ``drawn``.
    """
    until = example["rounds"] * example["round_s"]
    unit = np.array([row[example["reference"]] for row in example["steps_per_s"].values()])
    aware, agnostic = (unit * _first_rates(result) for result in ideal)
    drawn = {name: np.array(matrix, float) for name, matrix in example["drawn"].items()}
    ones = [1] * len(drawn["shares"])
    following = realised(drawn["shares"], drawn["received"], ones, ones)
    ten = realised(drawn["shares"], np.zeros_like(drawn["shares"]), ones, ones, more=10)
    return {
        "gavel_rounds": (time_by_type(rounds, until) / example["round_s"]).to_numpy().tolist(),
        "gavel_aware": aware.tolist(),
        "gavel_agnostic": agnostic.tolist(),
        "gavel_gain": (aware / agnostic).tolist(),
        "gavel_next_round": following.tolist(),
        "gavel_ten_rounds": ten.tolist(),
    }


def _first_rates(result: Result) -> Any:
    """Return the rate of each job while all of them are there."""
    rates = result.intervals.groupby("job_id", sort=False)["rate"].first()
    return rates.reindex(result.jobs["job_id"]).to_numpy()


def group_efficiency(result: Result, group: Run, resources: int) -> float:
    """Return the share of time in which the resources of a group were busy, from the records.

    Parameters
    ----------
    result : Result
        Records of a run in which the group started at time 0 and stayed together.
    group : Run
        Its members; a job alone keeps one resource busy at a time.
    resources : int
        Number of resources.

    References
    ----------
    Muri, SIGCOMM 2022, Eq 4.
    """
    members = result.jobs.iloc[list(group.jobs)]
    return float(members["duration"].sum() / (resources * members["end_time"].max()))


def pcs_values(
    happened: Results, foreseen: Mapping[str, pd.DataFrame], fair: Result
) -> dict[str, Any]:
    """Return predictions, their errors, JCTs and unfairness of each policy (PCS Fig 1).

    Parameters
    ----------
    happened : mapping of str to Result
        Records by policy.
    foreseen : mapping of str to DataFrame
        Predictions by policy.
    fair : Result
        Records under processor sharing.
    """
    errors = [prediction_errors(happened[name], table) for name, table in foreseen.items()]
    fifo = happened["FIFO"].jobs.set_index("job_id")["jct"]
    return {
        "pcs_predicted": [table["predicted_end"].tolist() for table in foreseen.values()],
        "pcs_jct": [result.jobs["jct"].mean() for result in happened.values()],
        "pcs_errors": [float(error.mean()) for error in errors],
        "pcs_unfairness": [float(unfairness(r, fair).max()) for r in happened.values()],
        "pcs_j3": fifo["J3"],
    }
