"""Bars, grouped or stacked, with published values as open markers on them."""

from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from repro.plot.panel import Panel, finish, panel_axes, turn_long_labels
from repro.plot.published import published_style
from repro.plot.series_styles import Look, by_series, look
from repro.plot.style import styled

#: Part of a group's place that its bars fill.
_ROOM = 0.8
Key = tuple[str, ...]


@styled
def bar_chart(
    frame: pd.DataFrame,
    *,
    group: str,
    value: str,
    series: str | None = None,
    published: str | None = None,
    spread: str | None = None,
    reference: float | None = None,
    **panel: Unpack[Panel],
) -> Figure:
    """Draw one bar per row, gathered in groups, groups and series in order of appearance.

    Parameters
    ----------
    frame : DataFrame
        One row per bar.
    group, value : str
        Columns of the group (horizontal axis) and the height.
    series : str, optional
        Column of the series inside a group; the same as ``group`` for one coloured bar each.
    published, spread : str, optional
        Columns of published values (NaN where there is none) and of half an error bar.
    reference : float, optional
        Where to draw a thin horizontal line (1 for normalised values).

    Examples
    --------
    >>> rows = pd.DataFrame({"bin": ["SS", "LL"], "gain": [27.0, 1.0], "paper": [27.6, None]})
    >>> chart = bar_chart(rows, group="bin", value="gain", published="paper", ylabel="gain (x)")
    >>> [round(bar.get_height()) for bar in chart.axes[0].patches]
    [27, 1]
    """
    axes, log = panel_axes(panel), panel.pop("log", False)
    # on a logarithmic axis a bar has no natural foot but that of a ratio
    foot = reference if log and reference else 0.0
    groups = list(dict.fromkeys(frame[group].astype(str)))
    (parts,) = by_series(series, frame)
    beside = 1 if series == group else len(parts)
    width = _ROOM / beside
    for number, (style, rows) in enumerate(parts):
        at = np.array([groups.index(str(item)) for item in rows[group]], dtype=float)
        if beside > 1:
            at += (number - (beside - 1) / 2) * width
        axes.bar(
            at, rows[value].to_numpy(float) - foot, width * 0.92, bottom=foot,
            yerr=None if spread is None else rows[spread].to_numpy(float),
            error_kw={"elinewidth": 0.7, "capsize": 1.5}, **style.bar,
        )  # fmt: skip
        if published is not None:
            axes.plot(at, rows[published].to_numpy(float), **published_style(), clip_on=False)
    if reference is not None:
        axes.axhline(reference, color="#555555", linewidth=0.7, linestyle=":")
    if log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        # plain numbers, more of them where there are few decades
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(range(len(groups)), [look(name).label for name in groups])
    turn_long_labels(axes, groups)
    axes.grid(False, axis="x")
    return finish(axes, panel)


@styled
def stacked_chart(
    frame: pd.DataFrame,
    *,
    bar: str,
    part: str,
    value: str,
    cluster: str | None = None,
    pieces: str | None = None,
    published: pd.DataFrame | None = None,
    **panel: Unpack[Panel],
) -> Figure:
    """Draw one stack per bar, parts from the bottom up in order of appearance.

    Parameters
    ----------
    frame : DataFrame
        One row per part of a bar.
    bar, part, value : str
        Columns of the bar, the part and its height.
    cluster : str, optional
        Column that gathers bars (a model with its worker counts); named under its bars.
    pieces : str, optional
        Column of the pieces of a part, each lighter than the one below; bars then touch.
    published : DataFrame, optional
        Columns ``bar`` (and ``cluster``) and ``value``: published totals.
    """
    axes = panel_axes(panel)
    columns = [bar] if cluster is None else [cluster, bar]
    bars = list(dict.fromkeys(_names(frame, columns)))
    clusters = list(dict.fromkeys(name[:-1] for name in bars))
    bars.sort(key=lambda name: clusters.index(name[:-1]))
    # a gap of half a bar sets clusters apart
    places = {name: at + clusters.index(name[:-1]) / 2 for at, name in enumerate(bars)}
    below = dict.fromkeys(places, 0.0)
    for style, whole in by_series(part, frame)[0]:
        shades = [(style.bar, whole)] if pieces is None else _shades(style, whole, pieces)
        for shade, rows in shades:
            names, heights = _names(rows, columns), rows[value].to_numpy(float)
            at, bottom = [places[name] for name in names], [below[name] for name in names]
            axes.bar(at, heights, 0.8 if pieces is None else 1.0, bottom=bottom, **shade)
            for name, height in zip(names, heights, strict=True):
                below[name] += height
    if published is not None:
        at = [places[name] for name in _names(published, columns)]
        axes.plot(at, published[value].to_numpy(float), **published_style())
    axes.set_xticks(list(places.values()), [name[-1] for name in places])
    if cluster is not None:
        _name_clusters(axes, places)
    axes.grid(False, axis="x")
    return finish(axes, panel)


def _shades(
    look: Look, rows: pd.DataFrame, pieces: str
) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    """Return the pieces of a part with ever lighter looks; the first stands in the legend."""
    parts, dark = [piece for _, piece in rows.groupby(pieces, sort=False)], to_rgb(look.color)
    shades = [
        [1 - (1 - one) * (1 - 0.75 * at / len(parts)) for one in dark] for at in range(len(parts))
    ]
    plain = {**look.bar, "hatch": "", "linewidth": 0.0}
    return [
        ({**plain, "color": shade, "label": "" if at else look.label}, piece)
        for at, (shade, piece) in enumerate(zip(shades, parts, strict=True))
    ]


def _names(frame: pd.DataFrame, columns: list[str]) -> list[Key]:
    return list(zip(*(frame[column].astype(str) for column in columns), strict=True))


def _name_clusters(axes: Axes, places: dict[Key, float]) -> None:
    """Write the name of each cluster under the middle of its bars."""
    for text in axes.get_xticklabels():
        text.set_fontsize(5)
    middles = pd.Series(places).groupby(level=0, sort=False).mean()
    lower = axes.secondary_xaxis(-0.09)
    lower.set_xticks(middles, middles.index, rotation=40, ha="right", rotation_mode="anchor")
    lower.tick_params(length=0)
    lower.spines["bottom"].set_visible(False)
