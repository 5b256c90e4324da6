"""FIFO with throughputs: greedy as the public simulator, and the paper's programme."""

from __future__ import annotations

import numpy as np
import pytest

from repro import simulate
from repro.model.typed_shares import Kinds
from repro.perf.throughput import ThroughputTable
from repro.perf.throughput_files import load_throughputs
from repro.policies.gavel.fifo import GavelFifo, fastest_idle_types
from repro.trace.synth.gavel import PUBLIC, gavel_single

SPEEDS = ThroughputTable.of(
    {
        "fast": {"k80": 1.0, "v100": 8.0},
        "even": {"k80": 3.0, "v100": 4.0},
        "mild": {"k80": 1.0, "v100": 1.9},
        "large": {"k80": 0.0, "v100": 1.0},
    },
    "v100",
)


def shares(form, *models, gpus=(1, 1), widths=None):
    speeds = np.array([SPEEDS.speeds(model, 1, ("k80", "v100")) for model in models])
    ones = np.ones(len(models))
    job_widths = np.array(widths or [1] * len(models), float)
    jobs = Kinds(speeds, np.array(gpus, float), ones, job_widths, ones)
    return GavelFifo(form).shares(jobs).round(6).tolist()


@pytest.mark.parametrize("form", ["greedy", "lp"])
def test_the_earlier_job_has_the_faster_gpu(form):
    assert shares(form, "fast", "fast", "fast") == [[0, 1], [1, 0], [0, 0]]


def test_the_programme_weighs_the_rank_against_the_loss():
    # greedy gives the first job the V100; 2 x 3/4 + 1 x 1 exceeds 2 x 1 + 1 x 1/8
    assert shares("greedy", "even", "fast") == [[0, 1], [1, 0]]
    assert shares("lp", "even", "fast") == [[1, 0], [0, 1]]


def test_the_programme_counts_speeds_relative_to_the_fastest_type():
    # 2 x 1 + 1 / 1.9 exceeds 2 x 3/4 + 1
    assert shares("lp", "even", "mild") == [[0, 1], [1, 0]]


def test_without_jobs_no_job_is_blocked():
    assert fastest_idle_types([], [], np.ones(2)) == ({}, 0)


def test_a_gang_that_does_not_fit_blocks_the_jobs_behind_it():
    assert shares("greedy", "fast", "fast", "fast", gpus=(1, 2), widths=[1, 2, 1]) == [
        [0, 1],
        [0, 0],
        [0, 0],
    ]


def test_a_job_that_cannot_run_on_the_idle_type_lets_others_pass():
    assert shares("greedy", "fast", "large", "fast") == [[0, 1], [0, 0], [1, 0]]


def test_average_jct_of_the_public_simulator(mirror, monkeypatch):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    trace = gavel_single(0, jobs=400, rate=1.0)
    table = load_throughputs(PUBLIC)
    run = simulate(trace, "4xk80,4xp100,4xv100", "gavel-fifo", rules="gavel", perf=table)
    jct = run.jobs.sort_values("job_id")["jct"]
    assert jct.iloc[20:60].mean() == pytest.approx(71558.779, abs=1e-3)
