"""Shortest job first without preemption, by hand."""

from __future__ import annotations

import pandas as pd

from repro import simulate


def ends(rows, cluster):
    columns = ["submit_time", "duration", "num_gpus"]
    trace = pd.DataFrame(rows, columns=columns).astype({"submit_time": float, "duration": float})
    trace.insert(0, "job_id", range(len(trace)))
    return simulate(trace, cluster, "sjf").jobs["end_time"].tolist()


def test_a_running_job_keeps_its_gpus_and_the_shortest_starts_next():
    # job 0 runs until 10 although shorter jobs arrive; then job 2 (3 s), then jobs 3 and 1
    rows = [(0, 10, 2), (1, 5, 1), (2, 3, 2), (3, 4, 1)]
    assert ends(rows, "1x2") == [10.0, 18.0, 13.0, 17.0]


def test_a_longer_job_that_fits_starts_before_a_shorter_one_that_does_not():
    # two GPUs are taken until 20: job 1 (1 s) needs two, job 2 (9 s) fits into the third
    rows = [(0, 20, 2), (1, 1, 2), (1, 9, 1)]
    assert ends(rows, "1x3") == [20.0, 21.0, 10.0]


def test_equal_durations_go_by_submission():
    assert ends([(0, 4, 1), (2, 6, 1), (1, 6, 1)], "1x1") == [4.0, 16.0, 10.0]
