"""Matrices: one cell per pair, shaded by a number, with text in it."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from repro.plot.style import axes_or_new, owner, styled

# Light to dark without turning back, so that it keeps its order in greyscale.
_COLORS = "YlGnBu"
_DARK = 0.55


@styled
def heatmap_chart(
    frame: pd.DataFrame,
    *,
    row: str,
    column: str,
    value: str,
    text: str | None = None,
    label: str | None = None,
    limits: tuple[float, float] | None = None,
    xlabel: str = "",
    ylabel: str = "",
    title: str = "",
    columns: int = 1,
    axes: Axes | None = None,
) -> Figure:
    """Draw one cell per row of the frame; pairs that are not in it stay empty.

    Parameters
    ----------
    frame : DataFrame
        One row per cell; rows and columns of the chart in order of appearance.
    row, column, value : str
        Columns of the cell's place and of the number that shades it. An infinite number is shaded
        as the end of the scale, NaN is left white.
    text : str, optional
        Column of what is written in the cell; the value to three digits when left out.
    label : str, optional
        Draws a colour bar with this label (with the unit).
    limits : tuple of float, optional
        Values of the lightest and the darkest shade; those of the data when left out.
    xlabel, ylabel : str
        Labels of the axes.
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
    >>> rows = pd.DataFrame({"a": ["A", "A", "B"], "b": ["A", "B", "B"], "sum": [2.0, 1.5, 1.2]})
    >>> chart = heatmap_chart(rows, row="a", column="b", value="sum")
    >>> [cell.get_text() for cell in chart.axes[0].texts]
    ['2', '1.5', '1.2']
    """
    axes = axes_or_new(axes, columns, height=2.6)
    rows = list(dict.fromkeys(frame[row].astype(str)))
    across = list(dict.fromkeys(frame[column].astype(str)))
    at = [
        (rows.index(str(one)), across.index(str(other)))
        for one, other in zip(frame[row], frame[column], strict=True)
    ]
    values = frame[value].to_numpy(float)
    finite = values[np.isfinite(values)]
    low, high = limits or (finite.min(initial=0.0), finite.max(initial=1.0))
    shades = np.full((len(rows), len(across)), np.nan)
    for place, number in zip(at, np.clip(values, low, high), strict=True):
        shades[place] = number
    drawn = axes.pcolormesh(
        np.ma.masked_invalid(shades), cmap=mpl.colormaps[_COLORS], vmin=low, vmax=high,
        edgecolors="white", linewidth=0.8,
    )  # fmt: skip
    words = [f"{number:.3g}" for number in values] if text is None else frame[text].astype(str)
    for (down, right), number, word in zip(at, np.clip(values, low, high), words, strict=True):
        dark = (number - low) / ((high - low) or 1.0) > _DARK
        axes.text(
            right + 0.5, down + 0.5, word, ha="center", va="center", fontsize=5.8,
            color="white" if dark else "black",
        )  # fmt: skip
    axes.set_xticks(np.arange(len(across)) + 0.5, across)
    inches = owner(axes).get_figwidth() * axes.get_position().width
    if max(map(len, across), default=0) * len(across) > 17 * inches:
        axes.tick_params(axis="x", rotation=40)
        for name in axes.get_xticklabels():
            name.set(ha="right", rotation_mode="anchor")
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
    axes.invert_yaxis()
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title, loc="left")
    figure = owner(axes)
    if label is not None:
        figure.colorbar(drawn, ax=axes, label=label)
    return figure
