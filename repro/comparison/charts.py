"""Pictures of a comparison: distributions of JCT, and metrics against the offered load."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from repro.base.typing import Floats
from repro.comparison.result import METRICS, Comparison
from repro.plot import bar_chart, cdf_chart, line_chart, new_figure
from repro.plot.style import Chart, render

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Largest number of panels of the distributions. With more loads than this, the first, the middle
#: and the last load are shown.
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


def load_chart(comparison: Comparison, name: str = "avg_jct") -> Figure:
    """A metric of each policy, and its paired difference to the reference (%).

    Lines over the loads with 95 % bands; with one load, bars with 95 % intervals.
    """
    metric = METRICS[name]
    table = comparison.table()
    rows = table[table["metric"] == name].copy()
    rows[["mean", "low", "high"]] *= metric.scale
    others = rows[rows["policy"] != comparison.reference].copy()
    reference_mean = others["mean"] / metric.scale - others["difference"]
    for end in ("low", "high"):
        others[f"percent_{end}"] = (
            100 * others[f"difference_{end}"] / reference_mean.where(reference_mean != 0)
        )
    figure, panels = new_figure(1 if others.empty else 2, columns=2, height=_PANEL_INCHES + 0.3)
    _panel(rows, ("mean", "low", "high"), metric.label, panels[0])
    if not others.empty:
        columns = ("difference_percent", "percent_low", "percent_high")
        label = f"{metric.heading} against {comparison.reference} (%)"
        _panel(others, columns, label, panels[1])
        panels[1].axhline(0, color="#444444", linewidth=0.6, zorder=0)
    return figure


def svg(figure: Figure) -> bytes:
    """Figure as SVG, with the legend that its panels share."""
    if isinstance(figure, Chart):
        figure.complete()
    return render(figure, "svg")


def _panel(rows: pd.DataFrame, columns: tuple[str, str, str], label: str, axes: Axes) -> None:
    """Value and ends of the interval of each policy, over the loads if there are several."""
    value, low, high = columns
    if rows["load"].nunique() < 2:
        bar_chart(
            rows,
            group="policy",
            value=value,
            series="policy",
            ends=(low, high),
            ylabel=label,
            axes=axes,
        )
        return
    line_chart(
        rows,
        x="load",
        y=value,
        series="policy",
        band=(low, high),
        xlabel="offered load",
        ylabel=label,
        axes=axes,
    )


def _thinned(comparison: Comparison, policy: str, load_number: int) -> Floats:
    """JCTs of all samples (s), ascending, at most `_MAX_POINTS` of them at equal distances."""
    # a job without an end is NaN and comes last
    values: Floats = np.sort(np.concatenate(comparison.jcts[policy, load_number]).astype(float))
    if len(values) <= _MAX_POINTS:
        return values
    kept: Floats = values[np.linspace(0, len(values) - 1, _MAX_POINTS).round().astype(int)]
    return kept
