"""Gavel's generators: the public simulator's streams, prefixes, stand-ins and their table."""

from __future__ import annotations

import random
import time
import warnings

import numpy as np
import pandas as pd
import pytest

from repro.base.errors import ParamError, StandInWarning
from repro.figures import data
from repro.files import public as public_files
from repro.files import tables
from repro.perf import synthetic_throughputs
from repro.perf.throughput_files import load_throughputs, throughputs_of
from repro.trace import synth
from tools.calibrate import gavel

LIKE = "gavel-like-throughputs"
KINDS = ("k80", "p100", "v100")


@pytest.fixture
def public(mirror, monkeypatch):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))


@pytest.fixture
def offline(tmp_path, monkeypatch):
    monkeypatch.delenv("REPRO_TRACE_MIRROR", raising=False)
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / "cache"))

    def refuse(url, path):
        raise OSError("no network in tests")

    monkeypatch.setattr(public_files, "_retrieve", refuse)


def drawn(name, seed=0, **options):
    return synth.make(name, seed, throughputs=LIKE, **options)


def test_first_jobs_of_seed_0(public):
    single = synth.make("gavel-single", 0, jobs=4, rate=1.0)
    assert single["submit_time"].tolist() == pytest.approx(
        [0, 978.344, 3807.099, 5470.171], abs=1e-3
    )
    assert single["model"].tolist() == [
        "ResNet-18 (batch size 64)",
        "Transformer (batch size 16)",
        "Recommendation (batch size 2048)",
        "Recommendation (batch size 8192)",
    ]
    assert single["duration"].tolist() == pytest.approx(
        [68344.350, 31016.609, 2146.609, 7386.675], abs=1e-3
    )
    assert single["iterations"].tolist() == pytest.approx(
        [1646636.276, 343170.469, 16034.378, 20989.313], abs=1e-3
    )
    assert single["num_gpus"].tolist() == [1] * 4
    assert synth.make("gavel-multiple", 0, jobs=1)["num_gpus"].tolist() == [8]


def test_published_mix_and_durations_of_seed_0():
    many = drawn("gavel-multiple")
    assert many["num_gpus"].value_counts().to_dict() == {1: 3534, 2: 468, 4: 784, 8: 214}
    assert (many["duration"] * many["num_gpus"]).mean() / 3600 == pytest.approx(30.2, abs=0.05)
    single = drawn("gavel-single")
    assert single["duration"].mean() / 3600 == pytest.approx(16.7, abs=0.05)
    assert single["duration"][4000:].mean() / 3600 == pytest.approx(17.41, abs=0.005)


@pytest.mark.parametrize("name", ["gavel-single", "gavel-multiple", "gavel-static"])
def test_job_k_is_the_same_whatever_the_number_of_jobs(name):
    few = drawn(name, 3, jobs=50)
    many = drawn(name, 3, jobs=400)
    pd.testing.assert_frame_equal(few, many[:50])


def test_the_rate_stretches_arrivals_only():
    slow = drawn("gavel-multiple", jobs=60, rate=1.0)
    fast = drawn("gavel-multiple", jobs=60, rate=4.0)
    assert np.allclose(slow["submit_time"], 4 * fast["submit_time"])
    pd.testing.assert_frame_equal(
        slow.drop(columns="submit_time"), fast.drop(columns="submit_time")
    )


def test_single_and_multiple_share_durations_and_static_has_the_jobs_of_multiple():
    single, many, at_once = (
        drawn(f"gavel-{name}", 1, jobs=3) for name in ("single", "multiple", "static")
    )
    assert single["duration"][0] == many["duration"][0]
    assert many["model"].tolist() == at_once["model"].tolist()
    assert at_once["submit_time"].tolist() == [0.0] * 3


def test_priorities_take_a_draw_and_slos_do_not():
    plain = drawn("gavel-single", jobs=2000)
    slos = drawn("gavel-single", jobs=2000, slos=True)
    assert plain["duration"].equals(slos["duration"])
    assert plain["slo"].isna().all()
    assert slos["slo"].value_counts(normalize=True).to_dict() == pytest.approx(
        {1.2: 0.33, 2.0: 0.34, 10.0: 0.33}, abs=0.04
    )
    first = random.Random(6).random()
    assert slos["slo"][0] == [1.2, 2, 10][(first >= 0.33) + (first >= 0.67)]
    weights = drawn("gavel-single", jobs=2000, priorities=True)["priority_weight"]
    assert weights.value_counts(normalize=True).to_dict() == pytest.approx(
        {1: 0.8, 5: 0.2}, abs=0.03
    )


