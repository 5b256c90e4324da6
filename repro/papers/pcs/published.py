"""PCS's published points, shipped configurations and search results, and policies by series."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from repro.files.tables import ModelTable
from repro.model.policy import Policy, make
from repro.policies.pcs.pcs import class_thresholds, decaying_weights

#: Series of the figures to our names; ``pcs-…`` are configurations of the policy ``pcs``.
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
    """Return the policy of a series, ``pcs-…`` as its authors configured it for a workload."""
    if not series.startswith("pcs-"):
        return make(series, "pcs", **settings)
    row = _CONFIGURATIONS.frame.set_index("name").loc[f"{workload}-{series.removeprefix('pcs-')}"]
    parts = {name: tuple(map(float, row[name].split())) for name in ("thresholds", "weights")}
    return make("pcs", "pcs", **parts, zeta_min=row["zeta_min"], delta=row["delta"], **settings)


def front(trace: str) -> pd.DataFrame:
    """Return the solutions that the authors' search found on a trace, with what each came to."""
    table = _FRONTS.frame
    return table[table["trace"] == trace].drop(columns="trace").reset_index(drop=True)


def solution(row: Mapping[str, Any], jobs: pd.DataFrame | None = None) -> Policy:
    """Return the policy that a row of `front` describes, its classes cut among ``jobs`` if given.

    Without, they are cut among those of the run.
    """
    how = {"zeta_min": row["zeta_min"], "delta": row["delta"]}
    if jobs is None:
        return make("pcs", "pcs", c2=row["T"], decay=row["W"], **how)
    cuts = class_thresholds(jobs["service"].to_numpy(float), row["T"])
    weights = decaying_weights(len(cuts) + 1, row["W"])
    return make("pcs", "pcs", thresholds=tuple(cuts), weights=tuple(weights), **how)


def points(figure: str) -> pd.DataFrame:
    """Return a figure's published points: series, quantity, x (text), published."""
    table = _POINTS.frame
    table = table[table["figure"] == figure].rename(columns={"value": "published"})
    named = table["series"].replace(NAMES)
    return table.assign(series=named, x=table["x"].map(_text))[[*_KEYS, "published"]]


def beside(
    ours: pd.DataFrame, figure: str, units: Mapping[str, str], certainty: str = "artifact"
) -> pd.DataFrame:
    """Return our values (series, quantity, x, ours) with the published ones, NaN where none is.

    ``units`` are those of each quantity; quantities without one are left out.
    """
    kept = ours[ours["quantity"].isin(units)]
    table = kept.assign(x=kept["x"].map(_text)).merge(points(figure), how="left", on=_KEYS)
    return table.assign(unit=table["quantity"].map(units), certainty=certainty)


def judged(table: pd.DataFrame, comparable: pd.Series | bool = True) -> pd.DataFrame:
    """Return the published rows of `beside` as points; those not ``comparable`` without ours."""
    kept = pd.Series(comparable, index=table.index)
    compared = table.assign(ours=table["ours"].where(kept))
    columns = ["series", "x", "quantity", "published", "ours", "unit", "certainty"]
    return compared.loc[compared["published"].notna(), columns]


def _text(x: object) -> str:
    """Return a place on the horizontal axis as text; none is empty."""
    if isinstance(x, float):
        return "" if x != x else f"{x:g}"
    return str(x)
