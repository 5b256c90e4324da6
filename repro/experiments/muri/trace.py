"""Muri on its traces: three metrics, bars over Muri's own, distance from published values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.core.records import Result

#: Metrics of the paper, all in seconds.
METRICS = ("avg_jct", "makespan", "p99_jct")
LABELS = {"avg_jct": "average JCT", "makespan": "makespan", "p99_jct": "99th percentile of JCT"}
#: Trace and series of a run.
Run = tuple[str, str]


def p99_jct(jct: pd.Series[float]) -> float:
    """Return the completion time at index floor(0.99 N) of the ascending list, from 0.

    Parameters
    ----------
    jct : Series of float
        Completion times (s).

    References
    ----------
    Muri, SIGCOMM 2022, artifact ``calc.py``: no interpolation.

    Examples
    --------
    >>> p99_jct(pd.Series(range(200))), p99_jct(pd.Series([3.0, 1.0]))
    (198.0, 3.0)
    """
    return float(np.sort(jct.to_numpy(float))[math.floor(0.99 * len(jct))])


def run_metrics(result: Result) -> dict[str, float]:
    """Return average completion time, makespan and 99th percentile of a run.

    Parameters
    ----------
    result : Result
        Records of a run.

    Returns
    -------
    dict
        avg_jct, makespan (the last completion, counted from time 0), p99_jct; seconds.

    References
    ----------
    Muri, SIGCOMM 2022, section 6.1.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> run_metrics(simulate(small_trace(), "1x4", "srtf"))["makespan"]
    46.0
    """
    jobs = result.jobs
    return {
        "avg_jct": float(jobs["jct"].mean()),
        "makespan": float(jobs["end_time"].max()),
        "p99_jct": p99_jct(jobs["jct"]),
    }


def compare(
    results: Mapping[Run, Result],
    reference: str,
    published: Sequence[Mapping[str, Any]] = (),
    drawn: Iterable[str] = (),
) -> pd.DataFrame:
    """Return every metric of every run, over that of the reference, beside the published values.

    Parameters
    ----------
    results : mapping
        (trace, series) to records; one run per trace has the reference.
    reference : str
        Series over which bars are drawn (``muri-s``).
    published : sequence of mapping
        Rows ``{policy, metric, <trace>: seconds, …}``.
    drawn : iterable of str
        Traces that are stand-ins: nothing published can be compared with them.

    Returns
    -------
    DataFrame
        trace, policy, metric, value (s), published (s, NaN if none), deviation (relative), ratio
        (over the reference on the same trace), published_ratio.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> runs = {("a", name): simulate(small_trace(), "1x4", name) for name in ("srtf", "sf")}
    >>> table = compare(runs, "srtf", [{"policy": "sf", "metric": "makespan", "a": 40.0}])
    >>> table.query("policy == 'sf' and metric == 'makespan'")["deviation"].round(2).tolist()
    [0.15]
    """
    rows = [
        {"trace": trace, "policy": series, "metric": metric, "value": value}
        for (trace, series), result in results.items()
        for metric, value in run_metrics(result).items()
    ]
    known = {
        (trace, row["policy"], row["metric"]): float(value)
        for row in published
        for trace, value in row.items()
        if trace not in ("policy", "metric") and trace not in set(drawn)
    }
    table = pd.DataFrame(rows)
    runs = zip(table["trace"], table["policy"], table["metric"], strict=True)
    table["published"] = [known.get(run, math.nan) for run in runs]
    table["deviation"] = table["value"] / table["published"] - 1
    base = table[table["policy"] == reference].set_index(["trace", "metric"])
    under = base.reindex(pd.MultiIndex.from_frame(table[["trace", "metric"]]))
    table["ratio"] = table["value"] / under["value"].to_numpy()
    table["published_ratio"] = table["published"] / under["published"].to_numpy()
    return table


def over_noise(results: Mapping[tuple[float, str, int], Result]) -> pd.DataFrame:
    """Return every metric of runs with profiling noise, over that of the same policy without.

    Parameters
    ----------
    results : mapping
        (noise, policy, seed) to records; noise 0 among them for every policy.

    Returns
    -------
    DataFrame
        noise, policy, metric, value (s, mean over seeds), ratio (mean), lowest, highest (ratio of
        a single seed).

    References
    ----------
    Muri, SIGCOMM 2022, Figure 14.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> runs = {(x, "sf", 0): simulate(small_trace(), "1x4", "sf") for x in (0.0, 0.5)}
    >>> over_noise(runs)["ratio"].unique().tolist()
    [1.0]
    """
    rows = [
        {"noise": noise, "policy": policy, "metric": metric, "value": value}
        for (noise, policy, _), result in results.items()
        for metric, value in run_metrics(result).items()
    ]
    every = pd.DataFrame(rows).groupby(["noise", "policy", "metric"], sort=False)["value"]
    table = every.agg(value="mean", lowest="min", highest="max").reset_index()
    base = table[table["noise"] == 0].set_index(["policy", "metric"])["value"]
    under = base.reindex(pd.MultiIndex.from_frame(table[["policy", "metric"]])).to_numpy()
    over = table[["lowest", "highest"]].div(under, axis=0)
    return table.assign(ratio=table["value"] / under, **over)


def stand_ins(traces: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return which of some named traces were drawn instead of measured.

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [1]})
    >>> frame.attrs["synthetic"] = True
    >>> stand_ins({"1": frame, "2": pd.DataFrame({"a": [1]})})
    ['1']
    """
    return [name for name, trace in traces.items() if trace.attrs.get("synthetic")]


