"""Isolated shares: static division of the cluster."""

from __future__ import annotations

import numpy as np
import pytest

from repro import simulate
from repro.perf.throughput_files import load_throughputs
from repro.policies.gavel.isolated import isolated_shares
from repro.trace.synth.gavel import PUBLIC, gavel_single


def test_each_job_owns_an_equal_part_of_every_gpu_type():
    shares = isolated_shares(np.array([1.0, 1.0, 2.0, 4.0]), np.array([4.0, 2.0, 2.0]))
    # 1, .5 and .5 of a one-GPU job exceed its time and are scaled to .5, .25 and .25
    assert shares[0] == pytest.approx([0.5, 0.25, 0.25])
    assert shares[2] == pytest.approx([0.5, 0.25, 0.25])
    assert shares[3] == pytest.approx([0.25, 0.125, 0.125])


def test_average_jct_of_the_public_simulator(mirror, monkeypatch):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    trace = gavel_single(0, jobs=400, rate=1.0)
    table = load_throughputs(PUBLIC)
    run = simulate(trace, "4xk80,4xp100,4xv100", "isolated", rules="gavel", perf=table)
    jct = run.jobs.sort_values("job_id")["jct"]
    assert jct.iloc[20:60].mean() == pytest.approx(93841.814, abs=1e-3)


def test_time_is_divided_in_proportion_to_the_gpus_of_the_types():
    shares = isolated_shares(np.array([1.0, 1.0]), np.array([4.0, 2.0]))
    assert shares.sum(axis=1).tolist() == [1.0, 1.0]
    assert shares[:, 0] == pytest.approx(2 * shares[:, 1])
