"""Gantt charts: a lane per job, GPU or resource, a bar per interval."""

from typing import Unpack

import pandas as pd
from matplotlib.figure import Figure

from repro.base.errors import ParamError
from repro.plot.names import names_in, texts_in
from repro.plot.panel import PanelOptions, chart, finish, panel_axes
from repro.plot.published_marks import published_style
from repro.plot.series_styles import looks


@chart
def gantt_chart(
    frame: pd.DataFrame,
    *,
    lane: str,
    series: str | None = None,
    text: str | None = None,
    published: pd.DataFrame | None = None,
    **panel: Unpack[PanelOptions],
) -> Figure:
    """Draw one bar per row, in the row's lane.

    Parameters
    ----------
    frame : DataFrame
        One row per interval, with its ``start`` and ``end`` (s).
    lane, series, text : str
        Columns of the lane (from the top in order of appearance), of the series that gives the
        colour (the lane when left out) and of the text in the bar.
    published : DataFrame, optional
        Published ends, plotted as open markers: the column of ``lane``, with lanes of ``frame``,
        and the column ``end`` (s).
    **panel : PanelOptions
        Labels, scales and panel: xlabel, ylabel, title, log, xlim, ylim, columns (width in paper
        columns, 1 or 2), and axes (panel to draw into).

    Returns
    -------
    matplotlib.figure.Figure
        The chart; a new one without ``axes``.

    Raises
    ------
    ParamError
        If a lane of ``published`` is not a lane of ``frame``.

    Examples
    --------
    >>> rows = pd.DataFrame({"gpu": ["0", "1"], "job": ["A", "B"], "start": [0, 2], "end": [5, 3]})
    >>> chart = gantt_chart(rows, lane="gpu", series="job")
    >>> [float(bar.get_width()) for bar in chart.axes[0].patches]
    [5.0, 1.0]
    """
    lanes = list(dict.fromkeys(names_in(frame, lane)))
    axes = panel_axes(panel, height=0.8 + 0.25 * max(2, len(lanes)))
    if series is not None:
        keys = [_legend_key(name) for name in names_in(frame, series)]
        frame = frame.iloc[sorted(range(len(frame)), key=keys.__getitem__)]
    names = names_in(frame, series or lane)
    styles = looks(names)
    in_legend = ~names.duplicated() & (series is not None)
    notes = [""] * len(frame) if text is None else texts_in(frame, text)
    lane_numbers = names_in(frame, lane).map(lanes.index)
    rows = zip(lane_numbers, frame["start"], frame["end"], names, in_legend, notes, strict=True)
    for lane_number, begin, end, name, has_label, note in rows:
        style = styles[name]
        keywords = {**style.bar, "linewidth": 0.5, "label": style.label if has_label else ""}
        axes.barh(lane_number, end - begin, left=begin, height=0.72, **keywords)
        if note:
            axes.text(
                (begin + end) / 2,
                lane_number,
                note,
                ha="center",
                va="center",
                fontsize=6,
                clip_on=True,
                color="white" if style.luminance < 0.55 else "black",
                bbox={"facecolor": style.color, "edgecolor": "none", "pad": 0.8},
            )
    if published is not None:
        published_lanes = names_in(published, lane)
        unknown = published_lanes[~published_lanes.isin(lanes)]
        if len(unknown):
            raise ParamError(
                f"published {lane} {unknown.iloc[0]!r} is not in the chart; give one of its "
                f"lanes: {', '.join(lanes)}"
            )
        ends = published_lanes.map(lanes.index)
        axes.plot(published["end"], ends, **published_style())
    axes.set_yticks(range(len(lanes)), lanes)
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    axes.grid(False, axis="y")
    panel.setdefault("xlabel", "time (s)")
    return finish(axes, panel)


def _legend_key(name: str) -> tuple[int, int, str]:
    """Sort key in the legend: numbers, then names of up to three letters, then longer words."""
    if name.isdecimal():
        return (0, int(name), "")
    if len(name) < 4:
        return (1, 0, name)
    return (2, 0, "")
