"""Gandiva's fixed step, in both forms: skipped decisions, compiled runs, sizes of gangs."""

import dataclasses
import functools
import itertools

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import ParamError
from repro.model.cluster import Cluster, Node
from repro.model.metrics import busy_gpus
from repro.policies.tiresias import _gandiva_run, _gandiva_simulator, gandiva
from repro.policies.tiresias.gandiva import Gandiva

# left out by `make check`
pytestmark = pytest.mark.slow

CLUSTERS = ["2x4", "6x4"]
#: First submission (s) and seconds between rotations.
PACES = [(0.0, 60.0), (3.0, 60.0), (0.0, 45.0)]


def jobs_that_queue(begin=0.0, sizes=(1, 2, 4, 8)):
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "job_id": np.arange(80),
            "submit_time": np.sort(rng.choice([10.0, 60.0, 7.0], 80) * rng.integers(0, 60, 80))
            + begin,
            "duration": rng.integers(30, 1500, 80).astype(float),
            "num_gpus": rng.choice(sizes, 80),
        }
    )


def use_engine(monkeypatch):
    """Simulate by the engine instead of compiled steps."""
    monkeypatch.setattr(Gandiva, "compiled_run", lambda policy, cluster: None)


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize(("begin", "slice_s"), [*PACES, (0.25, 45.0)])
@pytest.mark.parametrize("form", ["paper", "simulator"])
def test_steps_that_change_nothing_are_skipped(cluster, begin, slice_s, form, monkeypatch):
    use_engine(monkeypatch)
    trace = jobs_that_queue(begin)
    policy = Gandiva(slice_s=slice_s, step_s=10.0, form=form)
    skipping = simulate(trace, cluster, policy, rules="tiresias")
    if form == "paper":
        # counts that change at every step make the policy decide every 10 s
        decisions = itertools.count()
        monkeypatch.setattr(gandiva._Slicer, "_fingerprint", lambda slicer: [next(decisions)])
    else:
        next_step = lambda sets, now, slice_s, step_s: now + step_s  # noqa: E731
        monkeypatch.setattr(_gandiva_simulator, "_next_change", next_step)
    deciding = simulate(trace, cluster, policy, rules="tiresias")
    pd.testing.assert_frame_equal(skipping.jobs, deciding.jobs)
    pd.testing.assert_frame_equal(skipping.intervals, deciding.intervals)
    assert cluster == "6x4" or skipping.jobs["preemptions"].sum() > 0


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize(
    ("begin", "slice_s", "step_s"), [*((*pace, 10.0) for pace in PACES), (0.3, 7.4, 3.7)]
)
@pytest.mark.parametrize("sizes", [(1, 2, 4, 8), (3, 5, 7, 1)])
def test_the_compiled_run_equals_that_of_the_engine(
    cluster, begin, slice_s, step_s, sizes, monkeypatch
):
    trace = jobs_that_queue(begin, sizes)
    policy = Gandiva(slice_s=slice_s, step_s=step_s)
    monkeypatch.setattr(
        gandiva, "simulate_steps", functools.partial(_gandiva_run.simulate_steps, at_once=50)
    )
    compiled = simulate(trace, cluster, policy, rules="tiresias")
    use_engine(monkeypatch)
    engine = simulate(trace, cluster, policy, rules="tiresias")
    pd.testing.assert_frame_equal(compiled.jobs, engine.jobs, check_exact=True)
    order = ["job_id", "start"]
    pd.testing.assert_frame_equal(
        compiled.intervals.sort_values(order, ignore_index=True),
        engine.intervals.sort_values(order, ignore_index=True),
        check_dtype=False,
        check_exact=True,
    )
    assert compiled.jobs["end_time"].notna().all()


def test_sizes_of_the_public_simulator_are_visited_first():
    trace = jobs_that_queue(sizes=(1, 2, 3, 7, 16))
    cluster = simulate(trace, "4x8", Gandiva(), rules="tiresias").meta["cluster"]
    widths = trace["num_gpus"].to_numpy(float)
    sets = _gandiva_simulator.empty_sets(widths, gandiva.Cluster.parse(cluster))
    assert sets.gpus.tolist() == [16, 1, 2, 3, 7]
    assert sets.nodes.tolist() == [2, 1, 1, 1, 1]
    assert sets.capacity.tolist() == [1, 8, 4, 2, 1]


