"""Philly-like traces against the real one: distributions, queueing, load, speed."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from repro import simulate
from repro.base.errors import ParamError
from repro.trace import load, synth
from repro.trace.synth.gpu_time import history_quantiles

# left out by `make check`
pytestmark = pytest.mark.slow

SEEDS = (0, 1, 2)
JOBS = 82_248


@pytest.fixture(scope="module")
def real(mirror):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_TRACE_MIRROR", str(mirror))
        return load.load("philly")


def draw(seed: int, **options: object) -> pd.DataFrame:
    return synth.make("philly-like", np.random.default_rng(seed), **options)


def work(frame: pd.DataFrame) -> float:
    return float((frame["duration"] * frame["num_gpus"]).sum())


@pytest.mark.parametrize("seed", SEEDS)
def test_distributions_are_those_of_the_real_trace(real, seed):
    frame = draw(seed, jobs=JOBS)
    assert len(frame) == JOBS
    distance = {
        "duration": ks_2samp(frame["duration"], real["duration"]).statistic,
        "num_gpus": ks_2samp(frame["num_gpus"], real["num_gpus"]).statistic,
        "gap": ks_2samp(frame["submit_time"].diff()[1:], real["submit_time"].diff()[1:]).statistic,
    }
    assert max(distance.values()) <= 0.03, distance
    assert work(frame) == pytest.approx(work(real), rel=0.01)
    assert frame["submit_time"].iloc[-1] == pytest.approx(real["submit_time"].iloc[-1], rel=0.001)


@pytest.mark.parametrize("seed", SEEDS)
def test_ups_and_downs_are_those_of_the_real_trace(real, seed):
    frame = draw(seed)
    weeks = [trace["submit_time"] // (7 * 86_400) for trace in (frame, real)]
    jobs = [trace.groupby(week).size() for trace, week in zip((frame, real), weeks, strict=True)]
    np.testing.assert_allclose(jobs[0], jobs[1], rtol=0.02)
    hours = [
        np.bincount((trace["submit_time"] // 3600 % 24).astype(int)) for trace in (frame, real)
    ]
    np.testing.assert_allclose(hours[0], hours[1], rtol=0.05)
    for gpus in (1, 2, 4, 8, 16):
        held = [trace[trace["num_gpus"] == gpus]["duration"] for trace in (frame, real)]
        assert ks_2samp(*held).statistic <= 0.03
        assert held[0].sum() == pytest.approx(held[1].sum(), rel=0.03)
    similar = [np.log(trace["duration"]).rank().autocorr(1) for trace in (frame, real)]
    assert similar[0] == pytest.approx(similar[1], abs=0.15)


def test_demand_follows_the_real_one_day_by_day(real):
    demands = []
    for trace in (draw(0), real):
        edges = np.concatenate([trace["submit_time"], trace["submit_time"] + trace["duration"]])
        change = np.concatenate([trace["num_gpus"], -trace["num_gpus"]])
        order = np.argsort(edges, kind="stable")
        days = np.searchsorted(edges[order], np.arange(1, 109) * 86_400.0)
        demands.append(np.cumsum(change[order])[days - 1])
    assert np.corrcoef(demands[0], demands[1])[0, 1] > 0.97


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first_day", "last_day", "cluster"),
    [
        (42, 56, "60x8"),
        pytest.param(56, 90, "50x8", marks=pytest.mark.nightly),
        pytest.param(0, 110, "90x8", marks=pytest.mark.nightly),
    ],
)
def test_policies_compare_as_on_the_real_trace(real, first_day, last_day, cluster):
    def ratios(trace: pd.DataFrame) -> list[float]:
        days = trace["submit_time"] / 86_400
        part = trace[(days >= first_day) & (days < last_day)].reset_index(drop=True)
        names = ("tiresias-l", "yarn-cs", "srtf")
        jct = [simulate(part, cluster, name).summary()["avg_jct"] for name in names]
        return [jct[1] / jct[0], jct[2] / jct[0]]

    seeds = SEEDS if last_day - first_day < 100 else SEEDS[:1]
    drawn = np.mean([ratios(draw(seed)) for seed in seeds], axis=0)
    np.testing.assert_allclose(drawn, ratios(real), rtol=0.15)


@settings(max_examples=10)
@given(
    jobs=st.integers(2, 5_000),
    rho=st.floats(0.05, 3),
    num_gpus=st.integers(1, 4_000),
    min_duration=st.floats(1, 3_600),
    seed=st.integers(0, 2**32),
)
def test_options(jobs, rho, num_gpus, min_duration, seed):
    frame = draw(seed, jobs=jobs, load=rho, num_gpus=num_gpus, min_duration=min_duration)
    assert len(frame) == jobs
    assert frame["num_gpus"].max() <= num_gpus
    assert frame["duration"].min() >= min_duration
    assert work(frame) / (num_gpus * frame["submit_time"].iloc[-1]) == pytest.approx(rho)


def test_fewer_jobs_are_a_fair_sample_and_more_are_several_draws():
    whole = draw(0)
    sample = draw(0, jobs=8_000)
    assert ks_2samp(sample["duration"], whole["duration"]).statistic < 0.01
    assert work(sample) / 8_000 == pytest.approx(work(whole) / len(whole), rel=0.05)
    twice = draw(0, jobs=2 * len(whole))
    assert work(twice) == pytest.approx(2 * work(whole), rel=0.01)
    spans = [trace["submit_time"].iloc[-1] for trace in (sample, whole, twice)]
    assert max(spans) == pytest.approx(min(spans), rel=0.05)


def test_a_load_without_gpus_is_refused():
    with pytest.raises(ParamError, match="give num_gpus too"):
        draw(0, load=0.5)


def test_a_million_jobs_take_seconds():
    start = time.process_time()
    assert len(draw(0, jobs=1_000_000, load=0.8, num_gpus=100_000)) == 1_000_000
    assert time.process_time() - start < 20


def test_gpu_time_follows_the_published_quantiles():
    frame = synth.make("philly-gpu-time", np.random.default_rng(0), jobs=50_000, num_gpus=2_000)
    gpu_time = frame["duration"] * frame["num_gpus"]
    published = {0.1: 357, 0.25: 860, 0.5: 2227, 0.75: 8219, 0.9: 76139, 0.95: 326716}
    for level, value in published.items():
        assert gpu_time.quantile(level) == pytest.approx(value, rel=0.02)
    assert gpu_time.mean() == pytest.approx(116_540, rel=0.05)
    share = frame["num_gpus"].value_counts(normalize=True)
    for gpus, expected in {1: 0.872, 2: 0.011, 4: 0.054, 8: 0.054, 16: 0.007}.items():
        assert share[gpus] == pytest.approx(expected, abs=0.001)
    assert gpu_time.sum() / (2_000 * frame["submit_time"].iloc[-1]) == pytest.approx(0.5)


def test_history_is_the_published_sample(mirror):
    published = np.loadtxt(mirror / "SymbioticLab+Tiresias/simulator/yarn-gput1000.csv", skiprows=1)
    ours = history_quantiles()
    assert (np.diff(ours) >= 0).all()
    np.testing.assert_allclose(ours, published, rtol=0.1)
    assert ours.mean() == pytest.approx(published.mean(), rel=0.02)
