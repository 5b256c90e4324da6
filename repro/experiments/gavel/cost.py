"""What Gavel's cost policies spend and which deadlines they miss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from repro.core.records import Result
from repro.experiments.gavel.series import HOUR_S
from repro.perf.prices import usd_per_hour
from repro.plot import look


def of_models(trace: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Return the jobs of some models, named without the batch size in brackets."""
    kept = trace["model"].str.replace(r" \(batch.*", "", regex=True).isin(models)
    return trace[kept].reset_index(drop=True)


def spent_usd(result: Result, market: str) -> float:
    """Return the price of all GPU time that jobs held (USD); section 4.2, ``scheduler.py``."""
    spans = result.intervals
    types = sorted(spans["gpu_type"].unique())
    price = dict(zip(types, usd_per_hour(types, market), strict=True))
    hours = (spans["end"] - spans["start"]) / HOUR_S * spans["gpus"]
    return float((hours * spans["gpu_type"].map(price)).sum())


def missed(result: Result, trace: pd.DataFrame) -> float:
    """Return the part of the jobs that ended ``slo`` durations after submission, or later."""
    jct = result.jobs.set_index("job_id")["jct"].reindex(trace["job_id"]).to_numpy()
    return float((jct > trace["slo"] * trace["duration"]).mean())


def compare(
    results: Mapping[str, Result], trace: pd.DataFrame, reference: str, market: str
) -> pd.DataFrame:
    """Return each policy's cost (USD), saving (a factor), part of the jobs missed, and jct_h."""
    table = pd.DataFrame({"policy": list(results), "label": [look(name).label for name in results]})
    table["cost"] = [spent_usd(result, market) for result in results.values()]
    table["saving"] = spent_usd(results[reference], market) / table["cost"]
    table["missed"] = [missed(result, trace) for result in results.values()]
    table["jct_h"] = [result.jobs["jct"].mean() / HOUR_S for result in results.values()]
    return table
