"""Rounds simulated in one call equal rounds simulated one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro import make, simulate
from repro.model.decision import Shares
from repro.model.policy import Policy
from repro.model.view import View
from repro.perf.throughput import ThroughputTable
from repro.policies.gavel.las import GavelLas
from repro.trace import synth

CLUSTER = "3xv100,2xp100,4xk80"


@dataclass(frozen=True)
class Watched(Policy):
    """Gavel's LAS that passes the view to a function at every decision."""

    look: Callable[[View], None]
    needs: ClassVar[frozenset[str]] = GavelLas.needs | {"duration"}

    def session(self, view):
        decide = GavelLas().session(view)

        def decided(view):
            self.look(view)
            return decide(view)

        return decided


@dataclass(frozen=True)
class Halves(Policy):
    """Half of the time on each of two types."""

    def decide(self, view):
        return Shares(list(view.jobs), view.gpu_types, np.full((len(view.jobs), 2), 0.5))


def both(trace, policy, rules="gavel", **options):
    """Jobs with intervals recorded, and without, where one call simulates many rounds."""
    runs = [
        simulate(trace, CLUSTER, policy, rules=rules, keep_intervals=keep, **options)
        for keep in (True, False)
    ]
    assert len(runs[0].intervals) and not len(runs[1].intervals)
    return [run.jobs for run in runs]


@pytest.mark.parametrize(
    "policy",
    ["gavel-las", "las-agnostic", "gavel-las-ss", "gandiva-ss", "gavel-fifo", "allox", "gavel-ftf"],
)
@pytest.mark.parametrize("interval_s", [0.0, 1920.0])
@settings(max_examples=4)
@given(seed=st.integers(0, 99), rate=st.sampled_from([0.3, 0.8]))
def test_as_one_by_one(policy, interval_s, seed, rate):
    trace = synth.make("gavel-single", seed, jobs=25, rate=rate)
    singly, together = both(trace, policy, rounds={"min_realloc_interval_s": interval_s}, seed=seed)
    pd.testing.assert_frame_equal(singly, together)


@pytest.mark.parametrize("stop", [5e4, 1e5, 3e5])
def test_jobs_that_end_before_the_run_is_stopped(stop):
    """A run that is stopped within a round has exactly the completions until then."""
    trace = synth.make("gavel-single", 4, jobs=30, rate=0.5)
    singly, together = both(trace, "las-agnostic", stop_time=stop)
    pd.testing.assert_series_equal(singly["end_time"], together["end_time"])
    assert singly["end_time"].notna().any() and singly["end_time"].isna().any()
    assert together["end_time"].max() <= stop


def test_awaited_jobs_end_as_they_do_with_the_others():
    trace = synth.make("gavel-single", 4, jobs=30, rate=0.5)
    singly, together = both(trace, "gavel-las", until=[12, 3, 20])
    ended = singly["end_time"].notna()
    assert ended.sum() >= 3
    # other completions of the last round may be recorded, too
    assert together.loc[ended, "end_time"].tolist() == singly.loc[ended, "end_time"].tolist()


@pytest.mark.parametrize("policy", ["gavel-las", "las-agnostic", "fifo-agnostic"])
@pytest.mark.parametrize(
    "rounds",
    [
        {"preemption_overhead_s": 30.0},
        {"preemption_overhead_s": 30.0, "lease_renewal": False},
        {"whole_queue": True, "prior_rounds": 0},
        {"drop_unallocated": False, "round_s": 900},
    ],
)
def test_as_one_by_one_under_other_settings(policy, rounds):
    trace = synth.make("gavel-multiple", 3, jobs=25, rate=0.5)
    trace = trace[trace["num_gpus"] <= 2].reset_index(drop=True)
    singly, together = both(trace, policy, rounds=rounds)
    pd.testing.assert_frame_equal(singly, together)


