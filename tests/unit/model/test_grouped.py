"""A policy of ten lines on `Grouped`: completion times by hand, and wrong answers refused."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import PolicyError
from repro.model.decision import Run, RunSet
from repro.model.grouped import Grouped
from repro.perf import Interleaving

TURNS = Interleaving(("stage_cpu", "stage_gpu"))


class Neighbours:
    """Two jobs to a GPU, in order of arrival."""

    def __init__(self, view):
        self.line = []
        self.told = []

    def __call__(self, view):
        self.told += [(view.now, "left", job) for job in view.finished]
        self.told += [(view.now, "came", job) for job in view.fresh]
        self.line = [job for job in self.line if job not in view.finished] + [*view.fresh]
        pairs = [tuple(self.line[i : i + 2]) for i in range(0, len(self.line), 2)]
        return RunSet([Run(pair, 1) for pair in pairs])


@dataclass(frozen=True)
class TwoByTwo(Grouped):
    """Groups of two."""

    run: type = Neighbours

    def session(self, view):
        run = self.run(view)
        seen.append(run)
        return run


seen = []


def trace(*rows):
    """Return jobs of one GPU: (submit, duration, time on the CPU, time on the GPU)."""
    frame = pd.DataFrame(rows, columns=["submit_time", "duration", "stage_cpu", "stage_gpu"])
    return frame.astype(float).assign(job_id=range(len(rows)), num_gpus=1)


def jct(jobs, cluster, run=Neighbours, perf=TURNS):
    return simulate(jobs, cluster, TwoByTwo(run), perf=perf).jobs["jct"].tolist()


def test_jobs_that_complement_each_other_lose_no_time():
    """T of (2, 1) and (1, 2) is 3, what each takes alone; the third job has a GPU of its own."""
    assert jct(trace((0, 30, 2, 1), (0, 60, 1, 2), (0, 12, 2, 1)), "1x2") == [30, 60, 12]


def test_equal_jobs_slow_each_other_down_until_one_leaves():
    """T is 4 where 3 would do alone: 40 s for the first, then the other has 30 s left."""
    assert jct(trace((0, 30, 2, 1), (0, 60, 2, 1)), "1x1") == [40, 70]


def test_each_job_comes_and_leaves_once():
    """Nothing is asked once no job is left."""
    seen.clear()
    assert jct(trace((0, 30, 2, 1), (0, 60, 2, 1), (50, 15, 1, 2)), "1x1") == [40, 70, 15]
    (run,) = seen
    assert run.told[:2] == [(0, "came", 0), (0, "came", 1)]
    assert run.told[2:] == [(40, "left", 0), (50, "came", 2), (65, "left", 2)]


def test_what_was_remembered_belongs_to_one_run():
    jobs = trace((0, 30, 2, 1), (0, 60, 2, 1))
    assert jct(jobs, "1x1") == jct(jobs, "1x1")


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        ([Run((0, 1), 1), Run((1,), 1)], "time 0 s, job 1: names the job twice"),
        ([Run((0, 2), 1)], "job 2: names a job that is neither waiting nor running"),
        ([Run((0, 1), 2)], "job 0: gives it 2 GPUs, but its demand is 1; give all or none"),
        ([Run((0,), 1, hosts=(1,), shared=1)], "job 0: shares GPUs with job 1, which the decision"),
    ],
)
def test_wrong_groups_are_refused_in_one_line(runs, says):
    class Wrong(Neighbours):
        def __call__(self, view):
            return RunSet(runs)

    with pytest.raises(PolicyError, match=says) as caught:
        jct(trace((0, 30, 2, 1), (0, 60, 2, 1), (9, 5, 1, 1)), "1x2", Wrong)
    assert "\n" not in str(caught.value)


def test_without_a_model_of_their_speed_groups_are_refused():
    with pytest.raises(PolicyError, match="groups jobs; simulate it with a performance model"):
        jct(trace((0, 30, 2, 1), (0, 60, 2, 1)), "1x1", perf=None)
