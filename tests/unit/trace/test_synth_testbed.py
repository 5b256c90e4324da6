"""The Tiresias testbed workload: every published fact about it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.base.errors import ParamError
from repro.trace import synth
from repro.trace.synth.testbed import GPU_COUNTS, LONG_OF_LARGE, LONG_OF_SMALL

SEEDS = range(12)


def draw(seed: int, **options: object) -> pd.DataFrame:
    return synth.make("testbed", np.random.default_rng(seed), **options)


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_bins_models_and_work(seed):
    frame = draw(seed)
    assert frame["num_gpus"].value_counts().to_dict() == GPU_COUNTS
    assert frame["model"].value_counts().tolist() == [48] * 10
    small = frame["num_gpus"] <= 4
    short = frame["duration"] < 800
    bins = [(small & short).sum(), (small & ~short).sum()]
    bins += [(~small & short).sum(), (~small & ~short).sum()]
    # Table 3 inside each row, the rows being 360 and 120 jobs by the published GPU counts
    table_3 = [360 * 63.5 / 76, 360 * 12.5 / 76, 120 * 16.5 / 24, 120 * 7.5 / 24]
    np.testing.assert_allclose(bins, table_3, atol=1)
    assert frame["duration"].between(120, 7200).all()
    assert 22e3 <= (frame["duration"] * frame["num_gpus"]).sum() / 60 <= 27e3
    assert 595 <= frame["duration"].mean() <= 680
    parameter_servers = frame["num_gpus"].where(frame["num_gpus"] > 1, 0)
    assert (frame["num_ps"] == parameter_servers).all()


@pytest.mark.parametrize(("gaps", "deviation"), [("exponential", 30.0), ("poisson", 30.0**0.5)])
def test_gaps(gaps, deviation):
    between = np.concatenate([np.diff(draw(seed, gaps=gaps)["submit_time"]) for seed in SEEDS])
    assert between.mean() == pytest.approx(30, rel=0.05)
    assert between.std() == pytest.approx(deviation, rel=0.1)
    assert (between == np.floor(between)).all()
    slow = draw(0, gaps=gaps, mean_gap=300)["submit_time"].iloc[-1]
    assert slow == pytest.approx(10 * draw(0, gaps=gaps)["submit_time"].iloc[-1], rel=0.05)


def test_models_and_durations_are_shuffled_independently():
    frame = pd.concat([draw(seed) for seed in SEEDS])
    means = frame.groupby("model")["num_gpus"].mean()
    assert means.between(2.8, 5.2).all()
    assert abs(frame["submit_time"].corr(frame["duration"])) < 0.05


@settings(max_examples=30)
@given(st.integers(1, 2000), st.integers(0, 2**32))
def test_scaled_counts(jobs, seed):
    frame = draw(seed, jobs=jobs)
    counts = frame["num_gpus"].value_counts()
    for gpus, published in GPU_COUNTS.items():
        assert abs(counts.get(gpus, 0) - published * jobs / 480) < 1
    assert np.ptp(frame["model"].value_counts().reindex(frame["model"].unique())) <= 1
    small = frame["num_gpus"] <= 4
    long = frame["duration"] >= 800
    assert (small & long).sum() == int(small.sum() * LONG_OF_SMALL)
    assert (~small & long).sum() == int((~small).sum() * LONG_OF_LARGE)


def test_work_multiplies_the_durations_alone():
    """Jobs, gaps and order stay; durations are cut to whole seconds."""
    whole, less = draw(3), draw(3, work=0.9)
    assert (less["duration"] == np.floor(0.9 * whole["duration"])).all()
    pd.testing.assert_frame_equal(whole.drop(columns="duration"), less.drop(columns="duration"))
    pd.testing.assert_frame_equal(whole, draw(3, work=1.0))


@pytest.mark.parametrize("work", [0.0, -1.0, float("inf"), float("nan")])
def test_work_is_a_positive_factor(work):
    with pytest.raises(ParamError, match="give a number above 0"):
        draw(0, work=work)
