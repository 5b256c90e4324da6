"""Tables: texts of cells, shades by distance, wrapping, spanning heads, stable bytes."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from repro.base.errors import ParamError
from repro.plot import new_figure, table_chart
from repro.plot.published_marks import AGREEMENT, fade_published
from repro.plot.style import render
from repro.plot.table import AGREEMENTS, FAR, NEAR, OURS_ONLY, PUBLISHED_ONLY

WITHIN_10 = AGREEMENTS[0.1]
OURS = pd.DataFrame(
    {"mean (h)": [4.0, 19.2, 31.0], "p99 (h)": [50.0, np.nan, 70.0], "data set": ["A", "B", "C"]},
    index=pd.Index(["srtf", "tiresias-l", "mine"], name="policy"),
)
KNOWN = pd.DataFrame(
    {"mean (h)": [4.0, 19.0, 40.0], "p99 (h)": [54.0, 60.0, np.nan]}, index=OURS.index
)


def words(chart):
    return [text.get_text() for text in chart.axes[0].texts]


def shade_under(chart, text):
    """Return the colour of the smallest box that holds a text."""
    (found,) = (one for one in chart.axes[0].texts if one.get_text() == text)
    x, y = found.get_position()
    under = [one for one in chart.axes[0].patches if one.get_bbox().contains(x, y)]
    return under[0].get_facecolor()[:3] if under else None


def test_cells_hold_ours_in_bold_and_published_with_its_sign():
    chart = table_chart(OURS, KNOWN, form="{:.1f}")
    assert {"4.0", "= 4.0", "19.2", "≈ 19.0", "31.0", "≠ 40.0", "50.0", "~ 54.0"} <= set(
        words(chart)
    )
    assert {"–", "60.0", "70.0"} <= set(words(chart))
    assert {"SRTF", "Tiresias-L", "mine", "policy", "data set", "A", "B", "C"} <= set(words(chart))
    weights = {one.get_text(): one.get_weight() for one in chart.axes[0].texts}
    assert (weights["19.2"], weights["≈ 19.0"], weights["A"]) == ("bold", "normal", "normal")


def test_published_values_of_another_setting_are_pale_and_not_compared():
    chart = table_chart(OURS, KNOWN, form="{:.1f}")
    before = set(words(chart))
    for _ in range(2):
        fade_published(chart, "cluster 8x8")
        assert {"published: for cluster 8x8", "19.2", "19.0", "40.0"} <= set(words(chart))
        assert not {"≈ 19.0", "≠ 40.0"} & set(words(chart)) and "≈ 19.0" in before
        alphas = {text.get_text(): text.get_alpha() for text in chart.axes[0].texts}
        assert (alphas["19.2"], alphas["19.0"]) == (None, 0.3)
        shades = [*chart.axes[0].patches, *chart.axes[0].texts]
        assert not any(one.get_visible() for one in shades if one.get_label() == AGREEMENT)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("4.0", NEAR),
        ("19.2", NEAR),
        ("50.0", WITHIN_10),
        ("31.0", FAR),
        ("60.0", PUBLISHED_ONLY),
        ("70.0", OURS_ONLY),
        ("A", None),
    ],
)
def test_shades_tell_the_distance(text, level):
    found = shade_under(table_chart(OURS, KNOWN, form="{:.1f}"), text)
    assert found == (level and to_rgb(level.shade))


@pytest.mark.parametrize(
    ("ours", "published", "sign"),
    [
        (1.02, 1.0, "≈"),
        (1.021, 1.0, "~"),
        (1.1, 1.0, "~"),
        (1.11, 1.0, "≠"),
        (-0.9, -1.0, "~"),
        (0.0, 0.0, "="),
        (0.1, 0.0, "≠"),
        (np.inf, 1.0, "≠"),
        (1.0, np.inf, "≠"),
        ("GPU", "GPU", "="),
        ("1-7", "1-8", "≠"),
    ],
)
def test_distance_is_relative_to_published(ours, published, sign):
    frames = [pd.DataFrame({"x": [one]}, index=["r"]) for one in (ours, published)]
    (found,) = (
        one for one in words(table_chart(*frames, form="{:.3f}")) if " " in one and one[0] == sign
    )
    assert found.startswith(sign)


def test_key_names_what_is_there_and_nothing_else():
    whole = words(table_chart(OURS, KNOWN))
    every = (*AGREEMENTS.values(), OURS_ONLY, PUBLISHED_ONLY)
    assert {one.words for one in every} <= set(whole)
    same = words(table_chart(KNOWN.iloc[:1], KNOWN.iloc[:1]))
    assert {one.words for one in every} & set(same) == {NEAR.words}
    assert not {one.words for one in every} & set(words(table_chart(OURS)))


def test_shades_keep_their_order_in_greyscale_and_under_text():
    light = [np.array(to_rgb(one.shade)) @ [0.2126, 0.7152, 0.0722] for one in AGREEMENTS.values()]
    assert min(lighter - darker for lighter, darker in itertools.pairwise(light)) > 0.08
    linear = np.array([to_rgb(FAR.shade), to_rgb("#3a3a3a")])
    linear = np.where(linear <= 0.04045, linear / 12.92, ((linear + 0.055) / 1.055) ** 2.4)
    below, ink = linear @ [0.2126, 0.7152, 0.0722]
    assert (below + 0.05) / (ink + 0.05) >= 4.5


def test_long_text_is_wrapped_and_nothing_overlaps_or_is_cut():
    long = "some words that go on and on until they need more than one line of a narrow table"
    chart = table_chart(OURS.assign(notes=long), KNOWN, title=long)
    chart.canvas.draw()
    assert long not in words(chart)
    boxes = [one.get_window_extent() for one in chart.axes[0].texts if one.get_text()]
    for one, other in itertools.combinations(boxes, 2):
        assert not one.padded(-2).overlaps(other.padded(-2))
    assert all(one.x0 >= 0 and one.x1 <= chart.bbox.x1 and one.y0 >= 0 for one in boxes)


def test_second_levels_span_columns_and_gather_rows():
    rows = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")], names=["group", "row"])
    columns = pd.MultiIndex.from_tuples([("times (s)", "one"), ("times (s)", "two"), ("", "three")])
    chart = table_chart(pd.DataFrame(np.arange(9.0).reshape(3, 3), rows, columns))
    found = words(chart)
    assert [found.count(name) for name in ("times (s)", "a", "b", "x")] == [1, 1, 1, 2]
    places = {one.get_text(): one.get_position() for one in chart.axes[0].texts}
    assert places["one"][0] < places["times (s)"][0] < places["two"][0] < places["three"][0]
    assert places["times (s)"][1] < places["one"][1] == places["three"][1]


def test_form_may_differ_by_column():
    form = {"mean (h)": "{:.0f} h"}
    assert {"19 h", "50"} <= set(words(table_chart(OURS, form=form)))


def test_what_cannot_be_drawn_is_refused_with_one_line():
    wide = pd.DataFrame([[123456.0] * 12], ["r"], [f"incomprehensibilities{n}" for n in range(12)])
    wrong = KNOWN.rename(columns={"p99 (h)": "p95 (h)"})
    refused = {
        "needs 14.* has 3.2": (wide,),
        "published column 'p95 \\(h\\)' is not in the table": (OURS, wrong),
        "published row 'theirs'": (OURS, KNOWN.rename({"mine": "theirs"})),
        "at least one row and one column": (OURS.iloc[:0],),
        "its names must differ": (pd.concat([OURS, OURS]),),
    }
    for message, frames in refused.items():
        with pytest.raises(ParamError, match=message) as raised:
            table_chart(*frames)
        assert "\n" not in str(raised.value)


def test_draws_into_a_given_panel():
    chart, (left, right) = new_figure(2, columns=2)
    assert table_chart(OURS[["mean (h)"]], axes=right) is chart
    assert right.texts and not left.texts


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_same_table_is_the_same_bytes(kind):
    assert render(table_chart(OURS, KNOWN), kind) == render(table_chart(OURS, KNOWN), kind)
