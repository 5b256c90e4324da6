"""Charts: one look per policy, greyscale-safe, stable bytes, nothing global left behind."""

import base64
import hashlib
import itertools
import re
import subprocess
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from repro.base.errors import ParamError
from repro.plot import (
    bar_chart,
    cdf_chart,
    frame_cells,
    gantt_chart,
    heatmap_chart,
    line_chart,
    look,
    name_published,
    new_figure,
    shared_legend,
    stacked_chart,
)
from repro.plot.panel import COLUMN_INCHES
from repro.plot.series_styles import looks
from repro.plot.style import Chart, caption, render

TIRESIAS = [
    "yarn-cs",
    "best-effort",
    "sf",
    "srtf",
    "srsf",
    "las-2d",
    "tiresias-l",
    "tiresias-g",
    "gandiva",
]


def samples(rows=50):
    rng = np.random.default_rng(1)
    names = np.repeat(["yarn-cs", "tiresias-l"], rows)
    return pd.DataFrame({"policy": names, "jct": rng.lognormal(5, 1, 2 * rows)})


@pytest.mark.parametrize(
    ("draw", "words", "message"),
    [
        (bar_chart, {"group": "x", "value": "y", "spred": "sd"}, "'spred'; did you mean 'spread'?"),
        (line_chart, {"x": "x", "y": "y", "ylable": "a"}, "'ylable'; did you mean 'ylabel'"),
        (cdf_chart, {"value": "y", "panel": {}}, "'panel' (accepted: frame, value, "),
        (gantt_chart, {"lane": "x", "height": 2}, "'height' (accepted: "),
    ],
)
def test_an_unknown_keyword_is_refused(draw, words, message):
    frame = pd.DataFrame({"x": [0], "y": [1.0], "sd": [0.1]})
    with pytest.raises(ParamError) as caught:
        draw(frame, **words)
    assert str(caught.value).startswith(f"{draw.__name__} has no keyword {message}")


def every_chart():
    bars = pd.DataFrame(
        {
            "bin": ["SS", "SS", "LL", "LL"],
            "policy": ["srtf", "sf"] * 2,
            "gain": [1.0, 2, 3, 4],
            "paper": [1.1, np.nan, 3.0, 4.2],
            "sd": [0.1] * 4,
        }
    )
    spans = pd.DataFrame({"job": ["J1", "J2", "J1"], "start": [0, 2, 4], "end": [2, 4, 9]})
    stack = pd.DataFrame(
        [(m, w, p, 1.0) for m in "AB" for w in "12" for p in ("load", "warm")],
        columns=["model", "workers", "part", "s"],
    )
    points = pd.DataFrame({"policy": ["yarn-cs"], "jct": [100.0], "fraction": [0.5]})
    return {
        "cdf": cdf_chart(
            samples(), value="jct", series="policy", xlabel="JCT (s)", published=points, log=True
        ),
        "bars": bar_chart(
            bars,
            group="bin",
            series="policy",
            value="gain",
            published="paper",
            spread="sd",
            ylabel="gain (x)",
            reference=1,
        ),
        "lines": line_chart(
            bars,
            x="bin",
            y="gain",
            series="policy",
            published=bars.head(1),
            xlabel="bin",
            ylabel="gain (x)",
            band=("paper", "gain"),
        ),
        "gantt": gantt_chart(
            spans, lane="job", text="job", published=spans.tail(1)[["job", "end"]]
        ),
        "stacked": stacked_chart(
            stack, cluster="model", bar="workers", part="part", value="s", ylabel="time (s)"
        ),
    }


def digests():
    found = {}
    for name, figure in every_chart().items():
        caption(figure, "Tiresias · Fig 10 · quick · seed 0")
        for kind in ("png", "svg"):
            found[f"{name}.{kind}"] = hashlib.sha256(render(figure, kind)).hexdigest()
    return found


@pytest.mark.slow
def test_the_same_chart_is_the_same_bytes_in_another_process():
    code = "import test_charts; print(sorted(test_charts.digests().items()))"
    here = str(__file__).rsplit("/", 1)[0]
    other = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {here!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
        env=None,
    )
    assert other.stdout.strip() == str(sorted(digests().items()))


@pytest.mark.parametrize("name", ["cdf", "bars", "lines", "gantt", "stacked", "panels"])
def test_a_figure_is_the_same_bytes_however_often_it_was_drawn(name):
    def fresh():
        if name != "panels":
            return every_chart()[name]
        figure, axes = new_figure(2, columns=2)
        for panel in axes:
            cdf_chart(samples(), value="jct", series="policy", xlabel="JCT (s)", axes=panel)
        shared_legend(figure)
        return figure

    expected = {kind: render(fresh(), kind) for kind in ("png", "svg")}
    figure = fresh()
    figure.canvas.draw()
    for kind in ("svg", "png", "svg", "svg", "png"):
        assert render(figure, kind) == expected[kind]


