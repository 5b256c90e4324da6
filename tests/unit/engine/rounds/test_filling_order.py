"""Order in which rounds fill the GPU types of a cluster."""

from __future__ import annotations

import pandas as pd
import pytest

from repro import simulate
from repro.engine.rounds.mechanism import filling_order
from repro.model.jobs import JobTable
from repro.model.rules import Rules
from repro.model.speeds import Speeds
from repro.perf.throughput import ThroughputTable

JOBS = pd.DataFrame(
    {
        "job_id": range(3),
        "submit_time": 0.0,
        "duration": [3600.0, 7200.0, 9000.0],
        "num_gpus": 1,
        "model": "a",
    }
)


def run(fast, slow, policy):
    """Three jobs on four fast GPUs and four that have a tenth of their speed."""
    speeds = ThroughputTable.of({"a": {fast: 10.0, slow: 1.0}}, fast)
    return simulate(JOBS, f"4x{fast},4x{slow}", policy, perf=speeds)


@pytest.mark.parametrize("policy", ["gavel-las", "gavel-max-throughput"])
@pytest.mark.parametrize("types", [("v100", "k80"), ("h100", "v100"), ("a", "b"), ("b", "a")])
def test_jobs_without_competitors_run_on_the_fastest_type_whatever_its_name(types, policy):
    result = run(*types, policy)
    assert set(result.intervals["gpu_type"]) == {types[0]}
    assert result.jobs["jct"].tolist() == JOBS["duration"].tolist()


def test_speeds_count_relative_to_the_fastest_type_of_the_model():
    # a: 1 on x, 0.9 on y; b: 0.5 on x, 1 on y
    speeds = ThroughputTable.of({"a": {"x": 100.0, "y": 90.0}, "b": {"x": 1.0, "y": 2.0}}, "x")
    table = JobTable(JOBS.assign(model=["a", "b", "b"]), Rules())
    assert filling_order(Speeds(table, speeds, {"x": 1, "y": 1})) == [1, 0]