def farthest(
    table: pd.DataFrame, policy: str | None = None, metrics: Sequence[str] = METRICS
) -> float:
    """Return the largest relative distance from a published raw value.

    Parameters
    ----------
    table : DataFrame
        From :func:`compare`.
    policy : str, optional
        Of this series only.
    metrics : sequence of str
        Of these metrics only.

    Returns
    -------
    float
        NaN if there is nothing to compare with.

    Examples
    --------
    >>> rows = {"policy": ["a", "a"], "metric": ["makespan", "avg_jct"], "deviation": [0.1, -0.2]}
    >>> farthest(pd.DataFrame(rows), "a"), farthest(pd.DataFrame(rows), "a", ["makespan"])
    (0.2, 0.1)
    """
    return float(_chosen(table, policy, metrics)["deviation"].abs().max())


def farthest_bar(
    table: pd.DataFrame, policy: str | None = None, metrics: Sequence[str] = METRICS
) -> float:
    """Return the largest relative distance between a bar and its published height.

    Parameters
    ----------
    table : DataFrame
        From :func:`compare`.
    policy : str, optional
        Of this series only.
    metrics : sequence of str
        Of these metrics only.

    Returns
    -------
    float
        NaN if there is nothing to compare with.

    Examples
    --------
    >>> rows = {"policy": ["a"], "metric": ["makespan"], "ratio": [1.5], "published_ratio": [1.2]}
    >>> round(farthest_bar(pd.DataFrame(rows)), 9)
    0.25
    """
    rows = _chosen(table, policy, metrics)
    return float((rows["ratio"] / rows["published_ratio"] - 1).abs().max())


def bar_range(table: pd.DataFrame, metric: str, reference: str) -> list[float]:
    """Return the lowest and the highest bar of a metric, those of the reference apart.

    Parameters
    ----------
    table : DataFrame
        From :func:`compare`.
    metric, reference : str
        Which bars; the reference's own are 1.

    Examples
    --------
    >>> rows = {"policy": ["a", "b", "r"], "metric": "makespan", "ratio": [1.5, 1.2, 1.0]}
    >>> bar_range(pd.DataFrame(rows), "makespan", "r")
    [1.2, 1.5]
    """
    bars = table.loc[(table["metric"] == metric) & (table["policy"] != reference), "ratio"]
    return [float(bars.min()), float(bars.max())]


def published_range(
    table: pd.DataFrame, metric: str, reference: str, traces: Iterable[str]
) -> list[float] | None:
    """Return :func:`bar_range` if it can be compared with the paper's, else None.

    Parameters
    ----------
    table : DataFrame
        From :func:`compare`.
    metric, reference : str
        Which bars.
    traces : iterable of str
        All of these must have been run, and none on a stand-in.

    Examples
    --------
    >>> rows = {"trace": "1", "policy": ["a", "r"], "metric": "makespan", "ratio": [1.5, 1.0]}
    >>> frame = pd.DataFrame(rows).assign(published=[3.0, 2.0])
    >>> published_range(frame, "makespan", "r", "1"), published_range(frame, "makespan", "r", "12")
    ([1.5, 1.5], None)
    """
    compared = set(table.loc[table["published"].notna(), "trace"])
    whole = set(traces) <= compared
    return bar_range(table, metric, reference) if whole else None


def _chosen(table: pd.DataFrame, policy: str | None, metrics: Sequence[str]) -> pd.DataFrame:
    held = table["metric"].isin(metrics)
    return table[held if policy is None else held & (table["policy"] == policy)]