def test_published_table_gives_the_longest_jobs_of_the_stored_makespans():
    """With few jobs the longest one sets the makespan: 161.1640 h, mean of three seeds."""
    for jobs in (100, 300):
        longest = [
            drawn("gavel-static", seed, jobs=jobs, job_table="published")["duration"].max() / 3600
            for seed in range(3)
        ]
        assert sum(longest) / 3 == pytest.approx(161.1640, abs=1e-3)


def test_published_table_gives_the_durations_of_the_stored_curves():
    """Stored hours at 0.2 jobs/h of seed 0, and of 1 and 2 from mean and standard deviation.

    At light load a job waits some minutes at most: for the round and for new shares.
    """
    for seed, hours in enumerate((18.55, 16.31, 17.01)):
        jobs = drawn("gavel-multiple", seed, jobs=5000, rate=0.2, job_table="published")
        assert 0.12 < hours - jobs["duration"].iloc[4000:].mean() / 3600 < 0.15


def test_tables_of_single_jobs_differ_in_types_alone():
    public = drawn("gavel-single", jobs=300)
    published = drawn("gavel-single", jobs=300, job_table="published")
    changed = public["model"] != published["model"]
    assert 0.2 < changed.mean() < 0.7
    assert public["duration"].equals(published["duration"])
    assert public["submit_time"].equals(published["submit_time"])


def test_a_fixed_duration_consumes_no_draw():
    fixed = drawn("gavel-single", 5, jobs=2, fixed_duration=600)
    stream = random.Random(7)
    stream.random()
    assert fixed["model"][0] == stream.choice(synthetic_throughputs.job_types()).name
    assert fixed["duration"].tolist() == [600.0, 600.0]


def test_only_distributed_models_take_several_gpus():
    many = drawn("gavel-multiple", jobs=2000)
    wide = {job.name for job in synthetic_throughputs.job_types() if job.distributed}
    assert set(many.loc[many["num_gpus"] > 1, "model"]) == wide


def test_steps_are_duration_times_speed_of_the_table_it_names(public):
    frame = synth.make("gavel-multiple", 2, jobs=300)
    table = throughputs_of(frame)
    speeds = [
        table.steps_per_s(m, g, "v100")
        for m, g in zip(frame["model"], frame["num_gpus"], strict=True)
    ]
    assert frame["iterations"].tolist() == (frame["duration"] * speeds).tolist()
    assert table is load_throughputs("gavel-throughputs")
    other = synth.make("gavel-multiple", 2, jobs=300, throughputs="gavel-throughputs-physical")
    assert frame["duration"].equals(other["duration"])
    assert not frame["iterations"].equals(other["iterations"])


def test_5000_jobs_take_a_moment():
    drawn("gavel-multiple", jobs=1)
    started = time.process_time()
    drawn("gavel-multiple")
    assert time.process_time() - started < 0.2


def test_the_seed_of_the_command_is_the_seed_of_the_streams():
    frame, used = data.open_trace("gavel-single", 4, jobs=5, throughputs=LIKE)
    pd.testing.assert_frame_equal(frame, drawn("gavel-single", 4, jobs=5))
    assert (used.kind, used.synthetic, used.seed) == ("synthetic stand-in", True, 4)


def test_without_the_public_table_the_stand_in_is_said(offline):
    with pytest.warns(StandInWarning, match="gavel-throughputs: .* synthetic stand-in"):
        frame, used = data.open_trace("gavel-single", 0, jobs=5)
    assert used.kind == "synthetic stand-in"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert throughputs_of(frame) == synthetic_throughputs.gavel_like()
    assert data.describe_file("gavel-throughputs").kind == "synthetic stand-in"


def test_with_the_public_table_a_trace_is_generated(public):
    assert data.open_trace("gavel-single", 0, jobs=5)[1].kind == "generated"


@pytest.mark.parametrize(
    ("name", "jobs", "at_start"), [("max-min-fairness", 96, 36), ("minimize-makespan", 100, 100)]
)
def test_stand_ins_for_the_physical_traces(offline, name, jobs, at_start):
    with pytest.warns(StandInWarning):
        frame, used = data.open_trace(f"gavel-{name}")
    assert used.kind == "synthetic stand-in"
    assert len(frame) == jobs
    assert (frame["submit_time"] == 0).sum() == at_start
    assert set(frame["num_gpus"]) == {1, 2, 4}
    assert frame["duration"].max() <= 5 * 3600
    assert (frame["iterations"] % 1 == 0).all()


