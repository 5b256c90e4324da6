"""Heat maps: cells where they belong, readable text, empty places, stable bytes."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from repro.base.errors import ParamError
from repro.plot import frame_cells, heatmap_chart, new_figure
from repro.plot.style import render

CELLS = pd.DataFrame(
    {
        "one": ["A", "A", "B"],
        "other": ["A", "B", "B"],
        "total": [2.0, 1.0, 0.0],
        "words": ["1\n1", ".5\n.5", "0\n0"],
    }
)


def draw(frame=CELLS, **how):
    return heatmap_chart(frame, row="one", column="other", value="total", **how)


def shades(chart):
    return chart.axes[0].collections[0].get_array()


def test_cells_stand_in_order_of_appearance_and_missing_ones_are_empty():
    axes = draw(text="words").axes[0]
    assert [word.get_text() for word in axes.get_xticklabels()] == ["A", "B"]
    assert [word.get_text() for word in axes.get_yticklabels()] == ["A", "B"]
    assert {word.get_position(): word.get_text() for word in axes.texts} == {
        (0.5, 0.5): "1\n1",
        (1.5, 0.5): ".5\n.5",
        (1.5, 1.5): "0\n0",
    }
    grid = shades(draw())
    assert grid.mask.tolist() == [[False, False], [True, False]]
    assert grid.compressed().tolist() == [2, 1, 0]
    top, bottom = axes.get_ylim()[::-1]
    assert top < bottom, "the first row is at the top"


def test_text_is_light_on_dark_and_dark_on_light():
    found = {word.get_text(): sum(to_rgb(word.get_color())) for word in draw().axes[0].texts}
    assert found["2"] == 3 and found["0"] < 0.5


def test_shades_keep_their_order_in_greyscale():
    chart = draw()
    grid = chart.axes[0].collections[0]
    colours = grid.get_cmap()(np.linspace(0, 1, 50))[:, :3]
    assert (np.diff(colours @ [0.2126, 0.7152, 0.0722]) < 0).all()


def test_infinity_is_the_end_of_the_scale_and_nan_is_white():
    odd = CELLS.assign(total=[np.inf, 1.0, np.nan])
    grid = shades(draw(odd))
    assert grid.mask.tolist() == [[False, False], [True, True]]
    assert grid.compressed().tolist() == [1, 1]


def test_limits_and_colour_bar():
    chart = draw(limits=(0, 4), label="sum of both")
    assert chart.axes[0].collections[0].get_clim() == (0, 4)
    assert chart.axes[1].get_ylabel() == "sum of both"
    assert len(draw().axes) == 1


def test_draws_into_a_given_panel():
    chart, (left, right) = new_figure(2, columns=2)
    assert draw(axes=right, title="right") is chart
    assert not left.texts and right.get_title(loc="left") == "right"


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_same_cells_are_the_same_bytes(kind):
    assert render(draw(label="x"), kind) == render(draw(label="x"), kind)


def corners(chart):
    return [(frame.get_x(), frame.get_y()) for frame in chart.axes[0].patches]


@pytest.mark.parametrize("size", [3, 40])
def test_frames_are_around_the_chosen_cells_however_many_labels_are_shown(size):
    names = [f"job {number}" for number in range(size)]
    cells = pd.DataFrame({"one": names, "other": names, "total": 1.0})
    chart = draw(cells)
    num_labels = len(chart.axes[0].get_yticklabels())
    assert (num_labels < size) == (size == 40)
    frame_cells(chart.axes[0], cells.iloc[[1, size - 1]], row="one", column="other")
    expected = [(1.05, 1.05), (size - 0.95, size - 0.95)]
    assert corners(chart) == [pytest.approx(corner) for corner in expected]


def test_cells_that_are_not_in_the_chart_have_no_frame():
    axes = draw().axes[0]
    with pytest.raises(ParamError, match="no cell in row 'C', column 'A'"):
        frame_cells(axes, CELLS.assign(one="C"), row="one", column="other")
    with pytest.raises(ParamError, match="a panel of heatmap_chart"):
        frame_cells(new_figure()[1][0], CELLS, row="one", column="other")


def test_rows_and_columns_without_a_name_are_plotted_under_one():
    cells = pd.DataFrame(
        {"job": ["A", None], "type": [None, "k80"], "share": [0.2, 0.8], "note": ["x", None]}
    )
    chart = heatmap_chart(cells, row="job", column="type", value="share", text="note")
    axes = chart.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["A", "no job"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["no type", "k80"]
    assert [text.get_text() for text in axes.texts] == ["x", ""]
    frame_cells(axes, cells.tail(1), row="job", column="type")
    assert axes.patches[0].get_y() > 1
