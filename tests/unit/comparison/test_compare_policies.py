"""`repro.compare`: differences by hand, refusals, terms, pictures, the same with two processes."""

import numpy as np
import pandas as pd
import pytest
from hand_traces import trace

import repro
from repro.base.errors import ParamError, TraceError
from repro.comparison.terms import knowledge
from repro.model.policy import make
from repro.perf.throughput_files import load_throughputs
from repro.testing import small_trace

#: two windows of an hour: a long job with a short one a second behind it
JOBS = trace((0, 100, 1), (1, 10, 1), (7199, 200, 1), (7200, 20, 1))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / "cache"))


def windows_compared(**options):
    return repro.compare(JOBS, "1x1", "srtf,yarn-cs", windows="2x1h", workers=1, **options)


def test_paired_difference_and_interval_by_hand():
    comparison = windows_compared()
    # first come, first served: 100 and 109 s, then 200 and 219 s; srtf: 10 and 110, 20 and 220 s
    assert comparison.frame["avg_jct"].tolist() == pytest.approx([60, 104.5, 120, 209.5])
    assert comparison.frame["window"].tolist() == [0, 0, 1, 1]
    table = comparison.table().set_index(["policy", "metric"])
    fifo = table.loc[("yarn-cs", "avg_jct")]
    assert fifo[["mean", "low", "high"]].tolist() == pytest.approx([157, 104.5, 209.5])
    columns = ["difference", "difference_low", "difference_high"]
    assert fifo[columns].tolist() == pytest.approx([67, 44.5, 89.5])
    assert fifo["difference_percent"] == pytest.approx(100 * 67 / 90)
    assert table.loc[("srtf", "avg_jct"), columns].tolist() == [0, 0, 0]
    assert table.loc[("srtf", "preemptions"), "mean"] == 1


def test_small_differences_are_printed_with_their_digits():
    jobs = trace((0, 1, 1), (0.5, 0.1, 1), (7199, 2, 1), (7200, 0.2, 1))
    text = repro.compare(jobs, "1x1", "srtf,yarn-cs,las-2d", windows="2x1h", workers=1).text()
    # first come, first served: 1 and 0.6 s, then 2 and 1.2 s; srtf: 0.1 and 1.1, 0.2 and 2.2 s
    assert "1.2 [0.8; 1.6]  +0.3 [+0.2; +0.4] (+33.3 %)" in text
    # las-2d runs as srtf
    assert " 0 [0; 0] (0.0 %)" in text


def test_metrics_are_those_of_simulate():
    comparison = repro.compare(small_trace(), "1x4", "srtf", workers=1)
    summary = repro.simulate(small_trace(), "1x4", "srtf").summary()
    row = comparison.frame.iloc[0]
    for name in ("avg_jct", "median_jct", "p95_jct", "p99_jct", "makespan", "utilisation"):
        assert row[name] == pytest.approx(summary[name])
    assert row["cpu_s_per_job"] >= 0


def test_with_one_sample_there_is_no_interval_and_a_note():
    comparison = repro.compare(small_trace(), "1x4", "srtf,las-2d", workers=1)
    table = comparison.table()
    assert table[["low", "high", "difference_low", "difference_high"]].isna().all(axis=None)
    assert any("no intervals" in note for note in comparison.notes)
    assert "[" not in comparison.text()


def test_loads_are_those_that_were_asked_for():
    comparison = repro.compare(small_trace(), "1x4", "srtf,las-2d", loads=[0.5, 2.0], workers=1)
    assert comparison.frame["load"].tolist() == [0.5, 0.5, 2.0, 2.0]
    low, high = comparison.frame.groupby("load")["avg_jct"].min()
    assert low < high
    as_it_is = repro.compare(small_trace(), "1x4", "srtf", workers=1).frame.iloc[0]
    again = repro.compare(small_trace(), "1x4", "srtf", loads=[as_it_is["offered_load"]], workers=1)
    assert again.frame["avg_jct"].iloc[0] == pytest.approx(as_it_is["avg_jct"])


def test_seeds_are_seeds_of_the_generator():
    comparison = repro.compare(
        "testbed", "4x8", "srtf", seeds=[3, 5], options={"jobs": 20}, workers=1
    )
    first, second = comparison.frame["avg_jct"]
    assert comparison.frame["seed"].tolist() == [3, 5] and first != second
    alone = repro.compare("testbed", "4x8", "srtf", seed=5, options={"jobs": 20}, workers=1)
    assert alone.frame["avg_jct"].tolist() == [second]


