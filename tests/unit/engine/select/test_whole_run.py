"""Runs in compiled loops equal the engine's, event by event, to the last bit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from repro import simulate, simulate_many
from repro.base.errors import PolicyError
from repro.engine.select import whole_run
from repro.model.policy import Order, make
from repro.model.view import View
from repro.policies.baselines.known_durations import SRTF
from repro.testing import small_trace
from repro.trace import synth

POLICIES = [
    ("srtf", {}),
    ("srsf", {}),
    ("las-2d", {"quantum": 300.0}),
    ("tiresias-l", {}),
    ("tiresias-l", {"thresholds": (500.0, 3000.0, 20000.0)}),
]


def sleeper(engine):
    yield engine.env.timeout(1.0)


def trace_of(seed, jobs=600, grid=0):
    rng = np.random.default_rng(seed)
    trace = synth.make("philly-like", rng, jobs=jobs, load=2.0, num_gpus=64)
    if grid:
        # many events at one instant
        for name in ("submit_time", "duration"):
            trace[name] = np.maximum(grid, trace[name] // grid * grid)
    return trace


def both(*args, **options):
    """Return the run in compiled loops and the run event by event."""
    with patch.object(whole_run, "simulate_order", wraps=whole_run.simulate_order) as spy:
        fast = simulate(*args, **options)
    assert spy.call_count == 1
    with patch("repro.engine.simulate.simulate_compiled", lambda setup: None):
        return fast, simulate(*args, **options)


def assert_same(fast, slow):
    pd.testing.assert_frame_equal(fast.jobs, slow.jobs, check_exact=True)
    pd.testing.assert_frame_equal(fast.intervals, slow.intervals, check_exact=True)
    differ = {"wall_s"}
    assert {k: v for k, v in fast.meta.items() if k not in differ} == {
        k: v for k, v in slow.meta.items() if k not in differ
    }


@pytest.mark.parametrize(("name", "options"), POLICIES)
@pytest.mark.parametrize("grid", [0, 600])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_engine(name, options, grid, seed):
    fast, slow = both(trace_of(seed, grid=grid), "8x8", make(name, **options))
    assert fast.summary()["preemptions"] > 5
    assert_same(fast, slow)


def test_ends_where_asked():
    trace = trace_of(5)
    some = list(trace["job_id"][:100])
    late = float(trace["submit_time"].iloc[200])
    for options in ({"until": some}, {"stop_time": late}, {"keep_intervals": False}):
        fast, slow = both(trace, "8x8", "srtf", **options)
        assert_same(fast, slow)
    assert len(slow.intervals) == 0


def test_goes_on_when_the_record_is_full():
    trace = trace_of(6)
    whole = simulate(trace, "8x8", "tiresias-l")
    with patch.object(whole_run, "_INTERVALS_PER_CALL", 64):
        assert_same(simulate(trace, "8x8", "tiresias-l"), whole)


def test_types_are_not_chosen():
    fast, slow = both(small_trace(), "2xv100,2xk80", "srtf")
    assert_same(fast, slow)
    assert fast.intervals["gpu_type"].isna().all()


@pytest.mark.parametrize(
    "options",
    [{"placement": "yarn"}, {"interval": 60.0}, {"processes": [sleeper]}],
)
def test_what_needs_the_engine_gets_it(options):
    with patch.object(whole_run, "simulate_order", side_effect=AssertionError):
        simulate(small_trace(), "1x4", "srtf", **options)


def test_a_key_of_ones_own_is_not_overlooked():
    @dataclass(frozen=True)
    class LongestFirst(SRTF):
        def key(self, view: View, job: int) -> float:
            return -view.remaining(job)

        def slope(self, view: View, job: int) -> float:
            return view.rate(job)

    trace = trace_of(1)
    own = simulate(trace, "8x8", LongestFirst()).summary()
    assert own["avg_jct"] > 1.2 * simulate(trace, "8x8", "srtf").summary()["avg_jct"]


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (lambda job: "a", "'a'"),
        (lambda job: (1,) * (job + 1), "(1, 1)"),
        (lambda job: (), "()"),
        (lambda job: math.nan if job == 2 else job, "nan"),
        (lambda job: (math.nan, job), "(nan, 0)"),
    ],
)
def test_keys_are_numbers(key, shown):
    @dataclass(frozen=True)
    class Odd(Order):
        def key(self, view: View, job: int):
            return key(job)

    with pytest.raises(PolicyError, match="number") as caught:
        simulate(small_trace(), "1x4", Odd())
    assert f"is {shown}; return a number" in str(caught.value)


def test_equals_the_engine_with_steps_of_other_lengths():
    # the steps of three jobs take 0.5 s, those of the others 4 s
    trace = small_trace()
    trace["iterations"] = trace["duration"] / [0.5, 4.0, 0.5, 4.0, 0.5, 4.0]
    assert_same(*both(trace, "1x4", "srtf", rules="gavel"))


def test_more_slopes_than_gpus_share_heaps():
    # two GPUs, and keys that fall at a rate of their own for each job
    rng = np.random.default_rng(3)
    trace = trace_of(3, jobs=60)
    trace["num_gpus"] = np.minimum(trace["num_gpus"], 2)
    trace["predicted_duration"] = trace["duration"] * rng.uniform(0.2, 5.0, 60)
    fast, slow = both(trace, "1x2", "srtf")
    assert fast.summary()["preemptions"] > 5
    assert_same(fast, slow)
    runs = simulate_many([trace], "1x2", "srtf", keep_jct=True)
    np.testing.assert_array_equal(runs["jct"][0], fast.jobs["jct"])


def test_the_first_job_shares_no_heap_with_another_slope():
    trace = pd.DataFrame(
        {
            "job_id": [0, 1, 2],
            "submit_time": [0.0, 100.0, 150.0],
            "duration": [1000.0, 100.0, 50.0],
            "num_gpus": 1,
            "predicted_duration": [500.0, 400.0, 300.0],
        }
    )
    # predicted seconds left at 150 s: 425 of job 0, 200 of job 1, so job 2 takes the GPU of job 0
    ends = simulate(trace, "1x2", "srtf").jobs["end_time"]
    assert ends.tolist() == [1050.0, 200.0, 200.0]


def test_a_job_behind_all_others_keeps_nobody_from_a_preemption():
    trace = pd.DataFrame(
        {
            "job_id": [0, 1, 2],
            "submit_time": [0.0, 10.0, 10.0],
            "duration": [100.0, 5.0, 1000.0],
            "num_gpus": 1,
        }
    )
    assert simulate(trace, "1x1", "srtf").jobs["end_time"].tolist() == [105.0, 15.0, 1105.0]


def test_more_running_slopes_than_heaps_at_first():
    rng = np.random.default_rng(1)
    trace = pd.DataFrame(
        {
            "job_id": range(90),
            "submit_time": np.sort(rng.uniform(0.0, 10.0, 90)),
            "duration": rng.uniform(50.0, 100.0, 90),
            "num_gpus": 1,
        }
    )
    trace["predicted_duration"] = trace["duration"] * rng.uniform(0.5, 2.0, 90)
    # the first to be preempted
    trace.loc[0, "predicted_duration"] = 1000.0
    fast, slow = both(trace, "1x80", "srtf")
    assert fast.summary()["preemptions"] > 0
    assert_same(fast, slow)


def test_a_slow_job_has_more_work_left_than_seconds_passed():
    class Slow:
        def rates(self, table, run, nodes):
            return [0.1 if run.jobs == (0,) else 1.0]

    trace = pd.DataFrame(
        {"job_id": [0, 1], "submit_time": [0.0, 50.0], "duration": [100.0, 90.0], "num_gpus": 1}
    )
    # job 0 has 95 s of work left at 50 s, more than job 1
    ends = simulate(trace, "1x1", "srtf", perf=Slow()).jobs["end_time"]
    assert ends.tolist() == [1090.0, 140.0]
