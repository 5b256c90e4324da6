"""``overhead_s`` is the time in which jobs hold GPUs and do not progress."""

import numpy as np
import pandas as pd
import pytest

from repro import make, simulate
from repro.model.performance import Overhead
from repro.perf.overhead import CheckpointOverhead
from repro.trace.schema import STAGES

FAILURES = {"failures": "mtbf=300,repair=40,checkpoint=60", "placement": "yarn"}
POLICIES = [
    make("srtf", "paper"),
    make("tiresias-l", "paper", thresholds=(50.0, 400.0), promote_knob=4.0),
    make("gandiva", "paper", slice_s=60.0),
    make("muri-s", "paper"),
    make("antman", "paper"),
]


class Saves(Overhead):
    """Jobs load and save; with ``stays`` they keep both while they stay on their GPUs."""

    def __init__(self, stays):
        self.stays = stays

    def start_s(self, table, job):
        return 8.0

    def resume_s(self, table, job):
        return 24.0

    def save_s(self, table, job):
        return 16.0


def jobs(seed):
    """Twelve jobs that Muri's policies can group, too."""
    rng = np.random.default_rng(seed)
    duration = rng.integers(5, 600, 12).astype(float)
    return pd.DataFrame(
        {
            "job_id": range(12),
            "submit_time": np.sort(rng.integers(0, 600, 12)).astype(float),
            "duration": duration,
            "num_gpus": rng.choice([1, 2, 4], 12),
            "model": "vgg16",
            "iteration_time": 1.0,
            "iterations": duration,
            "priority": rng.integers(0, 2, 12),
            **dict.fromkeys(STAGES, 0.25),
        }
    )


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize(
    "options",
    [
        {"overhead": CheckpointOverhead({}, 20.0, 0.0)},
        {"overhead": Saves(stays=False)},
        {"overhead": Saves(stays=True)},
        FAILURES,
        {**FAILURES, "overhead": CheckpointOverhead({}, 20.0, 0.0)},
        {**FAILURES, "overhead": Saves(stays=True)},
    ],
    ids=["starts", "saves", "stays", "failures", "failures and starts", "failures and saves"],
)
def test_held_time_is_duration_and_overhead(policy, options):
    for seed in range(4):
        trace = jobs(seed)
        result = simulate(trace, "2x4", policy, keep_intervals=True, seed=seed, **options)
        held_s = (result.intervals["end"] - result.intervals["start"]).sum()
        assert held_s == pytest.approx(trace["duration"].sum() + result.meta["overhead_s"])
