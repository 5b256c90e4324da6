"""Muri on its traces: three metrics, ratios to Muri's own, distance from published values."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from repro.model.records import Result, percentile_by_index

#: Metrics of the paper, all in seconds.
METRICS = ("avg_jct", "makespan", "p99_jct")
LABELS = {"avg_jct": "average JCT", "makespan": "makespan", "p99_jct": "99th percentile of JCT"}
#: Trace and series of a run.
Run = tuple[str, str]


def run_metrics(result: Result) -> dict[str, float]:
    """Average JCT, makespan (from time 0) and 99th percentile of JCT (by index), s.

    Jobs that were given up count for the makespan only.
    """
    jobs = result.jobs
    done = jobs[~jobs["given_up"]] if "given_up" in jobs else jobs
    return {
        "avg_jct": float(done["jct"].mean()),
        "makespan": float(jobs["end_time"].max()),
        "p99_jct": percentile_by_index(done["jct"], 0.99),
    }


def compare(
    results: Mapping[Run, Result],
    reference: str,
    published: Sequence[Mapping[str, Any]] = (),
    synthetic: Iterable[str] = (),
) -> pd.DataFrame:
    """Every metric of every run, its ratio to the reference, and the published value.

    Traces of ``synthetic`` are stand-ins and are not compared with published values.
    """
    rows = [
        {"trace": trace, "policy": series, "metric": metric, "value": value}
        for (trace, series), result in results.items()
        for metric, value in run_metrics(result).items()
    ]
    published_values = {
        (trace, row["policy"], row["metric"]): float(value)
        for row in published
        for trace, value in row.items()
        if trace not in ("policy", "metric") and trace not in set(synthetic)
    }
    table = pd.DataFrame(rows)
    runs = zip(table["trace"], table["policy"], table["metric"], strict=True)
    table["published"] = [published_values.get(run, math.nan) for run in runs]
    table["deviation"] = table["value"] / table["published"] - 1
    base = table[table["policy"] == reference].set_index(["trace", "metric"])
    reference_rows = base.reindex(pd.MultiIndex.from_frame(table[["trace", "metric"]]))
    table["ratio"] = table["value"] / reference_rows["value"].to_numpy()
    table["published_ratio"] = table["published"] / reference_rows["published"].to_numpy()
    return table


def points(table: pd.DataFrame) -> pd.DataFrame:
    """Points of the rows of `compare` that have a published value, in s."""
    rows = table[table["published"].notna()]
    return rows.rename(columns={"policy": "series", "trace": "x", "value": "ours"}).assign(
        quantity=rows["metric"].map(LABELS), unit="s", certainty="artifact"
    )[["series", "x", "quantity", "published", "ours", "unit", "certainty"]]


def over_noise(results: Mapping[tuple[float, str, int], Result]) -> pd.DataFrame:
    """Metrics by noise and policy over those of the policy without noise (Fig 14).

    Mean, lowest and highest over the seeds; results are by (noise, policy, seed).
    """
    rows = [
        {"noise": noise, "policy": policy, "metric": metric, "value": value}
        for (noise, policy, _), result in results.items()
        for metric, value in run_metrics(result).items()
    ]
    by_noise = pd.DataFrame(rows).groupby(["noise", "policy", "metric"], sort=False)["value"]
    table = by_noise.agg(value="mean", lowest="min", highest="max").reset_index()
    base = table[table["noise"] == 0].set_index(["policy", "metric"])["value"]
    without = base.reindex(pd.MultiIndex.from_frame(table[["policy", "metric"]])).to_numpy()
    bounds = table[["lowest", "highest"]].div(without, axis=0)
    return table.assign(ratio=table["value"] / without, **bounds)


def stand_ins(traces: Mapping[str, pd.DataFrame]) -> list[str]:
    """Names of the traces that are stand-ins."""
    return [name for name, trace in traces.items() if trace.attrs.get("synthetic")]


def farthest(
    table: pd.DataFrame, policy: str | None = None, metrics: Sequence[str] = METRICS
) -> float:
    """Largest relative distance from a published value; NaN if none is published."""
    return float(_select(table, policy, metrics)["deviation"].abs().max())


def farthest_bar(
    table: pd.DataFrame, policy: str | None = None, metrics: Sequence[str] = METRICS
) -> float:
    """Largest relative distance of a ratio from the published ratio."""
    rows = _select(table, policy, metrics)
    return float((rows["ratio"] / rows["published_ratio"] - 1).abs().max())


def bar_range(table: pd.DataFrame, metric: str, reference: str) -> list[float]:
    """Lowest and highest ratio of a metric, without the reference."""
    ratios = table.loc[(table["metric"] == metric) & (table["policy"] != reference), "ratio"]
    return [float(ratios.min()), float(ratios.max())]


def published_range(
    table: pd.DataFrame, metric: str, reference: str, traces: Iterable[str]
) -> list[float] | None:
    """`bar_range` if all ``traces`` were run and none on a stand-in, else None."""
    compared = set(table.loc[table["published"].notna(), "trace"])
    complete = set(traces) <= compared
    return bar_range(table, metric, reference) if complete else None


def _select(table: pd.DataFrame, policy: str | None, metrics: Sequence[str]) -> pd.DataFrame:
    """Rows of the metrics, of one policy or of all."""
    rows = table[table["metric"].isin(metrics)]
    return rows if policy is None else rows[rows["policy"] == policy]