def test_a_policy_that_cannot_run_is_listed_with_its_reason():
    comparison = repro.compare(
        small_trace(), "1x4", "drf,srtf", reference="drf", dress=False, workers=1
    )
    assert comparison.policies == ["srtf"] and list(comparison.refused) == ["drf"]
    assert "num_cpus" in comparison.refused["drf"]
    assert comparison.notes[0] == "reference drf cannot run; differences are to srtf"
    assert "- drf: " in comparison.report()


def test_a_policy_that_some_samples_refuse_is_refused():
    jobs = pd.concat([JOBS, trace((7198, 50, 2)).assign(job_id=9)])
    with pytest.raises(ParamError, match="no policy can run") as error:
        repro.compare(jobs, "1x1", "srtf,las-2d", windows="2x1h", workers=1)
    assert len(error.value.args) == 3 and "(1 of 2 runs)" in error.value.args[1]


def test_jobs_are_dressed_only_if_a_policy_needs_it():
    plain = repro.compare(small_trace(), "1x4", "srtf", workers=1)
    assert "jobs: as in the trace, no models sampled" in plain.notes
    dressed = repro.compare(small_trace(), "1x4", "srtf,muri-s", workers=1)
    assert any(
        note.startswith("jobs: dressed from one model map, because policies lack stage times")
        for note in dressed.notes
    )
    assert not dressed.refused
    never = repro.compare(small_trace(), "1x4", "srtf,muri-s", dress=False, workers=1)
    assert list(never.refused) == ["muri-s"]


def test_notes_of_a_trace_are_not_those_of_an_equal_one():
    for note in ("read in one format", "read in another format"):
        jobs = small_trace()
        jobs.attrs["notes"] = [note]
        notes = "\n".join(repro.compare(jobs, "1x4", "srtf", workers=1).notes)
        assert notes.count("read in") == 1
        assert note in notes


def test_columns_without_values_count_as_absent():
    empty = dict.fromkeys(
        ["stage_storage", "stage_cpu", "stage_gpu", "stage_network"], float("nan")
    )
    dressed = repro.compare(small_trace().assign(**empty), "1x4", "srtf,muri-s", workers=1)
    assert not dressed.refused


def test_the_terms_are_said():
    notes = "\n".join(windows_compared(overhead=30, predict=2).notes)
    for words in (
        "rules: paper, all policies",
        "preemption cost, all policies: 30 s per resumption",
        "knowledge: true durations: srtf; none: yarn-cs",
        "2 windows of 1 h",
        "95% intervals of means over 2 windows",
        "predictions: JCT at arrival of all jobs of each run",
        "finish-time fairness rho",
    ):
        assert words in notes


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (make("tiresias-g"), "distribution of past job sizes"),
        (make("muri-s", noise=0.2), "true durations, stage times with noise of 0.2"),
        (make("gavel-las"), "throughputs by GPU type"),
        (make("max-min"), "none"),
        (make("edf"), "deadlines"),
        (make("afs", size_error=0.2), "durations with an error of 0.2"),
    ],
)
def test_knowledge_follows_from_needs(policy, words):
    assert knowledge(policy) == words


def test_predicted_durations_are_the_same_for_all_and_said():
    names = "srtf,las-2d,afs,edf"
    jobs = small_trace().assign(slo=2.0)
    plain = repro.compare(jobs, "1x4", names, seeds=2, workers=1)
    wrong = repro.compare(jobs, "1x4", names, seeds=2, prediction_error=2.0, workers=1)
    assert (
        "knowledge: durations predicted with a log-normal error of 2: srtf, afs; none: las-2d; "
        "deadlines: edf"
    ) in wrong.notes
    assert wrong.meta["prediction_error"] == 2.0
    assert plain.meta["prediction_error"] is None
    by_policy = (run.frame.set_index(["policy", "seed"])["avg_jct"] for run in (plain, wrong))
    before, after = by_policy
    changed = (before != after).groupby("policy").any()
    assert changed.to_dict() == {"srtf": True, "las-2d": False, "afs": True, "edf": False}
    # every seed has errors of its own, those of `predict_durations`
    own = repro.simulate(repro.predict_durations(jobs, 2.0, 1), "1x4", "srtf").summary()
    assert after["srtf", 1] == pytest.approx(own["avg_jct"])
    assert after["srtf", 0] != after["srtf", 1]


