"""Schedules: one lane per job, GPU or resource, one bar per interval."""

from __future__ import annotations

from typing import Unpack

import pandas as pd
from matplotlib.figure import Figure

from repro.plot.panel import Panel, finish, panel_axes, published_style
from repro.plot.series_styles import looks
from repro.plot.style import styled


@styled
def gantt_chart(
    frame: pd.DataFrame,
    *,
    lane: str,
    series: str | None = None,
    text: str | None = None,
    published: pd.DataFrame | None = None,
    **panel: Unpack[Panel],
) -> Figure:
    """Draw one bar per row in the lane it names.

    Parameters
    ----------
    frame : DataFrame
        One row per interval, with its ``start`` and ``end`` (s).
    lane : str
        Column of the lane; lanes go from top to bottom in order of appearance.
    series : str, optional
        Column that gives the colour; the lane when left out.
    text : str, optional
        Column written into the bars.
    published : DataFrame, optional
        Columns ``lane`` and ``end``: published ends, drawn as open markers.
    **panel
        Labels and place, see `Panel`.

    Examples
    --------
    >>> rows = pd.DataFrame({"job": ["J1", "J2"], "start": [0, 2], "end": [2, 5]})
    >>> len(gantt_chart(rows, lane="job").axes[0].patches)
    2
    """
    lanes = list(dict.fromkeys(frame[lane].astype(str)))
    axes = panel_axes(panel, height=0.8 + 0.25 * max(2, len(lanes)))
    names = frame[lane if series is None else series].astype(str)
    chosen = looks(names)
    drawn: set[str] = set()
    notes = [""] * len(frame) if text is None else frame[text].astype(str).tolist()
    rows = zip(frame[lane].astype(str), frame["start"], frame["end"], names, notes, strict=True)
    for row, begin, finished, name, note in rows:
        style = chosen[name]
        labelled = series is not None and name not in drawn
        drawn.add(name)
        axes.barh(
            lanes.index(row),
            finished - begin,
            left=begin,
            height=0.72,
            **{**style.bar, "linewidth": 0.5, "label": style.label if labelled else ""},
        )
        if note:
            ink = "white" if style.luminance < 0.55 else "black"
            axes.text(
                (begin + finished) / 2, lanes.index(row), note, ha="center", va="center",
                color=ink, fontsize=6, clip_on=True,
                bbox={"facecolor": style.color, "edgecolor": "none", "pad": 0.8},
            )  # fmt: skip
    if published is not None:
        at = [lanes.index(str(item)) for item in published[lane]]
        axes.plot(published["end"], at, **published_style())
    axes.set_yticks(range(len(lanes)), lanes)
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    axes.grid(False, axis="y")
    panel.setdefault("xlabel", "time (s)")
    return finish(axes, panel, published=published is not None)
