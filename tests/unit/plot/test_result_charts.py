"""A result shows itself: a table in JupyterLab, three charts."""

from __future__ import annotations

import pytest

import repro
from repro.base.errors import ParamError
from repro.testing import small_trace


@pytest.fixture(scope="module")
def result():
    return repro.simulate(small_trace(), "2x4", "srtf")


def test_jupyter_shows_the_summary(result):
    shown = result._repr_html_()
    assert "avg_jct" in shown and "srtf" in shown and "ignored" not in shown


def test_distribution_of_jct_ends_at_one(result):
    (axes,) = result.plot().axes
    assert axes.lines[0].get_ydata()[-1] == 1 and axes.get_title(loc="left") == "srtf on 2x4"


def test_gpus_in_use_never_exceed_the_cluster(result):
    (axes,) = result.plot("utilisation").axes
    percent = axes.lines[0].get_ydata()
    assert 0 < max(percent) <= 100 + 1e-9 and percent[-1] == pytest.approx(0, abs=1e-9)


def test_a_window_cuts_the_lanes(result):
    last = result.intervals["end"].max()
    (axes,) = result.plot("gantt", start=0.25 * last, end=0.5 * last).axes
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
    assert ends and max(ends) <= 0.5 * last


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"chart": "pie"}, "chart is 'pie'; give jct, utilisation, gantt"),
        ({"chart": "gantt", "start": 1e9}, "no job runs between"),
        ({"chart": "gantt", "start": 5, "end": 3}, "start is 5 s and end is 3 s; give an end"),
        ({"chart": "utilisation", "end": 0}, "start is 0 s and end is 0 s; give an end"),
        ({"chart": "jct", "start": 5}, "chart jct has no window; leave out start and end"),
        ({"chart": "jct", "end": 5}, "chart jct has no window; leave out start and end"),
    ],
)
def test_what_cannot_be_drawn_is_refused(result, arguments, message):
    with pytest.raises(ParamError, match=message):
        result.plot(**arguments)


def test_a_run_that_stops_before_any_start_has_no_gantt_chart():
    stopped = repro.simulate(small_trace().assign(submit_time=5.0), "2x4", "srtf", stop_time=1.0)
    with pytest.raises(ParamError, match="no job held GPUs in this run"):
        stopped.plot("gantt")
