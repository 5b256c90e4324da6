"""What Gavel's cost policies spend and which deadlines they miss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from repro.core.records import Result
from repro.experiments.gavel.cases import HOUR_S
from repro.perf.prices import usd_per_hour
from repro.plot import look


def of_models(trace: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Return the jobs of some models, with and without the batch size in the name.

    Parameters
    ----------
    trace : DataFrame
        Jobs with a column model such as ``ResNet-50 (batch size 64)``.
    models : sequence of str
        Names without batch size.

    Examples
    --------
    >>> jobs = pd.DataFrame({"model": ["ResNet-50 (batch size 64)", "A3C", "CycleGAN"]})
    >>> of_models(jobs, ["ResNet-50", "A3C"])["model"].tolist()
    ['ResNet-50 (batch size 64)', 'A3C']
    """
    kept = trace["model"].str.replace(r" \(batch.*", "", regex=True).isin(models)
    return trace[kept].reset_index(drop=True)


def spent_usd(result: Result, market: str = "preemptible") -> float:
    """Return the price of all GPU time that jobs held (USD).

    Parameters
    ----------
    result : Result
        Records on a cluster with GPU types.
    market : str
        Which prices, see :func:`repro.perf.prices.usd_per_hour`.

    References
    ----------
    Gavel, OSDI 2020, section 4.2; artifact ``scheduler.py``: price times time in use times gang.
    """
    spans = result.intervals
    kinds = sorted(spans["gpu_type"].unique())
    price = dict(zip(kinds, usd_per_hour(kinds, market), strict=True))
    hours = (spans["end"] - spans["start"]) / HOUR_S * spans["gpus"]
    return float((hours * spans["gpu_type"].map(price)).sum())


def missed(result: Result, trace: pd.DataFrame) -> float:
    """Return the part of the jobs that ended after their deadline.

    Parameters
    ----------
    result : Result
        Records.
    trace : DataFrame
        The jobs with ``slo``: the deadline is so many durations after submission.

    Examples
    --------
    >>> jobs = pd.DataFrame({"job_id": [1, 2], "jct": [10.0, 30.0]})
    >>> trace = pd.DataFrame({"job_id": [1, 2], "duration": [10.0, 20.0], "slo": [1.2, 1.2]})
    >>> missed(Result(jobs, jobs), trace)
    0.5
    """
    jct = result.jobs.set_index("job_id")["jct"].reindex(trace["job_id"]).to_numpy()
    return float((jct > trace["slo"] * trace["duration"]).mean())


def compare(
    results: Mapping[str, Result], trace: pd.DataFrame, reference: str, market: str
) -> pd.DataFrame:
    """Return cost, missed deadlines and average JCT of every policy.

    Parameters
    ----------
    results : mapping
        Policy to records of the same trace.
    trace : DataFrame
        The jobs.
    reference : str
        Policy whose cost is divided by each.
    market : str
        Which prices.

    Returns
    -------
    DataFrame
        policy, label, cost (USD), saving (cost of the reference over this one), missed (part of
        the jobs), jct_h (average, h).
    """
    rows: list[dict[str, Any]] = []
    base = spent_usd(results[reference], market)
    for policy, result in results.items():
        cost = spent_usd(result, market)
        measured = {"missed": missed(result, trace), "jct_h": result.jobs["jct"].mean() / HOUR_S}
        named = {"policy": policy, "label": look(policy).label}
        rows.append({**named, "cost": cost, "saving": base / cost, **measured})
    return pd.DataFrame(rows)