def test_a_numpy_number_of_predictions_counts_as_a_number():
    comparison = repro.compare(small_trace(), "1x4", "srtf", predict=np.int64(2), workers=1)
    assert "predictions: JCT at arrival of up to 2 jobs" in "\n".join(comparison.notes)
    assert comparison.meta["predict"] == 2


def test_more_predictions_than_jobs_are_those_of_all_jobs():
    comparison = repro.compare(small_trace(), "1x4", "srtf", predict=100, workers=1)
    assert "predictions: JCT at arrival of all jobs of each run" in "\n".join(comparison.notes)


def test_predictions_of_the_trace_are_said():
    jobs = repro.predict_durations(JOBS, 0.5)
    drawn = repro.compare(jobs, "1x4", "srtf,las-2d", windows="2x1h", workers=1)
    words = "durations predicted with a log-normal error of 0.5"
    assert f"knowledge: {words}: srtf; none: las-2d" in drawn.notes
    own = jobs[["job_id", "submit_time", "duration", "num_gpus", "predicted_duration"]].copy()
    own.attrs = {}
    given = repro.compare(own, "1x4", "srtf,las-2d", workers=1)
    assert "knowledge: durations as predicted by the trace: srtf; none: las-2d" in given.notes
    for frame in (jobs, own):
        with pytest.raises(TraceError) as caught:
            repro.compare(frame, "1x4", "srtf", prediction_error=1.0, workers=1)
        assert "has predicted_duration already; leave --prediction-error" in str(caught.value)


def test_the_cost_of_preemptions_is_paid_by_all():
    free = windows_compared().frame.set_index("policy").loc["srtf", "avg_jct"]
    costly = windows_compared(overhead=30).frame.set_index("policy").loc["srtf", "avg_jct"]
    # the long job resumes once and loses 30 s, half of that in the mean of two jobs
    assert (costly - free).tolist() == pytest.approx([15, 15])


def test_on_gpu_types_runs_are_those_of_simulate():
    dressed = repro.dress(small_trace())
    names = ["srtf", "muri-s", "gavel-las"]
    comparison = repro.compare(dressed, "1x4:v100,1x4:k80", names, workers=1)
    single = [
        repro.simulate(dressed, "1x4:v100,1x4:k80", name, overhead="none").summary()["avg_jct"]
        for name in names
    ]
    assert comparison.frame["avg_jct"].tolist() == pytest.approx(single)
    assert not any("equally fast" in note for note in comparison.notes)


def test_a_trace_with_models_needs_a_throughput_table_and_no_new_models():
    jobs = small_trace().assign(model="a3c")
    comparison = repro.compare(jobs, "1x4:v100,1x4:k80", "gavel-las", workers=1)
    assert any(
        "no models sampled" in note
        and "the trace has model; --throughputs (throughputs=) gives throughputs" in note
        for note in comparison.notes
    )


TYPED = "1x4:v100,1x4:k80"


def of_throughputs(comparison):
    notes = [note for note in comparison.notes if note.startswith("throughputs")]
    return comparison.meta["throughputs"], comparison.meta["reference_gpu"], notes


@pytest.mark.parametrize("reference", ["v100", "k80"])
def test_a_throughput_table_and_its_reference_type_are_said(reference):
    jobs = repro.dress(small_trace(), "gavel")
    name = "gavel-throughputs"
    options = {"throughputs": name, "reference_gpu": reference, "workers": 1}
    comparison = repro.compare(jobs, TYPED, "srtf", **options)
    line = f"throughputs: {name}; durations are those on {reference}"
    assert of_throughputs(comparison) == (name, reference, [line])


def test_throughputs_of_the_trace_and_tables_without_a_name_are_said():
    jobs = repro.dress(small_trace(), "gavel", reference="p100")
    name = "gavel-throughputs"
    line = f"throughputs: {name}; durations are those on p100"
    assert of_throughputs(repro.compare(jobs, TYPED, "srtf", workers=1)) == (name, "p100", [line])
    # on a cluster without GPU types runs use no table
    assert of_throughputs(repro.compare(jobs, "1x4", "srtf", workers=1)) == (name, "p100", [])
    table = load_throughputs(name, "k80")
    named, reference, notes = of_throughputs(
        repro.compare(jobs, TYPED, "srtf", throughputs=table, workers=1)
    )
    assert (named, reference, len(notes)) == ("ThroughputTable", "k80", 1)
    plain = repro.compare(small_trace(), TYPED, "srtf", workers=1)
    assert of_throughputs(plain) == (None, None, [])


