"""Grouped bars, with published values as open markers on them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from repro.plot.series_styles import SOLE, look, looks
from repro.plot.style import axes_or_new, legend, owner, published_style, styled

_ROOM = 0.8


@styled
def bar_chart(
    frame: pd.DataFrame,
    *,
    group: str,
    value: str,
    ylabel: str,
    series: str | None = None,
    published: str | None = None,
    spread: str | None = None,
    xlabel: str = "",
    log: bool = False,
    reference: float | None = None,
    title: str = "",
    columns: int = 1,
    axes: Axes | None = None,
) -> Figure:
    """Draw one bar per row, gathered in groups, groups and series in order of appearance.

    Parameters
    ----------
    frame : DataFrame
        One row per bar.
    group, value : str
        Columns of the group (horizontal axis) and the height.
    ylabel : str
        Label of the value axis with its unit.
    series : str, optional
        Column of the series inside a group; the same as ``group`` for one coloured bar each.
    published : str, optional
        Column of published values, NaN where there is none.
    spread : str, optional
        Column of the half width of an error bar (same unit as the value).
    xlabel : str
        Label of the group axis.
    log : bool
        Logarithmic value axis.
    reference : float, optional
        Where to draw a thin horizontal line (1 for normalised values).
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
    >>> rows = pd.DataFrame({"bin": ["SS", "LL"], "gain": [27.0, 1.0], "paper": [27.6, None]})
    >>> chart = bar_chart(rows, group="bin", value="gain", published="paper", ylabel="gain (x)")
    >>> [round(bar.get_height()) for bar in chart.axes[0].patches]
    [27, 1]
    """
    axes = axes_or_new(axes, columns)
    groups = list(dict.fromkeys(frame[group].astype(str)))
    kinds = pd.Series("", index=frame.index) if series is None else frame[series].astype(str)
    names = list(dict.fromkeys(kinds))
    chosen = {"": SOLE} if series is None else looks(names)
    beside = 1 if series == group else len(names)
    width = _ROOM / beside
    for number, name in enumerate(names):
        rows = frame[kinds == name]
        style = chosen[name]
        at = np.array([groups.index(str(item)) for item in rows[group]], dtype=float)
        if beside > 1:
            at += (number - (beside - 1) / 2) * width
        axes.bar(
            at,
            rows[value].to_numpy(float),
            width * 0.92,
            yerr=None if spread is None else rows[spread].to_numpy(float),
            error_kw={"elinewidth": 0.7, "capsize": 1.5},
            color=style.color,
            hatch=style.hatch,
            edgecolor="white",
            linewidth=0.4,
            label=style.label,
        )
        if published is not None:
            marks = rows[published].to_numpy(float)
            axes.plot(at, marks, **published_style(), clip_on=False)
    if reference is not None:
        axes.axhline(reference, color="#555555", linewidth=0.7, linestyle=":")
    if log:
        _log_axis(axes)
    axes.set_xticks(range(len(groups)), [look(name).label for name in groups])
    inches = owner(axes).get_figwidth() * axes.get_position().width
    if max(map(len, groups), default=0) * len(groups) > 17 * inches:
        axes.tick_params(axis="x", rotation=40)
        for text in axes.get_xticklabels():
            text.set_horizontalalignment("right")
            text.set_rotation_mode("anchor")
    axes.grid(False, axis="x")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title, loc="left")
    legend(axes, published=published is not None)
    return owner(axes)


def _log_axis(axes: Axes) -> None:
    """Scale the value axis; plain numbers, more of them where there are few decades."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