def test_physical_durations_gangs_and_large_batches():
    frame = drawn("gavel-physical", 0, jobs=400, rate=3.0, large_batches=True)
    assert frame["duration"].div(3600).round(2).value_counts().index.isin([1, 2, 3, 4]).all()
    mix = frame["num_gpus"].value_counts(normalize=True).to_dict()
    assert mix == pytest.approx({1: 0.7, 2: 0.1, 4: 0.2}, abs=0.06)
    assert len(set(frame["model"])) == 8
    assert (frame["submit_time"] % 1 == 0).all()
    assert drawn("gavel-physical", multiple=False)["num_gpus"].max() == 1
    with pytest.raises(ParamError, match="min_hours"):
        drawn("gavel-physical", min_hours=3, max_hours=2)


def test_the_fitted_table_is_what_the_calibration_gives(public):
    fitted = gavel.calibrate(load_throughputs("gavel-throughputs"))
    stored = tables.measured("gavel_speeds")
    keys = ["quantity", "model", "gpu_type", "gpus"]
    pd.testing.assert_frame_equal(fitted[keys], stored[keys])
    speeds = fitted["quantity"] != "memory"
    columns = ["constant", "slope", "curvature"]
    assert np.allclose(fitted.loc[speeds, columns], stored.loc[speeds, columns], atol=2e-3)


def test_the_stand_in_is_like_the_public_table(public):
    real = load_throughputs("gavel-throughputs")
    like = synthetic_throughputs.gavel_like()
    assert set(like.rows) == set(real.rows)
    assert set(like.pairs) == set(real.pairs)
    for widths, bound in (((1,), 0.04), ((2, 4, 8), 0.07)):
        errors = [
            abs(like.rows[key][kind] / row[kind] - 1)
            for key, row in real.rows.items()
            for kind in KINDS
            if key[1] in widths and row[kind] > 0
        ]
        assert np.median(errors) < bound
        assert np.quantile(errors, 0.9) < 0.2
    same = [
        sorted(KINDS, key=row.get) == sorted(KINDS, key=like.rows[key].get)
        for key, row in real.rows.items()
    ]
    assert np.mean(same) > 0.9


def test_pairs_of_the_stand_in_are_like_the_public_ones(public):
    real = load_throughputs("gavel-throughputs")
    like = synthetic_throughputs.gavel_like()
    errors = []
    fits = []
    for key, row in real.pairs.items():
        for kind in KINDS:
            fits.append((max(row[kind]) > 0) == (max(like.pairs[key][kind]) > 0))
            if min(row[kind]) > 0 and min(like.pairs[key][kind]) > 0:
                errors += [
                    abs(a / b - 1) for a, b in zip(like.pairs[key][kind], row[kind], strict=True)
                ]
    assert np.mean(fits) > 0.98
    assert np.median(errors) < 0.1


def test_the_sampler_of_2019_takes_the_type_first(offline):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jobs = synth.make(
            "gavel-single",
            0,
            jobs=400,
            sampler="2019",
            job_table="published",
            throughputs="gavel-throughputs-2019",
        )
    stream = random.Random(2)
    stream.choice(range(26))
    assert jobs["duration"][0] == 60 * 10 ** stream.uniform(2, 4)
    assert jobs["duration"].between(6000, 600_000).all()
    assert set(jobs["num_gpus"]) == {1}
    table = throughputs_of(jobs)
    assert jobs["iterations"][0] / jobs["duration"][0] == pytest.approx(
        table.steps_per_s(jobs["model"][0], 1, "v100")
    )
    with pytest.raises(ParamError, match="give 2020 or 2019"):
        synth.make("gavel-single", 0, jobs=1, sampler="2018")


def test_the_year_of_the_sampler_is_text():
    with pytest.raises(ParamError, match=r"^sampler=2019: give 2020 or 2019, as text$"):
        synth.make("gavel-single", 0, jobs=1, sampler=2019)


@pytest.mark.parametrize("kind", ["frame", "table"])
def test_a_table_is_given_by_name_or_path(kind):
    frame = pd.DataFrame({"model": ["m"]})
    table = frame if kind == "frame" else load_throughputs(LIKE)
    with pytest.raises(ParamError, match=r"^throughputs: give the name or path of a table, not a "):
        synth.make("gavel-single", 0, jobs=3, throughputs=table)
