"""Published values: never our colour, never under ours, the legend as the picture, none lost."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from repro.plot import (
    bar_chart,
    cdf_chart,
    line_chart,
    look,
    new_figure,
    published_fact,
    shared_legend,
    tick_bars,
)
from repro.plot.published_marks import (
    fade_published,
    mark_as_published,
    name_published,
    published_style,
)

RATES = [1.0, 2.0, 3.0]


@pytest.fixture
def ours():
    rows = [(name, x, x * k) for k, name in ((1, "gavel-las"), (2, "allox")) for x in RATES]
    return pd.DataFrame(rows, columns=["series", "x", "mean"])


def curves(ours, half=0.5, **more):
    published = ours.assign(low=ours["mean"] - half, high=ours["mean"] + half)
    return line_chart(
        ours,
        x="x",
        y="mean",
        series="series",
        published=published,
        published_band=("low", "high"),
        **more,
    ).axes[0]


def of_published(axes):
    return [line for line in axes.lines if line.get_label() == "_published"]


def test_published_curves_are_dark_dashed_and_above_ours(ours):
    axes = curves(ours)
    own = [line for line in axes.lines if line not in of_published(axes)]
    assert len(of_published(axes)) == 2
    for line in of_published(axes):
        assert max(to_rgb(line.get_color())) < 0.2
        assert line.get_linestyle() == "--" and line.get_markerfacecolor() == "none"
        assert line.get_zorder() > max(one.get_zorder() for one in own)


def test_each_published_curve_has_the_marker_of_ours(ours):
    markers = [line.get_marker() for line in of_published(curves(ours))]
    assert markers == [look("gavel-las").marker, look("allox").marker]


def test_whiskers_stand_at_the_published_values(ours):
    axes = curves(ours)
    spans = [part for one in axes.collections for part in one.get_segments()]
    assert sorted(spans[0][:, 1]) == [0.5, 1.5] and len(spans) == 6
    assert not curves(ours, half=0.0).collections


def test_the_legend_shows_what_the_picture_shows(ours):
    legend = curves(ours).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [
        "Gavel",
        "AlloX",
        "published, ±1 s.d.",
    ]
    figure, panels = new_figure(2)
    points = pd.DataFrame({"series": ["allox"], "mean": [2.0], "fraction": [0.5]})
    for axes in panels:
        cdf_chart(ours, value="mean", series="series", published=points, axes=axes)
    shared_legend(figure)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["Gavel", "AlloX", "published"]
    shapes = {str(line.get_marker()) for line in legend.get_lines()}
    assert look("allox").marker in shapes


def test_nothing_published_leaves_no_entry(ours):
    missing = ours.assign(mean=float("nan"))
    chart = line_chart(ours, x="x", y="mean", series="series", published=missing)
    names = [text.get_text() for text in chart.axes[0].get_legend().get_texts()]
    assert names == ["Gavel", "AlloX"]


def test_values_outside_the_range_are_pointed_at(ours):
    axes = curves(ours, ylim=(0, 5))
    arrows = [line for line in axes.lines if line.get_label() == "_outside"]
    # AlloX at 3: ours and published
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in arrows] == [(3.0, 5.0)] * 2
    assert {text.get_text() for text in axes.texts} == {"6"}


def test_bars_of_ratios_on_a_logarithmic_axis_start_at_the_reference():
    rows = pd.DataFrame({"bin": ["a", "b"], "gain": [4.0, 0.25], "paper": [5.0, 0.2]})
    chart = bar_chart(rows, group="bin", value="gain", published="paper", reference=1, log=True)
    spans = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in chart.axes[0].patches]
    assert spans == [(1.0, 4.0), (1.0, 0.25)]


def test_no_series_of_ours_is_as_dark_and_open():
    assert published_style("s")["markerfacecolor"] == "white"
    assert look("anything").color != published_style()["color"]


@pytest.fixture
def pairs():
    return pd.DataFrame(
        {
            "bin": ["a", "a", "b", "b"],
            "way": ["x", "y"] * 2,
            "gain": [1.0, 2.0, 3.0, 4.0],
            "paper": [2.0, 2.0, 5.0, 5.0],
            "other rules": [1.5, 1.0, 2.0, 3.0],
            "note": ["one", "two", "three", "a long four"],
        }
    )


def test_a_value_shared_by_the_bars_of_a_group_is_drawn_once_over_it(pairs):
    keywords = {"group": "bin", "series": "way", "value": "gain", "published": "paper"}
    (line,) = of_published(bar_chart(pairs, **keywords).axes[0])
    assert list(line.get_xdata()[[0, 1, 3, 4]]) == [-0.4, 0.4, 0.6, 1.4]
    assert list(line.get_ydata()) == [2, 2, 2, 5, 5, 5]
    apart = pairs.assign(paper=[2.0, 2.0, 5.0, 6.0])
    assert len(of_published(bar_chart(apart, **keywords).axes[0])) == 2


def test_bars_carry_a_text_and_a_second_value(pairs):
    # two of the rings are where the text over the bar would be, two are far above it
    pairs["paper"] = [1.3, 5.0, 3.3, 6.0]
    chart = bar_chart(
        pairs,
        group="bin",
        series="way",
        value="gain",
        published="paper",
        text="note",
    )
    (axes,) = chart.axes
    tick_bars(axes, pairs, value="other rules", series="way")
    shared_legend(chart)
    assert [(text.get_text(), text.xy[1]) for text in axes.texts] == [
        ("one", 1.3),
        ("three", 3.3),
        ("two", 2.0),
        ("a long four", 4.0),
    ]
    heights = [segment[0, 1] for one in axes.collections for segment in one.get_segments()]
    assert heights == [1.5, 2.0, 1.0, 3.0]
    (legend,) = chart.legends
    assert [text.get_text() for text in legend.get_texts()].count("other rules") == 1


def test_a_single_published_number_is_a_marker_or_a_line_with_its_text():
    _, (axes,) = new_figure()
    published_fact(axes, "largest", 3, 1, left=True)
    published_fact(axes, "most below", 2)
    marker, line = axes.lines
    assert (marker.get_marker(), list(marker.get_ydata())) == ("D", [1])
    assert list(line.get_xdata()) == [2, 2]
    assert [text.get_text() for text in axes.texts] == ["largest", "most below"]


def test_all_that_is_published_is_faded():
    figure, (axes,) = new_figure()
    axes.plot([0, 1], [0, 1])
    published_fact(axes, "largest", 3, 1)
    published_fact(axes, "most below", 2)
    name_published(axes, (1, 1), "paper", 3, 3)
    bound = axes.hlines(2, 0, 1)
    mark_as_published(bound, axes.text(0, 2, "below 2"))
    fade_published(figure, "the paper's cluster")
    ours, *published = [*axes.lines, *axes.texts]
    assert ours.get_alpha() is None
    assert len(published) == 6
    assert {artist.get_alpha() for artist in [bound, *published]} == {0.3}
