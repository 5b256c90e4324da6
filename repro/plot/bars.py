"""Bars, grouped or stacked, with published values as open markers on them."""

from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from repro.base.typing import Floats
from repro.plot.panel import PanelOptions, finish, owner, panel_axes, turn_long_labels
from repro.plot.published_marks import halo, published_style
from repro.plot.series_styles import Look, by_series, look
from repro.plot.style import styled

#: Part of a group's place that its bars fill.
_ROOM = 0.8
#: Colour of a second value of a bar, far from all others.
_TICK = "#e0218a"
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
    text: str | None = None,
    **panel: Unpack[PanelOptions],
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
        Columns of published values (NaN where there is none) and of half an error bar. Values that
        all bars of a group share are drawn once, as a line over the group.
    text : str, optional
        Column of what is written over each bar.

    Examples
    --------
    >>> rows = pd.DataFrame({"bin": ["SS", "LL"], "gain": [27.0, 1.0], "paper": [27.6, None]})
    >>> chart = bar_chart(rows, group="bin", value="gain", published="paper", ylabel="gain (x)")
    >>> [round(bar.get_height()) for bar in chart.axes[0].patches]
    [27, 1]
    """
    axes = panel_axes(panel)
    log = panel.pop("log", False)
    reference = panel.get("reference")
    # on a logarithmic axis a bar has no natural foot but that of a ratio
    foot = reference if log and reference else 0.0
    groups = list(dict.fromkeys(frame[group].astype(str)))
    (parts,) = by_series(series, frame)
    beside = 1 if series == group else len(parts)
    width = _ROOM / beside
    parted = frame.groupby(group, sort=False)
    shared = [] if published is None else [rows[published] for _, rows in parted]
    once = beside > 1 and _alike(shared)
    if once:
        _draw_over_groups(axes, np.array([one.iloc[0] for one in shared], dtype=float))
    for number, (style, rows) in enumerate(parts):
        at = np.array([groups.index(str(item)) for item in rows[group]], dtype=float)
        if beside > 1:
            at += (number - (beside - 1) / 2) * width
        drawn = axes.bar(
            at,
            rows[value].to_numpy(float) - foot,
            width * 0.92,
            bottom=foot,
            yerr=None if spread is None else rows[spread].to_numpy(float),
            error_kw={"elinewidth": 0.7, "capsize": 1.5},
            **style.bar,
        )
        # seen on black bars, too
        for part in drawn.errorbar.get_children() if drawn.errorbar else ():
            part.set_path_effects(halo(1.8))
        if published is not None and not once:
            axes.plot(at, rows[published].to_numpy(float), **published_style(), clip_on=False)
        if text is not None:
            room = width / len(groups)
            _write_above(axes, at, rows, [value, spread, published], text, room, once=once)
    if reference is not None:
        axes.axhline(reference, color="#555555", linewidth=0.7, linestyle=":")
    if log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        if not reference:
            # bars that could stand on anything stand on a whole decade
            low = 10 ** np.floor(np.log10(low))
            axes.set_ylim(bottom=low)
        # plain numbers, more of them where there are few decades
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(range(len(groups)), [look(name).label for name in groups])
    turn_long_labels(axes, groups)
    axes.grid(False, axis="x")
    return finish(axes, panel)


@styled
def tick_bars(axes: Axes, frame: pd.DataFrame, *, value: str, series: str | None = None) -> None:
    """Draw a second value as a short line across each bar that `bar_chart` drew of a frame.

    Parameters
    ----------
    axes : Axes
        The panel of the chart, which has nothing but these bars.
    frame : DataFrame
        That of the chart.
    value : str
        Column of the second value; its name stands in the legend.
    series : str, optional
        That of the chart.

    Examples
    --------
    >>> rows = pd.DataFrame({"bin": ["SS", "LL"], "gain": [27.0, 1.0], "other rules": [26.0, 1.1]})
    >>> (axes,) = bar_chart(rows, group="bin", value="gain").axes
    >>> tick_bars(axes, rows, value="other rules")
    >>> [float(line[0, 1]) for line in axes.collections[0].get_segments()]
    [26.0, 1.1]
    """
    (parts,) = by_series(series, frame)
    values = np.concatenate([rows[value].to_numpy(float) for _, rows in parts])
    bars = [(bar.get_x(), bar.get_width()) for bar in axes.patches if isinstance(bar, Rectangle)]
    left, width = np.transpose(bars)
    axes.hlines(
        values,
        left - width / 4,
        left + 1.25 * width,
        color=_TICK,
        linewidth=1.4,
        zorder=4,
        label=value,
        path_effects=halo(2.4),
    )


def _alike(groups: list[Any]) -> bool:
    """Tell whether several bars in every group have one value in common."""
    return bool(groups) and all(len(one) > 1 and len(one.unique()) == 1 for one in groups)


def _draw_over_groups(axes: Axes, values: Floats) -> None:
    """Draw the one published value of each group as a dashed line over its bars."""
    ends = np.array([-_ROOM / 2, _ROOM / 2, np.nan])
    at = np.add.outer(np.arange(len(values)), ends).ravel()
    heights = np.repeat(values, 3)
    style = {**published_style(joined=True), "path_effects": halo(1.4)}
    axes.plot(at, heights, markevery=slice(0, None, 3), **style)


def _write_above(
    axes: Axes,
    at: Floats,
    rows: pd.DataFrame,
    heights: list[str | None],
    text: str,
    width: float,
    *,
    once: bool,
) -> None:
    """Write a text over the highest of a bar, its error bar and its published value.

    It is turned where it would be wider than the bar, a part ``width`` of the axes. Published
    values count where the text would lie on them; those drawn ``once`` are no rings.
    """
    inches = width * owner(axes).get_figwidth() * axes.get_position().width
    value, spread, published = (
        np.zeros(len(rows)) if name is None else rows[name].fillna(0).to_numpy(float)
        for name in heights
    )
    tops = value + spread
    published = np.where(published - tops > 0.12 * published.max(), 0, published)
    for x, top, ring, note in zip(at, tops, published, rows[text], strict=True):
        up = 5.5 if ring and not once and ring > 0.9 * top else 3
        axes.annotate(
            str(note),
            (x, max(top, ring)),
            (0, up),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=5.2,
            rotation=90 if len(str(note)) * 0.045 > inches else 0,
            zorder=6,
            bbox={"color": "white", "pad": 0.4},
        )


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
    **panel: Unpack[PanelOptions],
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
            names = _names(rows, columns)
            heights = rows[value].to_numpy(float)
            at = [places[name] for name in names]
            bottom = [below[name] for name in names]
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
    parts = [piece for _, piece in rows.groupby(pieces, sort=False)]
    dark = to_rgb(look.color)
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
    lower = axes.secondary_xaxis(0.0)
    lower.set_xticks(middles, middles.index)
    lower.tick_params(length=0, pad=14)
    lower.spines["bottom"].set_visible(False)
