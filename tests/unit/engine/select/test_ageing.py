"""Keys that change with the clock while a job waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import pytest

from repro import Order, RunSet, check_policy, simulate
from repro.model.decision import Run
from repro.model.policy import Policy

STREAM = pd.DataFrame(
    [("big", 1.0, 7200.0, 8), *((f"s{i}", i * 500.0, 500.0, 8) for i in range(30))],
    columns=["job_id", "submit_time", "duration", "num_gpus"],
)


@dataclass(frozen=True)
class Aged(Order):
    """Shortest job first; a job that waited longer than ``patience_s`` comes first."""

    patience_s: float = 3600.0
    every_s: float = float("inf")

    needs: ClassVar[frozenset[str]] = Order.needs | {"duration"}
    time_fields: ClassVar[tuple[str, ...]] = ("patience_s", "every_s")

    def key(self, view, job):
        waited_s = view.now - view.submit(job) - view.run_seconds(job)
        return (waited_s <= self.patience_s, view.duration(job), job)

    def quantum_s(self):
        return self.every_s


@dataclass(frozen=True)
class AgedDecisions(Policy):
    """The same as a policy that lists all jobs at every event."""

    patience_s: float = 3600.0

    needs: ClassVar[frozenset[str]] = Policy.needs | {"duration"}
    time_fields: ClassVar[tuple[str, ...]] = ("patience_s",)

    def decide(self, view):
        key = Aged(self.patience_s).key
        runs, idle = [], view.cluster.num_gpus
        for job in sorted(view.jobs, key=lambda job: key(view, job)):
            if view.gpus(job) <= idle:
                idle -= view.gpus(job)
                runs.append(Run((job,), view.gpus(job)))
        return RunSet(tuple(runs))


def start_of_big(policy, **options):
    return (
        simulate(STREAM, "1x8", policy, **options).jobs.set_index("job_id").loc["big", "start_time"]
    )


@pytest.mark.parametrize("cluster", ["1x8", "4x2"])
def test_a_waiting_job_comes_first_at_the_first_event_after_its_patience(cluster):
    result = simulate(STREAM, cluster, Aged())
    assert result.jobs.set_index("job_id").loc["big", "start_time"] == 4000.0


def test_a_quantum_reads_the_keys_between_events():
    assert start_of_big(Aged(every_s=60.0)) == 3660.0


def test_without_patience_the_big_job_is_last():
    assert start_of_big(Aged(patience_s=1e8)) == 15000.0


@pytest.mark.parametrize("patience_s", [1.0, 20.0, 900.0])
def test_an_order_with_ageing_is_the_policy_that_sorts_all_jobs(patience_s):
    ends = [
        simulate(STREAM.assign(num_gpus=[5, *[3, 8, 2] * 10]), "1x8", policy).jobs["end_time"]
        for policy in (Aged(patience_s), AgedDecisions(patience_s))
    ]
    assert ends[0].equals(ends[1])


def test_ageing_on_several_gpu_types():
    result = simulate(STREAM, "1x8:v100,1x8:k80", Aged())
    assert result.jobs["end_time"].notna().all()


@pytest.mark.parametrize("patience_s", [1.0, 20.0, 3600.0])
def test_the_battery_holds(patience_s):
    check_policy(Aged(patience_s))
