"""The tour's worked examples: what the papers say about each, computed from the records."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.model.decision import Run
from repro.model.metrics import time_by_type
from repro.model.records import Result
from repro.papers.gavel.rounds import realised


def schedule(results: Mapping[str, Result]) -> pd.DataFrame:
    """Return the intervals of some runs with a column lane, the name of the run."""
    frames = {lane: result.intervals for lane, result in results.items()}
    return pd.concat(frames, names=["lane"]).reset_index("lane").reset_index(drop=True)


def gavel_values(
    rounds: Result, ideal: Sequence[Result], example: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what aware LAS by rounds, and aware and agnostic LAS in ideal execution, come to."""
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
    """Return the busy share of the resources of a group that stays together from 0 (Muri, Eq 4)."""
    members = result.jobs.iloc[list(group.jobs)]
    return float(members["duration"].sum() / (resources * members["end_time"].max()))
