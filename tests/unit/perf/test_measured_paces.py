"""Iteration times of a testbed."""

from __future__ import annotations

import pandas as pd
import pytest

from repro.base.errors import ParamError
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.rules import RULES
from repro.perf.measured_paces import MeasuredPaces
from repro.perf.stages import Interleaving

RATIOS = {("bert", 1): 1.1, ("bert", 8): 1.2, ("dqn", 4): 0.9}


def table(models, gpus, rules="muri"):
    frame = pd.DataFrame(
        {
            "job_id": range(len(models)),
            "submit_time": 0.0,
            "duration": 10.0,
            "num_gpus": gpus,
            "model": models,
            "iterations": 20,
            "iteration_time": 0.5,
            "stage_storage": 0.1,
            "stage_gpu": 0.2,
            "stage_network": 0.3,
        }
    )
    return JobTable(frame, RULES[rules])


@pytest.mark.parametrize(("gpus", "ratio"), [(1, 1.1), (4, 1.1), (5, 1.2), (8, 1.2), (32, 1.2)])
def test_other_numbers_of_gpus_count_as_the_nearest(gpus, ratio):
    assert MeasuredPaces(RATIOS).ratio("bert", gpus) == ratio


def test_a_job_alone_takes_its_measured_time():
    jobs = table(["bert", "dqn"], [1, 4])
    paces = MeasuredPaces(RATIOS)
    assert paces.paces(jobs, Run((0,), 1), ()) == [pytest.approx(0.55)]
    assert paces.rates(jobs, Run((0,), 1), ()) == [pytest.approx(1.015 / 1.1)]
    assert paces.paces(jobs, Run((1,), 4), ()) == [pytest.approx(0.45)]


def test_without_iterations_a_unit_is_a_second_of_the_duration():
    jobs = table(["bert"], [1], "paper")
    assert MeasuredPaces(RATIOS).rates(jobs, Run((0,), 1), ()) == [pytest.approx(1 / 1.1)]


def test_training_steps_take_their_time_in_the_trace():
    jobs = table(["bert"], [1], "gavel")
    paces = MeasuredPaces(RATIOS)
    assert paces.paces(jobs, Run((0,), 1), ()) == [pytest.approx(0.55)]
    assert paces.rates(jobs, Run((0,), 1), ()) == [pytest.approx(1 / 1.1)]


def test_groups_follow_their_own_model():
    jobs = table(["bert", "dqn"], [1, 1])
    groups = Interleaving(factors=(1.5,))
    together = Run((0, 1), 1)
    paces = MeasuredPaces(RATIOS, groups)
    assert paces.paces(jobs, together, ()) == groups.paces(jobs, together, ())
    with pytest.raises(ParamError, match="give the model of groups"):
        MeasuredPaces(RATIOS).paces(jobs, together, ())


def test_an_unknown_model_is_named():
    with pytest.raises(ParamError, match="no measured pace of model 'bret'; did you mean 'bert'"):
        MeasuredPaces(RATIOS).ratio("bret", 1)
