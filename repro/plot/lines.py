"""Curves: lines over a numeric or named axis, and cumulative distributions."""

from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from repro.base.typing import Floats
from repro.plot.panel import PanelOptions, finish, panel_axes
from repro.plot.published_marks import draw_published
from repro.plot.series_styles import Look, by_series
from repro.plot.style import styled

Band = tuple[str, str]
#: More points than a figure has pixels only make its file bigger.
_MAX_POINTS = 1500


@styled
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
    """Draw one line per series through the rows in their order.

    Parameters
    ----------
    frame : DataFrame
        One row per point; a text column ``x`` is drawn at equal distances.
    x, y, series : str
        Columns of the two axes and of the series.
    published : DataFrame, optional
        The same columns with published values.
    published_band : tuple of str, optional
        Columns of ``published`` with the edges of its band, drawn as whiskers; the published values
        are then joined to a curve.
    band : tuple of str, optional
        Columns of the lower and upper edge of a shaded band.
    markers, joined, steps : bool
        Mark every point; join them to a line; hold each value until the next point (counts over
        time).
    """
    axes = panel_axes(panel)
    if not pd.api.types.is_numeric_dtype(frame[x]):
        places = {text: at for at, text in enumerate(dict.fromkeys(frame[x].astype(str)))}
        axes.set_xticks(list(places.values()), list(places))
        frame = frame.assign(**{x: frame[x].astype(str).map(places)})
        if published is not None:
            published = published.assign(**{x: published[x].astype(str).map(places)})
    ours, theirs = by_series(series, frame, published)
    for style, rows in ours:
        axes.plot(
            rows[x],
            rows[y],
            color=style.color,
            label=style.label,
            linestyle=style.line if joined else "none",
            drawstyle="steps-post" if steps else "default",
            **_marked(style, every=markers, told=markers or bool(theirs)),
        )
        if band is not None:
            below, above = (rows[edge] for edge in band)
            axes.fill_between(rows[x], below, above, color=style.color, alpha=0.18, linewidth=0)
    for style, rows in theirs:
        at = rows[x].to_numpy(float)
        values = rows[y].to_numpy(float)
        ends = None
        if published_band is not None:
            low, high = published_band
            ends = rows[low].to_numpy(float), rows[high].to_numpy(float)
        joined = published_band is not None
        draw_published(axes, at, values, style.marker, band=ends, joined=joined)
    return finish(axes, panel)


@styled
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
        One row per observation; NaN is left out of the curve but counted in its total.
    value, series : str
        Columns of the observation and of the series it belongs to.
    published : DataFrame, optional
        Columns ``series``, ``value`` and ``fraction`` (0 to 1) of published points.
    """
    axes = panel_axes(panel)
    ours, theirs = by_series(series, frame, published)
    for style, rows in ours:
        axes.plot(
            *_curve(rows[value].to_numpy(float)),
            color=style.color,
            linestyle=style.line,
            label=style.label,
            drawstyle="steps-post",
            **_marked(style, every=False, told=bool(theirs)),
        )
    for style, points in theirs:
        at = points[value].to_numpy(float)
        shares = points["fraction"].to_numpy(float)
        draw_published(axes, at, shares, style.marker, curve=True)
    panel["log"] = "x" if panel.get("log") else ""
    panel.setdefault("ylim", (0, 1.02))
    panel.setdefault("ylabel", "fraction of jobs")
    return finish(axes, panel)


def _marked(style: Look, *, every: bool, told: bool) -> dict[str, Any]:
    """Return how a line carries its marker: not at all, or where it is published points that do.

    It is then in the legend only: published points have the marker of their curve.
    """
    return {"marker": style.marker if told else "", "markevery": None if every else []}


def _curve(values: Floats) -> tuple[Floats, Floats]:
    """Return the corners of one curve, thinned out to `_MAX_POINTS`."""
    known = np.sort(values[~np.isnan(values)])
    share = np.arange(1, len(known) + 1) / max(1, len(values))
    if len(known) > _MAX_POINTS:
        picked = np.unique(np.linspace(0, len(known) - 1, _MAX_POINTS).round().astype(int))
        known = known[picked]
        share = share[picked]
    if len(known):
        known = np.append(known[0], known)
        share = np.append(0.0, share)
    return known, share
