"""Log-normal jobs against the moments of their laws."""

from __future__ import annotations

import numpy as np
import pytest

from repro.base.errors import ParamError
from repro.trace import synth


def draw(seed=0, **options):
    return synth.make("lognormal", np.random.default_rng(seed), **options)


def test_moments_are_those_of_the_options():
    trace = draw(jobs=200_000, load=0.8, num_gpus=16, mean_duration=100.0, sigma=1.0, wide=0.25)
    assert trace["duration"].mean() == pytest.approx(100.0, rel=0.02)
    assert np.log(trace["duration"]).std() == pytest.approx(1.0, rel=0.01)
    assert trace["num_gpus"].value_counts(normalize=True)[8] == pytest.approx(0.25, abs=0.005)
    gpu_seconds = (trace["duration"] * trace["num_gpus"]).sum()
    assert gpu_seconds / (16 * trace["submit_time"].max()) == pytest.approx(0.8, rel=0.02)


def test_options_change_the_jobs_and_not_their_order():
    plain = draw(jobs=50)
    busier = draw(jobs=50, load=2.0)
    assert np.allclose(plain["submit_time"], 2 * busier["submit_time"])
    assert plain["duration"].equals(busier["duration"])
    longer = draw(jobs=50, sigma=2.5)
    assert (plain["duration"].rank() == longer["duration"].rank()).all()
    assert set(plain["num_gpus"]) == {1}


def test_a_share_is_at_most_one():
    with pytest.raises(ParamError, match=r"wide=1\.5: give a share from 0 to 1"):
        draw(wide=1.5)
