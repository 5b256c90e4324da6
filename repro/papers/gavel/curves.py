"""Gavel's curves over job rates: means over seeds, published curves, and their distances."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.base import paths
from repro.base.errors import refuse_unknown
from repro.figures.points import as_points, with_counted
from repro.papers.tiresias.production import falls
from repro.perf.throughput_files import is_stand_in

_CURVES = "gavel_curves.csv"
_CDFS = "gavel_cdfs.csv"
#: Published column of a curve -> suffix of the series' name, quantity. The paper's figures show
#: the mean over the seeds; the artifact's notebooks print seed 0.
_PUBLISHED_COLUMNS = {
    "mean": ("", "mean of the seeds"),
    "seed0": (", seed 0", "seed 0"),
    "ftf_seed0": (", fairness", "mean finish-time fairness, seed 0"),
}
#: Number of decimals of x that are compared.
_X_DECIMALS = 3


def published(*figures: str) -> pd.DataFrame:
    """Curves as published: mean over seeds 0, 1, 2, band of one s.d.; NaN if not published."""
    table = pd.read_csv(paths.params_dir() / _CURVES, comment="#")
    by_figure = dict(list(table.drop(columns="figure").groupby(table["figure"], sort=False)))
    refuse_unknown(f"{_CURVES} has no figure", figures, by_figure)
    rows = pd.concat([by_figure[figure] for figure in figures])
    return rows.drop_duplicates(["series", "x"], ignore_index=True)


def distribution(figure: str, value: str) -> pd.DataFrame:
    """Distribution of seed 0 as published: series, fraction of the jobs, value."""
    table = pd.read_csv(paths.params_dir() / _CDFS, comment="#").rename(columns={"value": value})
    return table[table["figure"] == figure].drop(columns="figure").reset_index(drop=True)


def comparable(inputs: Mapping[str, Any], seed: int = 0) -> bool:
    """Whether a figure has the size, throughputs and seed of the published run.

    ``published_at`` of the inputs are the inputs of the published run.
    """
    same = all(inputs[name] == value for name, value in inputs["published_at"].items())
    return same and seed == 0 and not is_stand_in(inputs["throughputs"])


def means(
    jobs: pd.DataFrame, value: str = "jct_h", published: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Mean of a value by series and x: over the jobs, then over the seeds, ± sample s.d.

    Columns published and published_seed0 have the published values, NaN without published values.
    """
    # a job that never ended has no value, so its series has no mean at this x, whatever the seed
    complete = jobs[value].isna().groupby([jobs["series"], jobs["x"]]).transform("sum").eq(0)
    by_seed = (
        jobs[complete].groupby(["series", "x", "seed"], sort=False)[value].mean().reset_index()
    )
    by_seed = by_seed.sort_values(["x", "seed"], kind="stable")
    groups = by_seed.groupby(["series", "x"], sort=False)[value]
    deviation = groups.std(ddof=1)
    table: pd.DataFrame = groups.agg(mean="mean", seed0="first", seeds="size").reset_index()
    table["low"] = table["mean"] - deviation.to_numpy()
    table["high"] = table["mean"] + deviation.to_numpy()
    table["order"] = table["series"].map(list(dict.fromkeys(jobs["series"])).index)
    table = table.sort_values(["order", "x"], ignore_index=True).drop(columns="order")
    if published is None:
        return table.assign(published=math.nan, published_seed0=math.nan)
    columns = {"mean": "published", "seed0": "published_seed0"}
    values = published[["series", *columns]].rename(columns=columns)
    values["rounded_x"] = published["x"].round(_X_DECIMALS)
    table["rounded_x"] = table["x"].round(_X_DECIMALS)
    merged = table.merge(values, how="left", on=["series", "rounded_x"])
    return merged.drop(columns="rounded_x")