@pytest.mark.parametrize(
    ("rules", "ideal"), [("paper", "fluid"), ("gavel", "fluid"), ("gavel", "artifact")]
)
@pytest.mark.parametrize("policy", ["gavel-las", "gavel-fifo", "gavel-ftf"])
def test_ideal_execution_is_the_same_without_intervals(policy, rules, ideal):
    trace = synth.make("gavel-multiple", 5, jobs=30, rate=0.6)
    trace = trace[trace["num_gpus"] <= 2].reset_index(drop=True)
    singly, together = both(trace, policy, rules=rules, rounds={"ideal": ideal})
    pd.testing.assert_frame_equal(singly, together, rtol=1e-9)


def test_ideal_execution_in_the_seconds_of_a_trace():
    """Half of a V100 and half of a K80, in seconds on a V100: (1 + 1/4) / 2."""
    trace = pd.DataFrame(
        {"job_id": [0], "submit_time": 0.0, "num_gpus": 1, "duration": 100.0, "model": "m"}
    )
    table = ThroughputTable({("m", 1): {"v100": 8.0, "k80": 2.0}}, "v100")
    result = simulate(
        trace, "1xv100,1xk80", Halves(), perf=table, rounds={"ideal": "fluid"}, keep_intervals=False
    )
    assert result.jobs["end_time"].tolist() == pytest.approx([160.0])


def test_an_added_process_sees_the_running_jobs():
    """An added SimPy process sees the jobs that run at its instant."""
    trace = synth.make("gavel-single", 1, jobs=6, rate=1.0)
    seen = []

    def look(engine):
        for _ in range(40):
            yield engine.env.timeout(500.0)
            seen.append(sum(engine.table.running))
            engine.poke()

    simulate(
        trace, "1xv100", make("gavel-las"), rules="gavel", processes=[look], keep_intervals=False
    )
    assert set(seen) == {1}


@pytest.mark.parametrize(
    "quantity",
    [
        "attained",
        "is_running",
        "held",
        "rate",
        "run_seconds",
        "remaining",
        "work_left",
    ],
)
def test_progress_at_a_decision_does_not_depend_on_the_kernel(quantity):
    """A policy sees the same progress with one round per call and with many."""
    trace = synth.make("gavel-single", 2, jobs=12, rate=2.0)

    def progress(keep):
        readings = []

        def read(view, job):
            method = getattr(view, quantity)
            return float(method([job])[0] if quantity == "work_left" else method(job))

        def look(view):
            readings.append([(job, read(view, job)) for job in view.jobs])

        policy = Watched(look)
        simulate(trace, "1xv100,1xk80", policy, rules="gavel", keep_intervals=keep)
        return readings

    in_one_call = progress(False)
    singly = progress(True)
    assert in_one_call == [
        [(job, pytest.approx(value)) for job, value in decision] for decision in singly
    ]
    assert len({value for decision in singly for _, value in decision}) > 1


@pytest.mark.parametrize("rules", ["gavel", "paper"])
@pytest.mark.parametrize("keep", [True, False])
def test_work_left_is_the_seconds_left_at_the_speed_of_the_reference(rules, keep):
    """Steps are read before the seconds, for which the job table must be brought up to date."""
    trace = synth.make("gavel-single", 2, jobs=12, rate=2.0)
    pace = (trace["iterations"] / trace["duration"]).to_numpy()
    seen = []

    def look(view):
        steps = view.work_left(view.jobs).tolist()
        assert [view.work_left([job])[0] for job in view.jobs] == steps
        seconds = [view.remaining(job) for job in view.jobs]
        seen.extend(zip(steps, seconds, pace[view.jobs], strict=True))

    simulate(trace, "1xv100,1xk80", Watched(look), rules=rules, keep_intervals=keep)
    assert len({steps for steps, _, _ in seen}) > 20
    for steps, seconds, speed in seen:
        assert steps == pytest.approx(seconds * speed, rel=1e-3)
