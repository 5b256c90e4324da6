"""Throughput tables: look-up, rates relative to the reference type, errors."""

from __future__ import annotations

import pandas as pd
import pytest

from repro import make, simulate
from repro.errors import ParamError
from repro.perf import ThroughputTable

TABLE = ThroughputTable(
    {("a3c", 1): {"v100": 8.0, "k80": 2.0}, ("a3c", 2): {"v100": 12.0, "k80": 4.0}}, "v100"
)


def jobs(**columns):
    base = {"job_id": [0], "submit_time": 0.0, "duration": 3600.0, "num_gpus": 1, "model": "a3c"}
    return pd.DataFrame(base | columns)


def test_from_frame():
    frame = pd.DataFrame(
        {
            "job_type": ["a3c"] * 4,
            "batch_size": 4,
            "scale_factor": [1, 1, 2, 2],
            "gpu_type": ["v100", "k80"] * 2,
            "steps_per_second": [8.0, 2.0, 12.0, 4.0],
        }
    )
    assert ThroughputTable.from_frame(frame, "v100") == TABLE


@pytest.mark.parametrize(("cluster", "time"), [("1xv100", 1), ("1xk80", 4)])
def test_a_job_on_the_slow_type_takes_longer(cluster, time):
    result = simulate(jobs(), cluster, make("gavel-las", throughputs=TABLE), perf=TABLE)
    assert result.jobs["jct"].tolist() == pytest.approx([3600 * time])


def test_gang_size_chooses_the_row():
    result = simulate(jobs(num_gpus=2), "2xk80", make("las-agnostic"), perf=TABLE)
    assert result.jobs["jct"].tolist() == pytest.approx([3600 * 3])


@pytest.mark.parametrize(
    ("columns", "cluster", "word"),
    [
        ({"model": "bert"}, "1xv100", "bert"),
        ({"num_gpus": 4}, "4xv100", "on 4 GPUs"),
        ({}, "1xt4", "'t4'"),
        ({}, "1x1", "cluster of these types"),
    ],
)
def test_what_the_table_lacks_is_named(columns, cluster, word):
    with pytest.raises(ParamError, match=word):
        simulate(jobs(**columns), cluster, make("las-agnostic"), perf=TABLE)


def test_public_table(mirror):
    path = mirror.parent / "gavel_isolated_throughputs.csv"
    if not path.is_file():
        pytest.skip("no gavel_isolated_throughputs.csv beside the public traces")
    table = ThroughputTable.from_frame(pd.read_csv(path), "v100")
    assert table.steps_per_s("A3C", 1, "k80") == pytest.approx(3.439, abs=1e-3)
