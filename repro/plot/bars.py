"""Bar charts, grouped or stacked, with published values as open markers."""

from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.plot.names import names_in, texts_in
from repro.plot.panel import (
    PanelOptions,
    chart,
    draw_reference,
    finish,
    owner,
    panel_axes,
    turn_long_labels,
)
from repro.plot.published_marks import halo, published_style
from repro.plot.series_styles import Look, by_series, look
from repro.plot.style import styled

#: Fraction of a group's width that its bars fill.
_GROUP_FILL = 0.8
#: Colour of a bar's second value, far from the colour of every series.
_SECOND_VALUE_COLOR = "#e0218a"
#: Name of a stacked bar: its group, if bars have groups, then its text in column ``bar``.
BarName = tuple[str, ...]


@chart
def bar_chart(
    frame: pd.DataFrame,
    *,
    group: str,
    value: str,
    series: str | None = None,
    published: str | None = None,
    spread: str | None = None,
    ends: tuple[str, str] | None = None,
    text: str | None = None,
    **panel: Unpack[PanelOptions],
) -> Figure:
    """Draw one bar per row, in groups. Groups and series keep their order of appearance.

    Parameters
    ----------
    frame : DataFrame
        One row per bar.
    group, value : str
        Columns of the group (horizontal axis) and of the bar's height.
    series : str, optional
        Column of the series inside a group. If it is ``group``, each group is one bar with a look
        of its own.
    published, spread : str, optional
        Columns of the published value (NaN without one) and of half the length of an error bar. If
        in every group all bars have the same published value, it is plotted once for each group, as
        a line over the bars.
    ends : (str, str), optional
        Columns of the lower and the upper end of an error bar (NaN without one), instead of
        ``spread``.
    text : str, optional
        Column of the text over each bar.
    **panel : PanelOptions
        Labels, scales and panel: xlabel, ylabel, title, log, reference, xlim, ylim, columns (width
        in paper columns, 1 or 2), and axes (panel to draw into).

    Returns
    -------
    matplotlib.figure.Figure
        The chart; a new one without ``axes``.

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
    # A logarithmic axis has no zero: bars of ratios start at the reference.
    baseline = reference if log and reference else 0.0
    group_names = names_in(frame, group)
    groups = list(dict.fromkeys(group_names))
    (series_rows,) = by_series(series, frame)
    bars_per_group = 1 if series == group else len(series_rows)
    width = _GROUP_FILL / bars_per_group
    by_group = frame.groupby(group_names, sort=False)
    group_values = [] if published is None else [rows[published] for _, rows in by_group]
    shared = bars_per_group > 1 and _published_values_agree(group_values)
    if shared:
        _draw_over_groups(axes, np.array([values.iloc[0] for values in group_values], dtype=float))
    for number, (style, rows) in enumerate(series_rows):
        x = np.array([groups.index(name) for name in names_in(rows, group)], dtype=float)
        if bars_per_group > 1:
            x += (number - (bars_per_group - 1) / 2) * width
        bars = axes.bar(
            x,
            rows[value].to_numpy(float) - baseline,
            width * 0.92,
            bottom=baseline,
            yerr=_error_lengths(rows, value, spread, ends),
            error_kw={"elinewidth": 0.7, "capsize": 1.5},
            **style.bar,
        )
        # Without the halo an error bar vanishes on a black bar.
        for line in bars.errorbar.get_children() if bars.errorbar else ():
            line.set_path_effects(halo(1.8))
        if published is not None and not shared:
            axes.plot(x, rows[published].to_numpy(float), **published_style(), clip_on=False)
        if text is not None:
            tops = _tops(rows, value, spread, ends)
            bar_width = width / len(groups)
            _write_above(axes, x, rows, tops, published, text, bar_width, shared=shared)
    draw_reference(axes, panel)
    if log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        if not reference:
            # Without a reference the axis starts at a whole decade.
            low = 10 ** np.floor(np.log10(low))
            axes.set_ylim(bottom=low)
        # Below two decades, ticks at 1 alone would be too few.
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(range(len(groups)), [look(name).label for name in groups])
    turn_long_labels(axes, groups)
    axes.grid(False, axis="x")
    return finish(axes, panel)


@styled
def tick_bars(axes: Axes, frame: pd.DataFrame, *, value: str, series: str | None = None) -> None:
    """Draw a second value as a short line across each bar of a `bar_chart`.

    Parameters
    ----------
    axes : Axes
        Panel of the chart, without other bars.
    frame : DataFrame
        Frame of the chart.
    value : str
        Column of the second value; the legend shows its name.
    series : str, optional
        Column of the series, as in the chart.

    Examples
    --------
    >>> rows = pd.DataFrame({"bin": ["SS", "LL"], "gain": [27.0, 1.0], "other rules": [26.0, 1.1]})
    >>> (axes,) = bar_chart(rows, group="bin", value="gain").axes
    >>> tick_bars(axes, rows, value="other rules")
    >>> [float(line[0, 1]) for line in axes.collections[0].get_segments()]
    [26.0, 1.1]
    """
    (series_rows,) = by_series(series, frame)
    values = np.concatenate([rows[value].to_numpy(float) for _, rows in series_rows])
    bars = [(bar.get_x(), bar.get_width()) for bar in axes.patches if isinstance(bar, Rectangle)]
    left, width = np.transpose(bars)
    axes.hlines(
        values,
        left - width / 4,
        left + 1.25 * width,
        color=_SECOND_VALUE_COLOR,
        linewidth=1.4,
        zorder=4,
        label=value,
        path_effects=halo(2.4),
    )


def _error_lengths(
    rows: pd.DataFrame, value: str, spread: str | None, ends: tuple[str, str] | None
) -> Floats | None:
    """Lengths of error bars below and above the values, (2, bars), or of both sides, (bars,)."""
    if ends is not None:
        below = rows[value] - rows[ends[0]]
        above = rows[ends[1]] - rows[value]
        return np.array([below, above], float)
    return None if spread is None else rows[spread].to_numpy(float)


def _tops(
    rows: pd.DataFrame, value: str, spread: str | None, ends: tuple[str, str] | None
) -> Floats:
    """Upper ends of bars or of their error bars, (bars,); 0 where there is no value."""
    tops: Floats = rows[value].fillna(0).to_numpy(float)
    if ends is not None:
        tops = np.fmax(tops, rows[ends[1]].to_numpy(float))
    elif spread is not None:
        tops = tops + rows[spread].fillna(0).to_numpy(float)
    return tops


def _published_values_agree(group_values: list[Any]) -> bool:
    """Whether every group has several bars, all with the same published value."""
    return bool(group_values) and all(
        len(values) > 1 and len(values.unique()) == 1 for values in group_values
    )


def _draw_over_groups(axes: Axes, values: Floats) -> None:
    """Draw the published value of each group, (groups,), as a dashed line over its bars."""
    # NaN separates the lines of the groups.
    ends = np.array([-_GROUP_FILL / 2, _GROUP_FILL / 2, np.nan])
    x = np.add.outer(np.arange(len(values)), ends).ravel()
    heights = np.repeat(values, 3)
    style = {**published_style(joined=True), "path_effects": halo(1.4)}
    axes.plot(x, heights, markevery=slice(0, None, 3), **style)


def _write_above(
    axes: Axes,
    x: Floats,
    rows: pd.DataFrame,
    tops: Floats,
    published_column: str | None,
    text: str,
    width: float,
    *,
    shared: bool,
) -> None:
    """Write the texts of bars over them, clear of error bars and published markers.

    ``tops`` are the upper ends of bars or error bars. ``width`` is that of a bar as a
    fraction of the axes. A text wider than its bar is turned. ``shared``: published values are
    lines over the groups, without markers on the bars.
    """
    bar_inches = width * owner(axes).get_figwidth() * axes.get_position().width
    markers = np.full(len(rows), np.nan)
    if published_column is not None:
        markers = rows[published_column].to_numpy(float)
    # If the marker is far above the bar, the text fits between bar and marker.
    is_far = markers - tops > 0.12 * np.fmax.reduce(markers, initial=0.0)
    markers = np.where(is_far, np.nan, markers)
    notes = texts_in(rows, text)
    for bar_x, top, marker, note in zip(x, tops, markers, notes, strict=True):
        # a comparison with NaN, no marker, is false
        stands_on_marker = not shared and marker >= 0.9 * top
        axes.annotate(
            note,
            (bar_x, np.nanmax([0.0, top, marker])),
            (0, 5.5 if stands_on_marker else 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=5.2,
            rotation=90 if len(note) * 0.045 > bar_inches else 0,
            zorder=6,
            bbox={"color": "white", "pad": 0.4},
        )


@chart
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
    """Draw stacked bars; their parts go upwards in order of appearance.

    Parameters
    ----------
    frame : DataFrame
        One row per part of a bar.
    bar, part, value : str
        Columns of the bar, the part and its height.
    cluster : str, optional
        Column of the group of bars, such as a model with a bar per number of workers. Its name is
        written under its bars.
    pieces : str, optional
        Column that divides a part into pieces, each lighter than the piece below. Bars then touch.
    published : DataFrame, optional
        Published totals of bars of ``frame``: columns ``bar`` (and ``cluster``) and ``value``.
    **panel : PanelOptions
        Labels, scales and panel: xlabel, ylabel, title, log, reference, xlim, ylim, columns (width
        in paper columns, 1 or 2), and axes (panel to draw into).

    Returns
    -------
    matplotlib.figure.Figure
        The chart; a new one without ``axes``.

    Raises
    ------
    ParamError
        If a bar of ``published`` is not a bar of ``frame``.

    Examples
    --------
    >>> rows = pd.DataFrame({"plan": ["A", "A"], "part": ["compute", "wait"], "s": [2.0, 1.0]})
    >>> chart = stacked_chart(rows, bar="plan", part="part", value="s", ylabel="time (s)")
    >>> [float(bar.get_y() + bar.get_height()) for bar in chart.axes[0].patches]
    [2.0, 3.0]
    """
    axes = panel_axes(panel)
    columns = [bar] if cluster is None else [cluster, bar]
    bars = list(dict.fromkeys(_names(frame, columns)))
    clusters = list(dict.fromkeys(name[:-1] for name in bars))
    bars.sort(key=lambda name: clusters.index(name[:-1]))
    # Groups of bars are half a bar apart.
    x_of = {name: number + clusters.index(name[:-1]) / 2 for number, name in enumerate(bars)}
    tops = dict.fromkeys(x_of, 0.0)
    for style, part_rows in by_series(part, frame)[0]:
        shades = [(style.bar, part_rows)] if pieces is None else _shades(style, part_rows, pieces)
        for shade, rows in shades:
            names = _names(rows, columns)
            heights = rows[value].to_numpy(float)
            x = [x_of[name] for name in names]
            bottoms = [tops[name] for name in names]
            axes.bar(x, heights, 0.8 if pieces is None else 1.0, bottom=bottoms, **shade)
            for name, height in zip(names, heights, strict=True):
                tops[name] += height
    if published is not None:
        published_bars = _names(published, columns)
        unknown = [name for name in published_bars if name not in x_of]
        if unknown:
            raise ParamError(
                f"published {bar} {' '.join(unknown[0])!r} is not in the chart; give one of its "
                f"bars: {', '.join(' '.join(name) for name in bars)}"
            )
        x = [x_of[name] for name in published_bars]
        axes.plot(x, published[value].to_numpy(float), **published_style())
    axes.set_xticks(list(x_of.values()), [name[-1] for name in x_of])
    if cluster is not None:
        _name_clusters(axes, x_of)
    axes.grid(False, axis="x")
    draw_reference(axes, panel)
    return finish(axes, panel)


def _shades(
    style: Look, rows: pd.DataFrame, pieces: str
) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    """Bar style and rows of each piece of a part, ever lighter. The first has the legend label."""
    piece_rows = [piece for _, piece in rows.groupby(pieces, sort=False, dropna=False)]
    dark = to_rgb(style.color)
    plain = {**style.bar, "hatch": "", "linewidth": 0.0}
    pieces_with_style = []
    for number, piece in enumerate(piece_rows):
        strength = 1 - 0.75 * number / len(piece_rows)
        shade = [1 - (1 - channel) * strength for channel in dark]
        label = "" if number else style.label
        pieces_with_style.append(({**plain, "color": shade, "label": label}, piece))
    return pieces_with_style


def _names(frame: pd.DataFrame, columns: list[str]) -> list[BarName]:
    """Names of the bars of all rows: the texts in some columns."""
    return list(zip(*(names_in(frame, column) for column in columns), strict=True))


def _name_clusters(axes: Axes, x_of: dict[BarName, float]) -> None:
    """Write the name of each group of bars under their middle."""
    for text in axes.get_xticklabels():
        text.set_fontsize(5)
    middles = pd.Series(x_of).groupby(level=0, sort=False).mean()
    lower = axes.secondary_xaxis(0.0)
    lower.set_xticks(middles, middles.index)
    lower.tick_params(length=0, pad=14)
    lower.spines["bottom"].set_visible(False)
