"""Diagrams: boxes in rows, under the words of each the names of what does its work, and arrows."""

import textwrap
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from repro.plot.panel import COLUMN_INCHES, PanelOptions, owner, panel_axes
from repro.plot.style import styled

#: Inches: beside a box, between rows, above and below all, around a panel, of a layer's name, line.
_BESIDE = 0.62
_BETWEEN = 0.42
_EDGE = 0.12
_PAD = 0.1
_LAYER = 0.72
_LINE = 0.105
#: Letters in an inch of the words and of the names in a box.
_WORDS = 18.5
_NAMES = 21.0


@styled
def diagram_chart(
    boxes: pd.DataFrame, arrows: Sequence[Sequence[Any]], **panel: Unpack[PanelOptions]
) -> Figure:
    """Draw boxes row by row and arrows between them.

    Parameters
    ----------
    boxes : DataFrame
        One row per box: box (its key), row (from 0), layer (name of the row, "" without), place
        (of its middle, part of the width), room (part of the width), words, names (a blank
        between them; "" for what stands outside the package, drawn dashed).
    arrows : sequence
        From, to, words on it, and how far it bends to its right (part of its length); the last two
        may be left out.
    """
    left = _LAYER if boxes["layer"].any() else 0.0
    inches = COLUMN_INCHES[panel.setdefault("columns", 2)] - _PAD
    width = boxes["room"].min() * (inches - left) - _BESIDE
    words = [textwrap.wrap(text, int(width * _WORDS)) for text in boxes["words"]]
    names = [_at_dots(text, int(width * _NAMES)) for text in boxes["names"]]
    lines = [len(one) + len(two) for one, two in zip(words, names, strict=True)]
    high = _LINE * boxes.assign(lines=lines).groupby("row")["lines"].max().to_numpy() + 0.13
    middles = (high + _BETWEEN).cumsum() - _BETWEEN + _EDGE - high / 2
    bottom = (high + _BETWEEN).sum() - _BETWEEN + 2 * _EDGE
    axes = panel_axes(panel, height=bottom + _PAD)
    axes.set(xlim=(0, inches), ylim=(bottom, 0), aspect="equal")
    axes.set_axis_off()
    for row, layer in enumerate(boxes.groupby("row")["layer"].first()):
        if layer:
            start = (0, middles[row] - high[row] / 2 - 0.1)
            deep = high[row] + 0.2
            axes.add_patch(Rectangle(start, inches, deep, fc="#ececec", lw=0))
            axes.text(0.06, middles[row], layer, va="center", weight="bold", size=6.5)
    placed = {}
    rows = zip(boxes["box"], boxes["row"], boxes["place"], words, names, strict=True)
    for box, row, place, title, found in rows:
        x = left + place * (inches - left)
        y = middles[row]
        line = "-" if found else (0, (4, 2))
        placed[box] = FancyBboxPatch(
            (x - width / 2, y - high[row] / 2),
            width,
            high[row],
            zorder=3,
            fc="white",
            ec="#1c1c1c",
            lw=0.8,
            ls=line,
            boxstyle="round,pad=0,rounding_size=0.04",
        )
        axes.add_patch(placed[box])
        _text(axes, x, y - _LINE * len(found) / 2, title, size=6.5)
        _text(axes, x, y + _LINE * len(title) / 2, found, size=5.2, family="monospace")
    for start, end, *more in arrows:
        _arrow(axes, (placed[start], placed[end]), *more)
    return owner(axes)


def _at_dots(names: str, letters: int) -> list[str]:
    """Return names, too long ones broken at their dots."""
    spaced = [textwrap.wrap(name.replace(".", " ."), letters + 2) for name in names.split()]
    return [line.replace(" .", ".") for lines in spaced for line in lines]


def _arrow(
    axes: Axes, ends: tuple[FancyBboxPatch, FancyBboxPatch], words: str = "", bend: float = 0.0
) -> None:
    """Draw an arrow from border to border, its words on the middle of what is seen of it."""
    corners = np.array([[box.get_x(), box.get_y()] for box in ends])
    halves = np.array([[box.get_width(), box.get_height()] for box in ends]) / 2
    one, other = middles = corners + halves
    arrow = FancyArrowPatch(
        tuple(one),
        tuple(other),
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
    # the curve of arc3, where the vertical axis points down
    control = (one + other) / 2 + bend * np.array([one[1] - other[1], other[0] - one[0]])
    t = np.linspace(0, 1, 401)[:, None]
    curve = (1 - t) ** 2 * one + 2 * t * (1 - t) * control + t**2 * other
    hidden = (np.abs(curve[:, None] - middles) <= halves).all(axis=2).any(axis=1)
    x, y = curve[~hidden][(~hidden).sum() // 2]
    white = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    _text(axes, x, y, textwrap.wrap(words, 10, break_long_words=False), size=5.8, bbox=white)


def _text(axes: Axes, x: float, y: float, lines: Sequence[str], **style: Any) -> None:
    """Write lines, if there are any, with their middle at a place."""
    if lines:
        axes.text(x, y, "\n".join(lines), ha="center", va="center", zorder=4, **style)
