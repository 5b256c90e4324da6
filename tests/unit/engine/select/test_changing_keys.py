"""Keys that the engine reads again at every event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from repro import Order, RunSet, check_policy, simulate
from repro.engine.select.changing_keys import _PROGRESS, _STATE
from repro.model.decision import Run
from repro.model.policy import Policy
from repro.model.view import View

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


def queue(jobs: int = 120, seed: int = 0) -> pd.DataFrame:
    """Jobs of three users that queue, with fractional times."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "job_id": range(jobs),
            "submit_time": np.cumsum(rng.exponential(30.0, jobs)),
            "duration": rng.lognormal(5.0, 1.5, jobs),
            "num_gpus": rng.choice([1, 2, 4], jobs),
            "user": rng.choice(["ann", "bob", "cy"], jobs, p=[0.7, 0.2, 0.1]),
        }
    )


@dataclass(frozen=True)
class Shortest(Order):
    """SRTF without a slope."""

    needs: ClassVar[frozenset[str]] = Order.needs | {"duration"}

    def key(self, view, job):
        return view.remaining(job)


@dataclass(frozen=True)
class Least(Order):
    """Least attained service without a slope."""

    def key(self, view, job):
        return (view.attained(job), job)


@dataclass(frozen=True)
class FewestOfUser(Order):
    """The user with the fewest GPUs first."""

    preemptive = False
    needs: ClassVar[frozenset[str]] = Order.needs | {"user"}

    def key(self, view, job):
        users = view.column("user")
        own = sum(view.gpus(other) for other in view.running if users[other] == users[job])
        return (own, job)


@dataclass(frozen=True)
class Sorted(Policy):
    """The decisions of an order, from all its keys at every event."""

    order: Order = Shortest()

    needs: ClassVar[frozenset[str]] = Policy.needs | {"duration", "user"}

    def decide(self, view):
        idle = view.cluster.num_gpus
        keeps = [] if self.order.preemptive else view.running
        waiting = [job for job in view.jobs if job not in keeps]
        runs = []
        for job in [*keeps, *sorted(waiting, key=lambda job: self.order.key(view, job))]:
            if view.gpus(job) <= idle:
                idle -= view.gpus(job)
                runs.append(Run((job,), view.gpus(job)))
        return RunSet(tuple(runs))


@pytest.mark.parametrize("order", [Shortest(), Least(), FewestOfUser()])
def test_an_order_without_slope_is_the_policy_that_sorts_all_jobs(order):
    ends = [simulate(queue(), "2x4", policy).jobs["end_time"] for policy in (order, Sorted(order))]
    assert ends[0].equals(ends[1])


def test_remaining_time_without_slope_is_srtf():
    srtf = simulate(queue(), "2x4", "srtf").jobs["end_time"]
    assert simulate(queue(), "2x4", Shortest()).jobs["end_time"].equals(srtf)


def test_a_slope_leaves_the_key_to_the_heaps():
    reads = []

    @dataclass(frozen=True)
    class Counted(Shortest):
        def key(self, view, job):
            reads.append(job)
            return super().key(view, job)

    @dataclass(frozen=True)
    class WithSlope(Counted):
        def slope(self, view, job):
            return -1.0

    counts = []
    for policy in (WithSlope(), Counted()):
        reads.clear()
        simulate(queue(), "2x4", policy)
        counts.append(len(reads))
    assert counts[0] < counts[1]


#: Names of the view whose values stay the same during a run, or that `ChangingKeys` sees itself.
CONSTANT = {
    "capacity", "cluster", "column", "curves", "deadlines", "duration", "gpu_counts", "gpu_types",
    "gpus", "gpus_of", "has_column", "iteration_s", "job_id", "kind", "kind_codes", "model",
    "needs", "note_promotion", "now", "pair_speeds", "pairs", "prediction_factors",
    "remaining_rate", "row", "seed", "source", "speeds", "submit", "submits", "throughputs",
    "trace_duration", "trace_work", "widths", "work", "work_per_step",
}  # fmt: skip


def test_every_name_of_the_view_is_constant_progress_or_state():
    shown = {name for name in dir(View) if not name.startswith("_")}
    shown |= {"now", "changed", "new_pairs", "finished", "fresh", "cluster", "needs"}
    assert shown == CONSTANT | _PROGRESS | _STATE
