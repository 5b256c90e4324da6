"""How published values look in every chart: dark open markers, dashed curves, whiskers."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import AbstractPathEffect, withStroke

from repro.base.typing import Floats
from repro.plot.style import styled

_DARK = "#262626"
#: What marks published values among the artists; a leading underscore keeps it out of legends.
_NAME = "_published"
_WHISKERS = "_published, ±1 s.d."
#: A curve of more points carries markers on about so many.
_MARKERS_ON_CURVE = 12


def published_style(marker: str = "D", *, joined: bool = False) -> dict[str, Any]:
    """Return the keywords of published values: dark open markers, joined by dashes if a curve.

    >>> published_style()["markerfacecolor"]
    'white'
    """
    return {
        "color": _DARK,
        "linestyle": (0, (3.2, 2.2)) if joined else "none",
        "linewidth": 0.8,
        "marker": marker,
        "markersize": 4,
        "markerfacecolor": "white",
        "markeredgecolor": _DARK,
        "markeredgewidth": 0.8,
        "zorder": 5,
        "label": _NAME,
    }


def halo(width: float) -> list[AbstractPathEffect]:
    """Return the effect that sets a line off from what it crosses: a white line under it."""
    return [withStroke(linewidth=width, foreground="white")]


def draw_published(
    axes: Axes,
    x: Floats,
    y: Floats,
    marker: str,
    *,
    band: tuple[Floats, Floats] | None = None,
    joined: bool = False,
    curve: bool = False,
) -> None:
    """Draw published values of one series over ours, with the marker of ours, so as to tell it.

    The marker is a ring around ours where both agree. ``joined`` makes a dashed curve; that, or
    another ``curve``, carries a marker on some of its points only, scattered points on all.
    ``band`` holds the lower and upper end of a whisker at each value.
    """
    every = max(1, round(len(x) / _MARKERS_ON_CURVE)) if joined or curve else 1
    ring = {
        "markersize": 6,
        "markerfacecolor": "none",
        "path_effects": halo(2.0 if joined or curve else 1.2),
    }
    axes.plot(x, y, markevery=every, **{**published_style(marker, joined=joined), **ring})
    if band is not None and not all(np.array_equal(end, y, equal_nan=True) for end in band):
        low, high = (end[::every] for end in band)
        axes.vlines(x[::every], low, high, color=_DARK, linewidth=0.7, zorder=4, label=_WHISKERS)


def name_published(
    axes: Axes, place: tuple[float, float], text: str, right: float, up: float
) -> None:
    """Write beside a published curve what it is, some points to the right of a place and up.

    The text ends there if ``right`` is not positive.
    """
    side = "left" if right > 0 else "right"
    axes.annotate(
        text, place, (right, up), textcoords="offset points", ha=side, fontsize=5.5, color=_DARK
    )


@styled
def published_fact(
    axes: Axes,
    text: str,
    x: float,
    y: float | None = None,
    *,
    left: bool = False,
    below: bool = False,
) -> None:
    """Draw a single published number: an open marker, or a dashed line at ``x`` without ``y``.

    Its text stands to its right, or to its ``left``, or ``below`` it.

    >>> from repro.plot import new_figure
    >>> _, (axes,) = new_figure()
    >>> published_fact(axes, "largest: 7.5 GB", 7500, 1, left=True)
    >>> axes.texts[0].get_text()
    'largest: 7.5 GB'
    """
    if y is None:
        axes.axvline(x, color=_DARK, linestyle=(0, (3.2, 2.2)), linewidth=0.8, zorder=4)
    else:
        axes.plot([x], [y], clip_on=False, **published_style())
    place = (x, 0.02 if y is None else y)
    away = (-5 if left else 5, 0)
    horizontal = "right" if left else "left"
    vertical = "bottom" if y is None else "center"
    if below:
        away = (0, -5)
        vertical = "top"
        if not left:
            horizontal = "center"
    axes.annotate(
        text,
        place,
        away,
        textcoords="offset points",
        color=_DARK,
        fontsize=6,
        xycoords=axes.get_xaxis_transform() if y is None else "data",
        ha=horizontal,
        va=vertical,
    )


def legend_keys(panels: Iterable[Axes]) -> Iterator[tuple[tuple[Line2D, ...], str]]:
    """Yield the legend's entry of the published values in some panels, with the markers used."""
    panels = list(panels)
    lines = [line for axes in panels for line in axes.lines if line.get_label() == _NAME]
    lines = [line for line in lines if np.isfinite(np.asarray(line.get_ydata(), float)).any()]
    if lines:
        spread = any(one.get_label() == _WHISKERS for axes in panels for one in axes.collections)
        joined = any(line.get_linestyle() != "None" for line in lines)
        shapes = list(dict.fromkeys(str(line.get_marker()) for line in lines))
        styles = [{**published_style(shape, joined=joined), "label": ""} for shape in shapes]
        name = _WHISKERS if spread else _NAME
        yield tuple(Line2D([], [], **style) for style in styles), name.removeprefix("_")
