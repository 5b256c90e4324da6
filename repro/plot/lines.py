"""Lines over a numeric or named axis, with published values as open markers."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from repro.plot.series_styles import SOLE, looks
from repro.plot.style import axes_or_new, legend, owner, published_style, styled


@styled
def line_chart(
    frame: pd.DataFrame,
    *,
    x: str,
    y: str,
    xlabel: str,
    ylabel: str,
    series: str | None = None,
    published: pd.DataFrame | None = None,
    published_band: tuple[str, str] | None = None,
    band: tuple[str, str] | None = None,
    log: str = "",
    markers: bool = True,
    steps: bool = False,
    ylim: tuple[float, float] | None = None,
    title: str = "",
    columns: int = 1,
    axes: Axes | None = None,
) -> Figure:
    """Draw one line per series through the rows in their order.

    Parameters
    ----------
    frame : DataFrame
        One row per point; a text column ``x`` is drawn at equal distances.
    x, y : str
        Columns of the two axes.
    xlabel, ylabel : str
        Axis labels with units.
    series : str, optional
        Column of the series.
    published : DataFrame, optional
        The same columns with published values.
    published_band : tuple of str, optional
        Columns of ``published`` with the edges of its band; published values are then pale lines
        under ours, not markers.
    band : tuple of str, optional
        Columns of the lower and upper edge of a shaded band.
    log : {"", "x", "y", "xy"}
        Logarithmic axes.
    markers : bool
        Mark every point.
    steps : bool
        Hold each value until the next point (counts over time).
    ylim : tuple of float, optional
        Range of the vertical axis.
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
    >>> rows = pd.DataFrame({"K": [2, 3, 4], "jct": [1.0, 0.99, 0.99]})
    >>> chart = line_chart(rows, x="K", y="jct", xlabel="queues", ylabel="normalised JCT")
    >>> chart.axes[0].get_xlabel()
    'queues'
    """
    axes = axes_or_new(axes, columns)
    named = not pd.api.types.is_numeric_dtype(frame[x])
    places = {text: at for at, text in enumerate(dict.fromkeys(frame[x].astype(str)))}

    def across(rows: pd.DataFrame) -> Any:
        return rows[x].astype(str).map(places) if named else rows[x]

    parts = _by_series(frame, series)
    extra = _by_series(published, series) if published is not None else {}
    chosen = {"": SOLE} if series is None else looks([*parts, *extra])
    for name, rows in parts.items():
        style = chosen[name]
        axes.plot(
            across(rows),
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
                across(rows), rows[low], rows[high], color=style.color, alpha=0.18, linewidth=0
            )
    for name, rows in extra.items():
        color = chosen[name].color
        if published_band is None:
            axes.plot(across(rows), rows[y], **published_style("D", color))
            continue
        pale: dict[str, Any] = {"color": color, "zorder": 1}
        low, high = published_band
        axes.plot(across(rows), rows[y], linewidth=3.2, alpha=0.4, **pale)
        axes.fill_between(across(rows), rows[low], rows[high], alpha=0.13, linewidth=0, **pale)
    if published_band is not None and extra:
        label = "published curves" if len(set(published_band)) == 1 else "published, ±1 s.d."
        axes.plot([], [], color="#555555", alpha=0.5, linewidth=3.2, label=label)
    if named:
        axes.set_xticks(list(places.values()), list(places))
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")
    if ylim is not None:
        axes.set_ylim(*ylim)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title, loc="left")
    legend(axes, published=published is not None and published_band is None)
    return owner(axes)


def _by_series(frame: pd.DataFrame, series: str | None) -> dict[str, pd.DataFrame]:
    if series is None:
        return {"": frame}
    names = frame[series].astype(str)
    return {name: frame[names == name] for name in dict.fromkeys(names)}
