"""Metrics, ratios and distances of Muri's trace figures on small cases."""

from __future__ import annotations

import math

import pandas as pd
import pytest

import repro
from repro.model.records import Result
from repro.papers.muri import trace
from repro.papers.reference import reference_rows

PUBLISHED = [
    {"policy": "srtf", "metric": "avg_jct", "1": 24.0, "2": 30.0},
    {"policy": "muri-s", "metric": "avg_jct", "1": 10.0, "2": 10.0},
    {"policy": "srtf", "metric": "makespan", "1": 50.0},
]


def result(*jct):
    ends = [10.0 * number + value for number, value in enumerate(jct)]
    return Result(pd.DataFrame({"jct": jct, "end_time": ends}), pd.DataFrame())


@pytest.fixture
def runs():
    return {
        ("srtf", "1"): result(10.0, 40.0),
        ("muri-s", "1"): result(10.0, 10.0),
        ("srtf", "2"): result(20.0, 40.0),
        ("muri-s", "2"): result(10.0, 20.0),
    }


def cell(table, trace, policy, metric, column):
    held = (table["trace"] == trace) & (table["policy"] == policy) & (table["metric"] == metric)
    return table.loc[held, column].item()


@pytest.mark.parametrize(("jobs", "index"), [(1, 0), (99, 98), (100, 99), (101, 99), (400, 396)])
def test_p99_is_an_element_of_the_list(jobs, index):
    assert trace.run_metrics(result(*range(jobs)[::-1]))["p99_jct"] == index


def test_makespan_counts_from_time_zero():
    jobs = pd.DataFrame({"submit_time": [100.0], "end_time": [150.0], "jct": [50.0]})
    found = trace.run_metrics(Result(jobs, pd.DataFrame()))
    assert found == {"avg_jct": 50.0, "makespan": 150.0, "p99_jct": 50.0}


@pytest.fixture
def traces():
    return {"1": pd.DataFrame(), "2": pd.DataFrame()}


def test_another_trace_behind_a_label_has_no_published_values():
    changed = {"1": "muri-trace3", "2": "muri-trace2", "mine": "muri-trace1"}
    fig = repro.figure("muri/fig09_known_durations", traces=changed)
    rows = trace.published_rows(fig)
    assert all("1" not in row and row["2"] > 0 for row in rows)
    assert len(rows) == len(fig.inputs.published)


def with_ratios(table):
    reference = reference_rows(table, table["policy"] == "muri-s", by=["trace", "metric"])
    return table.assign(
        ratio=table["value"] / reference["value"],
        published_ratio=table["published"] / reference["published"],
    )


def test_bars_are_over_the_reference_on_the_same_trace(runs, traces):
    table = with_ratios(trace.metric_table(runs, traces, PUBLISHED))
    assert cell(table, "1", "srtf", "avg_jct", "ratio") == 2.5
    assert cell(table, "2", "srtf", "avg_jct", "ratio") == 2.0
    assert cell(table, "2", "muri-s", "makespan", "ratio") == 1.0
    assert cell(table, "1", "srtf", "makespan", "ratio") == 50 / 20
    assert cell(table, "1", "srtf", "avg_jct", "published_ratio") == 2.4
    # no published makespan of Muri-S: a bar has no published height
    assert math.isnan(cell(table, "1", "srtf", "makespan", "published_ratio"))


def test_rows_are_in_the_order_of_the_traces(runs, traces):
    runs = dict(sorted(runs.items(), key=lambda run: run[0][0]))
    table = trace.metric_table(runs, traces)
    assert table["trace"].tolist() == ["1"] * 6 + ["2"] * 6
    assert table["policy"].tolist() == (["muri-s"] * 3 + ["srtf"] * 3) * 2
    assert table["published"].isna().all()


def test_points_are_the_values_that_are_published(runs, traces):
    points = trace.points(trace.metric_table(runs, traces, PUBLISHED))
    assert len(points) == 5
    row = points[(points["series"] == "srtf") & (points["quantity"] == "makespan")].iloc[0]
    assert row[["x", "published", "ours", "unit"]].tolist() == ["1", 50.0, 50.0, "s"]


def test_bars_are_points_that_follow_from_the_seconds(runs, traces):
    bars = trace.bar_points(with_ratios(trace.metric_table(runs, traces, PUBLISHED)), "muri-s")
    assert "muri-s" not in set(bars["series"]) and bars["uncounted"].all()
    row = bars[(bars["x"] == "1") & (bars["quantity"] == "average JCT relative to muri-s")].iloc[0]
    assert row[["published", "ours", "unit"]].tolist() == [2.4, 2.5, "x"]


def test_nothing_published_is_compared_with_a_stand_in(runs, traces):
    assert trace.is_complete(trace.metric_table(runs, traces, PUBLISHED), PUBLISHED)
    traces["2"].attrs["synthetic"] = True
    table = trace.metric_table(runs, traces, PUBLISHED)
    assert table.loc[table["trace"] == "2", "published"].isna().all()
    assert not trace.is_complete(table, PUBLISHED)


def test_no_comparison_is_complete_without_a_published_trace(runs, traces):
    runs = {(policy, name): run for (policy, name), run in runs.items() if name == "1"}
    table = trace.metric_table(runs, {"1": traces["1"]}, PUBLISHED)
    assert not trace.is_complete(table, PUBLISHED)
