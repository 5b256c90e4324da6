"""`repro.predict_durations`: log-normal errors, the same for every order of rows, and refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hand_traces import trace

import repro
from repro.base.errors import ParamError, TraceError
from repro.testing import small_trace
from repro.trace.load import write


def many(count: int = 20_000) -> pd.DataFrame:
    return trace(*[(number, 10 + number % 7, 1) for number in range(count)])


def test_factors_are_log_normal():
    jobs = many()
    predicted = repro.predict_durations(jobs, 0.5, seed=4)
    logs = np.log(predicted["predicted_duration"] / predicted["duration"])
    # standard errors: 0.5 / sqrt(20,000) = 0.0035 of the mean, 0.0025 of the deviation
    assert logs.mean() == pytest.approx(0.0, abs=0.014)
    assert logs.std() == pytest.approx(0.5, abs=0.01)
    twice = repro.predict_durations(jobs, 1.0, seed=4)
    doubled = np.log(twice["predicted_duration"] / twice["duration"])
    assert doubled.tolist() == pytest.approx((2 * logs).tolist())


def test_predictions_depend_on_seed_and_ids_alone():
    jobs = small_trace()
    first = repro.predict_durations(jobs, 0.7, seed=2).set_index("job_id")["predicted_duration"]
    rows = jobs.sample(frac=1.0, random_state=0)
    again = repro.predict_durations(rows, 0.7, seed=2)
    assert again["job_id"].tolist() == rows["job_id"].tolist()
    assert again.set_index("job_id")["predicted_duration"][first.index].equals(first)
    other = repro.predict_durations(jobs, 0.7, seed=3).set_index("job_id")["predicted_duration"]
    assert (other != first).all()


def test_no_error_predicts_the_true_durations():
    jobs = small_trace()
    exact = repro.predict_durations(jobs, 0)
    assert exact["predicted_duration"].tolist() == jobs["duration"].tolist()
    assert "predicted_duration" not in jobs
    assert exact.attrs["notes"] == ["durations predicted with a log-normal error of 0 (seed 0)"]


def test_a_file_keeps_the_predictions(tmp_path):
    predicted = repro.predict_durations(small_trace(), 0.5)
    path = tmp_path / "jobs.csv"
    write(predicted, path)
    read = repro.load(path)
    assert read["predicted_duration"].tolist() == predicted["predicted_duration"].tolist()


@pytest.mark.parametrize("error", [-0.1, np.inf, np.nan, "0.5", True, None])
def test_an_error_is_a_number_of_0_or_more(error):
    with pytest.raises(ParamError, match=r"prediction error is .*; give the standard deviation"):
        repro.predict_durations(small_trace(), error)


def test_refusals():
    with pytest.raises(TraceError, match=r"the trace is a str; .*; repro\.load reads a file"):
        repro.predict_durations("jobs.csv", 0.5)
    with pytest.raises(ParamError, match="seed=-1: give a whole number"):
        repro.predict_durations(small_trace(), 0.5, seed=-1)
    with pytest.raises(
        ParamError, match=r"a trace has durations above 0, .*; give a smaller error"
    ):
        repro.predict_durations(small_trace(), 1000.0)
    with pytest.raises(TraceError, match="has predicted_duration already; leave"):
        repro.predict_durations(repro.predict_durations(small_trace(), 0.5), 0.5)