def test_files_carry_no_date_and_no_version():
    figure = every_chart()["cdf"]
    svg = render(figure, "svg").decode()
    png = render(figure, "png")
    assert "<dc:date>" not in svg and "Matplotlib" not in svg.replace("matplotlib.axis", "")
    assert b"Software" not in png
    assert ">JCT (s)</text>" in svg


def test_published_values_are_open_markers():
    for name in ("cdf", "bars", "lines", "gantt"):
        (axes,) = every_chart()[name].axes
        open_ones = [line for line in axes.lines if line.get_label() == "_published"]
        assert open_ones and all(line.get_linestyle() == "None" for line in open_ones)
        assert all(line.get_markerfacecolor() in ("white", "none") for line in open_ones)
        if name != "gantt":
            assert "published" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_lines_distributions_and_stacks_draw_their_reference():
    rows = pd.DataFrame({"x": [1, 2], "y": [0.5, 2.0], "name": ["a", "a"]})
    charts = [
        line_chart(rows, x="x", y="y", series="name", reference=1.0),
        cdf_chart(rows, value="y", series="name", reference=1.0),
        stacked_chart(rows, bar="x", part="name", value="y", reference=1.0),
    ]
    for chart in charts:
        lines = [list(line.get_ydata()) for line in chart.axes[0].get_lines()]
        assert [1.0, 1.0] in lines


def test_one_policy_has_one_look_in_every_chart():
    charts = every_chart()
    line = next(x for x in charts["cdf"].axes[0].lines if x.get_label() == "Tiresias-L")
    assert line.get_color() == look("tiresias-l").color
    assert look("tiresias-l") == looks(["x", "tiresias-l"])["tiresias-l"]


def test_policies_of_one_figure_differ_in_greyscale():
    for one, other in itertools.combinations(map(look, TIRESIAS), 2):
        tells = abs(one.luminance - other.luminance) > 0.12, one.line != other.line
        assert any(tells), (one, other)
        assert (one.color, one.marker) != (other.color, other.marker)


def test_unknown_names_get_a_stable_look_and_none_is_shared():
    assert look("my-policy") == look("my-policy")
    names = [f"policy-{n}" for n in range(12)]
    assert len({one.color for one in looks(names).values()}) == 12
    assert len(looks([f"n{n}" for n in range(30)])) == 30


def test_drawing_leaves_global_settings_alone():
    before = dict(mpl.rcParams)
    every_chart()
    assert dict(mpl.rcParams) == before
    # pyplot, which seaborn imports, keeps none of them
    assert plt.get_fignums() == []


def test_columns_and_caption():
    figure, axes = new_figure(3, columns=2, height=2)
    assert len(axes) == 3 and figure.get_figwidth() == COLUMN_INCHES[2]
    caption(figure, "words " * 60)
    assert figure.get_figheight() > 2.1
    with pytest.raises(ParamError, match="1 or 2 columns"):
        new_figure(columns=3)


def test_large_curves_are_thinned_and_keep_their_ends():
    figure = cdf_chart(samples(40_000), value="jct", series="policy", xlabel="s")
    x, y = figure.axes[0].lines[0].get_data()
    values = samples(40_000).query("policy == 'yarn-cs'")["jct"]
    assert len(x) < 2000
    assert x[0] == values.min() and x[-1] == values.max() and y[-1] == 1.0
    assert abs(np.interp(0.5, y, x) / values.median() - 1) < 0.01


def test_missing_observations_lower_the_curve():
    frame = pd.DataFrame({"policy": ["a"] * 4, "jct": [1.0, 2.0, np.nan, np.nan]})
    figure = cdf_chart(frame, value="jct", series="policy", xlabel="s")
    assert figure.axes[0].lines[0].get_ydata()[-1] == 0.5


class Cell:
    """Output of a cell, as `IPython.display.display` returns it."""

    def __init__(self, shown, display_id):
        self.shown = shown
        self.display_id = display_id

    def update(self, bundle, raw):
        self.shown.append(bundle["text/html"])


@pytest.fixture
def outputs(monkeypatch):
    """Outputs of cells: HTML, or the text of a picture that is still to come."""
    shown = []

    def display(bundle, raw, display_id=None):
        shown.append(bundle.get("text/html", bundle["text/plain"]))
        return Cell(shown, "d1") if display_id else None

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(Chart, "waiting", None)
    return shown


def as_html(svg, chart):
    address = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
    return f'<img src="{address}" width="{chart.get_figwidth() * 200:.0f}" alt="chart">'


