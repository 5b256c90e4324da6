"""Wrong decisions are refused with policy, time and job, and never let a simulation hang."""

import re
from dataclasses import dataclass, field

import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import PolicyError
from repro.model.decision import Run, RunSet
from repro.model.policy import Policy


def trace(*rows):
    columns = ["job_id", "submit_time", "duration", "num_gpus"]
    return pd.DataFrame([(n, *row) for n, row in enumerate(rows)], columns=columns).astype(
        {"submit_time": float, "duration": float}
    )


@dataclass(frozen=True)
class WakesAt(Policy):
    """Runs the first job, and wakes at ``wake`` or ``delay`` seconds after the present instant."""

    wake: float | None = None
    delay: float = 0.0

    def decide(self, view):
        return RunSet(view.jobs[:1], wake=view.now + self.delay if self.wake is None else self.wake)


@pytest.mark.parametrize("cluster", ["1x4", "1x4:v100,1x4:k80"])
@pytest.mark.parametrize("policy", [WakesAt(5.0), WakesAt(delay=0.0), WakesAt(float("-inf"))])
def test_a_wake_up_that_never_comes_after_the_present_instant_is_refused(policy, cluster):
    with pytest.raises(PolicyError, match=r", time [05] s: RunSet\(wake=(0|5|-inf)\).*view.now"):
        simulate(trace((0, 10, 1)), cluster, policy)


def test_a_wake_up_at_the_present_instant_is_no_mistake_at_intervals():
    result = simulate(trace((0, 10_000, 1)), "1x4", WakesAt(5.0), interval=1.0)
    assert result.jobs["end_time"].tolist() == [10_000]


def test_wake_ups_after_short_delays_let_the_job_end():
    result = simulate(trace((0, 10, 1)), "1x4", WakesAt(delay=1 / 512))
    assert result.jobs["end_time"].tolist() == [10]


@dataclass(frozen=True)
class Decides(Policy):
    """Always makes the same decision."""

    decision: RunSet = field(default_factory=lambda: RunSet(()))
    elastic: bool = False

    def decide(self, view):
        return self.decision


@pytest.mark.parametrize("elastic", [False, True])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("row", [99, -1, 0.5, 0.0, 1.0, "a", None, [1]])
def test_a_row_number_that_the_trace_does_not_have_is_named(row, keep, elastic):
    named = f"policy .* names unknown row number {re.escape(repr(row))}$"
    decisions = [RunSet([row], keep=keep), RunSet([Run((row,), 1)], keep=keep)]
    decisions.append(RunSet([Run((0, row), 1)], keep=keep))
    decisions.append(RunSet((), keep=True, stop=[row]))
    for decision in decisions:
        with pytest.raises(PolicyError, match=named):
            simulate(
                trace((0, 10, 1), (0, 10, 1)), "1x4", Decides(decision=decision, elastic=elastic)
            )


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    ("run", "mistake"),
    [
        (Run(0, 1), r"names Run\(jobs=0\); give a tuple of row numbers"),
        (Run(1, 1), r"names Run\(jobs=1\); give a tuple of row numbers"),
        (Run((1,), 1, hosts=2), r"names Run\(hosts=2\); give a tuple of row numbers"),
        (Run((1,), 1, hosts=([0],)), r"names unknown row number \[0\]"),
    ],
)
def test_jobs_and_hosts_of_a_gang_are_tuples_of_row_numbers(keep, run, mistake):
    with pytest.raises(PolicyError, match=mistake):
        simulate(
            trace((0, 10, 1), (0, 10, 1)), "1x4", Decides(decision=RunSet([0, run], keep=keep))
        )


def test_stop_without_keep_is_refused():
    decision = RunSet([0], stop=[0])
    with pytest.raises(PolicyError, match="without keep=True; without keep, every job"):
        simulate(trace((0, 10, 1)), "1x4", Decides(decision=decision))


@pytest.mark.parametrize("keep", [False, True])
def test_a_gang_without_jobs_is_refused(keep):
    decision = RunSet([0, Run((), 1)], keep=keep)
    with pytest.raises(PolicyError, match=r"time 0 s: a Run without jobs"):
        simulate(trace((0, 10, 1)), "1x4", Decides(decision=decision))
