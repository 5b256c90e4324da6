"""Data of PCS and its artifact: published points, configurations, fronts, policies by series."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from repro.figures.points import as_points
from repro.files.tables import ModelTable
from repro.model.policy import Policy, make
from repro.policies.pcs.pcs import class_thresholds, decaying_weights

#: Series in the paper's figures -> our names; ``pcs-…`` are configurations of the policy ``pcs``.
NAMES = {
    "AFS": "afs",
    "Tiresias": "srsf-elastic",
    "Themis": "themis",
    "FIFO": "fifo-elastic",
    "Max-Min": "max-min",
    "PCS": "pcs",
    "PCS-JCT": "pcs-jct",
    "PCS-bal": "pcs-bal",
    "PCS-pred": "pcs-pred",
}
_CONFIGURATIONS = ModelTable(
    "pcs_configurations.csv", ("name", "thresholds", "weights", "zeta_min", "delta")
)
_OBJECTIVES = ("avg_jct_s", "avg_pred_err_pct")
_FRONTS = ModelTable(
    "pcs_fronts.csv", ("trace", "solution", "T", "W", "zeta_min", "delta", *_OBJECTIVES)
)
_POINTS = ModelTable("pcs_published.csv", ("figure", "series", "quantity", "x", "value"))
_KEYS = ["series", "quantity", "x"]


def policy(series: str, workload: str, **settings: Any) -> Policy:
    """Policy of a series; ``pcs-…`` has the artifact's configuration for a workload."""
    if not series.startswith("pcs-"):
        return make(series, "pcs", **settings)
    row = _CONFIGURATIONS.frame.set_index("name").loc[f"{workload}-{series.removeprefix('pcs-')}"]
    lists = {name: tuple(map(float, row[name].split())) for name in ("thresholds", "weights")}
    return make("pcs", "pcs", **lists, zeta_min=row["zeta_min"], delta=row["delta"], **settings)


def front(trace: str) -> pd.DataFrame:
    """Front of the artifact's search on a trace: solutions and their objectives."""
    table = _FRONTS.frame
    return table[table["trace"] == trace].drop(columns="trace").reset_index(drop=True)


def solution(row: Mapping[str, Any], jobs: pd.DataFrame | None = None) -> Policy:
    """Policy of a row of `front`.

    Its thresholds follow from the sizes of ``jobs``, by default of the jobs of the run.
    """
    efficiency = {"zeta_min": row["zeta_min"], "delta": row["delta"]}
    if jobs is None:
        return make("pcs", "pcs", c2=row["T"], decay=row["W"], **efficiency)
    bounds = class_thresholds(jobs["service"].to_numpy(float), row["T"])
    weights = decaying_weights(len(bounds) + 1, row["W"])
    return make("pcs", "pcs", thresholds=tuple(bounds), weights=tuple(weights), **efficiency)


def published(figure: str) -> pd.DataFrame:
    """Values of a figure as published: series, quantity, x (text), published."""
    table = _POINTS.frame
    table = table[table["figure"] == figure].rename(columns={"value": "published"})
    named = table["series"].replace(NAMES)
    return table.assign(series=named, x=table["x"].map(_text))[[*_KEYS, "published"]]


def with_published(
    ours: pd.DataFrame, figure: str, units: Mapping[str, str], certainty: str = "artifact"
) -> pd.DataFrame:
    """Our values (series, quantity, x, ours) with the published values, or NaN.

    ``units`` maps quantities to units; other quantities are left out.
    """
    kept = ours[ours["quantity"].isin(units)]
    table = kept.assign(x=kept["x"].map(_text)).merge(published(figure), how="left", on=_KEYS)
    return table.assign(unit=table["quantity"].map(units), certainty=certainty)


def points(table: pd.DataFrame, comparable: pd.Series | bool = True) -> pd.DataFrame:
    """Points of the published rows of `with_published`; ours is NaN where not ``comparable``."""
    is_comparable = pd.Series(comparable, index=table.index)
    names = ("series", "x", "quantity", "unit", "certainty")
    fields = {name: name for name in names}
    return as_points(table, **fields, ours=table["ours"].where(is_comparable))


def _text(x: object) -> str:
    """Text of an x; NaN is empty."""
    if isinstance(x, float):
        return "" if math.isnan(x) else f"{x:g}"
    return str(x)
