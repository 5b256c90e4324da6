"""Gavel's curves: ours over several seeds, the published ones, and how far the two are apart."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro import paths
from repro.errors import refuse_unknown
from repro.experiments.tiresias.production import falls
from repro.perf.throughput_files import is_stand_in

_CURVES = "gavel_curves.csv"
#: Decimals in which places on the horizontal axis agree.
_PLACES = 3


def curves(*figures: str) -> pd.DataFrame:
    """Return the published points: mean over seeds 0, 1, 2, band of one s.d.; NaN if not known."""
    table = pd.read_csv(paths.params_dir() / _CURVES, comment="#")
    known = dict(list(table.drop(columns="figure").groupby(table["figure"], sort=False)))
    refuse_unknown(f"{_CURVES} has no figure", figures, known)
    chosen = pd.concat([known[figure] for figure in figures])
    return chosen.drop_duplicates(["series", "x"], ignore_index=True)


def comparable(inputs: Mapping[str, Any], seed: int = 0) -> bool:
    """Tell whether a run has size, speeds and seeds of the published one (``published_at``)."""
    same = all(inputs[name] == at for name, at in inputs["published_at"].items())
    return same and seed == 0 and not is_stand_in(inputs["throughputs"])


def means(
    jobs: pd.DataFrame, value: str = "jct_h", known: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the average of a value over the jobs of each point, and over its seeds, ± one s.d."""
    # A point with jobs that have no value has no average.
    whole = jobs[value].isna().groupby([jobs["series"], jobs["x"]]).transform("sum").eq(0)
    each = jobs[whole].groupby(["series", "x", "seed"], sort=False)[value].mean().reset_index()
    each = each.sort_values(["x", "seed"], kind="stable")
    points = each.groupby(["series", "x"], sort=False)[value]
    spread = points.std(ddof=0)
    table: pd.DataFrame = points.agg(mean="mean", seed0="first", seeds="size").reset_index()
    table["low"] = table["mean"] - spread.to_numpy()
    table["high"] = table["mean"] + spread.to_numpy()
    table["place"] = table["series"].map(list(dict.fromkeys(jobs["series"])).index)
    table = table.sort_values(["place", "x"], ignore_index=True).drop(columns="place")
    if known is None:
        return table.assign(published=math.nan, published_seed0=math.nan)
    beside = pd.DataFrame({"series": known["series"], "at": known["x"].round(_PLACES)})
    beside["published"], beside["published_seed0"] = known["mean"], known["seed0"]
    table["at"] = table["x"].round(_PLACES)
    return table.merge(beside, how="left", on=["series", "at"]).drop(columns="at")


def distance(
    table: pd.DataFrame, series: str, low: float = 0.0, high: float = math.inf,
    first_seed: bool = True,
) -> float:  # fmt: skip
    """Return a series' largest relative distance from the published one where low < x <= high."""
    rows = table[(table["series"] == series) & (table["x"] > low) & (table["x"] <= high + 1e-9)]
    ratio = rows["mean"] / rows["published"]
    if first_seed:
        ratio = (rows["seed0"] / rows["published_seed0"]).fillna(ratio)
    return float((ratio - 1).abs().max())


def distances(
    table: pd.DataFrame, knees: Mapping[str, float], compare: bool, first_seed: bool = True
) -> dict[str, float | None]:
    """Return :func:`distance` of each series below and above its knee, by claim id."""
    values: dict[str, float | None] = {}
    for series, knee in knees.items():
        for side, (low, high) in {"below": (0.0, knee), "above": (knee, math.inf)}.items():
            far = distance(table, series, low, high, first_seed) if compare else None
            values[re.sub(r"\W+", "_", series).strip("_") + f"_{side}"] = far
    return values


def at(table: pd.DataFrame, series: str, x: float) -> float:
    """Return the mean of a series at a place, NaN if there is none."""
    rows = table[(table["series"] == series) & np.isclose(table["x"], x, atol=10.0**-_PLACES)]
    return float(rows["mean"].iloc[0]) if len(rows) else math.nan


def ratio(table: pd.DataFrame, above: str, below: str, x: float) -> float:
    """Return the mean of one series over that of another at a place."""
    return at(table, above, x) / at(table, below, x)


def growth(table: pd.DataFrame, series: str, start: float, end: float) -> float:
    """Return the mean of a series at one place over that at another."""
    return at(table, series, end) / at(table, series, start)


def ranked(table: pd.DataFrame, names: Sequence[str], x: float) -> bool:
    """Tell whether at a place each of the series lies above the next."""
    return falls([at(table, name, x) for name in names])


def ratios(table: pd.DataFrame, above: str, below: str, high: float = math.inf) -> list[float]:
    """Return the mean of one series over that of another where both have one, up to ``high``."""
    wide = table.pivot_table(index="x", columns="series", values="mean")
    quotient = (wide[above] / wide[below]).dropna()
    return quotient[quotient.index <= high + 1e-9].tolist()


def never_above(table: pd.DataFrame, lower: str, upper: str) -> float:
    """Return the largest mean of ``lower`` over that of ``upper`` at the places both have."""
    return max(ratios(table, lower, upper))


def knee(table: pd.DataFrame, series: str) -> float:
    """Return the last place before the mean exceeds twice its lowest value."""
    rows = table[table["series"] == series].sort_values("x")
    steep = (rows["mean"] > 2.0 * rows["mean"].min()).cummax()
    return float(rows.loc[~steep, "x"].max())


def rate_label(inputs: Mapping[str, Any]) -> str:
    """Return the label of an axis of job rates, which a smaller cluster divides."""
    scale = inputs["scale"]
    less = "" if scale == 1 else f"; 1/{scale:g} of it on 1/{scale:g} of the GPUs"
    return f"input job rate (jobs/h{less})"
