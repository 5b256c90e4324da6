"""Curves: lines over a numeric or named axis, and cumulative distributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from repro.plot.panel import Panel, finish, panel_axes, published_style
from repro.plot.series_styles import Look, by_series, looks, looks_of
from repro.plot.style import styled
from repro.typing import Floats

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
    steps: bool = False,
    **panel: Unpack[Panel],
) -> Figure:
    """Draw one line per series through the rows in their order.

    Parameters
    ----------
    frame : DataFrame
        One row per point; a text column ``x`` is drawn at equal distances.
    x, y : str
        Columns of the two axes.
    series : str, optional
        Column of the series.
    published : DataFrame, optional
        The same columns with published values.
    published_band : tuple of str, optional
        Columns of ``published`` with the edges of its band; published values are then pale lines
        under ours, not markers.
    band : tuple of str, optional
        Columns of the lower and upper edge of a shaded band.
    markers : bool
        Mark every point.
    steps : bool
        Hold each value until the next point (counts over time).
    **panel
        Labels, scales and place, see `Panel`.

    Examples
    --------
    >>> rows = pd.DataFrame({"K": [2, 3, 4], "jct": [1.0, 0.99, 0.99]})
    >>> chart = line_chart(rows, x="K", y="jct", xlabel="queues", ylabel="normalised JCT")
    >>> chart.axes[0].get_xlabel()
    'queues'
    """
    axes = panel_axes(panel)
    named = not pd.api.types.is_numeric_dtype(frame[x])
    places = {text: at for at, text in enumerate(dict.fromkeys(frame[x].astype(str)))}
    if named:
        frame = frame.assign(**{x: frame[x].astype(str).map(places)})
    parts, extra = by_series(frame, series), {}
    if published is not None:
        if named:
            published = published.assign(**{x: published[x].astype(str).map(places)})
        extra = by_series(published, series)
    chosen = looks_of([*parts, *extra], series)
    for name, rows in parts.items():
        style = chosen[name]
        axes.plot(
            rows[x],
            rows[y],
            color=style.color,
            linestyle=style.line,
            marker=style.marker if markers else "",
            drawstyle="steps-post" if steps else "default",
            label=style.label,
        )
        if band is not None:
            low, high = band
            axes.fill_between(
                rows[x], rows[low], rows[high], color=style.color, alpha=0.18, linewidth=0
            )
    if published_band is None:
        for name, rows in extra.items():
            axes.plot(rows[x], rows[y], **published_style("D", chosen[name].color))
    else:
        _pale_curves(axes, extra, (x, y), published_band, chosen)
    if named:
        axes.set_xticks(list(places.values()), list(places))
    return finish(axes, panel, published=published is not None and published_band is None)


def _pale_curves(
    axes: Axes,
    curves: Mapping[str, pd.DataFrame],
    columns: tuple[str, str],
    band: Band,
    chosen: Mapping[str, Look],
) -> None:
    """Draw published curves and their bands, wide and pale below the others."""
    (x, y), (low, high) = columns, band
    for name, rows in curves.items():
        pale: dict[str, Any] = {"color": chosen[name].color, "zorder": 1}
        axes.plot(rows[x], rows[y], linewidth=3.2, alpha=0.4, **pale)
        axes.fill_between(rows[x], rows[low], rows[high], alpha=0.13, linewidth=0, **pale)
    if curves:
        label = "published curves" if low == high else "published, ±1 s.d."
        axes.plot([], [], color="#555555", alpha=0.5, linewidth=3.2, label=label)


@styled
def cdf_chart(
    frame: pd.DataFrame,
    *,
    value: str,
    series: str,
    published: pd.DataFrame | None = None,
    **panel: Unpack[Panel],
) -> Figure:
    """Draw one cumulative distribution per series.

    Parameters
    ----------
    frame : DataFrame
        One row per observation; NaN is left out of the curve but counted in its total.
    value, series : str
        Columns holding the observation and the series it belongs to.
    published : DataFrame, optional
        Columns ``series``, ``value`` and ``fraction`` (0 to 1) of published points.
    **panel
        Labels, scale and place, see `Panel`.

    Examples
    --------
    >>> jobs = pd.DataFrame({"policy": ["srtf"] * 3, "jct": [1.0, 2.0, 5.0]})
    >>> chart = cdf_chart(jobs, value="jct", series="policy", xlabel="completion time (s)")
    >>> chart.axes[0].lines[0].get_ydata().tolist()[-1]
    1.0
    """
    axes = panel_axes(panel)
    parts = by_series(frame, series)
    chosen = looks(parts)
    for name, rows in parts.items():
        x, y = _curve(rows[value].to_numpy(float))
        style = chosen[name]
        axes.plot(
            x, y, color=style.color, linestyle=style.line, label=style.label,
            drawstyle="steps-post",
        )  # fmt: skip
    if published is not None:
        for name, points in by_series(published, series).items():
            style = chosen.get(name) or looks([name])[name]
            marks = published_style(style.marker, style.color)
            axes.plot(points[value], points["fraction"], **marks)
    panel["log"] = "x" if panel.get("log") else ""
    panel.setdefault("ylim", (0, 1.02))
    panel.setdefault("ylabel", "fraction of jobs")
    return finish(axes, panel, published=published is not None)


def _curve(values: Floats) -> tuple[Floats, Floats]:
    """Return the corners of one curve, thinned out to `_MAX_POINTS`."""
    known = np.sort(values[~np.isnan(values)])
    share = np.arange(1, len(known) + 1) / max(1, len(values))
    if len(known) > _MAX_POINTS:
        picked = np.unique(np.linspace(0, len(known) - 1, _MAX_POINTS).round().astype(int))
        known, share = known[picked], share[picked]
    if len(known):
        known, share = np.append(known[0], known), np.append(0.0, share)
    return known, share