def fairness(table: pd.DataFrame, jobs: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Table with column ``ftf_seed0``, the mean finish-time fairness (rho) of a seed's jobs."""
    mean = means(jobs[jobs["seed"] == seed], "ftf").rename(columns={"mean": "ftf_seed0"})
    return table.merge(mean[["series", "x", "ftf_seed0"]], how="left", on=["series", "x"])


def points(
    published: pd.DataFrame,
    table: pd.DataFrame,
    compare: bool = True,
    quantity: str = "average JCT",
    unit: str = "h",
) -> pd.DataFrame:
    """Points of published curves, at most 11 counted per curve; ours is None unless ``compare``.

    The mean over the seeds, seed 0 and finish-time fairness are separate series.
    """
    simulated = table.assign(x=table["x"].round(_X_DECIMALS)).set_index(["series", "x"])
    frames = []
    for column, (suffix, statistic) in _PUBLISHED_COLUMNS.items():
        in_run = compare and column in simulated
        rows = published[published[column].notna()]
        if in_run:
            # our curve may end before the last published x
            reach = simulated[column].dropna().reset_index().groupby("series")["x"].max()
            rows = rows[rows["x"] <= rows["series"].map(reach) + 1e-9]
        rows = with_counted(rows, ["series"])
        keys = pd.MultiIndex.from_frame(rows[["series", "x"]].round(_X_DECIMALS))
        is_ftf = column == "ftf_seed0"
        frame = rows[["series", "x", "uncounted"]].assign(
            quantity=statistic if is_ftf else f"{quantity}, {statistic}",
            published=rows[column],
            ours=simulated[column].reindex(keys).to_numpy() if in_run else None,
            unit="" if is_ftf else unit,
            certainty="artifact",
        )
        frames.append(frame.assign(series=frame["series"] + suffix))
    return pd.concat(frames, ignore_index=True)


def quantiles(
    published: pd.DataFrame,
    jobs: pd.DataFrame,
    value: str,
    quantity: str,
    unit: str = "h",
    compare: bool = True,
) -> pd.DataFrame:
    """Points of a published `distribution`; ours are quantiles of the jobs, NaN without jobs."""
    by_series = dict(iter(jobs[value].fillna(math.inf).groupby(jobs["series"])))
    simulated = [
        np.quantile(by_series[series], fraction, method="inverted_cdf")
        if series in by_series
        else math.nan
        for series, fraction in zip(published["series"], published["fraction"], strict=True)
    ]
    fields = {"x": "fraction", "published": value, "ours": simulated if compare else None}
    name = published["series"] + ", distribution"
    about = f"{quantity} of this fraction of the jobs, seed 0"
    return as_points(
        published, series=name, quantity=about, unit=unit, certainty="artifact", **fields
    )


def is_within(streams: pd.DataFrame, published: pd.DataFrame, series: str) -> bool:
    """Whether published seed 0 lies within the range of the random streams at every x simulated."""
    by_x = streams.groupby(streams["x"].round(_X_DECIMALS))["jct_h"]
    rows = published[published["series"] == series]
    seed0 = rows.set_index(rows["x"].round(_X_DECIMALS))["seed0"].reindex(by_x.min().index)
    return bool(seed0.between(by_x.min(), by_x.max()).all())


def mean_at(table: pd.DataFrame, series: str, x: float) -> float:
    """Mean of a series at x, NaN without a value at x."""
    rows = table[(table["series"] == series) & np.isclose(table["x"], x, atol=10.0**-_X_DECIMALS)]
    return float(rows["mean"].iloc[0]) if len(rows) else math.nan


def ratio(table: pd.DataFrame, numerator: str, denominator: str, x: float) -> float:
    """Ratio of the means of two series at x."""
    return mean_at(table, numerator, x) / mean_at(table, denominator, x)


def growth(table: pd.DataFrame, series: str, start: float, end: float) -> float:
    """Ratio of the mean of a series at ``end`` to its mean at ``start``."""
    return mean_at(table, series, end) / mean_at(table, series, start)


def is_descending(table: pd.DataFrame, names: Sequence[str], x: float) -> bool:
    """Whether each of the series has a larger mean at x than the next."""
    return falls([mean_at(table, name, x) for name in names])


def ratios(
    table: pd.DataFrame, numerator: str, denominator: str, high: float = math.inf
) -> list[float]:
    """Ratio of the means of two series at every x of both up to ``high``."""
    wide = table.pivot_table(index="x", columns="series", values="mean")
    quotient = (wide[numerator] / wide[denominator]).dropna()
    return quotient[quotient.index <= high + 1e-9].tolist()


def largest_ratio(table: pd.DataFrame, numerator: str, denominator: str) -> float:
    """Largest ratio of the means of two series over every x of both."""
    return max(ratios(table, numerator, denominator))


def knee(table: pd.DataFrame, series: str) -> float:
    """Last x before the mean exceeds twice its lowest value."""
    rows = table[table["series"] == series].sort_values("x")
    steep = (rows["mean"] > 2.0 * rows["mean"].min()).cummax()
    return float(rows.loc[~steep, "x"].max())


def rate_label(inputs: Mapping[str, Any]) -> str:
    """Label of an axis of job rates, with the scale of a smaller cluster."""
    scale = inputs["scale"]
    scale_note = "" if scale == 1 else f"; 1/{scale:g} of it on 1/{scale:g} of the GPUs"
    return f"input job rate (jobs/h{scale_note})"