def test_what_read_the_trace_is_said(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,arrival,duration,num_gpus\n0,0,1,1\n1,1,2,1\n")
    options = {"map": "submit_time=arrival", "unit": "h"}
    own = repro.compare(path, "1x1", "srtf", options=options, dress="muri", workers=1).meta
    loaded = repro.compare(repro.load(path, **options), "1x1", "srtf", workers=1).meta
    assert (own["format"], own["options"], own["dress"]) == ("repro", options, "muri")
    assert (loaded["format"], loaded["options"], loaded["dress"]) == ("repro", options, None)
    generated = repro.compare("testbed", "15x4", "srtf", options={"jobs": 4}, workers=1).meta
    assert generated["format"] is None
    assert generated["options"]["jobs"] == 4


def test_types_without_speeds_are_said():
    comparison = repro.compare(small_trace(), "1x4:v100,1x4:k80", "srtf", workers=1)
    assert "all GPU types count as equally fast: srtf" in comparison.notes


@pytest.mark.slow
def test_two_processes_give_the_same(tmp_path, monkeypatch):
    def frame(workers):
        monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / f"cache-{workers}"))
        comparison = repro.compare(
            "testbed", "4x8", "srtf,yarn-cs", seeds=2, options={"jobs": 20}, workers=workers
        )
        costs = ["cpu_s_per_job"]
        table = comparison.table()
        return comparison.frame.drop(columns=costs), table[~table["metric"].isin(costs)]

    for one, two in zip(frame(1), frame(2), strict=True):
        pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_pictures_have_a_curve_per_policy():
    comparison = repro.compare(small_trace(), "1x4", "srtf,las-2d", loads=[0.5, 2.0], workers=1)
    distributions = comparison.plot()
    assert [axes.get_title(loc="left") for axes in distributions.axes] == [
        "offered load 0.5",
        "offered load 2",
    ]
    metric, difference = comparison.plot("load", "p99_jct").axes
    assert metric.get_ylabel() == "p99 JCT (s)"
    assert difference.get_ylabel() == "p99 JCT against srtf (%)"
    means = comparison.table().query("metric == 'p99_jct' and policy == 'las-2d'")["mean"]
    assert metric.lines[1].get_ydata().tolist() == pytest.approx(means.tolist())
    assert np.isfinite(windows_compared().plot("load").axes[0].patches[0].get_height())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": 2, "windows": "2x1h"}, "give one of them"),
        ({"reference": "fifo"}, "none of the policies is 'fifo'"),
        ({"loads": [0]}, "positive numbers"),
        ({"loads": [1, 1]}, "each load once"),
        ({"overhead": "free"}, "none, tiresias, h100"),
        ({"placement": "nowhere"}, "nowhere"),
        ({"failures": "often"}, "often"),
        ({"predict": -1}, "predict is -1"),
        ({"throughputs": "gavel-throughputs"}, "names no GPU types"),
        ({"reference_gpu": "k80"}, "reference_gpu is 'k80': it is used only if throughputs is"),
        ({"options": {"jobs": 3}}, "a frame has no reader"),
        ({"options": {"seed": 3}}, "^options: 'seed' is not an option of a reader or generator; "),
        (
            {"options": {3: "seed"}},
            r"^options is \{3: 'seed'\}; give a mapping of option to value$",
        ),
        ({"options": ["jobs"]}, r"^options is \['jobs'\]; give a mapping"),
        ({"workers": 0}, "workers is 0"),
        ({"seed": -1}, "seeds is"),
    ],
)
def test_bad_arguments_are_one_line(options, message):
    with pytest.raises(ParamError, match=message) as error:
        repro.compare(small_trace(), "1x4", "srtf", **options)
    assert len(error.value.args) == 1 and "\n" not in str(error.value)


def test_charts_and_metrics_have_names():
    comparison = repro.compare(small_trace(), "1x4", "srtf", workers=1)
    with pytest.raises(ParamError, match="jct or load"):
        comparison.plot("cdf")
    with pytest.raises(ParamError, match="avg_jct"):
        comparison.plot("load", "jct")
