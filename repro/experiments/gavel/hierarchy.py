"""Gavel's hierarchical timelines: jobs of three entities join one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.core.records import Result
from repro.perf.throughput import ThroughputTable


def joining_jobs(
    models: Sequence[str], *, entities: int, step_s: float, every: int, steps: int, weights: int
) -> pd.DataFrame:
    """Return one-GPU jobs that join one by one and outlast the timeline.

    Parameters
    ----------
    models : sequence of str
        Job type of each job, in order of arrival.
    entities : int
        Number of entities; each has the next equal part of the jobs, named from ``0``.
    step_s : float
        Length of a timestep (s).
    every, steps : int
        Timesteps between two arrivals, and in all.
    weights : int
        Weights inside an entity go round from 1 to this number.

    Returns
    -------
    DataFrame
        A trace with the columns entity and priority_weight.

    Examples
    --------
    >>> jobs = joining_jobs(["A3C"] * 4, entities=2, step_s=360, every=4, steps=16, weights=2)
    >>> jobs["entity"].tolist(), jobs["priority_weight"].tolist(), jobs["submit_time"].tolist()
    (['0', '0', '1', '1'], [1.0, 2.0, 1.0, 2.0], [0.0, 1440.0, 2880.0, 4320.0])
    """
    number = np.arange(len(models))
    size = len(models) // entities
    return pd.DataFrame(
        {
            "job_id": number,
            "submit_time": number * float(every) * step_s,
            # longer than the timeline even on a type twice as fast as the reference
            "duration": 4.0 * steps * step_s,
            "num_gpus": 1,
            "model": list(models),
            "priority_weight": number % weights + 1.0,
            "entity": (number // size).astype(str),
        }
    )


def throughput_steps(
    result: Result,
    trace: pd.DataFrame,
    perf: ThroughputTable,
    gpus: Mapping[str, int],
    *,
    step_s: float,
    every: int,
    steps: int,
) -> pd.DataFrame:
    """Return each job's throughput over that of its equal share of all GPU types, while it is.

    Parameters
    ----------
    result : Result
        Records of a run without rounds.
    trace : DataFrame
        From :func:`joining_jobs`.
    perf : ThroughputTable
        Steps per second.
    gpus : mapping
        GPU type to number of GPUs.
    step_s, every, steps
        As for :func:`joining_jobs`.

    Returns
    -------
    DataFrame
        timestep (from 1; that of each arrival), job_id, entity, throughput.

    References
    ----------
    Gavel, OSDI 2020, section 4.3 and Figure 11.
    """
    kinds = list(gpus)
    counts = np.array([gpus[kind] for kind in kinds], dtype=float)
    speeds = np.array([perf.speeds(model, 1, kinds) for model in trace["model"]])
    reference = [perf.steps_per_s(model, 1, perf.reference) for model in trace["model"]]
    scale = np.array(reference) / (speeds @ counts / counts.sum())
    spans = result.intervals
    rows: list[dict[str, Any]] = []
    for start in range(0, steps, every):
        # the middle of a timestep lies between two changes
        now = (start + 0.5) * step_s
        held = spans[(spans["start"] <= now) & (now < spans["end"])]
        rates = held.groupby("job_id")["rate"].sum()
        here = trace[trace["submit_time"] <= now]
        for job, entity in zip(here["job_id"], here["entity"], strict=True):
            value = float(rates.get(job, 0.0)) * scale[job]
            rows.append(
                {"timestep": start + 1, "job_id": job, "entity": entity, "throughput": value}
            )
    return pd.DataFrame(rows)


def totals(table: pd.DataFrame) -> pd.DataFrame:
    """Return the sum of throughputs for every series and timestep.

    Parameters
    ----------
    table : DataFrame
        series, timestep, throughput.

    Examples
    --------
    >>> rows = {"series": "a", "timestep": [1, 5, 5], "throughput": [1.5, 1.0, 0.5]}
    >>> totals(pd.DataFrame(rows))["total"].tolist()
    [1.5, 1.5]
    """
    sums = table.groupby(["series", "timestep"], sort=False)["throughput"].sum()
    return sums.rename("total").reset_index()


def parts(table: pd.DataFrame) -> pd.DataFrame:
    """Return each entity's part of the total throughput at every timestep.

    Parameters
    ----------
    table : DataFrame
        timestep, entity, throughput of one series.

    Examples
    --------
    >>> rows = {"timestep": 1, "entity": ["0", "1"], "throughput": [1.0, 3.0]}
    >>> parts(pd.DataFrame(rows))["part"].tolist()
    [0.25, 0.75]
    """
    sums = table.groupby(["timestep", "entity"])["throughput"].sum().reset_index()
    whole = sums.groupby("timestep")["throughput"].transform("sum")
    return sums.assign(part=sums["throughput"] / whole)


def farthest_total(sums: pd.DataFrame, known: pd.DataFrame, series: str, published: str) -> float:
    """Return the largest distance of a series' total from the published one.

    Parameters
    ----------
    sums : DataFrame
        From :func:`totals`.
    known : DataFrame
        Published points: series, x (timestep), mean.
    series, published : str
        Names here and there.

    Examples
    --------
    >>> sums = pd.DataFrame({"series": ["a"], "timestep": [1], "total": [1.5]})
    >>> known = pd.DataFrame({"series": ["p"], "x": [1.0], "mean": [1.25]})
    >>> farthest_total(sums, known, "a", "p")
    0.25
    """
    ours = sums[sums["series"] == series].set_index("timestep")["total"]
    theirs = known[known["series"] == published].set_index("x")["mean"]
    return float((ours - theirs).abs().max())


def last_values(table: pd.DataFrame, series: str, size: int) -> list[float]:
    """Return the throughputs at the last timestep of the first ``size`` jobs of each entity.

    Examples
    --------
    >>> rows = {"series": "a", "timestep": 1, "job_id": [0, 1], "entity": ["0", "1"]}
    >>> last_values(pd.DataFrame(rows).assign(throughput=[0.2, 0.4]), "a", 1)
    [0.2, 0.4]
    """
    rows = table[(table["series"] == series) & (table["timestep"] == table["timestep"].max())]
    first = rows.sort_values("job_id").groupby("entity").head(size)
    return [float(value) for value in first["throughput"]]
