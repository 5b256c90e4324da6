"""Data of PCS and its artifact: published points, configurations, fronts, policies by series."""

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from repro.base.errors import ParamError
from repro.figures.points import as_points, thinned
from repro.files.tables import ModelTable
from repro.model.policy import Policy, make
from repro.papers.pcs.encodings import encoding
from repro.papers.pcs.fronts import nondominated
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
    configurations = _CONFIGURATIONS.frame.set_index("name")
    name = f"{workload}-{series.removeprefix('pcs-')}"
    if name not in configurations.index:
        workloads = sorted({known.rpartition("-")[0] for known in configurations.index})
        raise ParamError(
            f"no configuration {series} for workload {workload!r}; those with configurations: "
            f"{', '.join(workloads)}"
        )
    row = configurations.loc[name]
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


def possible(rows: pd.DataFrame, jobs: pd.DataFrame) -> pd.DataFrame:
    """Rows of a `front` whose solutions are valid configurations for ``jobs``.

    With the jobs of a stand-in, a class of a stored solution may get a weight of 0.
    """

    def is_possible(row: Any) -> bool:
        with contextlib.suppress(ParamError):
            return bool(solution(row, jobs))
        return False

    return rows[[is_possible(row) for _, row in rows.iterrows()]]


def front_points(
    table: pd.DataFrame, jobs: Mapping[str, pd.DataFrame], objectives: Iterable[Sequence[str]]
) -> list[pd.DataFrame]:
    """Points of simulated solutions of stored fronts, and of the largest T of each search.

    Of the nondominated solutions of a trace eleven are counted, evenly along the front.

    Parameters
    ----------
    table : DataFrame
        Columns trace, those of `front`, and our objectives.
    jobs : mapping
        Jobs that were searched on, by trace. On a stand-in nothing is compared.
    objectives : iterable
        Name, stored column, our column and unit of each objective.
    """
    compare = not any(trace.attrs.get("synthetic") for trace in jobs.values())
    rounded = table[["trace", *_OBJECTIVES]].copy()
    for name in _OBJECTIVES:
        # rounding errors must not decide which of equal solutions are counted
        rounded[name] = [float(f"{value:.9g}") for value in rounded[name]]
    ordered = rounded.sort_values(list(reversed(_OBJECTIVES)), kind="stable")
    fronts = [
        rows[nondominated(rows[list(_OBJECTIVES)].to_numpy())]
        for _, rows in ordered.groupby("trace", sort=False)
    ]
    counted = thinned(pd.concat(fronts), ["trace"])
    names = table["solution"].astype(str)
    facts: dict[str, Any] = {
        "x": table["trace"] + " " + names if len(jobs) > 1 else names,
        "uncounted": ~table.index.isin(counted.index),
        "certainty": "artifact",
    }
    points = [
        as_points(
            table,
            series=name,
            quantity=name,
            published=stored,
            ours=own if compare else None,
            unit=unit,
            **facts,
        )
        for name, stored, own, unit in objectives
    ]
    bounds = published("3").query("quantity == 'T_upper'").set_index("x").loc[list(jobs)]
    largest = [
        encoding(trace["service"].to_numpy(float), heuristics=True, linear=False).high[0]
        for trace in jobs.values()
    ]
    facts = {"series": "largest T", "quantity": "largest T", "unit": "", "certainty": "artifact"}
    points.append(bounds.reset_index().assign(ours=largest if compare else None, **facts))
    return points


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
