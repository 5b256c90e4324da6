"""Decisions that name only what changes: the same checks, the same GPUs."""

from dataclasses import dataclass, field

import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import PolicyError
from repro.model.decision import Run, RunSet
from repro.model.policy import Policy
from repro.testing import check_policy


def trace(*rows):
    columns = ["job_id", "submit_time", "duration", "num_gpus"]
    return pd.DataFrame([(n, *row) for n, row in enumerate(rows)], columns=columns).astype(
        {"submit_time": float, "duration": float}
    )


@dataclass(frozen=True)
class FirstComeFirstServed(Policy):
    """Starts what fits in order of arrival, and names nothing else."""

    def decide(self, view):
        free = view.cluster.num_gpus - sum(view.held(job) for job in view.running)
        runs = []
        for job in view.jobs:
            if not view.is_running(job):
                if view.gpus(job) > free:
                    break
                free -= view.gpus(job)
                runs.append(job)
        return RunSet(runs, keep=True)


@dataclass(frozen=True)
class Wrong(Policy):
    """Makes one kind of mistake at the first event."""

    mistake: str = ""

    def decide(self, view):
        if self.mistake == "too many":
            return RunSet(view.jobs, keep=True)
        if self.mistake == "stops a waiting job":
            return RunSet((), keep=True, stop=view.jobs[:1])
        if self.mistake == "twice":
            return RunSet([view.jobs[0], view.jobs[0]], keep=True)
        return RunSet([Run((view.jobs[0],), 2)], keep=True)


@dataclass(frozen=True)
class Pair(Policy):
    """Runs the first two jobs on the same GPUs, and the third alone from an instant on."""

    alone_from: float = 0.0

    def decide(self, view):
        if view.now == 0:
            return RunSet([Run((0, 1), 2)], keep=True)
        return RunSet([2] if view.now >= self.alone_from else (), keep=True)


class Alike:
    """Lets every job run at full speed."""

    def rates(self, table, run, nodes):
        return [1.0] * len(run.jobs)


def test_what_is_not_named_keeps_its_gpus():
    check_policy(FirstComeFirstServed())


def test_it_is_the_same_schedule_as_naming_everything():
    rows = trace((0, 10, 2), (1, 10, 2), (2, 5, 4), (3, 5, 1))
    result = simulate(rows, "1x4", FirstComeFirstServed())
    assert result.jobs["start_time"].tolist() == [0, 1, 11, 16]
    assert result.jobs["preemptions"].sum() == 0
    assert len(result.intervals) == 4


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("too many", "but only 0 are free"),
        ("stops a waiting job", "it holds no GPUs"),
        ("twice", "holds no GPUs|names the job twice"),
        ("half a gang", "all or none"),
    ],
)
def test_mistakes_are_named(mistake, message):
    with pytest.raises(PolicyError, match=message):
        simulate(trace((0, 10, 4), (0, 10, 4)), "1x4", Wrong(mistake))


def test_gpus_of_a_group_come_back_with_its_last_member():
    rows = trace((0, 5, 2), (0, 10, 2), (0, 10, 4))
    perf = Alike()
    assert simulate(rows, "1x4", Pair(10), perf=perf).jobs["end_time"].tolist() == [5, 10, 20]
    with pytest.raises(PolicyError, match="time 5 s, job 2: gives it 4 GPUs, but only 2 are free"):
        simulate(rows, "1x4", Pair(5), perf=perf)


@dataclass(frozen=True)
class Regrouped(Policy):
    """Runs jobs 0 and 1 together, from 10 s on each alone; ``seen`` gets the types held."""

    seen: list = field(default_factory=list)

    def decide(self, view):
        self.seen.append(view._table.state.type_column.tolist())
        if view.now == 0:
            return RunSet([Run((0, 1), 2, "b")], keep=True, wake=10.0)
        if view.now == 10:
            return RunSet([Run((1,), 2, "a"), Run((0,), 2, "b")], stop=[0], keep=True, wake=11.0)
        return RunSet((), keep=True)


def test_a_job_that_is_stopped_may_be_named_anew():
    policy = Regrouped()
    rows = trace((0, 20, 2), (0, 20, 2))
    result = simulate(rows, "1x2:a,1x2:b", policy, perf=Alike())
    assert result.jobs["end_time"].tolist() == [20, 20]
    assert result.jobs["preemptions"].sum() == 0
    assert policy.seen[:3] == [[-1, -1], [1, 1], [1, 0]]


@dataclass(frozen=True)
class WakesAt(Policy):
    """Wakes at ``wake``."""

    wake: object = None

    def decide(self, view):
        return RunSet(view.jobs[:1], wake=self.wake)


@pytest.mark.parametrize("wake", [None, "60", float("nan")])
@pytest.mark.parametrize("cluster", ["1x4", "1x4:v100,1x4:k80"])
def test_an_instant_of_waking_that_is_no_number_is_refused(wake, cluster):
    with pytest.raises(PolicyError, match="leave wake out to decide at events only"):
        simulate(trace((0, 10, 1)), cluster, WakesAt(wake))
