"""Gavel's curves over job rates: published curves, ours next to them, and their points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from repro.base import paths
from repro.base.errors import refuse_unknown
from repro.figures.points import as_points, mark_uncounted
from repro.perf.throughput_files import is_stand_in
from repro.plot import line_chart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CURVES = "gavel_curves.csv"
_CDFS = "gavel_cdfs.csv"
#: Published column of a curve -> suffix of the series' name, quantity. The paper's figures show
#: the mean over the seeds; the artifact's notebooks print seed 0.
_PUBLISHED_COLUMNS = {
    "mean": ("", "mean of the seeds"),
    "seed0": (", seed 0", "seed 0"),
    "ftf_seed0": (", fairness", "mean finish-time fairness, seed 0"),
}
#: Smallest factor between two ticks of a log axis whose texts do not overlap.
_TICKS_APART = 2.5
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


def over_seeds(
    runs: pd.Series[float], published: pd.DataFrame | None, **columns: pd.Series[float]
) -> pd.DataFrame:
    """Mean over the seeds: one row per series and x, the series in order of the simulations.

    ``runs`` has a value by series, x and seed. Columns low and high are mean ± sample standard
    deviation, seed0 is the value of the first seed. Columns published and published_seed0 are NaN
    without published values. Further ``columns`` are by series and x.
    """
    seeds = runs.groupby(["series", "x"], sort=False)
    table = seeds.agg(mean="mean", std="std", seed0="first", seeds="size").reset_index()
    table["low"] = table["mean"] - table["std"]
    table["high"] = table["mean"] + table["std"]
    table["order"] = table["series"].map(list(dict.fromkeys(table["series"])).index)
    table = table.sort_values(["order", "x"], ignore_index=True)
    table = table[["series", "x", "mean", "seed0", "seeds", "low", "high"]]
    if published is None:
        table = table.assign(published=math.nan, published_seed0=math.nan)
    else:
        names = {"mean": "published", "seed0": "published_seed0"}
        values = published[["series", *names]].rename(columns=names)
        values["rounded_x"] = published["x"].round(_X_DECIMALS)
        table["rounded_x"] = table["x"].round(_X_DECIMALS)
        table = table.merge(values, how="left", on=["series", "rounded_x"])
        table = table.drop(columns="rounded_x")
    for name, column in columns.items():
        table = table.join(column.rename(name), on=["series", "x"])
    return table


def by_x(table: pd.DataFrame, series: Iterable[str], value: str = "mean") -> pd.DataFrame:
    """A value by x (rows) and series (columns); NaN where a series has no value."""
    wide = table.pivot_table(value, "x", "series")
    return wide.reindex(columns=list(series))


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
        rows = mark_uncounted(rows, ["series"])
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
    """Whether the published value of seed 0 is within the range of ours at every simulated x.

    ``streams`` has a row of our values (jct_h) per x and random stream of the policy.
    """
    by_x = streams.groupby(streams["x"].round(_X_DECIMALS))["jct_h"]
    rows = published[published["series"] == series]
    seed0 = rows.set_index(rows["x"].round(_X_DECIMALS))["seed0"].reindex(by_x.min().index)
    return bool(seed0.between(by_x.min(), by_x.max()).all())


def knee(mean: pd.Series[float]) -> float:
    """Last x before the curve ``mean`` first exceeds twice its lowest value."""
    curve = mean.dropna()
    steep = (curve > 2.0 * curve.min()).cummax()
    return float(curve.index[~steep].max())


def rate_label(inputs: Mapping[str, Any]) -> str:
    """Label of an axis of job rates, with the scale of a smaller cluster."""
    scale = inputs["scale"]
    scale_note = "" if scale == 1 else f"; 1/{scale:g} of it on 1/{scale:g} of the GPUs"
    return f"input job rate (jobs/h{scale_note})"


def log_ticks(ours: Iterable[int], published: Iterable[float]) -> list[int]:
    """Numbers for the ticks of a log axis: ours, then published ones where they do not overlap.

    >>> log_ticks([40, 50], [32, 64, 128, 256, 512])
    [40, 128, 512]
    """
    ticks: list[int] = []
    for number in [*ours, *map(round, published)]:
        if all(max(number, tick) >= _TICKS_APART * min(number, tick) for tick in ticks):
            ticks.append(number)
    return sorted(ticks)


def jct_chart(
    table: pd.DataFrame, inputs: Mapping[str, Any], published: pd.DataFrame | None, **panel: Any
) -> Figure:
    """Draw the averages of `over_seeds` with their bands, and the published curves."""
    panel = {"ylim": inputs["ylim"], **panel}
    return line_chart(
        table,
        x="x",
        y="mean",
        series="series",
        band=("low", "high"),
        published=published,
        published_band=("band_lo", "band_hi"),
        xlabel=rate_label(inputs),
        ylabel="average JCT (h)",
        **panel,
    )


def fairness_chart(table: pd.DataFrame, published: pd.DataFrame | None, **panel: Any) -> Figure:
    """Draw the mean finish-time fairness of seed 0 (ftf_seed0), next to published values."""
    return line_chart(
        table.dropna(subset="ftf_seed0"),
        x="x",
        y="ftf_seed0",
        series="series",
        published=published,
        xlabel="input job rate, as in (a)",
        ylabel="mean finish-time fairness",
        **panel,
    )