def test_notebooks_can_show_a_figure_without_pyplot(outputs):
    figure = every_chart()["bars"]
    assert not figure.shown
    figure._ipython_display_()
    assert outputs == [as_html(render(figure, "svg"), figure)] and figure.shown


def test_a_batch_shows_the_saved_picture_and_draws_all_others_once(outputs):
    Chart.waiting = []
    saved, other, late = (every_chart()[name] for name in ("bars", "cdf", "lines"))
    for chart in (saved, saved, other):
        chart._ipython_display_()
        assert not chart.shown and outputs.pop().startswith("<picture, shown once")
    saved.display_svg(b"saved bytes")
    Chart.show_waiting(without=saved)
    assert outputs == [as_html(b"saved bytes", saved), as_html(render(other, "svg"), other)]
    late._ipython_display_()
    assert outputs[2:] == [as_html(render(late, "svg"), late)]


def test_large_series_of_an_svg_with_very_many_marks_are_pixels():
    def plotted(symbols, points=0):
        frame = pd.DataFrame({"x": range(symbols), "y": np.arange(symbols) % 97})
        figure, (axes,) = new_figure()
        axes.plot(frame["x"], frame["y"], "o", gid="symbols")
        axes.plot(range(points), np.arange(points) % 89, gid="line")
        axes.plot([0, 1, 2], [5, 5, 5], gid="short")
        return figure

    few = render(plotted(15_000, points=20_000), "svg")
    assert b"<image" not in few and few.count(b"<use") > 15_000
    many = render(plotted(20_001), "svg")
    assert many.count(b"<image") == 1 and len(many) < 150_000
    assert b'id="short"' in many and many.count(b"<use") < 100
    assert many == render(plotted(20_001), "svg")


def test_text_of_an_svg_has_fonts_of_readers_without_ours():
    svg = render(every_chart()["cdf"], "svg").decode()
    fonts = re.findall(r"font-family: ([^;\"]*)", svg)
    assert fonts and all(font.endswith("sans-serif") for font in fonts)


def test_pieces_of_a_part_are_ever_lighter_and_named_once():
    rows = pd.DataFrame(
        {
            "t": [1, 2] * 3,
            "part": ["x"] * 4 + ["y"] * 2,
            "job": [0, 0, 1, 1, 2, 2],
            "share": [0.2, 0.3, 0.3, 0.2, 0.5, 0.5],
        }
    )
    chart = stacked_chart(rows, bar="t", part="part", pieces="job", value="share")
    bars = chart.axes[0].patches
    assert max(bar.get_y() + bar.get_height() for bar in bars) == pytest.approx(1)
    assert sum(bars[0].get_facecolor()[:3]) < sum(bars[2].get_facecolor()[:3])
    names = [text.get_text() for text in chart.axes[0].get_legend().get_texts()]
    assert names == ["x", "y"]


def test_chosen_cells_of_a_matrix_have_a_frame():
    cells = pd.DataFrame({"a": [0, 1], "b": [0, 0], "n": [1.0, 2.0], "yes": [False, True]})
    chart = heatmap_chart(cells, row="a", column="b", value="n")
    frame_cells(chart.axes[0], cells[cells["yes"]], row="a", column="b")
    (frame,) = chart.axes[0].patches
    assert 1 < frame.get_y() < 1.1 and not frame.get_fill()


def test_published_ends_of_lanes_are_never_outside():
    rows = pd.DataFrame({"lane": ["a", "b"], "start": [0, 0], "end": [1, 2]})
    chart = gantt_chart(rows, lane="lane", published=rows[["lane", "end"]])
    assert [line.get_label() for line in chart.axes[0].lines] == ["_published"]


def test_names_of_published_curves_stand_on_the_side_asked_for():
    _, (axes,) = new_figure()
    name_published(axes, (1, 2), "left of it", -5, 0)
    name_published(axes, (1, 2), "right of it", 5, 0)
    assert [text.get_ha() for text in axes.texts] == ["right", "left"]


def with_gaps():
    return pd.DataFrame(
        {
            "p": ["A", "A", None, None],
            "x": [0.0, 1.0, 0.0, 1.0],
            "y": [1.0, 2.0, 3.0, 4.0],
            "note": ["a", None, "c", "d"],
        }
    )


def legend_names(chart):
    return [text.get_text() for text in chart.axes[0].get_legend().get_texts()]


