"""Rates that change while a job runs: a toy goodput that falls with the progress of a job."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from repro import Cluster, Policy, RunSet, simulate
from repro.base.errors import ParamError
from repro.model.decision import Run
from repro.perf.overhead import CheckpointOverhead
from repro.testing.audit import check_records


@dataclass(frozen=True)
class Goodput:
    """Efficiency of each epoch of a job; an epoch is an equal part of its work."""

    efficiency: tuple[float, ...] = (1.0, 0.5)

    def epoch(self, table, job):
        done = 1.0 - table.work_left[job] / table.work[job]
        return min(int(done * len(self.efficiency) + 1e-9), len(self.efficiency) - 1)

    def rates(self, table, run, nodes):
        return [self.efficiency[self.epoch(table, job)] for job in run.jobs]

    def renew(self, table, run, nodes):
        (job,) = run.jobs
        epoch = self.epoch(table, job)
        if epoch == len(self.efficiency) - 1:
            return math.inf
        end = table.work[job] * (1.0 - (epoch + 1) / len(self.efficiency))
        return (table.work_left[job] - end) * table.solo[job] / self.efficiency[epoch]


def jobs(submit, duration, gpus):
    return pd.DataFrame(
        {
            "job_id": range(len(submit)),
            "submit_time": submit,
            "duration": duration,
            "num_gpus": gpus,
        }
    )


def ends(trace, policy="best-effort", cluster="1x4", **options):
    result = simulate(trace, cluster, policy, perf=Goodput(), **options)
    check_records(result, Cluster.parse(cluster), exact="overhead" not in options)
    return result.jobs.sort_values("job_id")["end_time"].tolist()


def test_a_job_slows_down_at_its_next_epoch():
    assert ends(jobs([0.0, 10.0], [100.0, 40.0], [2, 2])) == [150.0, 70.0]


def test_a_job_in_steps_slows_down_at_its_next_epoch():
    # steps of 2 s
    trace = jobs([0.0, 10.0], [100.0, 40.0], [2, 2]).assign(iterations=[50, 20])
    assert ends(trace, "srtf", rules="gavel") == [150.0, 70.0]


def test_a_preempted_job_goes_on_in_its_epoch():
    # job 0 has done 60 of 100 s of work (50 at rate 1, 10 at rate 1/2) when job 1 takes its GPUs
    trace = jobs([0.0, 70.0], [100.0, 20.0], [4, 4])
    assert ends(trace, "srtf") == [70.0 + 30.0 + 80.0, 70.0 + 30.0]


def test_a_renewal_waits_until_a_job_has_loaded():
    trace = jobs([0.0, 40.0], [100.0, 20.0], [4, 4])
    # job 0 has 60 s of work left at 60 s, loads for 30 s, does 10 s at rate 1 and 50 at rate 1/2
    overhead = CheckpointOverhead({}, resume=30.0)
    assert ends(trace, "srtf", overhead=overhead) == [70.0 + 30.0 + 10.0 + 100.0, 70.0]


def test_intervals_have_one_rate_each():
    result = simulate(jobs([0.0], [100.0], [1]), "1x4", "best-effort", perf=Goodput())
    spans = result.intervals[["start", "end", "rate"]].to_numpy().tolist()
    assert spans == [[0.0, 50.0, 1.0], [50.0, 150.0, 0.5]]
    assert result.jobs["preemptions"].tolist() == [0]


def test_a_job_may_slow_down_several_times():
    perf = Goodput((1.0, 0.5, 0.25))
    result = simulate(jobs([0.0], [90.0], [1]), "1x4", "srtf", perf=perf)
    assert result.intervals["start"].tolist() == pytest.approx([0.0, 30.0, 90.0])
    assert result.jobs["end_time"].tolist() == pytest.approx([210.0])


def test_the_policy_decides_at_a_renewal():
    seen = []

    @dataclass(frozen=True)
    class Watching(Policy):
        def decide(self, view):
            seen.append(view.now)
            return RunSet(view.jobs)

    simulate(jobs([0.0], [100.0], [1]), "1x4", Watching(), perf=Goodput())
    assert seen == [0.0, 50.0]


@pytest.mark.parametrize(
    ("policy", "options"),
    [("srtf", {"rules": "muri"}), ("proportional", {})],
)
def test_where_jobs_do_not_progress_by_events_it_is_refused(policy, options):
    trace = jobs([0.0], [100.0], [1]).assign(
        iterations=100.0, iteration_time=1.0, model="vgg16", batch_size=16
    )
    with pytest.raises(ParamError, match="rates that change while jobs run"):
        simulate(trace, "1x4", policy, perf=Goodput(), **options)


@pytest.mark.parametrize("options", [{}, {"slowdown": 2}], ids=["alone", "slowed"])
@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, None, "1"])
def test_a_renewal_lies_ahead(seconds, options):
    class Standing(Goodput):
        def renew(self, table, run, nodes):
            return seconds

    message = f"`renew` is {seconds!r} for the gang of job 0; give a number of seconds above 0, or"
    with pytest.raises(ParamError, match=message):
        simulate(jobs([0.0], [100.0], [1]), "1x4", "best-effort", perf=Standing(), **options)


def test_a_renewal_within_the_rounding_of_the_clock_comes_at_the_next_float():
    class Soon(Goodput):
        def renew(self, table, run, nodes):
            return 1e-9 if table.held_since[run.jobs[0]] == 1e9 else math.inf

    trace = jobs([0.0, 1e9], [1.0, 100.0], [1, 1])
    result = simulate(trace, "1x4", "best-effort", perf=Soon((1.0,)))
    assert result.intervals["start"].tolist() == [0.0, 1e9, math.nextafter(1e9, math.inf)]


@pytest.mark.parametrize("group", [(0, 1), (1, 0)])
def test_a_group_has_its_renewal_also_after_one_of_its_jobs_ended(group):
    class Together(Policy):
        def decide(self, view):
            return RunSet([Run(group, 1)])

    class Longest(Goodput):
        def renew(self, table, run, nodes):
            job = max(run.jobs, key=table.work.__getitem__)
            return super().renew(table, Run((job,), 1), nodes)

    # job 0 ends between two decisions, before job 1 slows down at 50 s
    trace = jobs([0.0, 0.0], [30.0, 100.0], [1, 1])
    result = simulate(trace, "1x4", Together(), perf=Longest(), interval=1000.0)
    assert result.jobs["end_time"].tolist() == [30.0, 150.0]


def test_divisible_gpus_go_event_by_event_where_rates_change():
    class Divisible(Goodput):
        def table(self, models, gpus, ids):
            return np.zeros((1, 5)), np.zeros(len(ids), np.int64)

    result = simulate(jobs([0.0], [100.0], [1]), "1x4", "fifo-elastic", perf=Divisible())
    assert result.jobs["end_time"].tolist() == [150.0]