def test_the_simulator_needs_a_step():
    trace = jobs_that_queue()
    with pytest.raises(ParamError, match="give step_s") as caught:
        simulate(trace, "2x4", Gandiva(form="simulator"))
    assert "\n" not in str(caught.value)
    chosen = Gandiva(form="simulator", step_s=10.0)
    public = simulate(trace, "2x4", Gandiva(), rules="tiresias").jobs
    pd.testing.assert_frame_equal(simulate(trace, "2x4", chosen).jobs, public)


def test_a_step_that_is_too_short_is_refused():
    with pytest.raises(ParamError, match="step_s is 1e-06 s") as caught:
        simulate(jobs_that_queue(), "2x4", Gandiva(step_s=1e-6), rules="tiresias")
    assert "\n" not in str(caught.value)


def jobs_of_muri(model):
    jobs = jobs_that_queue()
    return jobs.assign(model=model, iterations=jobs["duration"], iteration_time=1.0)


def test_starts_as_long_as_a_step_are_refused():
    # a start of gpt2 takes 10 s after every decision, as long as a step: no job would progress
    trace = jobs_of_muri("gpt2")
    with pytest.raises(ParamError, match="would never end; give a step_s above") as caught:
        simulate(trace, "2x4", Gandiva(form="simulator", step_s=10.0), rules="muri")
    assert "\n" not in str(caught.value)
    ends = simulate(trace, "2x4", Gandiva(form="simulator", step_s=60.0), rules="muri").jobs
    assert ends["end_time"].notna().all()
    # without fixed steps, and with fixed steps at which only completions are noticed
    for policy in (Gandiva(), Gandiva(form="paper", step_s=10.0)):
        assert simulate(trace, "2x4", policy, rules="muri").jobs["end_time"].notna().all()


def test_a_subclass_with_its_own_session_runs_in_the_engine():
    @dataclasses.dataclass(frozen=True)
    class Counted(Gandiva):
        def session(self, view):
            decide = super().session(view)

            def count(view):
                decisions.append(view.now)
                return decide(view)

            return count

    decisions: list[float] = []
    trace = jobs_that_queue()
    jobs = simulate(trace, "2x4", Counted(), rules="tiresias").jobs
    assert decisions
    pd.testing.assert_frame_equal(jobs, simulate(trace, "2x4", Gandiva(), rules="tiresias").jobs)


def test_a_run_that_stops_early_is_simulated_by_the_engine():
    trace = jobs_that_queue()
    full = simulate(trace, "2x4", Gandiva(), rules="tiresias").jobs
    stopped = simulate(trace, "2x4", Gandiva(), rules="tiresias", stop_time=2000.0).jobs
    has_ended = full["end_time"] <= 2000.0
    assert 0 < has_ended.sum() < len(full)
    pd.testing.assert_series_equal(stopped["end_time"][has_ended], full["end_time"][has_ended])
    assert stopped["end_time"][~has_ended].isna().all()


def test_work_in_training_steps_takes_its_seconds():
    trace = jobs_that_queue(sizes=(1, 2)).assign(iteration_time=0.5)
    trace["iterations"] = trace["duration"] / 0.5
    policy = Gandiva(form="simulator", step_s=10.0)
    steps = simulate(trace, "2x4", policy, rules="gavel")
    seconds = simulate(trace, "2x4", policy, rules="paper")
    assert steps.jobs["end_time"].tolist() == seconds.jobs["end_time"].tolist()


@pytest.mark.parametrize("rules", ["paper", "tiresias"])
def test_nodes_whose_gpus_are_all_in_use_serve_no_set(rules):
    trace = jobs_that_queue()
    in_use = Node(0, used=4)
    cluster = Cluster((in_use, Node(4), in_use, Node(4)), "2x4")
    jobs = simulate(trace, cluster, "gandiva", rules=rules).jobs
    pd.testing.assert_frame_equal(jobs, simulate(trace, "2x4", "gandiva", rules=rules).jobs)


def test_sets_of_the_simulator_use_as_many_gpus_of_each_node_as_the_smallest_has():
    # a gang of 4 GPUs needs two nodes, so at most two of them run at once
    trace = jobs_that_queue(sizes=(4,))
    result = simulate(trace, "3x4,1x2", "gandiva", rules="tiresias")
    assert busy_gpus(result, 10.0).max() == 8.0
