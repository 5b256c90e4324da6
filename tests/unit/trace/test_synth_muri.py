"""Muri-like traces against the public ones: distributions, totals, and what variants share."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp

from repro.base.errors import ParamError, StandInWarning
from repro.figures.data import STAND_IN, open_trace
from repro.files import public
from repro.perf.muri_models import muri_profiles
from repro.trace import load, synth
from repro.trace.synth.muri import JOB_TYPES, TRACES

SEEDS = (0, 1, 2)
PUBLIC = {name: f"muri-trace{name}" if name.isdigit() else "muri-testbed" for name in TRACES}


def draw(seed: int, trace: str = "3", **options: object) -> pd.DataFrame:
    return synth.make("muri-like", np.random.default_rng(seed), trace=trace, **options)


@pytest.fixture
def real(mirror, monkeypatch):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    return lambda trace: load.load(PUBLIC[trace])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("trace", TRACES)
def test_distributions_are_those_of_the_real_trace(real, trace, seed):
    drawn = draw(seed, trace)
    public = real(trace)
    assert len(drawn) == len(public)
    distance = {
        "duration": ks_2samp(drawn["duration"], public["duration"]).statistic,
        "gap": ks_2samp(
            drawn["submit_time"].diff()[1:], public["submit_time"].diff()[1:]
        ).statistic,
    }
    assert max(distance.values()) <= 0.05, distance
    gpus = [frame["num_gpus"].value_counts().to_dict() for frame in (drawn, public)]
    assert gpus[0] == gpus[1]
    work = [(frame["duration"] * frame["num_gpus"]).sum() for frame in (drawn, public)]
    assert work[0] == pytest.approx(work[1], rel=0.01)
    assert drawn["submit_time"].max() == pytest.approx(public["submit_time"].max(), rel=0.01)


@pytest.mark.parametrize("seed", SEEDS)
def test_iterations_and_stages_are_those_of_model_and_gpus(real, seed):
    drawn = draw(seed)
    public = real("3")
    expected = np.floor(drawn["duration"] / drawn["iteration_time"] + 1e-9).clip(lower=1)
    assert (drawn["iterations"] == expected).all()
    columns = ["batch_size", "iteration_time", "stage_storage", "stage_gpu", "stage_network"]
    keys = ["model", "num_gpus"]
    known = public.drop_duplicates(keys).set_index(keys)[columns]
    ours = drawn.drop_duplicates(keys).set_index(keys)[columns]
    shared = known.index.intersection(ours.index)
    assert len(shared) > 30
    np.testing.assert_allclose(ours.loc[shared], known.loc[shared], rtol=1e-12)
    assert set(columns) <= set(public)


def test_models_and_priorities_are_even():
    frame = draw(0, "4")
    assert frame["model"].value_counts().between(329, 330).all()
    assert frame["model"].nunique() == muri_profiles()["model"].nunique() == 8
    assert frame["priority"].value_counts().to_dict() == {0: 1319, 1: 1319}


def test_variants_share_their_jobs():
    whole = draw(5)
    primed = draw(5, at_once=True)
    assert (primed["submit_time"] == 0).all()
    pd.testing.assert_frame_equal(
        whole.drop(columns="submit_time"), primed.drop(columns="submit_time"), check_flags=False
    )
    for kinds in (1, 2, 3):
        fewer = draw(5, job_types=kinds)
        held = ["job_id", "submit_time", "duration", "num_gpus"]
        pd.testing.assert_frame_equal(whole[held], fewer[held], check_flags=False)
        assert set(fewer["model"]) == {name for pair in JOB_TYPES[:kinds] for name in pair}


def test_fewer_jobs_come_at_the_same_rate():
    frame = draw(0, "2", jobs=1000)
    whole = draw(0, "2")
    rate = [(len(jobs) - 1) / jobs["submit_time"].max() for jobs in (frame, whole)]
    assert rate[0] == pytest.approx(rate[1], rel=0.05)
    share = [(jobs["num_gpus"] == 8).mean() for jobs in (frame, whole)]
    assert share[0] == pytest.approx(share[1], abs=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"trace": "5"},
        {"trace": 3},
        {"job_types": 5},
        {"job_types": True},
        {"jobs": 0},
        {"at_once": 1},
    ],
)
def test_values_that_are_refused(options):
    with pytest.raises(ParamError, match=f"{next(iter(options))}="):
        synth.make("muri-like", np.random.default_rng(0), **options)


@pytest.mark.parametrize(
    "name", [name for name, item in public.entries().items() if item.format == "muri"]
)
def test_a_public_trace_out_of_reach_is_replaced(name, tmp_path, monkeypatch):
    def no_network(url, path):
        raise OSError("no network")

    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(tmp_path))
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(public, "_retrieve", no_network)
    with pytest.warns(StandInWarning):
        frame, used = open_trace(name)
    assert (used.kind, used.name, used.synthetic) == (STAND_IN, name, True)
    assert frame.attrs["options"] == frame.attrs["options"] | synth.stand_in_for(name)[1]
    jobs = {"1": 1494, "2": 5755, "3": 992, "4": 2638, "testbed": 400}
    assert len(frame) == jobs[frame.attrs["options"]["trace"]]
    assert (frame["submit_time"].max() == 0) == name.endswith("-pr")


def test_the_number_of_a_trace_is_text():
    with pytest.raises(ParamError, match=r"^trace=3: give one of 1, 2, 3, 4, testbed, as text$"):
        synth.make("muri-like", 0, trace=3)
