"""PCS's workloads: its simulator's stream drawn number by number; traces like its Philly ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.base.errors import ParamError
from repro.files import tables
from repro.files.public import entries
from repro.perf import pcs_speedups
from repro.trace import schema, synth
from repro.trace.load import load

WORKLOADS = sorted(tables.measured("pcs_workloads")["workload"].unique())
CLUSTERS = [name for name in WORKLOADS if name.startswith("workload_")]
FILES = {
    "service": "app-service-times",
    "trials": "num-jobs-per-app",
    "gpus": "max-gpus-per-job",
    "interarrival": "app-interarrival-times",
}


def one_by_one(seed, workload, jobs, load):
    """Return (submission, service, GPUs) of each job, one call of the stream per number."""
    held = tables.measured("pcs_workloads").query("workload == @workload")
    stream = np.random.RandomState(seed)

    def drawn(quantity):
        rows = held.query("quantity == @quantity")[["value", "share"]].to_numpy()
        point = stream.uniform(0.0, 1.0)
        low = 0.0
        for value, share in rows:
            if point <= share:
                return int(stream.uniform(low, value))
            low = value
        raise AssertionError(point)

    services = [drawn("service") for _ in range(jobs)]
    trials = [drawn("trials") for _ in range(jobs)]
    pool = [drawn("gpus") for _ in range(100)]
    for _ in range(100):
        drawn("gpus")
    if (held["quantity"] == "interarrival").any():
        gaps = [drawn("interarrival") for _ in range(jobs)]
    else:
        gaps = stream.exponential(np.mean(services) / (load * 64), size=jobs)
    now = 0
    for service, count, gap in zip(services, trials, gaps, strict=True):
        yield now, max(int(float(service) / count), 1) * count, stream.choice(pool, count).sum()
        now += int(max(0.01, gap))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_stream_is_that_of_the_simulator(workload):
    option = {} if workload in CLUSTERS else {"load": 1.2}
    frame = synth.make("pcs-workload", 4567, workload=workload, jobs=200, **option)
    expected = np.array(list(one_by_one(4567, workload, 200, 1.2)))
    np.testing.assert_array_equal(frame[["submit_time", "service", "num_gpus"]], expected)
    np.testing.assert_array_equal(frame["duration"], frame["service"] / frame["num_gpus"])
    assert frame["service"].min() >= 1


def older_one_by_one(seed, workload, jobs, load):
    """Return (submission, GPUs) of each job: its trials, then its gap, from one stream."""
    held = tables.measured("pcs_workloads").query("workload == @workload")
    stream = np.random.RandomState(seed)

    def sampled(quantity):
        rows = held.query("quantity == @quantity")[["value", "share"]].to_numpy()
        level, position = stream.uniform(0.0, 1.0), stream.uniform(0.0, 1.0)
        row = int(np.argmax(level <= rows[:, 1]))
        low = rows[row - 1, 0] if row else 0.0
        return int(low + (rows[row, 0] - low) * position)

    services = [sampled("service") for _ in range(jobs)]
    trials = [sampled("trials") for _ in range(jobs)]
    pool = [sampled("gpus") for _ in range(100)]
    for _ in range(100):
        sampled("gpus")
    now = 0
    for count in trials:
        gpus = sum(stream.choice(pool) for _ in range(count))
        yield now, gpus
        now += int(stream.exponential(np.mean(services) / (load * 64)))


def test_the_earlier_sampler_goes_job_by_job():
    options = {"workload": "gavel-contmultiple", "jobs": 200, "load": 1.2}
    frame = synth.make("pcs-workload", 1954, by_job=True, **options)
    expected = list(older_one_by_one(1954, "gavel-contmultiple", 200, 1.2))
    np.testing.assert_array_equal(frame[["submit_time", "num_gpus"]], expected)
    today = synth.make("pcs-workload", 1954, **options)
    assert frame["service"].equals(today["service"])
    assert not frame["submit_time"].equals(today["submit_time"])
    with pytest.raises(ParamError, match="leave by_job out"):
        synth.make("pcs-workload", 0, workload=CLUSTERS[0], by_job=True)


def test_an_early_sampler_goes_trial_by_trial():
    frame = synth.make("pcs-workload", 4567, workload="themis1", jobs=300, by_trial=True)
    assert frame["app"].tolist() == sorted(frame["app"])
    today = synth.make("pcs-workload", 4567, workload="themis1", jobs=300)
    apps = frame.groupby("app")
    np.testing.assert_array_equal(apps["service"].sum(), today["service"])
    # trials of one job arrive together and have the same work
    for name in ("submit_time", "service"):
        assert apps[name].min().equals(apps[name].max())
    with pytest.raises(ParamError, match="leave by_trial out"):
        synth.make("pcs-workload", 0, workload=CLUSTERS[0], by_trial=True)
    with pytest.raises(ParamError, match="give one of them"):
        synth.make("pcs-workload", 0, by_job=True, by_trial=True)


def test_demands_of_themis_exceed_the_cluster():
    # the artifact's notes: 134 of the 500 jobs of themis1 ask for more than 64 GPUs
    frame = synth.make("pcs-workload", 4567, workload="themis1", jobs=500)
    assert (frame["num_gpus"] > 64).sum() == 134


@settings(max_examples=20)
@given(st.sampled_from(WORKLOADS), st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_the_same_seed_gives_the_same_jobs(workload, jobs, seed):
    options = {"workload": workload, "jobs": jobs}
    first, again = (synth.make("pcs-workload", seed, **options) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    pd.testing.assert_frame_equal(first, schema.validate(first))
    if workload in CLUSTERS:
        first, again = (
            synth.make("pcs-like", np.random.default_rng(seed), **options) for _ in range(2)
        )
        pd.testing.assert_frame_equal(first, again)
        pd.testing.assert_frame_equal(first, schema.validate(first))


def test_drawing_leaves_the_global_stream_alone():
    np.random.seed(3)  # noqa: NPY002
    before = np.random.random()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    synth.make("pcs-workload", 1, jobs=5)
    assert np.random.random() == before  # noqa: NPY002


def test_load_is_offered():
    for load_ in (0.5, 2.0):
        frame = synth.make("pcs-workload", 7, jobs=20_000, load=load_, num_gpus=16)
        offered = frame["service"].sum() / (16 * frame["submit_time"].iloc[-1])
        # gaps lose half a second each
        assert offered == pytest.approx(load_, rel=0.03)


def test_one_job_alone():
    for workload in WORKLOADS:
        frame = synth.make("pcs-workload", 0, workload=workload, jobs=1)
        assert frame["submit_time"].tolist() == [0]


def test_a_seed_too_large_for_the_stream():
    with pytest.raises(ParamError, match="seed=4294967296: give a whole number from 0 to 4,294,9"):
        synth.make("pcs-workload", 2**32)


def test_the_table_is_what_the_files_say(mirror):
    folder = mirror / "abdullahfsm+PCS/simulation/workloads"
    held = tables.measured("pcs_workloads")
    for (workload, quantity), rows in held.groupby(["workload", "quantity"], sort=False):
        borrowed = workload == "gavel-contmultiple" and quantity != "service"
        name = "gavel" if borrowed else workload
        path = folder / f"cdf-{FILES[quantity]}-{name}.csv"
        theirs = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
        np.testing.assert_array_equal(rows[["value", "share"]].to_numpy(), theirs)


@pytest.mark.parametrize("workload", CLUSTERS)
def test_like_its_virtual_cluster(mirror, monkeypatch, workload):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    name = f"pcs-{workload.removeprefix('workload_')}"
    generator, options = synth.stand_in_for(name)
    assert generator == "pcs-like"
    theirs = load(name)
    ours = synth.make(generator, np.random.default_rng(1), **options)
    assert list(ours) == ["job_id", "submit_time", "duration", "num_gpus", "model", "service"]
    assert len(ours) == len(theirs)
    assert ours["num_gpus"].max() == theirs["num_gpus"].max()
    assert ours["num_gpus"].mean() == pytest.approx(theirs["num_gpus"].mean(), rel=0.02)
    ends = {model: len(curve) for model, curve in pcs_speedups().curves.items()}
    assert (ours["num_gpus"] <= ours["model"].map(ends)).all()
    for frame in (ours, theirs):
        speed = frame["service"] / frame["duration"]
        expected = [
            pcs_speedups().speed(model, gpus)
            for model, gpus in zip(frame["model"], frame["num_gpus"], strict=True)
        ]
        np.testing.assert_allclose(speed, expected)
        np.testing.assert_allclose(frame["duration"], frame["duration"].round(), atol=1e-9)
    # the tables thin out the tails
    assert 0.6 < ours["service"].mean() / theirs["service"].mean() < 1.4
    assert 0.5 < ours["submit_time"].iloc[-1] / np.ptp(theirs["submit_time"]) < 1.4


def test_stand_ins_have_as_many_jobs_as_their_traces():
    for name, item in entries().items():
        if item.format == "pcs" and name != "pcs-toy":
            generator, options = synth.stand_in_for(name)
            assert len(synth.make(generator, 0, **options)) == options["jobs"]
    assert synth.stand_in_for("pcs-toy") == (None, {})
