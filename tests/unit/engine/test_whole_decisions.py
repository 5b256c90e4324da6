"""Decisions that name only what changes: the same checks, the same GPUs."""

from dataclasses import dataclass, field, replace

import numpy as np
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
        if self.mistake == "stops an unknown job":
            return RunSet((), keep=True, stop=[7])
        if self.mistake == "names an unknown job":
            return RunSet([Run((7,), 2)], keep=True)
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
        ("stops an unknown job", "'unnamed' names unknown row number 7"),
        ("names an unknown job", "'unnamed' names unknown row number 7"),
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


@dataclass(frozen=True)
class NewestFirst(Policy):
    """Runs the newest jobs; ``order`` makes the order of the decision from the jobs that fit."""

    order: object = tuple

    def decide(self, view):
        free = view.cluster.num_gpus
        runs = []
        for job in reversed(view.jobs):
            if view.gpus(job) <= free:
                free -= view.gpus(job)
                runs.append(job)
        return RunSet(runs, order=self.order(runs))


@dataclass(frozen=True)
class Keeps(FirstComeFirstServed):
    """Names only starts, with the order that ``order`` makes from all jobs."""

    order: object = tuple

    def decide(self, view):
        return replace(super().decide(view), order=self.order(view.jobs))


@pytest.mark.parametrize("policy", [NewestFirst, Keeps])
@pytest.mark.parametrize(
    ("order", "message"),
    [
        (lambda jobs: jobs[:1], "'unnamed', time . s, job .: holds GPUs, but RunSet.order"),
        (lambda jobs: [99], "'unnamed' names unknown row number 99"),
        (lambda jobs: [*jobs, "0"], "'unnamed' names unknown row number '0'"),
        (lambda jobs: [*jobs, 1.5], r"'unnamed' names unknown row number 1\.5"),
        (lambda jobs: [*jobs, None], "'unnamed' names unknown row number None"),
    ],
)
def test_an_order_names_all_jobs_that_hold_gpus(policy, order, message):
    rows = trace((0, 10, 1), (1, 10, 3), (2, 10, 3))
    with pytest.raises(PolicyError, match=message) as caught:
        simulate(rows, "1x4", policy(order))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("policy", [NewestFirst, Keeps])
@pytest.mark.parametrize("order", [list, np.array, lambda jobs: [*jobs, *jobs, 0]])
def test_an_order_may_be_an_array_and_name_further_jobs(policy, order):
    rows = trace((0, 10, 1), (1, 10, 3), (2, 10, 3))
    result = simulate(rows, "1x4", policy(order))
    assert result.jobs.equals(simulate(rows, "1x4", policy()).jobs)


@dataclass(frozen=True)
class Guest(Policy):
    """Starts job 0, and job 1 as its guest; ``alone`` is the instant of the next decision on it."""

    hosts: tuple = (0,)
    shared: float = 4
    keep: bool = True
    alone: bool = False

    def decide(self, view):
        waiting = [job for job in view.jobs if not view.is_running(job)]
        runs = []
        guest = Run((1,), 4, hosts=self.hosts, shared=self.shared)
        if self.alone and 1 in view.jobs and view.run(1) is not None and 0 not in view.jobs:
            return RunSet([1], keep=True) if view.run(1).hosts else RunSet((), keep=True)
        for job in waiting:
            runs.append(guest if job == 1 else job)
        return RunSet(runs, keep=self.keep)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(
    ("hosts", "shared", "message"),
    [
        ((), 4, "job 1: shares 4 of its 4 GPUs with jobs that hold 0"),
        ((0,), 5, "job 1: shares 5 of its 4 GPUs with jobs that hold 4"),
        ((2,), 4, "job 1: shares GPUs with job 2"),
        ((9,), 4, "unknown row number 9"),
    ],
)
def test_hosts_are_checked(keep, hosts, shared, message):
    rows = trace((0, 10, 4), (0, 10, 4), (50, 10, 4))
    with pytest.raises(PolicyError, match=message):
        simulate(rows, "1x4", Guest(hosts, shared, keep), perf=Alike())


def test_a_guest_does_not_outlive_its_host():
    rows = trace((0, 10, 4), (0, 20, 4), (10, 10, 4))
    with pytest.raises(PolicyError, match="time 10 s, job 1: shares GPUs with job 0, which holds"):
        simulate(rows, "1x4", Guest(), perf=Alike())


def test_a_guest_that_is_named_anew_keeps_its_gpus_alone():
    rows = trace((0, 10, 4), (0, 20, 4), (30, 10, 4))
    result = simulate(rows, "1x4", Guest(alone=True), perf=Alike())
    assert result.jobs["end_time"].tolist() == [10, 20, 40]
    assert result.intervals["gpus"].tolist() == [4, 0, 4, 4]


@pytest.mark.parametrize("keep", [True, False])
def test_a_run_without_jobs_is_refused(keep):
    @dataclass(frozen=True)
    class Empty(Policy):
        def decide(self, view):
            return RunSet([Run((), 1)], keep=keep)

    with pytest.raises(PolicyError, match="'unnamed', time 0 s: a Run without jobs"):
        simulate(trace((0, 10, 1)), "1x4", Empty())


@pytest.mark.parametrize("cluster", ["1x4", "1x4:v100,1x4:k80"])
def test_an_unknown_fill_is_refused(cluster):
    @dataclass(frozen=True)
    class Misspelt(Policy):
        def decide(self, view):
            return RunSet(view.jobs, fill="blok")

    with pytest.raises(PolicyError, match=r"returned RunSet\(fill='blok'\); give skip"):
        simulate(trace((0, 10, 1)), cluster, Misspelt())


@pytest.mark.parametrize("cluster", ["1x4", "1x4:v100,1x4:k80"])
@pytest.mark.parametrize("name", ["runs", "order", "stop"])
@pytest.mark.parametrize("values", [iter, len])
def test_a_field_that_is_no_sequence_is_refused(name, values, cluster):
    @dataclass(frozen=True)
    class Iterates(Policy):
        def decide(self, view):
            return RunSet(**({"runs": view.jobs} | {name: values(view.jobs)}))

    message = f"returned RunSet with {name} of type (list_iterator|int); give a list or tuple"
    with pytest.raises(PolicyError, match=message):
        simulate(trace((0, 10, 1)), cluster, Iterates())


class Tenths(Policy):
    """Gives nine tenths of a GPU to one job and the rest to the other, and names changes only."""

    elastic = True

    def decide(self, view):
        runs = [Run((0,), 0.9), Run((1,), 0.1)] if len(view.jobs) == 2 and view.now == 0 else []
        return RunSet(runs, keep=True)


def test_fractions_of_a_gpu_fit_up_to_rounding():
    result = simulate(trace((0, 9, 1), (0, 1, 1)), "1x1", Tenths())
    assert result.jobs["jct"].tolist() == pytest.approx([10.0, 10.0])
