"""Launch, train, save; company that comes and goes; pods that hold GPUs while their job waits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import PolicyError
from repro.model.decision import Run, RunSet
from repro.model.performance import Overhead
from repro.model.policy import Policy
from repro.perf.overhead import Phases
from repro.policies.baselines.scripted import Scripted


class Slower:
    """Two jobs on one GPU run at this speed each."""

    def __init__(self, speed=1 / 1.24):
        self.speed = speed

    def rates(self, table, run, nodes):
        return [self.speed if len(run.jobs) > 1 else 1.0] * len(run.jobs)


def jobs(*submits, duration=100.0, gpus=1, model="a"):
    rows = range(len(submits))
    return pd.DataFrame(
        {"job_id": rows, "submit_time": submits, "duration": duration, "num_gpus": gpus}
        | {"model": model}
    )


@dataclass(frozen=True)
class Together(Policy):
    """All jobs on one GPU."""

    name = "together"

    def decide(self, view):
        return RunSet([Run(tuple(view.jobs), 1)])


def test_a_job_that_gets_company_does_not_launch_again():
    phases = Phases(launch={"a": 20.0}, save={})
    done = simulate(jobs(0.0, 50.0), "1x1", Together(), perf=Slower(), overhead=phases).jobs
    # 30 s of work before 50 s, 70 s more at 1 / 1.24
    assert done["end_time"][0] == pytest.approx(50 + 70 * 1.24)
    second = 70.0 + (50 + 70 * 1.24 - 70.0) / 1.24
    assert done["end_time"][1] == pytest.approx(50 + 70 * 1.24 + 100 - (second - 70.0))


def test_saving_holds_the_gpu_and_is_not_begun_again_by_company():
    phases = Phases(launch={}, save={"a": 30.0})
    # the second arrives while the first saves
    done = simulate(jobs(0.0, 110.0), "1x1", Together(), perf=Slower(), overhead=phases)
    assert done.jobs["end_time"][0] == pytest.approx(130)
    assert done.meta["overhead_s"] == pytest.approx(60)


def test_a_job_that_is_preempted_before_its_last_step_saves_once():
    phases = Phases(launch={"a": 20.0}, save={"a": 30.0})
    trace = jobs(0.0, 50.0).assign(duration=[100.0, 10.0])
    done = simulate(trace, "1x1", "srtf", overhead=phases)
    # the first works from 20 s to 50 s, and again from 50 + 60 + 20 s
    assert done.jobs["end_time"].tolist() == [130 + 70 + 30, 50 + 60]
    assert done.meta["overhead_s"] == 3 * 20 + 2 * 30


@dataclass(frozen=True)
class Ahead(Policy):
    """The second job launches beside the first from 80 s on, and follows it on its GPU."""

    name = "ahead"
    placement = "wished"

    def decide(self, view):
        if view.is_unfinished(0):
            first = Run((0,), 1, tasks=(0,))
            if view.now < 80:
                return RunSet([first], wake=80.0)
            return RunSet([first, Run((1,), 1, hosts=(0,), shared=1)])
        return RunSet([Run((job,), 1, tasks=(0,)) for job in view.jobs])


@pytest.mark.parametrize(
    ("launch", "save", "handover", "trains_from"),
    [
        (10.0, 5.0, 0.0, 115.0),  # launched long before: when the first has saved
        (60.0, 5.0, 0.0, 140.0),  # launched too late
        (10.0, 5.0, 8.0, 118.0),  # the agent sees the idle GPU late
    ],
)
def test_a_guest_launches_beside_its_host(launch, save, handover, trains_from):
    phases = Phases(launch={"a": launch}, save={"a": save}, handover=handover)
    trace = jobs(0.0, 0.0).assign(duration=[110.0 - launch, 100.0])
    done = simulate(trace, "1x1", Ahead(), overhead=phases).jobs
    assert done["end_time"].tolist() == pytest.approx([110 + save, trains_from + 100 + save])


def test_pods_hold_gpus_while_their_job_waits():
    trace = jobs(0.0, 1.0, gpus=2)

    @dataclass(frozen=True)
    class Pods(Policy):
        name = "pods"
        placement = "wished"

        def decide(self, view):
            first = [Run((0,), 2, tasks=(0, 0))] if view.is_unfinished(0) else []
            if not view.is_unfinished(1):
                return RunSet(first)
            whole = Run((1,), 2, tasks=(1, 0))
            return RunSet([*first, Run((1,), 1, tasks=(1,), waits=True) if first else whole])

    done = simulate(trace, "1x2,1x1", Pods())
    assert done.jobs["start_time"].tolist() == [0, 100]
    assert done.jobs["end_time"].tolist() == [100, 200]
    held = done.intervals.query("job_id == 1")[["start", "end", "gpus", "rate", "tasks"]]
    assert held.to_numpy().tolist() == [[1, 100, 1, 0, (1,)], [100, 200, 2, 1, (1, 0)]]
    assert done.jobs["preemptions"].sum() == 0


def test_a_job_that_waits_on_some_gpus_pays_no_start():
    class Load(Overhead):
        every_interval = True

        def start_s(self, table, job):
            return 5.0

    @dataclass(frozen=True)
    class Waits(Policy):
        placement = "wished"

        def decide(self, view):
            runs = [Run((1,), 1, tasks=(1,), waits=True)] if view.is_unfinished(0) else []
            whole = [Run((0,), 1, tasks=(0,))] if runs else [Run((1,), 2, tasks=(0, 1))]
            return RunSet([*whole, *runs] if len(view.jobs) else [])

    trace = jobs(0.0, 0.0).assign(num_gpus=[1, 2])
    done = simulate(trace, "2x1", Waits(), overhead=Load())
    assert done.jobs["end_time"].tolist() == [100, 200]
    assert done.meta["overhead_s"] == 0.0


def test_half_placed_jobs_that_wait_for_each_other_are_one_clear_line():
    halves = Scripted(tuple(Run((job,), 1, tasks=(job,), waits=True) for job in (0, 1)))
    with pytest.raises(PolicyError, match="deadlock at 0 s; 2 jobs, first 0, hold 2 GPUs"):
        simulate(jobs(0.0, 0.0, gpus=2), "2x1", halves, placement="wished")


class Mover(Policy):
    """Moves the job from GPU type a to b at 10 s."""

    names_types = True

    def decide(self, view):
        gpu_type = "a" if view.now < 10 else "b"
        wake = 10.0 if view.now < 10 else math.inf
        return RunSet([Run((0,), 1, gpu_type)], wake=wake)


@pytest.mark.parametrize("placement", ["count", "yarn"])
def test_a_job_that_changes_its_gpu_type_launches_again(placement):
    phases = Phases(launch={"a": 20.0}, save={})
    done = simulate(jobs(0.0), "1x1:a,1x1:b", Mover(), overhead=phases, placement=placement)
    assert done.jobs["jct"].tolist() == [130.0]
