"""Gandiva's fixed step: looks that change nothing are skipped, and nobody can tell."""

import itertools

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.policies.tiresias import gandiva


@pytest.mark.parametrize("cluster", ["2x4", "6x4"])
@pytest.mark.parametrize(("begin", "slice_s"), [(0.0, 60.0), (3.0, 60.0), (0.25, 45.0)])
def test_looks_that_change_nothing_are_skipped(cluster, begin, slice_s, monkeypatch):
    rng = np.random.default_rng(7)
    submit = np.sort(rng.choice([10.0, 60.0, 7.0], 80) * rng.integers(0, 60, 80)) + begin
    trace = pd.DataFrame(
        {
            "job_id": np.arange(80),
            "submit_time": submit,
            "duration": rng.integers(30, 1500, 80).astype(float),
            "num_gpus": rng.choice([1, 2, 4, 8], 80),
        }
    )
    policy = gandiva.Gandiva(slice_s=slice_s)
    skipping = simulate(trace, cluster, policy, rules="tiresias")
    # no step is ever like the one before: the policy looks every 10 s
    looks = itertools.count()
    monkeypatch.setattr(gandiva._Slicer, "_sizes", lambda slicer: [next(looks)])
    looking = simulate(trace, cluster, policy, rules="tiresias")
    pd.testing.assert_frame_equal(skipping.jobs, looking.jobs)
    pd.testing.assert_frame_equal(skipping.intervals, looking.intervals)
    assert cluster == "6x4" or skipping.jobs["preemptions"].sum() > 0
