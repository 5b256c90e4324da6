"""Metrics, ratios and distances of Muri's trace figures on small cases."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from repro.model.records import Result
from repro.papers.muri import trace

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


def test_bars_are_over_the_reference_on_the_same_trace(runs):
    table = trace.compare(runs, "muri-s", PUBLISHED)
    assert cell(table, "1", "srtf", "avg_jct", "ratio") == 2.5
    assert cell(table, "2", "srtf", "avg_jct", "ratio") == 2.0
    assert cell(table, "2", "muri-s", "makespan", "ratio") == 1.0
    assert cell(table, "1", "srtf", "makespan", "ratio") == 50 / 20
    assert cell(table, "1", "srtf", "avg_jct", "published_ratio") == 2.4
    # no published makespan of Muri-S: a bar has no published height
    assert math.isnan(cell(table, "1", "srtf", "makespan", "published_ratio"))


def test_points_are_the_values_that_are_published(runs):
    points = trace.points(trace.compare(runs, "muri-s", PUBLISHED))
    assert len(points) == 5
    row = points[(points["series"] == "srtf") & (points["quantity"] == "makespan")].iloc[0]
    assert row[["x", "published", "ours", "unit"]].tolist() == ["1", 50.0, 50.0, "s"]


def test_bars_are_points_that_follow_from_the_seconds(runs):
    bars = trace.bar_points(trace.compare(runs, "muri-s", PUBLISHED), "muri-s")
    assert "muri-s" not in set(bars["series"]) and bars["uncounted"].all()
    row = bars[(bars["x"] == "1") & (bars["quantity"] == "average JCT relative to muri-s")].iloc[0]
    assert row[["published", "ours", "unit"]].tolist() == [2.4, 2.5, "x"]


def test_nothing_published_is_compared_with_a_stand_in(runs):
    traces = {"1": pd.DataFrame(), "2": pd.DataFrame()}
    traces["2"].attrs["synthetic"] = True
    table = trace.compare(runs, "muri-s", PUBLISHED, trace.stand_ins(traces))
    assert table.loc[table["trace"] == "2", "published"].isna().all()
    assert trace.published_range(table, "avg_jct", "muri-s", "12") is None
    assert trace.published_range(table, "avg_jct", "muri-s", "1") == [2.0, 2.5]


def test_range_leaves_the_reference_out(runs):
    table = trace.compare(runs, "muri-s")
    assert trace.bar_range(table, "avg_jct", "muri-s") == [2.0, 2.5]
    assert table["published"].isna().all()


def test_noise_is_over_the_same_policy_without():
    runs = {
        (0.0, "a", 0): result(10.0, 20.0),
        (1.0, "a", 0): result(15.0, 30.0),
        (1.0, "a", 1): result(20.0, 40.0),
        (0.0, "b", 0): result(40.0, 40.0),
        (1.0, "b", 0): result(40.0, 44.0),
        (1.0, "b", 1): result(38.0, 38.0),
    }
    table = trace.over_noise(runs).query("metric == 'avg_jct'").set_index(["policy", "noise"])
    columns = ["value", "ratio", "lowest", "highest"]
    assert table.loc[("a", 0.0), columns].tolist() == [15.0, 1.0, 1.0, 1.0]
    assert table.loc[("a", 1.0), columns].tolist() == [26.25, 1.75, 1.5, 2.0]
    assert table.loc[("b", 1.0), columns].tolist() == pytest.approx([40.0, 1.0, 0.95, 1.05])
