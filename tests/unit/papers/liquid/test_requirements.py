"""Requirement vectors: regressors of the artifact, its rounding and defaults, and bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import ParamError, TraceError
from repro.model.cluster.spec import Cluster, Node
from repro.papers.liquid.requirements import (
    REGRESSORS,
    Requirement,
    RequirementEstimator,
    encode,
    regressor,
)
from repro.papers.liquid.training_rows import FEATURES, LABELS, synthetic
from repro.trace import synth


@pytest.fixture(scope="module")
def rows():
    return synthetic(np.random.default_rng(3), 120)


@pytest.fixture(scope="module")
def estimator(rows):
    return RequirementEstimator("decision_tree").fit(rows)


class Fixed:
    """Predicts one value whatever it is asked."""

    def __init__(self, value):
        self.value = value

    def predict(self, inputs):
        return np.full(len(inputs), float(self.value))


def test_parameters_are_those_of_the_artifact():
    forest = regressor("random_forest", 6, 1)
    boosted = regressor("gbdt", 6, 1)
    for model in (forest, boosted):
        assert (model.n_estimators, model.max_depth, model.max_features) == (70, 13, 6)
        assert (model.min_samples_split, model.min_samples_leaf) == (10, 5)
    assert boosted.loss == "squared_error"
    assert regressor("decision_tree", 6).max_depth == 13
    with pytest.raises(
        ParamError, match=r"unknown regressor 'forest'; .* \(accepted: random_forest"
    ):
        regressor("forest", 6)


def test_text_is_hashed_by_fnv_1a():
    known = {"": 0x811C9DC5, "a": 0xE40C292C, "foobar": 0xBF9CF968}
    assert (encode(pd.Series(list(known))) * 2**32).tolist() == list(known.values())
    assert encode(pd.Series([3, 4])).tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("label", "value", "field", "wanted"),
    [
        ("cpu_pct", 101, "cpu_cores", 2),
        ("mem_mb", 1025, "mem_mb", 2048),
        ("gpu_util_pct", 58.2, "gpu_util_pct", 50),
        ("gpu_mem_mb", 8192, "gpu_mem_mb", 8192),
        ("gpu_mem_mb", 8193, "gpu_mem_mb", 9216),
        ("bandwidth_kb_s", 200_000, "bandwidth_mb_s", 200),
        ("bandwidth_kb_s", 204_800, "bandwidth_mb_s", 300),
        ("bandwidth_kb_s", 1, "bandwidth_mb_s", 100),
        ("enough_workers", 4.4, "gpus", 4),
        ("enough_mb_s", 301, "bandwidth_mb_s", 325),
    ],
)
def test_rounding(label, value, field, wanted):
    estimator = RequirementEstimator(labels=[label])
    estimator._trained[("vgg16", label)] = Fixed(value)
    job = {"model": "vgg16", "batch_size": 4, "num_batches": 200}
    found = estimator.predict(job)
    assert getattr(found, field) == wanted
    defaults = Requirement()
    assert all(
        getattr(found, name) == getattr(defaults, name)
        for name in defaults.__dataclass_fields__
        if name != field
    )


def test_a_type_without_a_model_gets_the_defaults(estimator):
    job = {"model": "bert", "batch_size": 4, "num_batches": 200, "num_ps": 1, "num_workers": 2}
    assert estimator.predict(job) == Requirement(1, 8192, 100, 4, 4096, 100)
    assert RequirementEstimator().predict(job) == Requirement()


def test_a_trace_gets_the_larger_need_of_both_roles(estimator):
    trace = pd.DataFrame(
        {
            "model": ["vgg16", "bert", "resnet50"],
            "batch_size": [32, 4, 8],
            "iterations": [210, 210, 210],
            "num_gpus": [3, 3, 1],
        },
        index=[5, 2, 9],
    )
    found = estimator.requirements(trace)
    assert found.index.tolist() == [5, 2, 9]
    assert found.loc[2, ["gpu_mem_mb", "bandwidth_mb_s"]].tolist() == [8192, 100]
    job = {"model": "vgg16", "gpus_per_task": 1, "num_ps": 1, "num_workers": 2}
    one = pd.DataFrame([job | {"batch_size": 32, "num_batches": 200, "role": r} for r in (0, 1)])
    raw = estimator.estimates(one)["gpu_mem_mb"]
    assert found.loc[5, "gpu_mem_mb"] == np.ceil(raw.max() / 1024) * 1024
    assert estimator.predict(trace.loc[5].to_dict()).gpu_mem_mb == found.loc[5, "gpu_mem_mb"]


@pytest.mark.parametrize("name", REGRESSORS)
def test_every_regressor_learns_and_repeats(rows, name):
    def guess():
        one = RequirementEstimator(name, ["gpu_mem_mb"], per_model=False, seed=4)
        return one.fit(rows[:80]).estimates(rows[80:])["gpu_mem_mb"]

    first = guess()
    pd.testing.assert_series_equal(first, guess())
    truth = rows["gpu_mem_mb"][80:]
    assert ((first - truth) ** 2).mean() < ((truth - rows["gpu_mem_mb"][:80].mean()) ** 2).mean()


def test_types_have_models_of_their_own(rows):
    vgg = rows[rows["model"] == "vgg16"]
    alone = RequirementEstimator(labels=["gpu_mem_mb"]).fit(vgg).estimates(vgg)
    among = RequirementEstimator(labels=["gpu_mem_mb"]).fit(rows).estimates(vgg)
    pd.testing.assert_frame_equal(alone, among)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[:0], r"training set: 0 row\(s\); at least 2"),
        (lambda rows: rows[:1], r"training set: 1 row\(s\); at least 2"),
        (lambda rows: pd.concat([rows, rows[:1].assign(model="bert")]), r"of type bert; at least"),
        (lambda rows: rows.drop(columns="model"), "training set:model: missing column"),
        (lambda rows: rows.assign(batch_size=np.inf), "row 0:batch_size: missing value"),
        (lambda rows: rows.assign(mem_mb=7), "training set:mem_mb: 7 in all 120 rows"),
        (lambda rows: rows.drop(columns="batch_size"), "training set:batch_size: missing column"),
        (lambda rows: rows.drop(columns="mem_mb"), "training set:mem_mb: missing column"),
        (lambda rows: rows.assign(mem_mb="much"), "training set:row 0:mem_mb: not a number"),
        (lambda rows: rows.assign(mem_mb=np.nan), "training set:row 0:mem_mb: missing value"),
        (lambda rows: rows.assign(batch_size=np.nan), "row 0:batch_size: missing value"),
    ],
)
def test_bad_training_sets_are_refused_in_one_line(rows, change, message):
    with pytest.raises(TraceError, match=message) as caught:
        RequirementEstimator("decision_tree").fit(change(rows))
    assert "\n" not in str(caught.value)


def test_a_job_without_a_feature_is_refused(estimator):
    with pytest.raises(TraceError, match="jobs:batch_size,num_batches: missing column"):
        estimator.predict({"model": "vgg16"})


def test_features_and_labels_of_synthetic_rows(rows):
    assert [*FEATURES, *LABELS] == [
        name for name in (*FEATURES, *LABELS) if name in rows and rows[name].notna().all()
    ]


def test_estimates_decide_on_which_nodes_containers_fit(estimator):
    trace = synth.make("liquid-batch-jobs", 0, jobs=4)
    trace = trace.join(estimator.requirements(trace)[["gpu_mem_mb", "bandwidth_mb_s"]])
    assert len(set(trace["gpu_mem_mb"])) > 1 and (trace["bandwidth_mb_s"] % 25 == 0).all()
    most = trace["gpu_mem_mb"].max()
    small = Node(gpus=4, gpu_mem_mb=most - 1024)
    large = Node(gpus=4, gpu_mem_mb=most)
    result = simulate(trace, Cluster((small, large)), "liquid")
    needy = set(trace["job_id"][trace["gpu_mem_mb"] == most])
    held = result.intervals[result.intervals["job_id"].isin(needy)]["nodes"]
    assert len(held) and all(node == 1 for nodes in held for node, _ in nodes)


def test_numbers_as_text_are_numbers(rows, estimator):
    job = {"model": "vgg16", "batch_size": 32, "iterations": 210, "num_gpus": 3, "num_ps": 1}
    texts = {name: str(value) for name, value in job.items()}
    small = estimator.predict(job | {"batch_size": 4})
    assert estimator.predict(texts) == estimator.predict(job) != small
    as_text = rows.assign(
        batch_size=rows["batch_size"].astype(str), num_batches=rows["num_batches"].astype(object)
    )
    read_as_text = RequirementEstimator("decision_tree").fit(as_text)
    assert read_as_text.predict(texts) == read_as_text.predict(job) == estimator.predict(job)


@pytest.mark.parametrize("name", ["batch_size", "iterations", "num_gpus", "num_ps"])
def test_text_in_place_of_a_number_is_refused(estimator, name):
    job = {"model": "vgg16", "batch_size": 32, "iterations": 210, "num_gpus": 3}
    with pytest.raises(TraceError, match=f"jobs:row 0:{name}: not a number"):
        estimator.predict(job | {name: "many"})


def test_a_feature_may_be_text(rows):
    texts = rows.assign(
        precision=np.where(rows["gpu_mem_mb"] > rows["gpu_mem_mb"].median(), "f", "h")
    )
    features = ["precision", "batch_size"]
    estimator = RequirementEstimator("decision_tree", ["gpu_mem_mb"], features, per_model=False)
    estimates = estimator.fit(texts).estimates(texts)["gpu_mem_mb"]
    assert estimates[texts["precision"] == "f"].min() > estimates[texts["precision"] == "h"].max()
