"""A simulation in which no job ever progresses ends with an error."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from repro import TypedShares, simulate
from repro.base.compiled import njit
from repro.base.errors import PolicyError
from repro.engine import elastic, livelock
from repro.engine.elastic import compiled_rule
from repro.engine.livelock import MAX_LOST_STARTS
from repro.engine.select.ranked import HeapSelection
from repro.model.decision import RunSet
from repro.model.elastic import HOLDERS, NOW, Elastic, give
from repro.model.policy import Policy
from repro.testing import check_policy
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


def test_starts_that_arrivals_cut_short_are_no_livelock(monkeypatch):
    monkeypatch.setattr(livelock, "MAX_LOST_STARTS", 2)
    burst = jobs(*[100.0] * 20).assign(
        submit_time=np.arange(20.0),
        iteration_time=1.0,
        iterations=100,
        model="vgg16",
        **dict.fromkeys(STAGES, 0.25),
    )
    result = simulate(burst, "20x1", "srtf", rules="muri")
    assert result.jobs["end_time"].notna().all()


def test_failures_more_often_than_repairs_end_are_a_livelock():
    with pytest.raises(PolicyError, match="livelock"):
        simulate(jobs(5000.0, 5000.0), "1x2", "srtf", failures="mtbf=4,repair=8")


@pytest.mark.parametrize("failures", ["mtbf=10,repair=1,checkpoint=1", "mtbf=100,repair=80"])
def test_failures_that_leave_some_progress_are_no_livelock(failures):
    result = simulate(jobs(500.0, 500.0), "1x2", "srtf", failures=failures)
    assert result.jobs["end_time"].notna().all()
    assert result.meta["overhead_s"] > 50.0


def test_failures_before_every_checkpoint_are_a_livelock(monkeypatch):
    monkeypatch.setattr(livelock, "MAX_LOST_FAILURES", 200)
    with pytest.raises(PolicyError, match=r"livelock .* 201 failures none of the 2 .* checkpoint"):
        simulate(jobs(500.0, 500.0), "1x2", "srtf", failures="mtbf=10,repair=1,checkpoint=400")
    result = simulate(jobs(500.0, 500.0), "1x2", "srtf", failures="mtbf=10,repair=1,checkpoint=20")
    assert result.jobs["end_time"].notna().all()


def test_each_failure_is_handled_once(monkeypatch):
    """A running job that fails while another waits is not listed again for each failure before."""
    calls = []
    move = HeapSelection.move
    monkeypatch.setattr(livelock, "MAX_LOST_FAILURES", 200)
    monkeypatch.setattr(HeapSelection, "move", lambda *call: calls.append(call) or move(*call))
    with pytest.raises(PolicyError, match="201 failures"):
        simulate(jobs(500.0, 900.0), "1x1", "srtf", failures="mtbf=10,repair=1")
    assert 200 <= len(calls) <= 3 * 201


def test_failures_of_one_node_are_no_livelock_while_a_job_progresses_on_another(monkeypatch):
    monkeypatch.setattr(livelock, "MAX_LOST_FAILURES", 200)

    def failures(engine):
        while True:
            yield engine.env.timeout(1.0)
            engine.fail(0, checkpoint_s=100.0)

    options = {"placement": "yarn", "processes": [failures], "stop_time": 1000.0}
    ends = simulate(jobs(10.0, 900.0), "2x1", "srtf", **options).jobs["end_time"]
    assert ends[1] == 900.0


# no job runs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Night(Policy):
    """Runs all jobs from ``opens_s`` on, and asks every minute."""

    opens_s: float = float("inf")

    def decide(self, view):
        is_open = view.now >= self.opens_s
        return RunSet(view.jobs if is_open else (), wake=view.now + 60)


@dataclass(frozen=True)
class NoShares(TypedShares):
    """Gives no job a share, and leaves its GPUs idle."""

    idle_ok = True

    def shares(self, kinds):
        return np.zeros_like(kinds.speeds)


@pytest.fixture
def few_idle_decisions(monkeypatch):
    monkeypatch.setattr(livelock, "MAX_IDLE_DECISIONS", 50)
    monkeypatch.setattr(elastic, "MAX_IDLE_DECISIONS", 50)


@pytest.mark.parametrize("policy", [Night(), Night(opens_s=52 * 60), NoShares()])
def test_decisions_that_run_no_job_end(few_idle_decisions, policy):
    with pytest.raises(PolicyError, match=r"leaves 2 jobs waiting for ever .* 51 decisions run no"):
        simulate(jobs(100.0, 200.0), "1x2", policy)


def test_idle_decisions_before_an_arrival_or_a_run_are_no_livelock(few_idle_decisions):
    trace = jobs(100.0, 200.0).assign(submit_time=[0.0, 6000.0])
    ends = simulate(trace, "1x2", Night(opens_s=8000.0)).jobs["end_time"]
    assert ends.tolist() == [8140.0, 8240.0]


@njit()
def _no_memory(jobs, settings, s, job):
    pass


@njit()
def _give_narrow_jobs(jobs, settings, s):
    """One GPU for each job that demands one; wider jobs get none."""
    holders = 0
    for job in range(len(jobs.work)):
        if jobs.submit[job] <= s.clock[NOW] and jobs.demand[job] == 1 and s.work_left[job] > 0.0:
            give(jobs, s, job, 1.0)
            s.holders[holders] = job
            holders += 1
    s.tally[HOLDERS] = holders


@dataclass(frozen=True)
class NarrowOnly(Elastic):
    """Never gives a GPU to a job that demands several, and divides again every ``lease_s``."""

    turn_s: float = float("inf")

    needs = frozenset({"duration"})
    rule: ClassVar[Any] = compiled_rule(_no_memory, _no_memory, _give_narrow_jobs)

    @property
    def lease_s(self):
        return self.turn_s


@pytest.mark.parametrize("turn_s", [float("inf"), 10.0])
@pytest.mark.parametrize("rules", ["paper", "pcs"])
def test_a_compiled_division_that_leaves_a_job_out_ends(few_idle_decisions, turn_s, rules):
    trace = jobs(100.0, 200.0).assign(num_gpus=[1, 2])
    with pytest.raises(PolicyError, match=r"leaves 1 jobs waiting for ever at \d+ s, first 1"):
        simulate(trace, "1x2", NarrowOnly(turn_s), rules=rules, predict=0)
    assert simulate(trace.head(1), "1x2", NarrowOnly(turn_s), rules=rules).jobs["jct"][0] == 100.0


def test_check_policy_names_the_trace_on_which_a_rule_with_ticks_never_ends(few_idle_decisions):
    with pytest.raises(PolicyError, match=r"trace 'steady': policy .* waiting for ever"):
        check_policy(NarrowOnly(10.0), rules="pcs", cluster="1x8")
