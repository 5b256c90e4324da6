"""The compiled list gives the runs of a list in plain Python, to the last bit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from plain_resort import PlainResort

from repro import simulate
from repro.base.errors import PolicyError
from repro.engine.select.resort import Resort
from repro.model.policy import make
from repro.model.view import View
from repro.policies.baselines.known_durations import SRTF
from repro.testing import small_trace

HISTORY = tuple(np.random.default_rng(5).lognormal(7.0, 1.8, 160).tolist())
#: policies, with the settings that make them keep a list under any rules
LISTS = [
    ("tiresias-l", {"promote_knob": 1.0}),
    ("tiresias-l", {"thresholds": (300.0, 1000.0, 9000.0), "promote_knob": 4.0}),
    ("tiresias-l", {"history_ties": False, "promote_knob": 2.0}),
    ("tiresias-l", {"exact_demotion": True, "promote_knob": 2.0}),
    ("tiresias-l", {"whole_second_limits": True, "skip_queues": True}),
    ("tiresias-g", {"history": HISTORY, "promote_knob": 2.0}),
    ("tiresias-g", {"history": HISTORY, "index": "remaining", "history_ties": False}),
    ("gittins-2d", {"history": HISTORY}),
    ("gittins-2d", {"history": HISTORY, "delta": 500.0}),
    ("gittins-2d", {"history": HISTORY, "index": "mean"}),
    ("gittins-2d", {"history": HISTORY, "index": "total"}),
    ("srtf", {"history_ties": True}),
    ("srsf", {"history_ties": True}),
    ("sf", {"history_ties": True}),
]
OPTIONS = [{}, {"interval": 60.0}, {"placement": "yarn"}]


def trace_of(seed):
    """Whole seconds with many ties under even seeds, any times under odd ones."""
    rng = np.random.default_rng(seed)
    n = 40
    gaps = rng.exponential(30.0, n)
    durations = rng.lognormal(6.0, 1.2, n)
    if seed % 2 == 0:
        gaps = np.floor(gaps / 20.0) * 20.0
        durations = np.ceil(durations / 60.0) * 60.0
    return pd.DataFrame(
        {
            "job_id": np.arange(n),
            "submit_time": np.cumsum(gaps),
            "duration": durations,
            "num_gpus": rng.choice([1, 2, 3, 4, 8, 16], n, p=[0.4, 0.2, 0.1, 0.15, 0.1, 0.05]),
        }
    )


def run_plain(*args, **options):
    """Simulate with lists in plain Python."""
    with (
        patch("repro.policies.tiresias.tiresias_l.Resort", PlainResort),
        patch("repro.policies.tiresias.gittins_2d.Resort", PlainResort),
        patch("repro.policies.baselines.known_durations.Resort", PlainResort),
    ):
        return simulate(*args, **options)


@pytest.mark.parametrize("rules", ["tiresias", "paper"])
@pytest.mark.parametrize(("name", "settings"), LISTS)
def test_equals_a_plain_list(name, settings, rules):
    policy = make(name, rules, **settings)
    for seed in range(3):
        options = {"rules": rules, **OPTIONS[seed % 3]}
        fast = simulate(trace_of(seed), "2x8", policy, **options)
        slow = run_plain(trace_of(seed), "2x8", policy, **options)
        pd.testing.assert_frame_equal(fast.jobs, slow.jobs, check_exact=True)
        pd.testing.assert_frame_equal(fast.intervals, slow.intervals, check_exact=True)


def test_no_job_waits_after_the_end_of_the_last_waiting_one():
    waits = []

    class Watched(Resort):
        def finish(self, job):
            super().finish(job)
            waits.append(self.waits)

    jobs = small_trace().head(2).assign(submit_time=0.0, num_gpus=1, duration=[3.0, 5.0])
    with patch("repro.policies.baselines.known_durations.Resort", Watched):
        simulate(jobs, "1x2", make("srtf", history_ties=True))
    assert waits == [False, False]


def test_a_key_of_ones_own_replaces_the_keys_of_several_jobs():
    @dataclass(frozen=True)
    class LongestFirst(SRTF):
        def key(self, view: View, job: int) -> float:
            return -view.remaining(job)

    policy = LongestFirst(history_ties=True, refill=False)
    fast = simulate(trace_of(1), "2x8", policy, rules="tiresias")
    slow = run_plain(trace_of(1), "2x8", policy, rules="tiresias")
    pd.testing.assert_frame_equal(fast.jobs, slow.jobs, check_exact=True)


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
def test_keys_in_a_list_are_numbers(key, shown):
    @dataclass(frozen=True)
    class Odd(SRTF):
        def key(self, view: View, job: int):
            return key(job)

    with pytest.raises(PolicyError, match="number") as caught:
        simulate(small_trace(), "1x4", Odd(history_ties=True, refill=False))
    assert f"is {shown}; return a number" in str(caught.value)


@pytest.mark.parametrize(("width", "shown"), [(1, "nan"), (2, r"\(nan, nan\)")])
def test_keys_of_several_jobs_are_numbers(width, shown):
    @dataclass(frozen=True)
    class Drifting(SRTF):
        def key(self, view: View, job: int):
            return job if width == 1 else (job, 0)

        def keys(self, view: View, jobs):
            return np.full((len(jobs), width), math.nan)

    with pytest.raises(PolicyError, match=f"the key of job 0 is {shown}; return a number"):
        simulate(small_trace(), "1x4", Drifting(history_ties=True, refill=False))
