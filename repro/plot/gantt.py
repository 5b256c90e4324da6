"""Schedules: one lane per job, GPU or resource, one bar per interval."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from repro.plot.series_styles import looks
from repro.plot.style import axes_or_new, legend, owner, published_style, styled


@styled
def gantt_chart(
    frame: pd.DataFrame,
    *,
    lane: str,
    start: str = "start",
    end: str = "end",
    series: str | None = None,
    text: str | None = None,
    published: pd.DataFrame | None = None,
    xlabel: str = "time (s)",
    ylabel: str = "",
    title: str = "",
    columns: int = 1,
    axes: Axes | None = None,
) -> Figure:
    """Draw one bar per row from ``start`` to ``end`` in the lane it names.

    Parameters
    ----------
    frame : DataFrame
        One row per interval.
    lane : str
        Column of the lane; lanes go from top to bottom in order of appearance.
    start, end : str
        Columns of the two ends (s).
    series : str, optional
        Column that gives the colour; the lane when left out.
    text : str, optional
        Column written into the bars.
    published : DataFrame, optional
        Columns ``lane`` and ``end``: published ends, drawn as open markers.
    xlabel, ylabel : str
        Axis labels with units.
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
    >>> rows = pd.DataFrame({"job": ["J1", "J2"], "start": [0, 2], "end": [2, 5]})
    >>> len(gantt_chart(rows, lane="job").axes[0].patches)
    2
    """
    lanes = list(dict.fromkeys(frame[lane].astype(str)))
    axes = axes_or_new(axes, columns, height=0.8 + 0.25 * max(2, len(lanes)))
    kinds = frame[lane if series is None else series].astype(str)
    chosen = looks(kinds)
    drawn: set[str] = set()
    rows = zip(frame[lane].astype(str), frame[start], frame[end], kinds, strict=True)
    notes = [""] * len(frame) if text is None else frame[text].astype(str).tolist()
    for (row, begin, finish, kind), note in zip(rows, notes, strict=True):
        style = chosen[kind]
        named = series is not None and kind not in drawn
        drawn.add(kind)
        axes.barh(
            lanes.index(row),
            finish - begin,
            left=begin,
            height=0.72,
            color=style.color,
            hatch=style.hatch,
            edgecolor="white",
            linewidth=0.5,
            label=style.label if named else "",
        )
        if note:
            ink = "white" if style.luminance < 0.55 else "black"
            axes.text(
                (begin + finish) / 2, lanes.index(row), note, ha="center", va="center",
                color=ink, fontsize=6, clip_on=True,
                bbox={"facecolor": style.color, "edgecolor": "none", "pad": 0.8},
            )  # fmt: skip
    if published is not None:
        at = [lanes.index(str(item)) for item in published[lane]]
        axes.plot(published[end], at, **published_style())
    axes.set_yticks(range(len(lanes)), lanes)
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    axes.grid(False, axis="y")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title, loc="left")
    legend(axes, published=published is not None)
    return owner(axes)
