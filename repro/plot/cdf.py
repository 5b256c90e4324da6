"""Cumulative distributions of several series, with published percentile points."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from repro.plot.series_styles import looks
from repro.plot.style import axes_or_new, legend, owner, published_style, styled

#: More points than a figure has pixels only make its file bigger.
_MAX_POINTS = 1500


@styled
def cdf_chart(
    frame: pd.DataFrame,
    *,
    value: str,
    series: str,
    xlabel: str,
    ylabel: str = "fraction of jobs",
    published: pd.DataFrame | None = None,
    log: bool = False,
    xlim: tuple[float, float] | None = None,
    title: str = "",
    columns: int = 1,
    axes: Axes | None = None,
) -> Figure:
    """Draw one cumulative distribution per series.

    Parameters
    ----------
    frame : DataFrame
        One row per observation; NaN is left out of the curve but counted in its total.
    value, series : str
        Columns holding the observation and the series it belongs to.
    xlabel, ylabel : str
        Axis labels with units.
    published : DataFrame, optional
        Columns ``series``, ``value`` and ``fraction`` (0 to 1) of published points.
    log : bool
        Logarithmic value axis.
    xlim : tuple of float, optional
        Range of the value axis.
    title : str
        Panel title.
    columns : {1, 2}
        Width of a new figure.
    axes : Axes, optional
        Panel to draw into.

    Returns
    -------
    Figure

    Examples
    --------
    >>> jobs = pd.DataFrame({"policy": ["srtf"] * 3, "jct": [1.0, 2.0, 5.0]})
    >>> chart = cdf_chart(jobs, value="jct", series="policy", xlabel="completion time (s)")
    >>> chart.axes[0].lines[0].get_ydata().tolist()[-1]
    1.0
    """
    axes = axes_or_new(axes, columns)
    names = list(dict.fromkeys(frame[series].astype(str)))
    chosen = looks(names)
    labels = frame[series].astype(str)
    for name in names:
        values = frame.loc[labels == name, value].to_numpy(float)
        x, y = _curve(values)
        style = chosen[name]
        axes.plot(
            x, y, color=style.color, linestyle=style.line, label=style.label,
            drawstyle="steps-post",
        )  # fmt: skip
    if published is not None:
        for name, points in published.groupby(published[series].astype(str), sort=False):
            style = chosen.get(str(name)) or looks([name])[str(name)]
            marks = published_style(style.marker, style.color)
            axes.plot(points[value], points["fraction"], **marks)
    if log:
        axes.set_xscale("log")
    if xlim is not None:
        axes.set_xlim(*xlim)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title, loc="left")
    legend(axes, published=published is not None)
    return owner(axes)


def _curve(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    known = np.sort(values[~np.isnan(values)])
    share = np.arange(1, len(known) + 1) / max(1, len(values))
    if len(known) > _MAX_POINTS:
        picked = np.unique(np.linspace(0, len(known) - 1, _MAX_POINTS).round().astype(int))
        known, share = known[picked], share[picked]
    if len(known):
        known, share = np.append(known[0], known), np.append(0.0, share)
    return known, share
