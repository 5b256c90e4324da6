"""Pictures of a comparison: distributions of JCT, and metrics against the offered load."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from repro.base.typing import Floats
from repro.comparison.result import METRICS, Comparison
from repro.plot import bar_chart, cdf_chart, line_chart, new_figure
from repro.plot.style import render

#: Most panels of the distributions; of more loads the first, the middle and the last are shown.
_MAX_PANELS = 3
#: Points of a curve; more would not be visible.
_MAX_POINTS = 2000
_PANEL_INCHES = 2.4


def jct_chart(comparison: Comparison) -> Figure:
    """Distribution of JCT of each policy, a panel per load."""
    loads = list(enumerate(comparison.loads))
    if len(loads) > _MAX_PANELS:
        loads = [loads[0], loads[len(loads) // 2], loads[-1]]
    figure, panels = new_figure(
        len(loads), columns=1 if len(loads) == 1 else 2, height=_PANEL_INCHES + 0.3
    )
    for (number, load), axes in zip(loads, panels, strict=True):
        curves = [
            pd.DataFrame({"policy": policy, "jct": _thinned(comparison, policy, number)})
            for policy in comparison.policies
        ]
        cdf_chart(
            pd.concat(curves),
            value="jct",
            series="policy",
            log=True,
            xlabel="job completion time (s)",
            title="" if math.isnan(load) else f"offered load {load:g}",
            axes=axes,
        )
    return figure


def load_chart(comparison: Comparison, *metrics: str) -> Figure:
    """Metrics of each policy, a panel per metric: lines over the loads, bars with one load."""
    table = comparison.table()
    figure, panels = new_figure(
        len(metrics), columns=1 if len(metrics) == 1 else 2, height=_PANEL_INCHES + 0.3
    )
    for name, axes in zip(metrics, panels, strict=True):
        rows = table[table["metric"] == name].copy()
        rows[["mean", "low", "high"]] *= METRICS[name].scale
        if len(comparison.loads) == 1:
            _bars(rows, METRICS[name].label, axes)
        else:
            line_chart(
                rows,
                x="load",
                y="mean",
                series="policy",
                band=("low", "high"),
                xlabel="offered load",
                ylabel=METRICS[name].label,
                log="y" if (rows["mean"] > 0).all() else False,
                axes=axes,
            )
    return figure


def svg(figure: Figure) -> bytes:
    """Figure as SVG."""
    return render(figure, "svg")


def _bars(rows: pd.DataFrame, label: str, axes: Axes) -> None:
    """A bar per policy with its interval."""
    bar_chart(
        rows,
        group="policy",
        value="mean",
        series="policy",
        ends=("low", "high"),
        ylabel=label,
        axes=axes,
    )


def _thinned(comparison: Comparison, policy: str, load: int) -> Floats:
    """JCTs of all samples (s), ascending, at most `_MAX_POINTS` of them at equal distances."""
    # a job without an end is NaN and comes last
    values: Floats = np.sort(np.concatenate(comparison.jcts[policy, load]).astype(float))
    if len(values) <= _MAX_POINTS:
        return values
    kept: Floats = values[np.linspace(0, len(values) - 1, _MAX_POINTS).round().astype(int)]
    return kept
