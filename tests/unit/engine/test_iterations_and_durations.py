"""Rules that count iterations run the iterations of a job, whatever its duration says."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import repro
from repro.base.errors import InputWarning
from repro.model.elastic import Elastic
from repro.model.policy import policies

DIVIDERS = sorted(
    name
    for name in policies
    if issubclass(policies[name], Elastic) and policies[name].__module__.startswith("repro.")
)


def disagreeing():
    """Two jobs of one GPU, whose iterations take a tenth of their durations."""
    return pd.DataFrame(
        {
            "job_id": ["a", "b"],
            "submit_time": 0.0,
            "duration": [100.0, 200.0],
            "num_gpus": 1,
            "iterations": [10, 20],
            "iteration_time": 1.0,
            "model": "resnet18",
        }
    )


def jcts(trace, policy, rules, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        result = repro.simulate(trace, "1x4", policy, rules=rules, overhead="none", **options)
    return result.jobs["jct"].to_numpy()


@pytest.mark.parametrize("policy", DIVIDERS)
@pytest.mark.parametrize(("rules", "factor"), [("gavel", 1.0), ("muri", 1.015)])
def test_policies_that_divide_gpus_run_the_iterations(policy, rules, factor):
    whole = jcts(disagreeing(), policy, rules)
    np.testing.assert_allclose(whole, [10 * factor, 20 * factor], rtol=1e-9)
    one_by_one = jcts(disagreeing(), policy, rules, stop_time=1e7)
    np.testing.assert_allclose(whole, one_by_one, rtol=1e-12)


@pytest.mark.parametrize("rules", ["gavel", "muri"])
def test_a_policy_sees_the_time_that_jobs_take(rules):
    trace = pd.DataFrame(
        {
            "job_id": ["a", "b", "c"],
            "submit_time": 0.0,
            "duration": [100.0, 50.0, 70.0],
            "num_gpus": 1,
            "iterations": [10, 40, 20],
            "iteration_time": 1.0,
            "model": "resnet18",
        }
    )
    with pytest.warns(InputWarning, match=f"rules {rules} count iterations"):
        result = repro.simulate(trace, "1x1", "sjf", rules=rules)
    assert result.jobs.sort_values("start_time")["job_id"].tolist() == ["a", "c", "b"]


def test_the_note_names_a_job_and_both_times():
    with pytest.warns(InputWarning) as caught:
        repro.simulate(disagreeing(), "1x4", "srtf", rules="muri")
    assert (
        "the iterations of 2 jobs take another time than the duration, and rules muri count "
        "iterations (job a: iterations of 10 s, duration 100 s)"
    ) in str(caught[0].message)


@pytest.mark.parametrize("rules", ["paper", "tiresias"])
def test_other_rules_run_the_duration_without_a_note(rules):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = repro.simulate(disagreeing(), "1x4", "srtf", rules=rules)
    assert result.jobs["jct"].tolist() == [100.0, 200.0]


def test_durations_rounded_to_iterations_need_no_note():
    trace = disagreeing().assign(duration=[10.9, 19.2])
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        repro.simulate(trace, "1x4", "srtf", rules="gavel")
