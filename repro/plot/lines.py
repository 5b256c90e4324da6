"""Line charts over a numeric or named axis, and cumulative distributions."""

from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from repro.base.typing import Floats
from repro.plot.names import names_in
from repro.plot.panel import PanelOptions, chart, draw_reference, finish, panel_axes
from repro.plot.published_marks import draw_published
from repro.plot.series_styles import Look, by_series

Band = tuple[str, str]
#: More points than a figure has pixels would only make its file bigger.
_MAX_POINTS = 1500


@chart
def line_chart(
    frame: pd.DataFrame,
    *,
    x: str,
    y: str,
    series: str | None = None,
    published: pd.DataFrame | None = None,
    published_band: Band | None = None,
    band: Band | None = None,
    markers: bool = True,
    joined: bool = True,
    steps: bool = False,
    **panel: Unpack[PanelOptions],
) -> Figure:
    """Draw one line per series through its rows, in their order.

    Parameters
    ----------
    frame : DataFrame
        One row per point. Texts in column ``x`` are plotted at equal distances.
    x, y, series : str
        Columns of the two axes and of the series.
    published : DataFrame, optional
        Published values in the same columns.
    published_band : tuple of str, optional
        Columns of ``published`` with the lower and upper ends of whiskers. Dashes then join the
        published points.
    band : tuple of str, optional
        Columns of the lower and upper edge of a shaded band.
    markers : bool
        Mark every point.
    joined : bool
        Join the points by a line.
    steps : bool
        Keep each value until the next point, for counts over time.
    **panel : PanelOptions
        Labels, scales and panel: xlabel, ylabel, title, log, reference, xlim, ylim, columns (width
        in paper columns, 1 or 2), and axes (panel to draw into).

    Returns
    -------
    matplotlib.figure.Figure
        The chart; a new one without ``axes``.

    Examples
    --------
    >>> rows = pd.DataFrame({"load": [1, 2, 1, 2], "jct": [3.0, 9, 2, 4], "policy": list("aabb")})
    >>> chart = line_chart(rows, x="load", y="jct", series="policy", ylabel="JCT (h)")
    >>> [line.get_ydata().tolist() for line in chart.axes[0].get_lines()]
    [[3.0, 9.0], [2.0, 4.0]]
    """
    axes = panel_axes(panel)
    if not pd.api.types.is_numeric_dtype(frame[x]):
        x_of = {text: number for number, text in enumerate(dict.fromkeys(names_in(frame, x)))}
        axes.set_xticks(list(x_of.values()), list(x_of))
        frame = frame.assign(**{x: names_in(frame, x).map(x_of)})
        if published is not None:
            published = published.assign(**{x: names_in(published, x).map(x_of)})
    our_curves, published_curves = by_series(series, frame, published)
    for style, rows in our_curves:
        axes.plot(
            rows[x],
            rows[y],
            color=style.color,
            label=style.label,
            linestyle=style.line if joined else "none",
            drawstyle="steps-post" if steps else "default",
            **_marker_keywords(style, on_points=markers, in_legend=bool(published_curves)),
        )
        if band is not None:
            below, above = (rows[edge] for edge in band)
            axes.fill_between(rows[x], below, above, color=style.color, alpha=0.18, linewidth=0)
    for style, rows in published_curves:
        whiskers = None
        if published_band is not None:
            low, high = published_band
            whiskers = rows[low].to_numpy(float), rows[high].to_numpy(float)
        draw_published(
            axes,
            rows[x].to_numpy(float),
            rows[y].to_numpy(float),
            style.marker,
            whiskers=whiskers,
            joined=published_band is not None,
        )
    draw_reference(axes, panel)
    return finish(axes, panel)


@chart
def cdf_chart(
    frame: pd.DataFrame,
    *,
    value: str,
    series: str,
    published: pd.DataFrame | None = None,
    **panel: Unpack[PanelOptions],
) -> Figure:
    """Draw one cumulative distribution per series.

    Parameters
    ----------
    frame : DataFrame
        One row per observation. NaN (a job that never ended) counts in the total and is not
        plotted.
    value, series : str
        Columns of the observation and of its series.
    published : DataFrame, optional
        Published points: columns ``series``, ``value`` and ``fraction`` (0 to 1).
    **panel : PanelOptions
        Labels, scales and panel: xlabel, ylabel, title, log, reference, xlim, ylim, columns (width
        in paper columns, 1 or 2), and axes (panel to draw into).

    Returns
    -------
    matplotlib.figure.Figure
        The chart; a new one without ``axes``.

    Examples
    --------
    >>> rows = pd.DataFrame({"policy": ["a", "a", "b", "b"], "jct": [1.0, 3.0, 2.0, None]})
    >>> chart = cdf_chart(rows, value="jct", series="policy", xlabel="JCT (h)")
    >>> [float(max(line.get_ydata())) for line in chart.axes[0].get_lines()]
    [1.0, 0.5]
    """
    axes = panel_axes(panel)
    our_curves, published_curves = by_series(series, frame, published)
    for style, rows in our_curves:
        axes.plot(
            *_distribution(rows[value].to_numpy(float)),
            color=style.color,
            linestyle=style.line,
            label=style.label,
            drawstyle="steps-post",
            **_marker_keywords(style, on_points=False, in_legend=bool(published_curves)),
        )
    for style, rows in published_curves:
        x = rows[value].to_numpy(float)
        fractions = rows["fraction"].to_numpy(float)
        draw_published(axes, x, fractions, style.marker, curve=True)
    panel["log"] = "x" if panel.get("log") else ""
    panel.setdefault("ylim", (0, 1.02))
    panel.setdefault("ylabel", "fraction of jobs")
    draw_reference(axes, panel)
    return finish(axes, panel)


def _marker_keywords(style: Look, *, on_points: bool, in_legend: bool) -> dict[str, Any]:
    """Keywords of a line's marker: on all points, in the legend only, or none.

    Published points have the marker of their series. With ``in_legend``, the legend of our line
    shows this marker even if our points have none.
    """
    marker = style.marker if on_points or in_legend else ""
    return {"marker": marker, "markevery": None if on_points else []}


def _distribution(values: Floats) -> tuple[Floats, Floats]:
    """Corners of a cumulative distribution: values and fractions, at most `_MAX_POINTS` + 1."""
    x = np.sort(values[~np.isnan(values)])
    fractions = np.arange(1, len(x) + 1) / max(1, len(values))
    if len(x) > _MAX_POINTS:
        kept = np.unique(np.linspace(0, len(x) - 1, _MAX_POINTS).round().astype(int))
        x = x[kept]
        fractions = fractions[kept]
    if len(x):
        x = np.append(x[0], x)
        fractions = np.append(0.0, fractions)
    return x, fractions