def test_rows_without_a_series_are_plotted_under_a_name():
    rows = with_gaps()
    lines = line_chart(rows, x="x", y="y", series="p")
    assert [line.get_ydata().tolist() for line in lines.axes[0].lines] == [[1, 2], [3, 4]]
    assert legend_names(lines) == ["A", "no p"]
    bars = bar_chart(rows, group="x", series="p", value="y", text="note")
    assert [bar.get_height() for bar in bars.axes[0].patches] == [1, 2, 3, 4]
    assert [text.get_text() for text in bars.axes[0].texts] == ["a", "", "c", "d"]
    distributions = cdf_chart(rows, value="y", series="p")
    assert len(distributions.axes[0].lines) == 2
    stack = stacked_chart(rows, bar="x", part="p", value="y")
    assert [bar.get_y() for bar in stack.axes[0].patches] == [0, 0, 1, 2]
    pieces = stacked_chart(rows, bar="x", part="note", pieces="p", value="y")
    assert len(pieces.axes[0].patches) == 4


def test_rows_without_a_group_or_a_lane_are_plotted_under_a_name():
    rows = with_gaps().assign(start=0.0, end=1.0, published=[1.0, 1.0, 3.0, 3.0])
    bars = bar_chart(rows, group="p", series="x", value="y", published="published").axes[0]
    assert [label.get_text() for label in bars.get_xticklabels()] == ["A", "no p"]
    assert bars.lines[0].get_ydata()[::3].tolist() == [1, 3]
    lanes = gantt_chart(rows, lane="p", published=rows.tail(1)[["p", "end"]]).axes[0]
    assert [label.get_text() for label in lanes.get_yticklabels()] == ["A", "no p"]
    stack = stacked_chart(rows, bar="p", part="x", value="y").axes[0]
    assert [label.get_text() for label in stack.get_xticklabels()] == ["A", "no p"]
    points = line_chart(rows.iloc[1:3], x="p", y="y").axes[0]
    assert [label.get_text() for label in points.get_xticklabels()] == ["A", "no p"]


def test_a_span_without_a_series_has_a_name_and_one_without_a_text_stays_empty():
    rows = with_gaps().assign(start=0.0, end=1.0)
    chart = gantt_chart(rows, lane="x", series="p", text="note")
    assert legend_names(chart) == ["A", "no p"]
    assert [text.get_text() for text in chart.axes[0].texts] == ["a", "c", "d"]


def test_a_published_lane_that_the_chart_lacks_is_refused():
    rows = pd.DataFrame({"gpu": ["0", "1"], "start": [0, 0], "end": [1, 2]})
    published = pd.DataFrame({"gpu": ["1", "2"], "end": [2.0, 3.0]})
    with pytest.raises(ParamError, match=r"^published gpu '2' is not in the chart"):
        gantt_chart(rows, lane="gpu", published=published)


@pytest.mark.parametrize("cluster", [None, "model"])
def test_a_published_bar_that_the_chart_lacks_is_refused(cluster):
    rows = pd.DataFrame({"model": "m", "plan": ["A", "B"], "part": "wait", "s": [1.0, 2.0]})
    published = pd.DataFrame({"model": "m", "plan": ["A", "C"], "s": [1.0, 2.0]})
    names = ("C", "A, B") if cluster is None else ("m C", "m A, m B")
    message = "^published plan '{}' is not in the chart; give one of its bars: {}$".format(*names)
    with pytest.raises(ParamError, match=message):
        stacked_chart(
            rows, bar="plan", part="part", value="s", cluster=cluster, published=published
        )


def test_numbers_of_jobs_are_in_their_order_in_the_legend_of_lanes():
    jobs = [11, 2, 1000, 0, 10, 1]
    rows = pd.DataFrame({"gpu": 0, "job": jobs, "start": range(6), "end": range(1, 7)})
    assert legend_names(gantt_chart(rows, lane="gpu", series="job")) == [
        "0",
        "1",
        "2",
        "10",
        "11",
        "1000",
    ]
    mixed = rows.assign(job=["waiting", "J2", "restart", "10", "J1", "2"])
    names = legend_names(gantt_chart(mixed, lane="gpu", series="job"))
    assert names == ["2", "10", "J1", "J2", "waiting", "restart"]


@pytest.mark.parametrize("errors", [{"spread": "s"}, {"ends": ("low", "high")}])
def test_texts_of_bars_are_above_the_error_bars(errors):
    rows = pd.DataFrame(
        {"x": ["a", "b"], "y": [1.0, 2.0], "s": 3.0, "low": 0.5, "high": [4.0, 5.0]}
    )
    chart = bar_chart(rows, group="x", value="y", text="y", **errors)
    assert [text.xy[1] for text in chart.axes[0].texts] == [4.0, 5.0]


def test_a_text_stands_on_a_published_marker_at_zero():
    rows = pd.DataFrame({"x": ["a", "b", "c"], "y": [0.0, 5.0, 5.0], "ref": [0.0, 0.0, np.nan]})
    chart = bar_chart(rows, group="x", value="y", published="ref", text="y")
    offsets = [text.xyann[1] for text in chart.axes[0].texts]
    assert offsets[0] > offsets[1] == offsets[2]
