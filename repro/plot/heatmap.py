"""Matrices: one cell per pair, shaded by a number, with text in it."""

from __future__ import annotations

from typing import Unpack

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from repro.plot.panel import Panel, finish, panel_axes, turn_long_labels
from repro.plot.style import styled

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
    **panel: Unpack[Panel],
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
    **panel
        Labels and place, see `Panel`.

    Examples
    --------
    >>> rows = pd.DataFrame({"a": ["A", "A", "B"], "b": ["A", "B", "B"], "sum": [2.0, 1.5, 1.2]})
    >>> chart = heatmap_chart(rows, row="a", column="b", value="sum")
    >>> [cell.get_text() for cell in chart.axes[0].texts]
    ['2', '1.5', '1.2']
    """
    axes = panel_axes(panel, height=2.6)
    rows = list(dict.fromkeys(frame[row].astype(str)))
    across = list(dict.fromkeys(frame[column].astype(str)))
    at = [
        (rows.index(str(one)), across.index(str(other)))
        for one, other in zip(frame[row], frame[column], strict=True)
    ]
    values = frame[value].to_numpy(float)
    finite = values[np.isfinite(values)]
    low, high = limits or (finite.min(initial=0.0), finite.max(initial=1.0))
    values = np.clip(values, low, high)
    shades = np.full((len(rows), len(across)), np.nan)
    for place, number in zip(at, values, strict=True):
        shades[place] = number
    drawn = axes.pcolormesh(
        np.ma.masked_invalid(shades), cmap=mpl.colormaps[_COLORS], vmin=low, vmax=high,
        edgecolors="white", linewidth=0.8,
    )  # fmt: skip
    words = frame[value].map("{:.3g}".format) if text is None else frame[text].astype(str)
    for (down, right), number, word in zip(at, values, words, strict=True):
        dark = (number - low) / ((high - low) or 1.0) > _DARK
        axes.text(
            right + 0.5, down + 0.5, word, ha="center", va="center", fontsize=5.8,
            color="white" if dark else "black",
        )  # fmt: skip
    axes.set_xticks(np.arange(len(across)) + 0.5, across)
    turn_long_labels(axes, across)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
    axes.invert_yaxis()
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure = finish(axes, panel)
    if label is not None:
        figure.colorbar(drawn, ax=axes, label=label)
    return figure
