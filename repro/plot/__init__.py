"""Charts: one file per kind, one style; every function takes plain frames, returns a Figure."""

from __future__ import annotations

from repro.plot.bars import bar_chart
from repro.plot.cdf import cdf_chart
from repro.plot.gantt import gantt_chart
from repro.plot.heatmap import heatmap_chart
from repro.plot.lines import line_chart
from repro.plot.series_styles import Look, look, looks
from repro.plot.stacked import stacked_chart
from repro.plot.style import new_figure, shared_legend

__all__ = [
    "Look",
    "bar_chart",
    "cdf_chart",
    "gantt_chart",
    "heatmap_chart",
    "line_chart",
    "look",
    "looks",
    "new_figure",
    "shared_legend",
    "stacked_chart",
]
