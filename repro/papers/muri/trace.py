"""Muri on its traces: three metrics of every run, deviation from published values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from repro.figures.points import as_points
from repro.model.records import Result, percentile_by_index

if TYPE_CHECKING:
    from repro.figures.figure import FigureRun

#: Metrics of the paper, all in seconds.
METRICS = ("avg_jct", "makespan", "p99_jct")
LABELS = {"avg_jct": "average JCT", "makespan": "makespan", "p99_jct": "99th percentile of JCT"}
#: Series and trace of a run.
Run = tuple[str, str]


def run_metrics(result: Result) -> dict[str, float]:
    """Average JCT, makespan (from time 0) and 99th percentile of JCT (not interpolated), s.

    Jobs that were given up count for the makespan only.
    """
    jobs = result.jobs
    done = jobs[~jobs["given_up"]] if "given_up" in jobs else jobs
    return {
        "avg_jct": float(done["jct"].mean()),
        "makespan": float(jobs["end_time"].max()),
        "p99_jct": percentile_by_index(done["jct"], 0.99),
    }


def metric_table(
    results: Mapping[Run, Result],
    traces: Mapping[str, pd.DataFrame],
    published: Sequence[Mapping[str, Any]] = (),
) -> pd.DataFrame:
    """Every metric of every run (s) with the published value, by trace.

    A trace that is a stand-in has no published values.
    """
    rows = [
        {"trace": trace, "policy": series, "metric": metric, "value": value}
        for (series, trace), result in results.items()
        for metric, value in run_metrics(result).items()
    ]
    published_values = {
        (trace, row["policy"], row["metric"]): float(value)
        for row in published
        for trace, value in row.items()
        if trace in traces and not traces[trace].attrs.get("synthetic")
    }
    order = {trace: number for number, trace in enumerate(traces)}
    table = pd.DataFrame(rows).sort_values(
        "trace", key=lambda names: names.map(order), kind="stable", ignore_index=True
    )
    runs = zip(table["trace"], table["policy"], table["metric"], strict=True)
    table["published"] = [published_values.get(run, math.nan) for run in runs]
    table["deviation"] = table["value"] / table["published"] - 1
    return table


def published_rows(fig: FigureRun) -> list[dict[str, Any]]:
    """Published values of a figure (s) by trace label, a row per policy and metric.

    Labels whose trace differs from the paper's are left out.
    """
    in_paper = fig.paper_inputs.traces
    others = {label for label, name in fig.inputs.traces.items() if name != in_paper.get(label)}
    return [
        {key: value for key, value in row.items() if key not in others}
        for row in fig.inputs.published
    ]


def is_complete(table: pd.DataFrame, published: Sequence[Mapping[str, Any]]) -> bool:
    """Whether every trace with published values was run and none of them on a stand-in."""
    names = {name for row in published for name in row} - {"policy", "metric"}
    return names <= set(table.loc[table["published"].notna(), "trace"])


def points(table: pd.DataFrame) -> pd.DataFrame:
    """Points of the rows of `metric_table` that have a published value, in s."""
    quantity = table["metric"].map(LABELS)
    fields = {"series": "policy", "x": "trace", "ours": "value", "quantity": quantity}
    return as_points(table, **fields, unit="s", certainty="artifact")


def bar_points(table: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Points of the bars: a `metric_table` with the further columns ratio and published_ratio.

    They are not counted, because they follow from the values in seconds.
    """
    rows = table[table["policy"] != reference]
    quantity = rows["metric"].map(LABELS) + f" relative to {reference}"
    fields = {"series": "policy", "x": "trace", "published": "published_ratio", "ours": "ratio"}
    facts = {"quantity": quantity, "unit": "x", "certainty": "artifact", "uncounted": True}
    return as_points(rows, **fields, **facts)
