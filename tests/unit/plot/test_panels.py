"""Several panels under one legend; bars that are their own series; plain numbers on log axes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.transforms import Bbox

from repro.plot import bar_chart, cdf_chart, new_figure, shared_legend
from repro.plot.style import render


@pytest.fixture
def jobs() -> pd.DataFrame:
    return pd.DataFrame({"policy": ["yarn-cs", "srtf"] * 2, "jct": [900.0, 30.0, 800.0, 20.0]})


def two_panels(jobs):
    figure, panels = new_figure(2, columns=2)
    cdf_chart(jobs, value="jct", series="policy", xlabel="time (s)", axes=panels[0])
    rows = jobs.iloc[:2].assign(paper=[850.0, 25.0])
    bar_chart(
        rows,
        group="policy",
        series="policy",
        value="jct",
        published="paper",
        ylabel="time (s)",
        axes=panels[1],
    )
    shared_legend(figure)
    return figure


def test_shared_legend_names_each_series_once(jobs):
    figure = two_panels(jobs)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["YARN-CS", "SRTF", "published"]
    assert all(axes.get_legend() is None for axes in figure.axes)


@pytest.mark.parametrize(
    ("panels", "legend", "shared"),
    [(2, None, True), (2, "panels", False), (1, None, False), (1, "shared", True)],
)
def test_several_panels_share_a_legend_once_they_are_complete(jobs, panels, legend, shared):
    figure, axes = new_figure(panels, columns=2, legend=legend)
    for panel in axes:
        cdf_chart(jobs, value="jct", series="policy", axes=panel)
    assert not figure.legends
    for _ in range(2):
        figure.complete()
        assert len(figure.legends) == shared
        assert all((panel.get_legend() is None) == shared for panel in axes)


def test_panels_without_series_get_no_legend():
    figure, axes = new_figure(2)
    axes[0].plot([0, 1])
    figure.complete()
    assert not figure.legends


def test_panels_are_stable_bytes(jobs):
    assert render(two_panels(jobs), "svg") == render(two_panels(jobs), "svg")


def own_figure(jobs):
    figure = Figure(layout="compressed")
    for panel in figure.subplots(1, 2):
        panel.plot(jobs["jct"])
    return figure


@pytest.mark.parametrize("kind", ["svg", "png"])
@pytest.mark.parametrize("make", [two_panels, own_figure])
def test_the_last_bit_of_a_place_is_not_seen(jobs, monkeypatch, make, kind):
    """As when the solver of the layout finds its unknowns at other addresses."""
    quiet = render(make(jobs), kind)
    solve = ConstrainedLayoutEngine.execute

    def other_addresses(engine, figure):
        grids = solve(engine, figure)
        for axes in figure.axes:
            axes.set_position(Bbox(np.nextafter(axes.get_position().get_points(), 1)))
            axes.set_in_layout(True)
        return grids

    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", other_addresses)
    assert render(make(jobs), kind) == quiet


def test_shared_legend_wraps_long_labels():
    figure, panels = new_figure(1, columns=1)
    for number in range(4):
        panels[0].plot([0, 1], label=f"a rather long name of series {number}")
    panels[0].legend()
    shared_legend(figure)
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1


def test_bars_that_are_their_own_series_stand_in_the_middle(jobs):
    figure = bar_chart(
        jobs.iloc[:2], group="policy", series="policy", value="jct", ylabel="time (s)"
    )
    (axes,) = figure.axes
    centres = [bar.get_x() + bar.get_width() / 2 for bar in axes.patches]
    assert centres == pytest.approx([0.0, 1.0])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["YARN-CS", "SRTF"]


def test_log_axis_has_plain_numbers(jobs):
    figure = bar_chart(jobs.iloc[:2], group="policy", value="jct", ylabel="time (s)", log=True)
    figure.canvas.draw()
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels() if tick.get_text()]
    assert "100" in labels and all(float(label) > 0 for label in labels)
