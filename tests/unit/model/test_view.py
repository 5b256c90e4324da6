"""The view shows what happened so far, and of the rest only what is declared."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import PolicyError
from repro.model.decision import Run, RunSet
from repro.model.policy import Policy
from repro.model.typed_shares import TypedShares
from repro.model.view import View
from repro.testing import small_trace


@dataclass(frozen=True)
class Looking(Policy):
    """Runs jobs in order of arrival, preempting none, and records what it sees of job 0."""

    seen: dict = field(default_factory=dict)
    needs: ClassVar[frozenset[str]] = frozenset({"duration", "job_id"})

    def decide(self, view):
        if 0 in view.jobs:
            self.seen[view.now] = {
                "jobs": view.jobs,
                "running": view.running,
                "is_running": view.is_running(0),
                "gpus": view.gpus(0),
                "held": view.held(0),
                "submit": view.submit(0),
                "run_seconds": view.run_seconds(0),
                "attained": view.attained(0),
                "duration": view.duration(0),
                "remaining": view.remaining(0),
            }
        # job 0 steps aside for whoever comes
        return RunSet(view.jobs[::-1])


def test_what_is_seen():
    policy = Looking()
    simulate(small_trace().iloc[[0, 3, 5]], "1x2,1x2", policy)
    # job 0: 10 s on 2 GPUs at 0 s; another 1-GPU job at 4 s, a 4-GPU job at 30 s
    assert policy.seen[0.0] == {
        "jobs": [0],
        "running": [],
        "is_running": False,
        "gpus": 2,
        "held": 0.0,
        "submit": 0.0,
        "run_seconds": 0.0,
        "attained": 0.0,
        "duration": 10.0,
        "remaining": 10.0,
    }
    later = policy.seen[4.0]
    assert later["jobs"] == [0, 1]
    assert later["running"] == [0]
    assert (later["held"], later["run_seconds"], later["attained"]) == (2.0, 4.0, 8.0)
    assert later["remaining"] == 6.0


def test_a_stopped_job_keeps_its_progress_and_counts_its_wait():
    policy = Looking()
    simulate(small_trace().iloc[[0, 2]], "1x4", policy)
    # job 0 runs for 1 s, gives way to a 4-GPU job for 25 s, and resumes
    resumed = policy.seen[26.0]
    assert (resumed["run_seconds"], resumed["attained"]) == (1.0, 2.0)
    assert resumed["remaining"] == 9.0


@dataclass(frozen=True)
class Curious(Policy):
    reads: str = "duration"

    def decide(self, view):
        if self.reads == "duration":
            view.duration(0)
        elif self.reads == "remaining":
            view.remaining(0)
        else:
            view.column(self.reads)
        return RunSet(view.jobs)


@dataclass(frozen=True)
class Declared(Curious):
    needs: ClassVar[frozenset[str]] = frozenset({"duration", "user", "num_gpus"})


@pytest.mark.parametrize("reads", ["duration", "remaining", "user", "num_gpus"])
def test_what_is_not_declared_is_hidden(reads):
    with pytest.raises(PolicyError, match="which it does not declare; add it to its `needs`"):
        simulate(small_trace(), "1x4", Curious(reads))


@pytest.mark.parametrize("reads", ["duration", "remaining", "num_gpus"])
def test_what_is_declared_is_open(reads):
    assert simulate(small_trace(), "1x4", Declared(reads)).summary()["n_finished"] == 6


def test_a_column_the_trace_does_not_have():
    with pytest.raises(PolicyError, match="needs trace column 'user'; the trace has job_id, sub"):
        simulate(small_trace(), "1x4", Declared("user"))


def test_where_jobs_sit():
    seen = []

    @dataclass(frozen=True)
    class Watcher(Policy):
        placement = "wished"

        def decide(self, view):
            seen.append(([view.nodes(job) for job in view.jobs], view.idle_gpus))
            if len(view.jobs) < 2:
                return RunSet([Run((job,), 2, tasks=(1, 0)) for job in view.jobs])
            assert view.run(view.jobs[0]).tasks == (1, 0)
            assert view.run(view.jobs[1]) is None
            held = view.run(view.jobs[0])
            return RunSet([held, Run((view.jobs[1],), 1, tasks=(1,))])

    trace = pd.DataFrame(
        {"job_id": [0, 1], "submit_time": [0.0, 1.0], "duration": [10.0, 3.0], "num_gpus": [2, 1]}
    )
    simulate(trace, "2x2", Watcher())
    assert seen[0] == ([()], [2, 2])
    assert seen[1] == ([((0, 1), (1, 1)), ()], [1, 1])
    assert seen[2] == ([((0, 1), (1, 1))], [1, 1])


@pytest.mark.parametrize("placement", ["yarn", "random"])
def test_idle_gpus_by_node_and_type(placement):
    @dataclass(frozen=True)
    class Watcher(Policy):
        def decide(self, view):
            held = [0] * len(view.cluster.nodes)
            for job in view.running:
                for node, gpus in view.nodes(job):
                    held[node] += gpus
            sizes = [node.gpus for node in view.cluster.nodes]
            assert [s - h for s, h in zip(sizes, held, strict=True)] == view.idle_gpus
            return RunSet(view.jobs)

    for cluster in ("3x4", "2x4:v100,1x4:k80"):
        simulate(small_trace(), cluster, Watcher(), placement=placement)


def test_idle_gpus_need_nodes():
    @dataclass(frozen=True)
    class Watcher(Policy):
        def decide(self, view):
            return RunSet(view.jobs if view.idle_gpus else ())

    with pytest.raises(PolicyError, match="only counts"):
        simulate(small_trace(), "1x4", Watcher())


def test_of_many_jobs_it_says_what_it_says_of_each():
    """Some run, some wait; whoever arrived and finished since the last decision is named."""
    came = []
    gone = []

    @dataclass(frozen=True)
    class Counting(Looking):
        def decide(self, view):
            came.extend(view.fresh)
            gone.extend(view.finished)
            rows = np.array(view.jobs, dtype=np.int64)
            assert view.remaining_of(rows).tolist() == [view.remaining(job) for job in view.jobs]
            assert view.run_seconds_of(rows).tolist() == [view.run_seconds(j) for j in view.jobs]
            assert view.attained_of(rows).tolist() == [view.attained(job) for job in view.jobs]
            assert view.gpus_of(rows).tolist() == [view.gpus(job) for job in view.jobs]
            return RunSet(view.jobs[::-1])

    simulate(small_trace(), "1x4", Counting())
    assert came == list(range(6))
    assert sorted(gone) == sorted(set(gone))


def test_the_list_of_what_a_view_offers_is_complete():
    offered = {name for name in vars(View) if not name.startswith("_")}
    listed = set(re.findall(r"``(\w+)[(`]", View.__doc__ or ""))
    assert offered <= listed, offered - listed


@dataclass(frozen=True)
class WritesFactors(Policy):
    """Computes in place with the factors of the predictions."""

    needs: ClassVar[frozenset[str]] = frozenset({"duration"})

    def decide(self, view):
        error = view.prediction_factors
        error -= 1
        return RunSet(view.jobs)


def test_the_factors_of_predictions_cannot_be_written():
    trace = small_trace().assign(predicted_duration=5.0)
    with pytest.raises(PolicyError, match=r"read-only \(test_view\.py"):
        simulate(trace, "1x4", WritesFactors())


@dataclass(frozen=True)
class EqualShares(TypedShares):
    """Equal shares of the time of each job; may write into the arrays that it is given."""

    writes: bool = False

    def shares(self, kinds):
        demand = kinds.counts @ kinds.widths
        share = min(1.0, kinds.gpus.sum() / demand)
        if self.writes:
            kinds.gpus[:] = 100.0
            kinds.speeds[:] = 0.0
            kinds.widths[:] = 0.0
            kinds.counts[:] = 0.0
        return np.full((len(kinds.widths), len(kinds.gpus)), share / len(kinds.gpus))


def test_what_shares_writes_into_its_kinds_changes_nothing():
    ends = [
        simulate(small_trace(), "1x4", EqualShares(writes)).jobs["end_time"]
        for writes in (False, True)
    ]
    assert ends[0].equals(ends[1])
