"""Jobs with nothing left complete at that instant, whatever the policy would do with their GPUs."""

from __future__ import annotations

import pandas as pd
import pytest

from repro import make, simulate

ELASTIC = ("afs", "fifo-elastic", "max-min", "pcs", "reservation", "srsf-elastic", "themis")
#: Ends after all jobs: the engine asks the policy event by event, the clock is not used.
LATER = {"stop_time": 1e12}


def ends(rows, policy, cluster="1x2", **more):
    columns = ["job_id", "submit_time", "duration", "num_gpus"]
    trace = pd.DataFrame(
        [(number, *row) for number, row in enumerate(rows)], columns=columns
    ).astype({"submit_time": float, "duration": float})
    return simulate(trace, cluster, policy, **more).jobs["end_time"].tolist()


@pytest.mark.parametrize("rules", ["paper", "pcs"])
def test_the_second_of_two_completions_keeps_nothing_for_a_third_job(rules):
    """The public simulator of PCS ends these jobs at 100, 100 and 150 s."""
    themis = make("themis", rules, lease=1000.0)
    rows = [(0, 100, 1), (0, 100, 1), (1, 50, 2)]
    assert ends(rows, themis, rules=rules) == [100.0, 100.0, 150.0]


def test_event_by_event_it_is_the_same():
    themis = make("themis", lease=1000.0)
    rows = [(0, 100, 1), (0, 100, 1), (1, 50, 2)]
    assert ends(rows, themis, **LATER) == [100.0, 100.0, 150.0]


@pytest.mark.parametrize("more", [{}, LATER], ids=["clock", "engine"])
def test_completions_that_only_rounding_tells_apart_are_one_instant(more):
    rows = [(0, 0.1 + 0.2, 1), (0, 0.3, 1), (0.1, 50, 2)]
    found = ends(rows, make("themis", lease=1000.0), **more)
    assert found == pytest.approx([0.3, 0.3, 50.3], abs=1e-9)


def test_a_completion_comes_before_an_arrival_that_only_rounding_puts_first():
    rows = [(0, 0.1 + 0.2, 2), (0.3, 50, 2)]
    for more in ({}, LATER):
        found = ends(rows, make("themis", lease=1000.0), **more)
        assert found == pytest.approx([0.3, 50.3], abs=1e-9)


def test_predictions_see_it_too():
    """A third job is predicted to end when it does: nothing arrives after it."""
    trace = pd.DataFrame(
        {
            "job_id": [0, 1, 2],
            "submit_time": [0.0, 0.0, 1.0],
            "duration": [100.0, 100.0, 50.0],
            "num_gpus": [1, 1, 2],
        }
    )
    jobs = simulate(trace, "1x2", make("themis", lease=1000.0), predict=3).jobs
    assert jobs["predicted_jct"].tolist() == jobs["jct"].tolist() == [100.0, 100.0, 149.0]


@pytest.mark.parametrize("rules", ["paper", "pcs"])
@pytest.mark.parametrize("policy", ELASTIC)
def test_many_jobs_that_end_together(policy, rules):
    """Equal jobs on a GPU each, with a wide one in line: all of them end when their work does."""
    rows = [(0, 120, 1)] * 8 + [(1, 30, 8)]
    found = ends(rows, policy, "1x8", rules=rules)
    if policy in ("fifo-elastic", "pcs", "reservation", "themis"):
        assert found == [120.0] * 8 + [150.0]
    assert max(found) == pytest.approx(150.0)
