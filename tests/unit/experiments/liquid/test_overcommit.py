"""Overcommitted GPUs: who may share, at which speeds."""

from __future__ import annotations

import pandas as pd
import pytest

from repro import simulate
from repro.experiments.liquid.overcommit import Overcommit, kept_speeds

PAIRS = pd.DataFrame(
    {"job_a": ["a", "a"], "job_b": ["b", "c"], "norm_a": [0.5, 1.2], "norm_b": [0.8, 0.4]}
)


def trace(models, util):
    count = len(models)
    return pd.DataFrame(
        {"job_id": range(count), "submit_time": [0.0] * count, "duration": [10.0] * count}
        | {"num_gpus": 1, "model": models, "gpu_util": [util[name] for name in models]}
    )


def ends(jobs, limit, cluster="1x1"):
    result = simulate(jobs, cluster, Overcommit(kept_speeds(PAIRS), limit))
    return result.jobs.sort_values("job_id")["end_time"].tolist()


def test_measured_speeds_of_both_and_at_most_alone():
    kept = kept_speeds(PAIRS)
    assert kept == {("a", "b"): 0.5, ("b", "a"): 0.8, ("a", "c"): 1.0, ("c", "a"): 0.4}


def test_two_jobs_share_within_the_limit_and_the_one_left_goes_on_alone():
    jobs = trace(["a", "b"], {"a": 0.6, "b": 0.6})
    assert ends(jobs, 0) == [10.0, 20.0]
    # b ends after 12.5 s, a has then done 6.25 s of its work
    assert ends(jobs, 1.2) == pytest.approx([16.25, 12.5])


def test_pairs_that_were_not_measured_wait():
    assert ends(trace(["b", "c"], {"b": 0.1, "c": 0.1}), 2.0) == [10.0, 20.0]
    assert ends(trace(["a", "a"], {"a": 0.1}), 2.0) == [10.0, 20.0]


def test_idle_gpus_first_then_the_least_used_and_later_jobs_may_pass():
    jobs = trace(["b", "c", "a"], {"a": 0.2, "b": 0.9, "c": 0.5})
    assert ends(jobs, 2.0, "1x2") == pytest.approx([10.0, 10 + (1 - 0.4) * 10, 10.0])
    blocked = trace(["b", "b", "a"], {"a": 0.2, "b": 0.9})
    # a shares with the first b to 12.5 s and with the second to 20 s
    assert ends(blocked, 1.5) == pytest.approx([12.5, 24.0, 20.0])
