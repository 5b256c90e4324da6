"""The published files themselves: job counts and totals as the papers' specifications give them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from repro.files import public as public_files
from repro.trace.formats import FORMATS
from repro.trace.load import describe, load


@pytest.fixture
def public(mirror, monkeypatch):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    return load


def test_every_registered_trace_loads(public):
    names = [item.name for item in public_files.entries().values() if item.format in FORMATS]
    assert len(names) == 63
    for name in names:
        frame = public(name)
        assert frame.attrs["sha256"] == public_files.entry(name).sha256
        assert frame.attrs["name"] == name
        assert frame["submit_time"].is_monotonic_increasing


def test_tiresias_60(public):
    frame = public("tiresias-60")
    facts = describe(frame, 16)
    assert facts["gpus"] == {1: 30, 2: 10, 4: 10, 8: 10}
    assert facts["duration_s"]["mean"] == pytest.approx(178.4167, abs=1e-4)
    assert (facts["duration_s"]["min"], facts["duration_s"]["max"]) == (121, 1800)
    assert facts["span_s"] == 1779
    assert frame["model"].value_counts().tolist() == [6] * 10


@pytest.mark.parametrize(
    ("name", "jobs", "gpus", "span", "mean", "median", "work"),
    [
        ("trace1", 1494, (536, 5, 423, 465, 40, 25), 10817570, 250452, 14392, 1.380e9),
        ("trace2", 5755, (2335, 171, 937, 1825, 424, 63), 8572283, 99986, 8653, 2.967e9),
        ("trace3", 992, (134, 22, 34, 691, 3, 108), 8166025, 46865, 3392, 4.201e8),
        ("trace4", 2638, (1680, 265, 611, 82), 7363956, 119336, 3318, 7.376e8),
        ("testbed", 400, (36, 15, 19, 287, 3, 40), 2344695, 57153, 2224, 2.208e8),
    ],
)
def test_muri(public, name, jobs, gpus, span, mean, median, work):
    frame = public(f"muri-{name}")
    facts = describe(frame)
    assert facts["jobs"] == jobs
    assert facts["gpus"] == {2**power: count for power, count in enumerate(gpus) if count}
    assert facts["span_s"] == pytest.approx(span, abs=1)
    assert facts["duration_s"]["mean"] == pytest.approx(mean, abs=1)
    assert facts["duration_s"]["p50"] == pytest.approx(median, abs=1)
    assert facts["gpu_seconds"] == pytest.approx(work, rel=5e-4)
    stages = frame[["stage_storage", "stage_gpu", "stage_network"]]
    assert stages.notna().all(axis=None)


def test_muri_iterations_follow_from_duration(public):
    frame = public("muri-trace4")
    expected = np.floor(frame["duration"] / frame["iteration_time"] + 1e-9)
    assert (expected == frame["iterations"]).all()
    assert public("muri-testbed")["iterations"].mean() == pytest.approx(136481.7, abs=0.05)


def test_muri_prime_traces_arrive_at_once(public):
    plain = public("muri-trace3")
    prime = public("muri-trace3-pr")
    assert (prime["submit_time"] == 0).all()
    held = ["job_id", "duration", "num_gpus", "model"]
    pd.testing.assert_frame_equal(plain[held], prime[held], check_flags=False)


@pytest.mark.parametrize(
    ("vc", "jobs", "largest", "days", "service", "load_64"),
    [
        ("0e4a51", 2465, 8, 85.3, 176087, 0.92),
        ("b436b2", 9031, 32, 94.0, 126485, 2.20),
        ("6214e9", 51258, 16, 129.4, 33940, 2.43),
        ("6c71a0", 14783, 48, 96.1, 41000, 1.14),
        ("ee9e8c", 5452, 32, 98.9, 251446, 2.51),
        ("2869ce", 956, 32, 94.6, 263741, 0.48),
    ],
)
def test_pcs(public, vc, jobs, largest, days, service, load_64):
    frame = public(f"pcs-{vc}")
    facts = describe(frame)
    assert facts["jobs"] == jobs
    assert max(facts["gpus"]) == largest
    assert facts["span_s"] / 86400 == pytest.approx(days, abs=0.05)
    assert frame["service"].mean() == pytest.approx(service, abs=1)
    offered = frame["service"].sum() / (64 * facts["span_s"])
    assert offered == pytest.approx(load_64, abs=0.006)
    # service is the whole seconds that Philly recorded, times a speed-up
    np.testing.assert_allclose(frame["duration"], frame["duration"].round(), rtol=0, atol=1e-9)


def test_pcs_has_109532_jobs_in_twelve_virtual_clusters(public):
    names = [
        n for n in public_files.entries() if n.startswith("pcs-") and len(n) == len("pcs-0e4a51")
    ]
    assert len(names) == 12
    assert sum(len(public(name)) for name in names) == 109_532


def test_pcs_testbed_arrivals_are_summed_gaps(public):
    frame = public("pcs-themis1")
    facts = describe(frame, 16)
    assert facts["jobs"] == 101
    assert facts["gpu_seconds"] / 101 == pytest.approx(1044, abs=1)
    assert facts["offered_load"] == pytest.approx(1.04, abs=0.005)
    assert frame["submit_time"].iloc[-1] == 6350


def test_philly(public):
    frame = public("philly")
    # the file has 82,249 lines, of which one is the header and the last is blank
    assert len(frame) == 82_247
    assert frame["vc"].nunique() == 15
    assert frame["num_gpus"].value_counts().loc[[1, 2, 4, 8, 128]].tolist() == [
        76627,
        1818,
        1870,
        1643,
        3,
    ]
    assert (frame["duration"] * frame["num_gpus"]).sum() == 3_521_082_502  # its gpu_time column
    assert frame["submit_time"].iloc[-1] == 9_408_690  # 2017-09-04 10:30:41 to 12-22 08:02:11


def test_openb(public):
    frame = public("openb-pods")
    assert len(frame) == 6203
    assert frame.attrs["dropped"] == {"no GPU": 1088, "never ran": 861}
    note = frame.attrs["notes"][0]
    assert note.startswith("4,149 of 6,203 pods (90% of the GPU-seconds) are Running at the end")
    assert describe(frame)["gpus"] == {1: 6129, 2: 15, 4: 15, 8: 44}
    assert (frame.loc[frame["num_gpus"] > 1, "gpu_share"] == 1).all()
    assert frame["gpu_share"].between(0.05, 1).all()


@pytest.mark.parametrize(
    ("name", "mix", "at_start"),
    [
        ("max-min-fairness", {1: 59, 2: 19, 4: 18}, 36),
        ("minimize-makespan", {1: 71, 2: 6, 4: 23}, 100),
    ],
)
def test_gavel_physical(public, name, mix, at_start):
    frame = public(f"gavel-{name}")
    assert describe(frame)["gpus"] == mix
    assert (frame["submit_time"] == 0).sum() == at_start
    assert frame["slo"].isna().all()
    assert not frame.attrs["notes"]


def test_gavel_durations_are_steps_over_v100_throughput(public):
    frame = public("gavel-max-min-fairness")
    table = json.loads(public_files.fetch("gavel-throughputs").read_text())["v100"]
    rates = [
        table[f"('{model}', {gpus})"]["null"]
        for model, gpus in zip(frame["model"], frame["num_gpus"], strict=True)
    ]
    assert np.allclose(frame["duration"] * rates, frame["iterations"], rtol=1e-12)


def test_gavel_msr(public):
    frame = public("gavel-msr-0e4a51")
    assert len(frame) == 1181
    assert frame["submit_time"].iloc[-1] == 7_363_956
    assert "197 of 1181" in frame.attrs["notes"][0]
    assert public("gavel-msr-ed69ec").attrs["notes"] == []
    assert "priority_weight" not in frame


def test_elasticflow_has_the_jobs_of_the_artifact(public):
    frames = [public(f"elasticflow-{cluster:02}") for cluster in range(1, 11)]
    assert sum(map(len, frames)) == 69_351
    assert max(frame["num_gpus"].max() for frame in frames) == 64
