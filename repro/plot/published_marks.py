"""Published values in charts: dark open markers, dashed curves, whiskers."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import AbstractPathEffect, withStroke

from repro.base.typing import Floats
from repro.plot.style import styled

_DARK = "#262626"
#: Label of published artists; the leading underscore keeps it out of matplotlib's own legend.
_LABEL = "_published"
_WHISKERS = "_published, ±1 s.d."
#: Label of texts, and of lines that a text names, so that the legend has no key for them.
_NAMED = "_published, named"
#: Label of published texts in a table.
IN_TABLE = "_published, in a table"
#: Label of the shades of a table and of their key: they compare ours with published values.
AGREEMENT = "_agreement"
#: Label of the empty text of a table that names the setting of its published values.
SETTING = "_setting"
#: Signs of agreement before the published texts of a table.
_SIGNS = "=≈~≠ "
#: Opacity of published values that belong to another setting.
_PALE = 0.3
#: Number of markers, about, on a curve of many points.
_MARKERS_ON_CURVE = 12


def published_style(marker: str = "D", *, joined: bool = False) -> dict[str, Any]:
    """Line keywords of published values: dark open markers, joined by dashes if ``joined``.

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
        "label": _LABEL,
    }


def halo(width: float) -> list[AbstractPathEffect]:
    """White outline of a line, ``width`` points, which separates it from lines that it crosses."""
    return [withStroke(linewidth=width, foreground="white")]


def draw_published(
    axes: Axes,
    x: Floats,
    y: Floats,
    marker: str,
    *,
    whiskers: tuple[Floats, Floats] | None = None,
    joined: bool = False,
    curve: bool = False,
) -> None:
    """Plot the published values of a series over ours, with the marker of our curve.

    Where published and ours agree, the published marker is a ring around ours. With ``joined``,
    dashes join the points. With ``joined`` or ``curve``, about 12 points have a marker, else all.
    ``whiskers`` are lower and upper ends, each of the shape of ``y``.
    """
    every = max(1, round(len(x) / _MARKERS_ON_CURVE)) if joined or curve else 1
    ring = {
        "markersize": 6,
        "markerfacecolor": "none",
        "path_effects": halo(2.0 if joined or curve else 1.2),
    }
    axes.plot(x, y, markevery=every, **{**published_style(marker, joined=joined), **ring})
    if whiskers is None:
        return
    # Whiskers of no length would only add a legend entry.
    if not all(np.array_equal(end, y, equal_nan=True) for end in whiskers):
        low, high = (end[::every] for end in whiskers)
        axes.vlines(x[::every], low, high, color=_DARK, linewidth=0.7, zorder=4, label=_WHISKERS)


def name_published(
    axes: Axes, point: tuple[float, float], text: str, right: float, up: float
) -> None:
    """Write the name of a published curve ``right`` and ``up`` (typographic points) of a point.

    The text begins there if ``right`` is positive, else it ends there.
    """
    side = "left" if right > 0 else "right"
    name = axes.annotate(
        text, point, (right, up), textcoords="offset points", ha=side, fontsize=5.5, color=_DARK
    )
    name.set_label(_NAMED)


def fade_published(figure: Figure, setting: str) -> None:
    """Make the published values of a figure pale, and add their setting to its legends.

    In a table the shades and signs of agreement are removed, too. A second call changes nothing.
    """
    for axes in figure.axes:
        for artist in [*axes.lines, *axes.collections, *axes.texts]:
            if artist.get_label() in (_LABEL, _WHISKERS, _NAMED, IN_TABLE):
                artist.set_alpha(_PALE)
        for artist in [*axes.patches, *axes.texts]:
            if artist.get_label() == AGREEMENT:
                artist.set_visible(False)
        for text in axes.texts:
            if text.get_label() == IN_TABLE:
                text.set_text(text.get_text().lstrip(_SIGNS))
            if text.get_label() == SETTING:
                text.set_text(f"published: for {setting}")
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    for legend in filter(None, legends):
        for text in legend.get_texts():
            name = text.get_text()
            is_published = name.startswith(_LABEL.removeprefix("_"))
            if is_published and not name.endswith(f", for {setting}"):
                text.set_text(f"{name}, for {setting}")


def mark_as_published(*artists: Artist) -> None:
    """Mark lines and their texts as published values: no legend keys, pale in another setting."""
    for artist in artists:
        artist.set_label(_NAMED)


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
    """Plot a single published number: an open marker at ``x``, ``y``, or a dashed line at ``x``.

    Its text is to the right, to the ``left`` or ``below``.

    >>> from repro.plot import new_figure
    >>> _, (axes,) = new_figure()
    >>> published_fact(axes, "largest: 7.5 GB", 7500, 1, left=True)
    >>> axes.texts[0].get_text()
    'largest: 7.5 GB'
    """
    if y is None:
        axes.axvline(
            x, color=_DARK, linestyle=(0, (3.2, 2.2)), linewidth=0.8, zorder=4, label=_NAMED
        )
    else:
        axes.plot([x], [y], clip_on=False, **published_style())
    point = (x, 0.02 if y is None else y)
    offset = (-5 if left else 5, 0)
    horizontal = "right" if left else "left"
    vertical = "bottom" if y is None else "center"
    if below:
        offset = (0, -5)
        vertical = "top"
        if not left:
            horizontal = "center"
    fact = axes.annotate(
        text,
        point,
        offset,
        textcoords="offset points",
        color=_DARK,
        fontsize=6,
        xycoords=axes.get_xaxis_transform() if y is None else "data",
        ha=horizontal,
        va=vertical,
    )
    fact.set_label(_NAMED)


def legend_keys(panels: Iterable[Axes]) -> Iterator[tuple[tuple[Line2D, ...], str]]:
    """Yield the keys and the label of published values in some panels, if they have any."""
    panels = list(panels)
    lines = [line for axes in panels for line in axes.lines if line.get_label() == _LABEL]
    lines = [line for line in lines if np.isfinite(np.asarray(line.get_ydata(), float)).any()]
    if lines:
        collections = [collection for axes in panels for collection in axes.collections]
        has_whiskers = _WHISKERS in [collection.get_label() for collection in collections]
        joined = any(line.get_linestyle() != "None" for line in lines)
        shapes = list(dict.fromkeys(str(line.get_marker()) for line in lines))
        styles = [{**published_style(shape, joined=joined), "label": ""} for shape in shapes]
        name = _WHISKERS if has_whiskers else _LABEL
        yield tuple(Line2D([], [], **style) for style in styles), name.removeprefix("_")
