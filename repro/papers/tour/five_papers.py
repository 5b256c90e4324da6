"""Numbers of the tour's worked examples, computed from records."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.model.metrics import time_by_type
from repro.model.records import Result
from repro.papers.gavel.rounds import received_after


def schedule(results: Mapping[str, Result]) -> pd.DataFrame:
    """Intervals of several runs with a column lane, the name of the run."""
    frames = {lane: result.intervals for lane, result in results.items()}
    return pd.concat(frames, names=["lane"]).reset_index("lane").reset_index(drop=True)


def gavel_values(
    rounds: Result, ideal: Sequence[Result], example: Mapping[str, Any]
) -> dict[str, Any]:
    """Our values for the tour's claims about Gavel's LAS, by id of the claim.

    ``rounds`` is a run of heterogeneity-aware LAS in rounds. ``ideal`` has runs of aware and of
    agnostic LAS in ideal execution. The values of the next round and of ten rounds follow from the
    X of ``example``, without a run.
    """
    until = example["rounds"] * example["round_s"]
    reference_steps_per_s = np.array(
        [row[example["reference"]] for row in example["steps_per_s"].values()]
    )
    aware, agnostic = (reference_steps_per_s * _first_rates(result) for result in ideal)
    shares = np.array(example["drawn"]["shares"], float)
    received = np.array(example["drawn"]["received"], float)
    # every job asks for one GPU, and the cluster has one GPU of each type
    one_gpu = [1] * len(shares)
    next_round = received_after(shares, received, one_gpu, one_gpu)
    ten_rounds = received_after(shares, np.zeros_like(shares), one_gpu, one_gpu, more=10)
    return {
        "gavel_rounds": (time_by_type(rounds, until) / example["round_s"]).to_numpy().tolist(),
        "gavel_aware": aware.tolist(),
        "gavel_agnostic": agnostic.tolist(),
        "gavel_gain": (aware / agnostic).tolist(),
        "gavel_next_round": next_round.tolist(),
        "gavel_ten_rounds": ten_rounds.tolist(),
    }


def _first_rates(result: Result) -> Any:
    """Rate of each job in its first interval, (jobs,)."""
    rates = result.intervals.groupby("job_id", sort=False)["rate"].first()
    return rates.reindex(result.jobs["job_id"]).to_numpy()
