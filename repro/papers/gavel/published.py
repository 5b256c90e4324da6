"""Gavel's curves: ours over several seeds, the published ones, and how far the two are apart."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.base import paths
from repro.base.errors import refuse_unknown
from repro.figures.points import thinned
from repro.papers.tiresias.production import falls
from repro.perf.throughput_files import is_stand_in

_CURVES = "gavel_curves.csv"
_CDFS = "gavel_cdfs.csv"
#: What is published of a curve: column, what it adds to the series' name, what it is of. The mean
#: over the seeds is drawn in the paper's figures; the artifact's notebooks print seed 0.
_NUMBERS = {
    "mean": ("", "mean of the seeds"),
    "seed0": (", seed 0", "seed 0"),
    "ftf_seed0": (", fairness", "mean finish-time fairness, seed 0"),
}
#: Decimals in which places on the horizontal axis agree.
_PLACES = 3


def curves(*figures: str) -> pd.DataFrame:
    """Return the published points: mean over seeds 0, 1, 2, band of one s.d.; NaN if not known."""
    table = pd.read_csv(paths.params_dir() / _CURVES, comment="#")
    known = dict(list(table.drop(columns="figure").groupby(table["figure"], sort=False)))
    refuse_unknown(f"{_CURVES} has no figure", figures, known)
    chosen = pd.concat([known[figure] for figure in figures])
    return chosen.drop_duplicates(["series", "x"], ignore_index=True)


def distribution(figure: str, value: str) -> pd.DataFrame:
    """Return points of a published distribution (seed 0): series, fraction and the value."""
    table = pd.read_csv(paths.params_dir() / _CDFS, comment="#").rename(columns={"value": value})
    return table[table["figure"] == figure].drop(columns="figure").reset_index(drop=True)


def comparable(inputs: Mapping[str, Any], seed: int = 0) -> bool:
    """Tell whether a run has size, speeds and seeds of the published one (``published_at``)."""
    same = all(inputs[name] == at for name, at in inputs["published_at"].items())
    return same and seed == 0 and not is_stand_in(inputs["throughputs"])


def means(
    jobs: pd.DataFrame, value: str = "jct_h", known: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the average of a value over a point's jobs, and over its seeds, ± sample s.d."""
    # A point with jobs that have no value has no average.
    whole = jobs[value].isna().groupby([jobs["series"], jobs["x"]]).transform("sum").eq(0)
    each = jobs[whole].groupby(["series", "x", "seed"], sort=False)[value].mean().reset_index()
    each = each.sort_values(["x", "seed"], kind="stable")
    points = each.groupby(["series", "x"], sort=False)[value]
    spread = points.std(ddof=1)
    table: pd.DataFrame = points.agg(mean="mean", seed0="first", seeds="size").reset_index()
    table["low"] = table["mean"] - spread.to_numpy()
    table["high"] = table["mean"] + spread.to_numpy()
    table["place"] = table["series"].map(list(dict.fromkeys(jobs["series"])).index)
    table = table.sort_values(["place", "x"], ignore_index=True).drop(columns="place")
    if known is None:
        return table.assign(published=math.nan, published_seed0=math.nan)
    beside = pd.DataFrame({"series": known["series"], "at": known["x"].round(_PLACES)})
    beside["published"] = known["mean"]
    beside["published_seed0"] = known["seed0"]
    table["at"] = table["x"].round(_PLACES)
    return table.merge(beside, how="left", on=["series", "at"]).drop(columns="at")


def fairness(table: pd.DataFrame, jobs: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Return the table with ``ftf_seed0``, the mean finish-time fairness of a seed's jobs."""
    mean = means(jobs[jobs["seed"] == seed], "ftf").rename(columns={"mean": "ftf_seed0"})
    return table.merge(mean[["series", "x", "ftf_seed0"]], how="left", on=["series", "x"])


def points(
    known: pd.DataFrame,
    table: pd.DataFrame,
    compare: bool = True,
    quantity: str = "average JCT",
    unit: str = "h",
) -> pd.DataFrame:
    """Return the numbers published of curves beside ours, 11 of each, without ours if not alike.

    The mean over the seeds, seed 0 and finish-time fairness are series of their own.
    """
    ours = table.assign(x=table["x"].round(_PLACES)).set_index(["series", "x"])
    parts = []
    for column, (name, what) in _NUMBERS.items():
        kept = known[known[column].notna()]
        if compare and column in ours:
            # beyond the last place that was run there is nothing to judge
            reach = ours[column].dropna().reset_index().groupby("series")["x"].max()
            kept = kept[kept["x"] <= kept["series"].map(reach) + 1e-9]
        kept = thinned(kept, ["series"])
        where = pd.MultiIndex.from_frame(kept[["series", "x"]].round(_PLACES))
        is_ftf = column == "ftf_seed0"
        part = kept[["series", "x"]].assign(
            quantity=what if is_ftf else f"{quantity}, {what}",
            published=kept[column],
            ours=ours[column].reindex(where).to_numpy() if compare and column in ours else None,
            unit="" if is_ftf else unit,
            certainty="artifact",
        )
        parts.append(part.assign(series=part["series"] + name))
    return pd.concat(parts, ignore_index=True)


def quantiles(
    known: pd.DataFrame,
    jobs: pd.DataFrame,
    value: str,
    quantity: str,
    unit: str = "h",
    compare: bool = True,
) -> pd.DataFrame:
    """Return points of a published :func:`distribution` beside the quantiles of these jobs."""
    each = jobs[value].fillna(math.inf).groupby(jobs["series"])
    places = zip(known["series"], known["fraction"], strict=True)
    found = [np.quantile(each.get_group(s), at, method="inverted_cdf") for s, at in places]
    return pd.DataFrame(
        {
            "series": known["series"] + ", distribution",
            "x": known["fraction"],
            "quantity": f"{quantity} of this fraction of the jobs, seed 0",
            "published": known[value],
            "ours": found if compare else None,
            "unit": unit,
            "certainty": "artifact",
        }
    )


def distance(table: pd.DataFrame, series: str, low: float = 0.0, high: float = math.inf) -> float:
    """Return a series' largest relative distance from the published one where low < x <= high.

    Of the mean over the seeds and of seed 0, whichever is farther.
    """
    rows = table[(table["series"] == series) & (table["x"] > low) & (table["x"] <= high + 1e-9)]
    mean = rows["mean"] / rows["published"]
    first = rows["seed0"] / rows["published_seed0"]
    return float((pd.concat([mean, first]) - 1).abs().max())


def distances(
    table: pd.DataFrame, knees: Mapping[str, float], compare: bool
) -> dict[str, float | None]:
    """Return :func:`distance` of each series below and above its knee, by claim id."""
    values: dict[str, float | None] = {}
    for series, knee in knees.items():
        for side, (low, high) in {"below": (0.0, knee), "above": (knee, math.inf)}.items():
            far = distance(table, series, low, high) if compare else None
            values[re.sub(r"\W+", "_", series).strip("_") + f"_{side}"] = far
    return values


def outside(draws: pd.DataFrame, known: pd.DataFrame, series: str) -> list[float]:
    """Return how far seed 0 of a series is published outside the range of draws, at each place."""
    each = draws.groupby(draws["x"].round(_PLACES))["jct_h"]
    rows = known[known["series"] == series]
    stored = rows.set_index(rows["x"].round(_PLACES))["seed0"].reindex(each.min().index)
    return (stored.clip(each.min(), each.max()) / stored - 1).tolist()


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
