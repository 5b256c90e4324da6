"""The scheduler of Tiresias' testbed as a model, by hand and by its own fit."""

from __future__ import annotations

import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import InputWarning
from repro.papers.tiresias import prototype as model
from repro.papers.tiresias.prototype import Measured, Prototype
from repro.perf.overhead import CheckpointOverhead

CLUSTER = "15x4"
SETTINGS = {"thresholds": (3200.0,)}


def test_a_period_and_a_paid_preemption_by_hand() -> None:
    """The master decides at 0, 30, 60 s; a checkpoint takes 5 s, a restart 20 s."""
    jobs = pd.DataFrame(
        {"job_id": [0, 1], "submit_time": [0.0, 20.0], "duration": [100.0, 10.0], "num_gpus": 1}
    )
    overhead = CheckpointOverhead({}, resume=20.0, default_pause=5.0)
    result = simulate(jobs, "1x1", "srtf", interval=30.0, overhead=overhead)
    # Job 0 trains 30 s, writes its checkpoint until 35 s, is seen again at 60 s, trains from 80 s.
    # Job 1 waits for the decision at 30 s and for the GPU until 35 s.
    assert result.jobs["end_time"].tolist() == [150.0, 45.0]
    assert result.jobs["preemptions"].tolist() == [1, 0]
    assert result.meta["overhead_s"] == 25.0


def test_the_time_to_resume_is_the_cost_less_the_pause() -> None:
    """13,724 s in 221 preemptions are 62.1 s each; the mean pause of Figure 4 is 10.37 s."""
    measured = Measured(preemptions=221.0, overhead=13724.0, makespan=27400.0)
    assert model.resume_time(measured) == pytest.approx(51.7295, abs=1e-4)


def test_a_fit_finds_the_prototype_that_made_the_numbers() -> None:
    """Numbers simulated with known parameters are fitted by these parameters."""
    measured = Measured(preemptions=1.0, overhead=62.1, makespan=1.0)
    known = Prototype(period=60.0, resume_s=model.resume_time(measured), work=0.9)
    preemptions, span = model._mean_results(known, [0, 1], CLUSTER, SETTINGS)
    measured = Measured(preemptions, 62.1 * preemptions, span)
    fitted = model.fit(measured, [0, 1], CLUSTER, SETTINGS, Prototype(10.0, 0.0, 1.0))
    assert fitted.resume_s == pytest.approx(known.resume_s)
    assert fitted.work == pytest.approx(known.work, rel=0.03)
    assert abs(fitted.period - known.period) <= 10.0


@pytest.mark.parametrize(
    ("makespan_of_work", "goal", "nearest_s"),
    [
        # would need twice the work
        (lambda work: 30_000 * work, 60_000.0, 45_000.0),
        # no work gives a makespan between the two
        (lambda work: 20_000.0 if work < 1 else 35_000.0, 30_000.0, 35_000.0),
    ],
)
def test_a_makespan_out_of_reach_is_said(monkeypatch, makespan_of_work, goal, nearest_s) -> None:  # type: ignore[no-untyped-def]
    simulated: dict[tuple[float, float], float] = {}

    def run(prototype: Prototype, *_: object) -> tuple[float, float]:
        preemptions = 1000 * prototype.work / prototype.period
        simulated[prototype.period, prototype.work] = preemptions
        return preemptions, makespan_of_work(prototype.work)

    monkeypatch.setattr(model, "_mean_results", run)
    measured = Measured(preemptions=15.0, overhead=930.0, makespan=goal)
    with pytest.warns(InputWarning, match=f"a makespan of {nearest_s:g} s, not {goal:g} s"):
        fitted = model.fit(measured, [0], CLUSTER, SETTINGS, Prototype(10.0, 0.0, 1.0))
    assert makespan_of_work(fitted.work) == nearest_s
    # the period is chosen by the preemptions under the work that is returned
    assert abs(simulated[fitted.period, fitted.work] - 15.0) < 1.0
