"""Fit of the testbed's scheduler to a job log."""

from __future__ import annotations

import pandas as pd
import pytest

from repro.papers.muri import job_log


def test_launch_and_ratios_of_an_exact_log_are_found():
    # starts of bert and dqn on 8 GPUs: 10 s and 6 s; iterations of 0.2 s and 0.5 s
    jobs = [("bert", 10, 0.2, 1.02, 1000, 2), ("bert", 10, 0.2, 1.02, 50000, 30)]
    jobs += [("dqn", 6, 0.5, 0.97, 30, 1), ("dqn", 6, 0.5, 0.97, 8000, 4)]
    rows = []
    for model, start_s, iteration_s, ratio, iterations, starts in jobs:
        executed = starts * (9.0 + start_s + 5 * iteration_s)
        # a job trains 60 iterations or more
        executed += max(iterations, 60) * ratio * iteration_s
        rows.append((model, 8, iterations, 1000 * iteration_s, executed, starts))
    columns = ["model", "num_gpus", "iterations", "iteration_ms", "executed_s", "starts"]
    fit = job_log.fit(pd.DataFrame(rows, columns=columns), warm_up=5)
    assert fit.launch_s == pytest.approx(9.0)
    assert fit.ratios == {("bert", 8): pytest.approx(1.02), ("dqn", 8): pytest.approx(0.97)}


def test_the_log_is_that_of_the_table():
    log = job_log.job_log()
    assert sorted(log["job_id"]) == list(range(400))
    # makespan of Table 4
    assert log["end_s"].max() == pytest.approx(4156633.262890, abs=0.01)


def test_settings_are_those_of_a_simulation():
    fit = job_log.Fit(9.0, {("bert", 8): 1.02})
    settings = fit.settings(360.0, 5.0)
    assert settings["interval"] == 360.0
    assert settings["overhead"].launch_s([0.2]) == 10.0
    assert settings["perf"].ratio("bert", 8) == 1.02
