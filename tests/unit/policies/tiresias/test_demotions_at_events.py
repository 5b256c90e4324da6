"""Compiled demotions at events give the runs of plain loops over the demotable jobs."""

from __future__ import annotations

import math
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.model.policy import make
from repro.policies.tiresias import tiresias_l
from repro.policies.tiresias.tiresias_l import _DemotionAtEvents, _Queues


class PlainDemotions(_DemotionAtEvents):
    """The rule of the public simulators, job by job in Python's own numbers."""

    def moves(self, now):
        moved = set(_Queues.moves(self, now))
        for job in list(self._demotable):
            executed = self.executed[job] + now - self.since[job]
            limit = self.limits[self.queue[job]]
            gpus = self.view.gpus(job)
            is_due = executed * gpus >= limit
            if self.rounds_up:
                is_due = is_due or math.ceil(limit / gpus) - executed + now <= now
                self.executed[job] = executed
                self.since[job] = now
            if is_due:
                self.queue[job] += 1
                while self.skip_queues and executed * gpus >= self.limits[self.queue[job]]:
                    self.queue[job] += 1
                moved.add(job)
                if self.limits[self.queue[job]] == math.inf:
                    self._unlist(job)
        return sorted(moved)

    def wake(self, now):
        wake = _Queues.wake(self, now)
        for job in self._demotable:
            executed = self.executed[job] + (now - self.since[job])
            limit = self.limits[self.queue[job]]
            gpus = self.view.gpus(job)
            if self.rounds_up:
                wake = min(wake, math.ceil(limit / gpus) - executed + now)
            else:
                wake = min(wake, now + max(1, (limit - executed) // gpus))
        return wake


def trace_of(seed):
    """Jobs at any times, several of them beyond each limit."""
    rng = np.random.default_rng(seed)
    n = 50
    seconds = rng.uniform(0.1, 3.0, n).round(3)
    iterations = np.ceil(rng.lognormal(6.0, 1.2, n) / seconds)
    return pd.DataFrame(
        {
            "job_id": np.arange(n),
            "submit_time": np.cumsum(rng.exponential(30.0, n)),
            "duration": iterations * seconds,
            "num_gpus": rng.choice([1, 2, 3, 4, 8, 16], n),
            "iterations": iterations,
            "iteration_time": seconds,
            "model": rng.choice(["resnet18", "vgg16", "bert", "gpt2"], n),
        }
    )


@pytest.mark.parametrize("rules", ["tiresias", "muri"])
@pytest.mark.parametrize("skip_queues", [False, True])
@pytest.mark.parametrize("thresholds", [(3250.0, 7200.0), (333.0, 1000.0, 20000.5), (1000, 1001)])
def test_equals_plain_loops(thresholds, skip_queues, rules):
    settings = {"thresholds": thresholds, "skip_queues": skip_queues, "promote_knob": 2.0}
    policy = make("tiresias-l", rules, **settings)
    for seed in range(2):
        fast = simulate(trace_of(seed), "2x8", policy, rules=rules)
        with patch.object(tiresias_l, "_DemotionAtEvents", PlainDemotions):
            slow = simulate(trace_of(seed), "2x8", policy, rules=rules)
        pd.testing.assert_frame_equal(fast.jobs, slow.jobs, check_exact=True)
        pd.testing.assert_frame_equal(fast.intervals, slow.intervals, check_exact=True)


@pytest.mark.parametrize(
    ("settings", "ends"),
    [({}, [15.0, 20.0]), ({"skip_queues": False}, [15.0, 20.0]), ({"skip_queues": True}, [14, 20])],
)
def test_a_job_moves_by_one_queue_or_past_all_limits(settings, ends):
    """Four GPUs, two jobs of four. The first has attained 16 GPU-seconds at 4 s.

    By one queue, each job has a further second in the second queue, from 8 s and from 9 s.
    """
    trace = pd.DataFrame(
        {"job_id": [0, 1], "submit_time": [0.0, 1.0], "duration": [10.0, 10.0], "num_gpus": 4}
    )
    policy = make("tiresias-l", "tiresias", thresholds=(10.0, 11.0), **settings)
    assert simulate(trace, "1x4", policy, rules="tiresias").jobs["end_time"].tolist() == ends
