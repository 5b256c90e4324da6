"""A simulation whose jobs start again and again and never progress ends with an error."""

from dataclasses import dataclass

import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import PolicyError
from repro.engine.livelock import MAX_LOST_STARTS
from repro.model.decision import RunSet
from repro.model.policy import Policy
from repro.trace.schema import STAGES

TURN_S = 8.0
LONG_S = 10_000.0


def jobs(*durations):
    """Jobs of one GPU, all submitted at time 0."""
    return pd.DataFrame(
        {"job_id": range(len(durations)), "submit_time": 0.0, "duration": durations, "num_gpus": 1}
    )


@dataclass(frozen=True)
class Turns(Policy):
    """Jobs 0 and 1 take turns on one GPU until ``until_s``; other jobs run all the time."""

    until_s: float = float("inf")

    def decide(self, view):
        taking_turns = [job for job in view.jobs if job < 2]
        if len(taking_turns) == 2 and view.now < self.until_s:
            del taking_turns[1 - int(view.now // TURN_S) % 2]
        others = [job for job in view.jobs if job >= 2]
        return RunSet(taking_turns[:1] + others, wake=(view.now // TURN_S + 1) * TURN_S)


def test_turns_shorter_than_a_start_are_a_livelock():
    with pytest.raises(PolicyError, match=r"livelock at \d+ s") as error:
        simulate(jobs(100.0, 100.0), "1x1", Turns(), overhead=10)
    assert "in the last 2,001 starts none of the 2 unfinished jobs" in str(error.value)


def test_turns_longer_than_a_start_end():
    result = simulate(jobs(100.0, 100.0), "1x1", Turns(), overhead=7)
    assert result.jobs["end_time"].notna().all()


def test_lost_starts_are_no_livelock_while_another_job_progresses():
    lost_starts = LONG_S / TURN_S
    assert lost_starts < MAX_LOST_STARTS * 3 < 4 * lost_starts
    result = simulate(jobs(100.0, 100.0, 4 * LONG_S), "1x2", Turns(until_s=4 * LONG_S), overhead=10)
    assert result.jobs["end_time"].notna().all()


def test_progress_after_some_lost_starts_is_no_livelock():
    result = simulate(jobs(100.0, 100.0), "1x1", Turns(until_s=LONG_S), overhead=10)
    assert result.jobs["end_time"].notna().all()
    assert result.jobs["preemptions"].sum() >= LONG_S / TURN_S


@pytest.mark.parametrize("policy", ["srtf", "tiresias-l"])
def test_decisions_more_often_than_starts_are_a_livelock_under_rules_muri(policy):
    in_iterations = jobs(5000.0, 5000.0).assign(
        iteration_time=1.0, iterations=5000, model="vgg16", **dict.fromkeys(STAGES, 0.25)
    )
    with pytest.raises(PolicyError, match="livelock"):
        simulate(in_iterations, "1x1", policy, rules="muri", interval=2.0)


def test_failures_more_often_than_repairs_end_are_a_livelock():
    with pytest.raises(PolicyError, match="livelock"):
        simulate(jobs(5000.0, 5000.0), "1x2", "srtf", failures="mtbf=4,repair=8")


@pytest.mark.parametrize("failures", ["mtbf=10,repair=1,checkpoint=1", "mtbf=100,repair=80"])
def test_failures_that_leave_some_progress_are_no_livelock(failures):
    result = simulate(jobs(500.0, 500.0), "1x2", "srtf", failures=failures)
    assert result.jobs["end_time"].notna().all()
    assert result.meta["overhead_s"] > 50.0
