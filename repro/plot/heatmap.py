"""Heat maps: a cell per pair, shaded by a number, with a text in it."""

from typing import Unpack
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from repro.base.errors import ParamError
from repro.plot.names import names_in, texts_in
from repro.plot.panel import PanelOptions, chart, finish, panel_axes, turn_long_labels
from repro.plot.style import styled

# Ever darker, so that the order survives in greyscale.
_COLORS = "YlGnBu"
#: Rows and columns of the chart in each panel. Tick labels are no list of them, because seaborn
#: leaves some out on long axes.
_cells_of: WeakKeyDictionary[Axes, tuple[list[str], list[str]]] = WeakKeyDictionary()


@chart
def heatmap_chart(
    frame: pd.DataFrame,
    *,
    row: str,
    column: str,
    value: str,
    text: str | None = None,
    label: str | None = None,
    limits: tuple[float, float] | None = None,
    **panel: Unpack[PanelOptions],
) -> Figure:
    """Draw one cell per row of the frame; pairs without a row stay empty.

    Parameters
    ----------
    frame : DataFrame
        One row per cell; rows and columns of the chart in order of appearance.
    row, column, value : str
        Columns of the cell's row, its column and the number that shades it. An infinite number has
        the shade of the scale's end, NaN has no shade.
    text : str, optional
        Column of the text in the cell; the value to three digits when left out.
    label : str, optional
        Label, with unit, of a colour bar; no colour bar when left out.
    limits : tuple of float, optional
        Values of the lightest and the darkest shade. When left out: the range of the data, extended
        to contain 0 and 1, so that panels of shares of time have the same shades. Give limits for
        data far from this range.
    **panel : PanelOptions
        Labels, scales and panel: xlabel, ylabel, title, log, xlim, ylim, columns (width in paper
        columns, 1 or 2), and axes (panel to draw into).

    Returns
    -------
    matplotlib.figure.Figure
        The chart; a new one without ``axes``.

    Examples
    --------
    >>> cells = pd.DataFrame({"job": ["A", "B"], "type": ["k80", "v100"], "share": [0.25, 1.0]})
    >>> chart = heatmap_chart(cells, row="job", column="type", value="share")
    >>> [text.get_text() for text in chart.axes[0].texts]
    ['0.25', '1']
    """
    axes = panel_axes(panel, height=2.6)
    values = frame[value].to_numpy(float)
    finite = values[np.isfinite(values)]
    low, high = limits or (finite.min(initial=0.0), finite.max(initial=1.0))
    texts = frame[value].map("{:.3g}".format) if text is None else texts_in(frame, text)
    cells = pd.DataFrame(
        {
            "row": names_in(frame, row),
            "column": names_in(frame, column),
            "shade": values.clip(low, high),
            "text": texts,
        }
    )
    rows = cells["row"].unique()
    columns = cells["column"].unique()
    shades, annotations = (
        cells.pivot_table(name, "row", "column", aggfunc="first").reindex(rows, columns=columns)
        for name in ("shade", "text")
    )
    sns.heatmap(
        shades,
        annot=annotations,
        fmt="",
        vmin=low,
        vmax=high,
        cmap=_COLORS,
        cbar=label is not None,
        linewidths=0.8,
        annot_kws={"size": 5.8},
        cbar_kws={"label": label},
        ax=axes,
    )
    _cells_of[axes] = list(rows), list(columns)
    turn_long_labels(axes, list(columns))
    axes.grid(False)
    axes.tick_params(length=0)
    return finish(axes, panel)


@styled
def frame_cells(axes: Axes, frame: pd.DataFrame, *, row: str, column: str) -> None:
    """Draw a frame around chosen cells in a panel of `heatmap_chart`.

    Parameters
    ----------
    axes : Axes
        Panel of the chart.
    frame : DataFrame
        One row per cell.
    row, column : str
        Columns of the cell's row and column, as in the chart.

    Raises
    ------
    ParamError
        If the panel is not one of `heatmap_chart`, or its chart lacks a cell.

    Examples
    --------
    >>> cells = pd.DataFrame({"job": ["A", "B"], "type": ["k80", "k80"], "share": [0.2, 0.8]})
    >>> chart = heatmap_chart(cells, row="job", column="type", value="share")
    >>> frame_cells(chart.axes[0], cells[cells["share"] > 0.5], row="job", column="type")
    >>> len(chart.axes[0].patches)
    1
    """
    if axes not in _cells_of:
        raise ParamError("frame_cells draws into a panel of heatmap_chart; draw the chart first")
    rows, columns = _cells_of[axes]
    for x, y in zip(names_in(frame, column), names_in(frame, row), strict=True):
        if x not in columns or y not in rows:
            raise ParamError(f"frame_cells: the chart has no cell in row {y!r}, column {x!r}")
        corner = columns.index(x) + 0.05, rows.index(y) + 0.05
        axes.add_patch(Rectangle(corner, 0.9, 0.9, fill=False, edgecolor="#d62718", linewidth=1.6))
