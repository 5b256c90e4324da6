"""Stacked bars, optionally in clusters, with published totals as open markers."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from repro.plot.series_styles import looks
from repro.plot.style import axes_or_new, legend, owner, published_style, styled


@styled
def stacked_chart(
    frame: pd.DataFrame,
    *,
    bar: str,
    part: str,
    value: str,
    ylabel: str,
    cluster: str | None = None,
    published: pd.DataFrame | None = None,
    xlabel: str = "",
    title: str = "",
    columns: int = 1,
    axes: Axes | None = None,
) -> Figure:
    """Draw one stack per bar, parts from the bottom up in order of appearance.

    Parameters
    ----------
    frame : DataFrame
        One row per part of a bar.
    bar, part, value : str
        Columns of the bar, the part and its height.
    ylabel : str
        Label of the value axis with its unit.
    cluster : str, optional
        Column that gathers bars (a model with its worker counts); named under its bars.
    published : DataFrame, optional
        Columns ``bar`` (and ``cluster``) and ``value``: published totals.
    xlabel : str
        Label of the bar axis.
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
    >>> rows = pd.DataFrame({"m": ["a", "a"], "step": ["load", "warm"], "s": [3.0, 4.0]})
    >>> chart = stacked_chart(rows, bar="m", part="step", value="s", ylabel="time (s)")
    >>> [float(patch.get_y()) for patch in chart.axes[0].patches]
    [0.0, 3.0]
    """
    axes = axes_or_new(axes, columns)
    keys = [bar] if cluster is None else [cluster, bar]
    places = _places(frame, keys)
    parts = list(dict.fromkeys(frame[part].astype(str)))
    chosen = looks(parts)
    below = dict.fromkeys(places, 0.0)
    for name in parts:
        rows = frame[frame[part].astype(str) == name]
        names = _names(rows, keys)
        heights = rows[value].to_numpy(float)
        style = chosen[name]
        axes.bar(
            [places[key] for key in names],
            heights,
            0.8,
            bottom=[below[key] for key in names],
            color=style.color,
            hatch=style.hatch,
            edgecolor="white",
            linewidth=0.4,
            label=style.label,
        )
        for key, height in zip(names, heights, strict=True):
            below[key] += height
    if published is not None:
        at = [places[key] for key in _names(published, keys)]
        axes.plot(at, published[value].to_numpy(float), **published_style())
    if cluster is None:
        axes.set_xticks(list(places.values()), [key[-1] for key in places])
    else:
        axes.set_xticks(list(places.values()), [key[-1] for key in places], fontsize=5)
        groups = list(dict.fromkeys(key[0] for key in places))
        middles = [np.mean([at for key, at in places.items() if key[0] == g]) for g in groups]
        lower = axes.secondary_xaxis(-0.09)
        lower.set_xticks(middles, groups, rotation=40, ha="right", rotation_mode="anchor")
        lower.tick_params(length=0)
        lower.spines["bottom"].set_visible(False)
    axes.grid(False, axis="x")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title, loc="left")
    legend(axes, published=published is not None)
    return owner(axes)


def _names(frame: pd.DataFrame, keys: list[str]) -> list[tuple[str, ...]]:
    columns = [frame[key].astype(str) for key in keys]
    return list(zip(*columns, strict=True))


def _places(frame: pd.DataFrame, keys: list[str]) -> dict[tuple[str, ...], float]:
    places: dict[tuple[str, ...], float] = {}
    at = -1.0
    last: str | None = None
    names = list(dict.fromkeys(_names(frame, keys)))
    if len(keys) == 2:
        order = list(dict.fromkeys(name[0] for name in names))
        names.sort(key=lambda name: order.index(name[0]))
    for name in names:
        # A gap of half a bar sets clusters apart.
        at += 1.5 if len(keys) == 2 and last is not None and name[0] != last else 1.0
        places[name] = at
        last = name[0]
    return places
