"""Diagrams: boxes in rows, each with a text and the Python names that implement it; arrows."""

import textwrap
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from repro.plot.panel import COLUMN_INCHES, PanelOptions, chart, owner, panel_axes

#: Gaps between columns and between rows of boxes (inches).
_COLUMN_GAP = 0.62
_ROW_GAP = 0.42
#: Margin above the first and below the last row (inches).
_EDGE = 0.12
#: Width and height of the figure beyond those of the chart (inches).
_PAD = 0.1
#: Width of the column of layer names (inches).
_LAYER_WIDTH = 0.72
#: Height of a line of text (inches).
_LINE = 0.105
#: Letters per inch of the words and of the names in a box.
_WORD_LETTERS_PER_INCH = 18.5
_NAME_LETTERS_PER_INCH = 21.0


@chart
def diagram_chart(
    boxes: pd.DataFrame, arrows: Sequence[Sequence[Any]], **panel: Unpack[PanelOptions]
) -> Figure:
    """Draw boxes in rows and arrows between them.

    Parameters
    ----------
    boxes : DataFrame
        One row per box. The column of layer names is not part of the chart's width. Columns:

        - box: key of the box.
        - row: number of the row, from 0.
        - layer: name of the row, or "".
        - place: horizontal middle of the box, a fraction of the chart's width.
        - room: width available to the box, a fraction of the chart's width. All boxes are as wide
          as the smallest room, less the gap between columns.
        - words: text of the box.
        - names: names of this package, separated by blanks. A box without names has a dashed
          border.
    arrows : sequence
        Start, end, words on the arrow, and its bend to the right as a fraction of its length. The
        last two may be left out.
    """
    left = _LAYER_WIDTH if boxes["layer"].any() else 0.0
    inches = COLUMN_INCHES[panel.setdefault("columns", 2)] - _PAD
    width = boxes["room"].min() * (inches - left) - _COLUMN_GAP
    titles = [textwrap.wrap(text, int(width * _WORD_LETTERS_PER_INCH)) for text in boxes["words"]]
    names = [_broken_at_dots(text, int(width * _NAME_LETTERS_PER_INCH)) for text in boxes["names"]]
    lines = [len(title) + len(code) for title, code in zip(titles, names, strict=True)]
    heights = _LINE * boxes.assign(lines=lines).groupby("row")["lines"].max().to_numpy() + 0.13
    row_middles = (heights + _ROW_GAP).cumsum() - _ROW_GAP + _EDGE - heights / 2
    bottom = (heights + _ROW_GAP).sum() - _ROW_GAP + 2 * _EDGE
    axes = panel_axes(panel, height=bottom + _PAD)
    axes.set(xlim=(0, inches), ylim=(bottom, 0), aspect="equal")
    axes.set_axis_off()
    for row, layer in enumerate(boxes.groupby("row")["layer"].first()):
        if layer:
            corner = (0, row_middles[row] - heights[row] / 2 - 0.1)
            axes.add_patch(Rectangle(corner, inches, heights[row] + 0.2, fc="#ececec", lw=0))
            axes.text(0.06, row_middles[row], layer, va="center", weight="bold", size=6.5)
    patches = {}
    rows = zip(boxes["box"], boxes["row"], boxes["place"], titles, names, strict=True)
    for box, row, place, title, code in rows:
        x = left + place * (inches - left)
        y = row_middles[row]
        patches[box] = FancyBboxPatch(
            (x - width / 2, y - heights[row] / 2),
            width,
            heights[row],
            zorder=3,
            fc="white",
            ec="#1c1c1c",
            lw=0.8,
            ls="-" if code else (0, (4, 2)),
            boxstyle="round,pad=0,rounding_size=0.04",
        )
        axes.add_patch(patches[box])
        _text(axes, x, y - _LINE * len(code) / 2, title, size=6.5)
        _text(axes, x, y + _LINE * len(title) / 2, code, size=5.2, family="monospace")
    for start, end, *words_and_bend in arrows:
        _arrow(axes, (patches[start], patches[end]), *words_and_bend)
    return owner(axes)


def _broken_at_dots(names: str, letters: int) -> list[str]:
    """Lines of about ``letters`` letters, one per name; long names are broken at their dots."""
    # A line may break at the blank before a dot. These blanks are removed afterwards, so the limit
    # allows for two of them in a line.
    spaced = [textwrap.wrap(name.replace(".", " ."), letters + 2) for name in names.split()]
    return [line.replace(" .", ".") for lines in spaced for line in lines]


def _arrow(
    axes: Axes, ends: tuple[FancyBboxPatch, FancyBboxPatch], words: str = "", bend: float = 0.0
) -> None:
    """Draw an arrow from border to border, with words on the middle of its visible part."""
    corners = np.array([[box.get_x(), box.get_y()] for box in ends])
    halves = np.array([[box.get_width(), box.get_height()] for box in ends]) / 2
    middles = corners + halves
    start, end = middles
    arrow = FancyArrowPatch(
        tuple(start),
        tuple(end),
        patchA=ends[0],
        patchB=ends[1],
        shrinkA=1,
        shrinkB=1,
        zorder=2,
        arrowstyle="-|>",
        mutation_scale=7,
        lw=0.9,
        color="#333333",
        connectionstyle=f"arc3,rad={bend}",
    )
    axes.add_patch(arrow)
    # The curve of arc3, a quadratic Bézier curve; the vertical axis points down.
    control = (start + end) / 2 + bend * np.array([start[1] - end[1], end[0] - start[0]])
    t = np.linspace(0, 1, 401)[:, None]
    curve = (1 - t) ** 2 * start + 2 * t * (1 - t) * control + t**2 * end
    hidden = (np.abs(curve[:, None] - middles) <= halves).all(axis=2).any(axis=1)
    visible = curve[~hidden]
    x, y = visible[len(visible) // 2]
    white = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    _text(axes, x, y, textwrap.wrap(words, 10, break_long_words=False), size=5.8, bbox=white)


def _text(axes: Axes, x: float, y: float, lines: Sequence[str], **style: Any) -> None:
    """Write lines of text, centred at ``x``, ``y``."""
    if lines:
        axes.text(x, y, "\n".join(lines), ha="center", va="center", zorder=4, **style)
