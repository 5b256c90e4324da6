"""Schedules: one lane per job, GPU or resource, one bar per interval."""

from typing import Unpack

import pandas as pd
from matplotlib.figure import Figure

from repro.plot.panel import PanelOptions, finish, panel_axes
from repro.plot.published_marks import published_style
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
    **panel: Unpack[PanelOptions],
) -> Figure:
    """Draw one bar per row in the lane it names.

    Parameters
    ----------
    frame : DataFrame
        One row per interval, with its ``start`` and ``end`` (s).
    lane, series, text : str
        Columns of the lane (from the top in order of appearance), of what gives the colour (the
        lane when left out) and of what is written into the bars.
    published : DataFrame, optional
        Columns ``lane`` and ``end``: published ends, drawn as open markers.
    """
    lanes = list(dict.fromkeys(frame[lane].astype(str)))
    axes = panel_axes(panel, height=0.8 + 0.25 * max(2, len(lanes)))
    if series is not None:
        # names of jobs are short and stand in the legend by name, before words
        frame = frame.sort_values(series, kind="stable", key=lambda names: names.map(_by_name))
    names = frame[series or lane].astype(str)
    chosen = looks(names)
    labelled = ~names.duplicated() & (series is not None)
    notes = [""] * len(frame) if text is None else frame[text].astype(str)
    at = frame[lane].astype(str).map(lanes.index)
    rows = zip(at, frame["start"], frame["end"], names, labelled, notes, strict=True)
    for place, begin, end, name, first, note in rows:
        style = chosen[name]
        how = {**style.bar, "linewidth": 0.5, "label": style.label if first else ""}
        axes.barh(place, end - begin, left=begin, height=0.72, **how)
        if note:
            axes.text(
                (begin + end) / 2,
                place,
                note,
                ha="center",
                va="center",
                fontsize=6,
                clip_on=True,
                color="white" if style.luminance < 0.55 else "black",
                bbox={"facecolor": style.color, "edgecolor": "none", "pad": 0.8},
            )
    if published is not None:
        ends = published[lane].astype(str).map(lanes.index)
        axes.plot(published["end"], ends, **published_style())
    axes.set_yticks(range(len(lanes)), lanes)
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    axes.grid(False, axis="y")
    panel.setdefault("xlabel", "time (s)")
    return finish(axes, panel)


def _by_name(name: object) -> str:
    """Return what the name of a job is sorted by, and one value for all words."""
    return str(name) if len(str(name)) < 4 else "~"
