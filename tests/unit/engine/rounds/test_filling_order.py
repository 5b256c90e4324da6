"""Order in which rounds fill the GPU types of a cluster."""

from __future__ import annotations

import pandas as pd
import pytest

from repro import simulate
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
