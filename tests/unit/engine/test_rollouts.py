"""Predictions of any policy: JCTs in runs without later arrivals."""

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import ParamError
from repro.model.policy import policies
from repro.testing import small_trace


def jobs(*rows):
    """Jobs, as (submission, duration, GPUs)."""
    submit, duration, gpus = zip(*rows, strict=True)
    return pd.DataFrame(
        {"job_id": range(len(rows)), "submit_time": submit, "duration": duration, "num_gpus": gpus}
    ).astype({"submit_time": float, "duration": float})


def test_a_shorter_job_that_arrives_later_breaks_the_prediction():
    # A is promised 10 s. At 2 s B (3 s) takes its GPU, so that A takes 13 s.
    result = simulate(jobs((0, 10, 1), (2, 3, 1)), "1x1", "srtf", predict=2).jobs
    assert result["predicted_jct"].tolist() == [10.0, 3.0]
    assert result["jct"].tolist() == [13.0, 3.0]
    summary = simulate(jobs((0, 10, 1), (2, 3, 1)), "1x1", "srtf", predict=2).summary()
    assert summary["avg_pred_err"] == pytest.approx(15.0)


def test_fifo_keeps_every_promise():
    trace = jobs((0, 10, 1), (1, 3, 1), (2, 5, 1), (2, 1, 1))
    result = simulate(trace, "1x2", "yarn-cs", predict=4).jobs
    assert result["predicted_jct"].tolist() == result["jct"].tolist()


@pytest.mark.parametrize(
    "policy", ["srtf", "las-2d", "gandiva", "gavel-las", "liquid", "best-effort"]
)
def test_a_prediction_is_the_jct_in_the_trace_up_to_the_job(policy):
    trace = small_trace()
    predicted = simulate(trace, "1x4", policy, predict=len(trace)).jobs["predicted_jct"]
    order = np.argsort(trace["submit_time"], kind="stable")
    for count, row in enumerate(order, start=1):
        alone = simulate(trace.iloc[order[:count]], "1x4", policy).jobs
        jct = alone.set_index("job_id")["jct"][trace["job_id"][row]]
        assert predicted[row] == pytest.approx(jct, rel=1e-12)


@pytest.mark.parametrize(
    ("rules", "rounds"),
    [
        ("paper", {"round_s": 60.0, "min_realloc_interval_s": 600.0}),
        ("gavel", {"round_s": 60.0}),
        ("gavel", {"round_s": 60.0, "idle_reset": False}),
        ("gavel", {"ideal": "artifact"}),
    ],
)
def test_a_prediction_in_rounds_waits_for_no_further_arrival(rules, rounds):
    # The second job reaches an idle cluster before shares may be computed anew.
    trace = jobs((0, 10, 1), (20, 30, 1), (5000, 10, 1)).assign(iterations=[10.0, 30.0, 10.0])
    options = {"rules": rules, "rounds": rounds}
    predicted = simulate(trace, "1x1", "gavel-fifo", predict=3, **options).jobs["predicted_jct"]
    alone = simulate(trace.head(2), "1x1", "gavel-fifo", **options).jobs["jct"]
    assert predicted[1] == alone[1]


@pytest.mark.parametrize("interval", [None, 60.0])
def test_rollouts_agree_with_the_compiled_predictions_of_elastic_policies(interval, monkeypatch):
    trace = small_trace()
    compiled = simulate(trace, "1x4", "srsf-elastic", predict=6).jobs["predicted_jct"]
    # placement by nodes forces the engine, event by event
    by_events = simulate(trace, "1x4", "srsf-elastic", predict=6, placement="yarn").jobs
    assert by_events["predicted_jct"].tolist() == pytest.approx(compiled.tolist())


def test_a_sample_is_predicted():
    predicted = simulate(small_trace(), "1x4", "srtf", predict=2).jobs["predicted_jct"]
    assert predicted.notna().sum() == 2
    other = simulate(small_trace(), "1x4", "srtf", predict=2, seed=5).jobs["predicted_jct"]
    assert other.notna().sum() == 2


def test_predictions_have_intervals_under_any_policy():
    # pairs of jobs: the second shares the GPU with the first, and nobody else comes
    trace = jobs(*[(40.0 * n + extra, 10.0, 1) for n in range(30) for extra in (0.0, 5.0)])
    result = simulate(trace, "1x1", "las-2d", predict_interval=0.8).jobs.iloc[20:]
    assert (result["predicted_jct_low"] <= result["jct"]).mean() >= 0.8
    assert (result["predicted_jct_high"] >= result["jct"]).mean() >= 0.8
    assert (result["predicted_jct_high"] < 100).all()


def test_a_prediction_leaves_the_run_as_it_is():
    for name in ("srtf", "tiresias-l", "yarn-cs"):
        plain = simulate(small_trace(), "1x4", name).jobs["end_time"]
        predicting = simulate(small_trace(), "1x4", name, predict=3).jobs["end_time"]
        assert plain.equals(predicting)


def test_failures_are_not_foreseen():
    for option in ({"predict": 1}, {"predict_interval": 0.5}):
        ((name, value),) = option.items()
        says = f"{name}={value}: failures and added processes are not foreseen"
        with pytest.raises(ParamError, match=says):
            simulate(small_trace(), "1x4", "srtf", failures="mtbf=100", **option)


@pytest.mark.nightly
@pytest.mark.parametrize("policy", sorted(policies))
def test_every_policy_predicts_or_refuses_in_one_line(policy):
    trace = small_trace().assign(slo=2.0, num_cpus=1)
    try:
        result = simulate(trace, "1x4", policy, predict=3)
    except Exception as error:
        assert "\n" not in str(error)
        return
    assert result.jobs["predicted_jct"].notna().sum() == 3
