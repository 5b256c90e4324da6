"""Muri on its traces: three metrics, bars over Muri's own, distance from published values."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from repro.model.records import Result, by_index

#: Metrics of the paper, all in seconds.
METRICS = ("avg_jct", "makespan", "p99_jct")
LABELS = {"avg_jct": "average JCT", "makespan": "makespan", "p99_jct": "99th percentile of JCT"}
#: Trace and series of a run.
Run = tuple[str, str]


def run_metrics(result: Result) -> dict[str, float]:
    """Return average JCT, makespan (from time 0) and 99th percentile of JCT (by index), in s.

    Jobs that were given up count for the makespan only.
    """
    jobs = result.jobs
    done = jobs[~jobs["given_up"]] if "given_up" in jobs else jobs
    return {
        "avg_jct": float(done["jct"].mean()),
        "makespan": float(jobs["end_time"].max()),
        "p99_jct": by_index(done["jct"], 0.99),
    }


def compare(
    results: Mapping[Run, Result],
    reference: str,
    published: Sequence[Mapping[str, Any]] = (),
    drawn: Iterable[str] = (),
) -> pd.DataFrame:
    """Return every metric of every run, over the reference's, and beside published values."""
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


def points(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `compare` that have a published value as points, in seconds."""
    known = table[table["published"].notna()]
    return known.rename(columns={"policy": "series", "trace": "x", "value": "ours"}).assign(
        quantity=known["metric"].map(LABELS), unit="s", certainty="artifact"
    )[["series", "x", "quantity", "published", "ours", "unit", "certainty"]]


def over_noise(results: Mapping[tuple[float, str, int], Result]) -> pd.DataFrame:
    """Return metrics by (noise, policy, seed) over those of the policy without noise (Fig 14)."""
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
    """Return which of some named traces were drawn instead of measured."""
    return [name for name, trace in traces.items() if trace.attrs.get("synthetic")]


def farthest(
    table: pd.DataFrame, policy: str | None = None, metrics: Sequence[str] = METRICS
) -> float:
    """Return the largest relative distance from a published value (s); NaN if none is published."""
    return float(_chosen(table, policy, metrics)["deviation"].abs().max())


def farthest_bar(
    table: pd.DataFrame, policy: str | None = None, metrics: Sequence[str] = METRICS
) -> float:
    """Return the largest relative distance between a bar and its published height."""
    rows = _chosen(table, policy, metrics)
    return float((rows["ratio"] / rows["published_ratio"] - 1).abs().max())


def bar_range(table: pd.DataFrame, metric: str, reference: str) -> list[float]:
    """Return the lowest and the highest bar of a metric, those of the reference (1) left out."""
    bars = table.loc[(table["metric"] == metric) & (table["policy"] != reference), "ratio"]
    return [float(bars.min()), float(bars.max())]


def published_range(
    table: pd.DataFrame, metric: str, reference: str, traces: Iterable[str]
) -> list[float] | None:
    """Return `bar_range` if all ``traces`` were run and none on a stand-in, else None."""
    compared = set(table.loc[table["published"].notna(), "trace"])
    whole = set(traces) <= compared
    return bar_range(table, metric, reference) if whole else None


def _chosen(table: pd.DataFrame, policy: str | None, metrics: Sequence[str]) -> pd.DataFrame:
    held = table["metric"].isin(metrics)
    return table[held if policy is None else held & (table["policy"] == policy)]
