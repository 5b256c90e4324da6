"""Charts: functions from a frame and the keywords of `PanelOptions` to a matplotlib Figure."""

from repro.base.extras import needed_for

with needed_for("a chart"):
    from repro.plot.bars import bar_chart, stacked_chart, tick_bars
    from repro.plot.gantt import gantt_chart
    from repro.plot.heatmap import frame_cells, heatmap_chart
    from repro.plot.lines import cdf_chart, line_chart
    from repro.plot.panel import PanelOptions, new_figure, shared_legend
    from repro.plot.published_marks import name_published, published_fact
    from repro.plot.series_styles import Look, look, looks
    from repro.plot.table import table_chart

__all__ = [
    "Look",
    "PanelOptions",
    "bar_chart",
    "cdf_chart",
    "frame_cells",
    "gantt_chart",
    "heatmap_chart",
    "line_chart",
    "look",
    "looks",
    "name_published",
    "new_figure",
    "published_fact",
    "shared_legend",
    "stacked_chart",
    "table_chart",
    "tick_bars",
]
