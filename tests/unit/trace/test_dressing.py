"""Models drawn for any trace: profiles that agree, the same work, the same schedules."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hand_traces import trace

import repro
from repro.base.errors import ParamError, StandInWarning, TraceError
from repro.perf import pcs_speedups
from repro.perf.muri_models import muri_profiles
from repro.perf.throughput_files import load_throughputs, throughputs_of
from repro.trace import dress
from repro.trace.dressing import PROFILE
from repro.trace.load import load, write

WIDTHS = (1, 1, 1, 2, 3, 4, 8, 16)
UNTOUCHED = ["job_id", "submit_time", "duration", "num_gpus"]
ALL_FIVE = ["vgg11", "vgg16", "vgg19", "resnet18", "resnet50", "shufflenet_v2_x1_0"]
TYPED = "4x8:v100,4x8:k80"


def plain(jobs: int = 40, widths: tuple[int, ...] = WIDTHS) -> pd.DataFrame:
    """Jobs without models, of several widths, that queue."""
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "job_id": np.arange(jobs),
            "submit_time": np.cumsum(rng.integers(0, 300, jobs)).astype(float),
            "duration": rng.integers(60, 4000, jobs).astype(float),
            "num_gpus": rng.choice(widths, jobs),
        }
    )


@pytest.fixture
def public_table(mirror, monkeypatch):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))


@pytest.fixture
def no_public_table(tmp_path, monkeypatch):
    monkeypatch.delenv("REPRO_TRACE_MIRROR", raising=False)
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("REPRO_OFFLINE", "1")


@pytest.mark.parametrize("models", ["muri", "pcs", "liquid", "tiresias", "muri,pcs", "all"])
def test_work_stays_and_iterations_follow(public_table, models):
    jobs = plain()
    dressed = dress(jobs, models)
    pd.testing.assert_frame_equal(dressed[UNTOUCHED], jobs[UNTOUCHED])
    time = dressed["iterations"] * dressed["iteration_time"]
    assert ((dressed["duration"] - time).abs() < dressed["iteration_time"] + 1e-6).all()
    assert not dressed.isna().any(axis=None)
    assert jobs.columns.tolist() == UNTOUCHED
    assert "notes" not in jobs.attrs


def test_by_default_muris_eight_models_are_equally_likely():
    dressed = dress(plain(8000), "muri")
    counts = dressed["model"].value_counts()
    assert set(counts.index) == set(muri_profiles()["model"])
    assert counts.between(880, 1120).all()


def test_stage_times_are_those_of_muri_on_the_nearest_number_of_gpus():
    dressed = dress(plain(400), "muri")
    table = muri_profiles().set_index(["model", "num_gpus"])
    nearest = dressed["num_gpus"].replace(3, 4)
    rows = table.loc[list(zip(dressed["model"], nearest, strict=True))]
    assert (dressed["num_gpus"] == 3).any()
    for column in ("batch_size", "iteration_time", "stage_gpu", "stage_network"):
        assert dressed[column].tolist() == rows[column].tolist()
    assert dressed["stage_storage"].tolist() == rows["stage_data"].tolist()


def test_stages_of_a_relative_keep_their_shares_of_the_iteration():
    dressed = dress(plain(8, (1,)), "muri", weights={"resnet50": 1})
    relative = muri_profiles().set_index(["model", "num_gpus"]).loc[("resnet18", 1)]
    assert dressed["iteration_time"].unique().tolist() == [0.153]
    share = relative["stage_data"] / relative["iteration_time"]
    assert dressed["stage_storage"].tolist() == pytest.approx([0.153 * share] * 8)


def test_profiles_agree_on_one_iteration_time(public_table):
    """Steps/s on the reference type are iterations over duration."""
    dressed = dress(plain(), "all")
    table = throughputs_of(dressed)
    for job in dressed.itertuples():
        speed = table.steps_per_s(job.model, job.num_gpus, "v100")
        assert speed == pytest.approx(1 / job.iteration_time)
    assert sorted(set(dressed["model"])) == sorted(ALL_FIVE)


@pytest.mark.parametrize("order", [lambda f: f.iloc[::-1], lambda f: f.sample(frac=1.0)])
def test_the_order_of_rows_does_not_matter(order):
    jobs = plain()
    dressed = dress(jobs, "muri", 4).set_index("job_id")["model"]
    again = dress(order(jobs), "muri", 4).set_index("job_id")["model"]
    assert again.loc[dressed.index].tolist() == dressed.tolist()


def test_seeds_differ_and_further_jobs_leave_the_draw_alone():
    first = dress(plain(), "muri")["model"].tolist()
    assert first == dress(plain(), "muri")["model"].tolist()
    assert first != dress(plain(), "muri", 1)["model"].tolist()
    assert first[:20] == dress(plain()[:20], "muri")["model"].tolist()


def test_weights_choose_the_models():
    dressed = dress(plain(4000), "muri", weights={"bert": 3, "vgg16": 1, "gpt2": 0})
    shares = dressed["model"].value_counts(normalize=True)
    assert set(shares.index) == {"bert", "vgg16"}
    assert shares["bert"] == pytest.approx(0.75, abs=0.03)
    assert "weights vgg16 0.25, bert 0.75" in dressed.attrs["notes"][-1]


def test_the_note_says_what_is_arbitrary(public_table):
    jobs = plain()
    jobs.attrs["notes"] = ["first"]
    dressed = dress(jobs, "all", 3)
    assert dressed.attrs["notes"] == [
        "first",
        f"models sampled by dress(models=all, seed=3): uniformly over {', '.join(ALL_FIVE)}; of "
        "relatives (params/model_names.csv): stage times of 2, throughputs by GPU type of 4, "
        "speed-up curve of 4, phases of an iteration of 4, sizes of 2; "
        f"{(jobs['num_gpus'] == 3).sum()} jobs have the stage times of the nearest number of GPUs",
    ]
    assert jobs.attrs["notes"] == ["first"]
    summary = repro.simulate(dressed, "2x8", "srtf").summary()
    assert summary["notes"][:2] == dressed.attrs["notes"]


def test_the_stand_in_for_the_throughput_table_is_named(no_public_table):
    with pytest.warns(StandInWarning):
        dressed = dress(plain(), "gavel")
    assert dressed.attrs["notes"][-1].endswith("takes the place of the throughput table")
    result = repro.simulate(dressed, TYPED, "gavel-las")
    assert result.summary()["stand_in"] == ["throughputs gavel-throughputs"]


@pytest.mark.parametrize("column", PROFILE)
def test_a_trace_with_models_or_stages_is_refused(column):
    jobs = plain().assign(**{column: "vgg16" if column == "model" else 2})
    with pytest.raises(
        TraceError, match=f"^trace: has {column} already; repro trace dress --replace"
    ):
        dress(jobs, "muri")


def test_replace_draws_anew():
    jobs = dress(plain(), "muri").assign(stage_cpu=0.1)
    jobs.attrs |= {"throughputs": "gavel-throughputs", "reference_gpu": "v100"}
    again = dress(jobs, "pcs", 5, replace=True)
    fresh = dress(plain(), "pcs", 5)
    pd.testing.assert_frame_equal(again, fresh, check_flags=False)
    assert "throughputs" not in again.attrs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"models": "muri,pollux"}, "no table 'pollux'"),
        ({"models": []}, "models is empty"),
        ({"models": "all,muri"}, "all stands alone"),
        ({"models": "muri", "seed": -1}, "seed=-1: give a whole number"),
        ({"models": "muri", "seed": 0.5}, "seed=0.5: give a whole number"),
        ({"models": "muri", "weights": {"vgg17": 1}}, "has no model 'vgg17'; did you mean 'vgg1"),
        ({"models": "muri", "weights": {"lm": 1}}, "models=muri has no model 'lm'"),
        ({"models": "muri", "weights": {"bert": -1}}, "bert has -1; give a number"),
        ({"models": "muri", "weights": {"bert": 0}}, "give a model a weight above 0"),
        ({"models": "muri", "reference": "k80"}, "only table gavel reads them"),
        ({"weights": ["bert"]}, r"^weights=\['bert'\]: give a mapping of model to weight$"),
        ({"models": None}, "^models=None: give names of tables, or all$"),
        ({"models": 3}, "^models=3: give names of tables, or all$"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ParamError, match=message):
        dress(plain(), **arguments)


@pytest.mark.parametrize("profiles", [None, "h100"])
@pytest.mark.parametrize(("trace", "what"), [("jobs.csv", "a str"), (None, "None")])
def test_the_trace_is_a_frame(trace, what, profiles):
    with pytest.raises(TraceError, match=rf"the trace is {what}; .*; repro\.load reads a file"):
        dress(trace, profiles=profiles)


def test_an_unknown_reference_is_refused(public_table):
    with pytest.raises(TraceError, match="no throughputs for GPU type 'a100'"):
        dress(plain(), "gavel", reference="a100")


def test_the_reference_type_sets_the_pace(public_table):
    """On GPUs of the reference type a job alone takes its duration, rounds of 360 s aside."""
    jobs = plain(1, (4,)).assign(duration=3600.0)
    for reference in ("v100", "k80"):
        dressed = dress(jobs, "gavel", reference=reference, weights={"resnet18": 1})
        result = repro.simulate(dressed, f"1x4:{reference}", "las-agnostic")
        assert result.jobs["jct"].tolist() == pytest.approx([3600.0])


#: columns that a policy cannot do without
NEEDED = {"edf": {"slo": 3.0}, "drf": {"num_cpus": 1}}


@pytest.mark.parametrize("policy", [name for name in repro.policies() if "muri" not in name])
def test_a_policy_that_reads_no_new_column_keeps_its_schedule(public_table, policy):
    jobs = plain(30, (1,) if policy == "allox" else WIDTHS).assign(**NEEDED.get(policy, {}))
    made = repro.make(policy, cpus_per_gpu=4) if policy == "drf" else policy
    before = repro.simulate(jobs, "2x8", made)
    after = repro.simulate(dress(jobs, "all", 2), "2x8", made)
    columns = ["job_id", "start_time", "end_time"]
    assert before.jobs[columns].equals(after.jobs[columns])
    assert before.intervals.equals(after.intervals)


def test_every_papers_policies_run_on_the_file_too(public_table, tmp_path):
    """Muri by stages, Gavel by types, PCS by curves, Liquid by plans, Tiresias by tensors."""
    jobs = plain(30, (1, 3, 8, 32, 64)).assign(duration=lambda f: f["duration"] * 10)
    dressed = dress(jobs, "all", 1)
    read = load(write(dressed, tmp_path / "dressed.csv"))
    pd.testing.assert_frame_equal(read, dressed, check_flags=False)
    table = load_throughputs()
    typed = "16x8:v100,16x8:p100,16x8:k80"
    cases = [
        ("16x8", "muri-s", {}),
        ("16x8", "muri-l", {"rules": "muri"}),
        (typed, "gavel-las", {"perf": table}),
        (typed, "gavel-las-ss", {"perf": table, "rules": "gavel"}),
        (typed, repro.make("gavel-las-ss", profiled=0.3), {"perf": table}),
        ("16x8", "pcs", {"perf": pcs_speedups()}),
        ("16x8", "afs", {"rules": "pcs"}),
        ("16x8", repro.make("liquid", times="t4"), {}),
        ("16x8", "srtf", {"placement": "skew"}),
    ]
    for cluster, policy, options in cases:
        results = [repro.simulate(frame, cluster, policy, **options) for frame in (dressed, read)]
        first, second = (result.jobs for result in results)
        assert first["end_time"].notna().all(), policy
        pd.testing.assert_frame_equal(first, second, check_flags=False)
    by_frame = repro.simulate(dressed, typed, "gavel-las").jobs
    by_table = repro.simulate(read, typed, "gavel-las", perf=table).jobs
    pd.testing.assert_frame_equal(by_frame, by_table, check_flags=False)


def test_a_dressed_job_on_slow_gpus_by_hand():
    """The 2019 table has ResNet-18 (batch size 128) at 17.99 steps/s on a v100, 4.66 on a k80.

    A gang of 3 GPUs keeps the ratio of one GPU, as the table has no gangs. 900 s on v100 GPUs are
    900 x 17.99 / 4.66 s on k80 GPUs.
    """
    table = load_throughputs("gavel-throughputs-2019")
    row = table.rows["ResNet-18 (batch size 128)", 1]
    dressed = dress(
        trace((0, 900, 3)), "gavel", weights={"resnet18": 1}, throughputs="gavel-throughputs-2019"
    )
    result = repro.simulate(dressed, "1x4:k80", "gavel-las")
    assert row["k80"] == 4.66
    assert result.jobs["jct"].tolist() == pytest.approx([900 * row["v100"] / 4.66])


def test_a_dressed_elastic_job_by_hand():
    """VGG16 asks for 16 GPUs and gets 8: its curve goes on in proportion from its end at 8 GPUs.

    S(8) / S(16) = 1 / 2, so 100 s become 200 s.
    """
    dressed = dress(trace((0, 100, 16)), "pcs", weights={"vgg16": 1})
    result = repro.simulate(dressed, "1x8", "pcs", perf=pcs_speedups())
    assert result.jobs["jct"].tolist() == pytest.approx([200.0])


def test_a_job_without_a_model_is_named():
    trace = plain()
    models = ["resnet50"] * len(trace)
    job = trace["job_id"].iloc[1]
    message = rf"^trace: job {job} has no model; fill it, or sample models of the folder: repro"
    with pytest.raises(TraceError, match=message):
        dress(trace.assign(model=[models[0], None, *models[2:]]), profiles="h100")
