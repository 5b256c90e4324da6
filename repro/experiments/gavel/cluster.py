"""Gavel on its physical cluster's workloads, and on clusters with more and fewer fast GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from repro.core.records import Result
from repro.experiments.gavel.cases import HOUR_S
from repro.experiments.gavel.sweep import Point, rate_points, size_points
from repro.plot import look


def hours(
    results: Mapping[tuple[str, str], Result],
    measured: Sequence[int],
    published: Sequence[Mapping[str, Any]],
) -> pd.DataFrame:
    """Return average JCT of the continuous and makespan of the static workload.

    Parameters
    ----------
    results : mapping
        (workload, policy) to records; the workloads are ``continuous`` and ``static``.
    measured : sequence of two int
        Numbers of the first and last job of the continuous workload that count, from 0.
    published : sequence of mapping
        Further columns by policy.

    Returns
    -------
    DataFrame
        workload, policy, label, hours, and the columns of ``published``.

    References
    ----------
    Gavel, OSDI 2020, Table 3.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> run = simulate(small_trace(), "1x4", "srtf")
    >>> table = hours({("static", "srtf"): run}, [0, 1], [{"policy": "srtf", "rerun": 1.0}])
    >>> float(table["hours"].iloc[0] * 3600)
    46.0
    """
    first, last = measured
    known = {row["policy"]: row for row in published}
    rows = []
    for (workload, policy), result in results.items():
        jobs = result.jobs
        jct, end = jobs["jct"].iloc[first : last + 1].mean(), jobs["end_time"].max()
        value = float(jct if workload == "continuous" else end) / HOUR_S
        named = {"workload": workload, "policy": policy, "label": look(policy).label}
        rows.append({**named, "hours": value, **known.get(policy, {})})
    return pd.DataFrame(rows)


def sweep_points(inputs: Mapping[str, Any], seed: int = 0) -> dict[str, list[Point]]:
    """Return the points of the cluster sweep: for each part of V100s, speeds known and not.

    Parameters
    ----------
    inputs : mapping
        clusters (part of V100s to cluster), jct and makespan (trace, agnostic and aware: each the
        policy and its settings, and rates per part with the measured jobs, or the number of jobs),
        and what :func:`repro.experiments.gavel.sweep.rate_points` reads.
    seed : int
        Added to each of ``seeds``.

    Returns
    -------
    dict
        ``jct``: x is the job rate, series ``V100s: <part> <role>``; ``makespan``: x is the part,
        series ``all <role>``; the role is ``agnostic`` or ``aware``.
    """
    jct, static = dict(inputs["jct"]), dict(inputs["makespan"])
    of_jct: list[Point] = []
    for part, rates in jct["rates"].items():
        series = {
            f"V100s: {part} {role}": {**jct[role], "cluster": inputs["clusters"][part]}
            for role in ("agnostic", "aware")
        }
        shared = {**inputs, **jct, "cluster": "", "series": series, "rates": rates}
        of_jct += rate_points(shared, seed)
    of_makespan: list[Point] = []
    for part, cluster in inputs["clusters"].items():
        series = {f"all {role}": static[role] for role in ("agnostic", "aware")}
        jobs = [static["jobs"]]
        shared = {**inputs, **static, "cluster": cluster, "series": series, "jobs": jobs}
        of_makespan += [point._replace(x=float(part)) for point in size_points(shared, seed)]
    return {"jct": of_jct, "makespan": of_makespan}


def quotients(runs: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return the value of agnostic over that of aware policies, for every place and seed.

    Parameters
    ----------
    runs : DataFrame
        series (ending in ``agnostic`` or ``aware``), x, seed and the value, one row per job or run.
    value : str
        What is averaged and divided.

    Returns
    -------
    DataFrame
        series (without the role), x, seed, quotient.

    Examples
    --------
    >>> rows = {"series": ["0.5 agnostic", "0.5 aware"], "x": 1.0, "seed": 0, "jct_h": [6.0, 4.0]}
    >>> quotients(pd.DataFrame(rows), "jct_h").values.tolist()
    [['0.5', 1.0, 0, 1.5]]
    """
    role = runs["series"].str.extract(r"^(.*?)\s*(agnostic|aware)$")
    runs = runs.assign(series=role[0], role=role[1])
    mean = runs.pivot_table(index=["series", "x", "seed"], columns="role", values=value)
    return (mean["agnostic"] / mean["aware"]).rename("quotient").reset_index()
