"""Textbook queues: moments and loads of what is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from repro.trace import synth


@pytest.mark.parametrize(
    ("service", "scv"), [("deterministic", 0.0), ("exponential", 1.0), ("hyperexponential", 4.0)]
)
def test_moments_of_the_durations(service, scv):
    frame = synth.make("mg1", np.random.default_rng(1), jobs=200_000, service=service)
    mean = frame["duration"].mean()
    assert mean == pytest.approx(60, rel=0.02)
    assert frame["duration"].var() / mean**2 == pytest.approx(scv, rel=0.05, abs=1e-9)
    gaps = np.diff(frame["submit_time"])
    assert gaps.mean() == pytest.approx(60 / 0.7, rel=0.02)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(1, rel=0.05)


def test_the_load_counts_all_servers():
    options = {"jobs": 100_000, "num_gpus": 4, "load": 0.9, "mean_duration": 8.0}
    frame = synth.make("mm", np.random.default_rng(2), **options)
    span = frame["submit_time"].iloc[-1]
    assert frame["duration"].sum() / (4 * span) == pytest.approx(0.9, rel=0.02)
    assert (frame["num_gpus"] == 1).all()


def test_mm_is_the_exponential_mg1():
    one = synth.make("mm", np.random.default_rng(3), jobs=50, load=0.5)
    other = synth.make("mg1", np.random.default_rng(3), jobs=50, load=0.5)
    assert one.equals(other)
