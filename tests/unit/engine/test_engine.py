"""The engine's clock and costs, each on a trace one can follow by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd
import pytest
from hand_traces import spans, trace

from repro import simulate
from repro.base.errors import ParamError
from repro.model.decision import RunSet
from repro.model.performance import Overhead
from repro.model.policy import Policy
from repro.testing import small_trace


@dataclass(frozen=True)
class Noting(Policy):
    """Writes down when it is asked."""

    asked: list = field(default_factory=list)
    wake: float = float("inf")

    def decide(self, view):
        self.asked.append((view.now, view.changed))
        return RunSet(view.jobs, wake=self.wake if view.now < self.wake else float("inf"))


# the clock -------------------------------------------------------------------------------------


def test_completions_come_before_arrivals_and_both_before_the_decision():
    """At 10 s a GPU comes free, two jobs arrive, and one decision sees it all."""
    policy = Noting()
    result = simulate(trace((0, 10, 1), (10, 5, 1), (10, 5, 1)), "1x2", policy)
    assert policy.asked == [(0, True), (10, True)]
    assert result.jobs["start_time"].tolist() == [0, 10, 10]


def test_decisions_on_a_grid():
    result = simulate(trace((3, 12, 1), (4, 5, 1)), "1x1", "yarn-cs", interval=10.0)
    # the grid starts at the first submission
    assert result.jobs["start_time"].tolist() == [3, 23]
    assert result.jobs["end_time"].tolist() == [15, 28]


def test_a_grid_needs_a_positive_step():
    with pytest.raises(ParamError, match="interval is 0; give a positive number of seconds"):
        simulate(small_trace(), "1x4", "srtf", interval=0.0)


def test_at_an_interval_a_decision_needs_an_event_or_a_waiting_job():
    policy = Noting()
    simulate(trace((0, 45, 1), (3, 10, 1)), "1x1", policy, interval=10.0)
    # job 1 waits until 50 s; its end needs no decision
    assert [now for now, _ in policy.asked] == [0, 10, 20, 30, 40, 50]
    policy = Noting()
    simulate(trace((0, 45, 1), (3, 100, 1)), "1x2", policy, interval=10.0)
    assert [now for now, _ in policy.asked] == [0, 10, 50]


def test_a_policy_may_ask_to_be_woken():
    policy = Noting(wake=4.0)
    simulate(trace((0, 10, 1)), "1x1", policy)
    assert policy.asked == [(0, True), (4, False)]


@pytest.mark.parametrize("rules", ["paper", "tiresias"])
def test_ties_keep_the_order_of_the_file(rules):
    frame = trace((0, 5, 1), (0, 5, 1), (0, 5, 1)).assign(job_id=[7, 2, 5])
    result = simulate(frame, "1x1", "yarn-cs", rules=rules)
    assert result.jobs["start_time"].tolist() == [0, 5, 10]
    assert result.jobs["job_id"].tolist() == [7, 2, 5]


def test_text_ids():
    frame = trace((0, 5, 1), (0, 5, 1)).assign(job_id=["b", "a"])
    assert simulate(frame, "1x1", "yarn-cs").jobs["start_time"].tolist() == [0, 5]


def test_the_public_simulator_counts_whole_seconds():
    result = simulate(trace((0.9, 10.9, 1), (2.5, 0.4, 1)), "1x1", "yarn-cs", rules="tiresias")
    assert result.jobs["submit_time"].tolist() == [0, 2]
    assert result.jobs["duration"].tolist() == [10, 0]
    assert result.jobs["end_time"].tolist() == [10, 10]


def test_unknown_rules():
    with pytest.raises(ParamError, match=r"unknown rules 'mine' \(accepted: paper, tiresias"):
        simulate(small_trace(), "1x4", "srtf", rules="mine")


def test_the_clock_may_start_late():
    result = simulate(trace((1e6, 10, 1), (1e6 + 1, 10, 1)), "1x1", "srtf")
    assert result.jobs["jct"].tolist() == [10, 19]
    assert result.summary()["makespan"] == 20


# added processes -------------------------------------------------------------------------------


def test_an_added_process_may_force_a_decision():
    policy = Noting()

    def nudge(engine):
        yield engine.env.timeout(4)
        engine.poke()

    simulate(trace((0, 10, 1)), "1x1", policy, processes=[nudge])
    assert policy.asked == [(0, True), (4, False)]


def test_an_added_process_sees_the_state_and_changes_nothing_else():
    seen = []

    def watch(engine):
        while True:
            yield engine.env.timeout(5)
            seen.append((engine.env.now, len(engine.table.active)))

    plain = simulate(small_trace(), "1x4", "srtf")
    watched = simulate(small_trace(), "1x4", "srtf", processes=[watch])
    pd.testing.assert_frame_equal(plain.jobs, watched.jobs)
    pd.testing.assert_frame_equal(plain.intervals, watched.intervals)
    assert seen[:2] == [(5, 4), (10, 3)]


def test_a_failing_process_is_heard():
    def fail(engine):
        yield engine.env.timeout(1)
        raise RuntimeError("node 3 exploded")

    with pytest.raises(RuntimeError, match="node 3 exploded"):
        simulate(small_trace(), "1x4", "srtf", processes=[fail])


@pytest.mark.parametrize(("restart_s", "late"), [(0.0, 5.0), (2.0, 7.0)])
def test_jobs_of_a_node_that_fails_go_on_from_their_last_checkpoint(restart_s, late):
    """At 35 s node 0 falls back to 30 s; its job ends at 105 s, or at 107 s; node 1 goes on."""
    hit = []

    def failures(engine):
        yield engine.env.timeout(35)
        hit.append(engine.fail(0, checkpoint_s=10.0, restart_s=restart_s))

    jobs = trace((0, 100, 4), (0, 50, 4), (0, 20, 4))
    result = simulate(jobs, "2x4", "yarn-cs", placement="yarn", processes=[failures])
    assert hit == [[0]]
    assert result.jobs["jct"].tolist() == [100 + late, 50, 70]
    assert result.meta["overhead_s"] == late


def test_a_failure_costs_all_progress_without_checkpoints_and_may_cost_the_place():
    """The long job has 85 s left at 15 s, then 100 s: the job of 90 s goes first."""

    def failures(engine):
        yield engine.env.timeout(15)
        engine.fail(0, checkpoint_s=float("inf"))
        yield engine.env.timeout(10)
        assert engine.fail(1, checkpoint_s=1.0) == []

    jobs = trace((0, 100, 4), (12, 90, 4))
    options = {"placement": "yarn", "processes": [failures]}
    result = simulate(jobs, "1x4,1x1", "srtf", **options)
    assert result.jobs["end_time"].tolist() == [205, 105]
    assert spans(result, 0) == [(0, 15), (105, 205)]


def test_a_failure_while_a_job_loads_costs_its_restart_only():
    """Job 0 stops at 2 s, loads from 5 to 9 s, and fails at 6.5 s: 4 + 1 s of overhead."""

    def failures(engine):
        yield engine.env.timeout(6.5)
        engine.fail(0, checkpoint_s=10.0, restart_s=1.0)

    jobs = trace((0, 10, 1), (2, 3, 1))
    options = {"placement": "yarn", "overhead": 4, "processes": [failures]}
    result = simulate(jobs, "1x1", "srtf", **options)
    assert result.jobs["end_time"].tolist() == [18.0, 5.0]
    assert result.meta["overhead_s"] == 5.0


def test_nodes_fail_only_where_the_placement_tells_them_apart():
    def failures(engine):
        yield engine.env.timeout(1)
        engine.fail(0, checkpoint_s=10.0)

    with pytest.raises(ParamError, match="failures: this placement chooses no nodes; give one"):
        simulate(small_trace(), "1x4", "srtf", processes=[failures])


def test_nodes_do_not_fail_where_each_interval_has_a_start():
    @dataclass(frozen=True)
    class Load(Overhead):
        every_interval: bool = True

        def start_s(self, table, job):
            return 5.0

    def failures(engine):
        yield engine.env.timeout(1)
        engine.fail(0, checkpoint_s=10.0)

    options = {"placement": "yarn", "overhead": Load(), "processes": [failures]}
    with pytest.raises(ParamError, match="failures: jobs pay a start in every interval"):
        simulate(small_trace(), "1x4", "srtf", **options)


def test_a_finished_job_has_no_work_left():
    left = []

    def watch(engine):
        yield engine.env.timeout(12)
        left.extend(engine.table.work_left)

    simulate(trace((0, 10, 1), (5, 20, 1)), "1x2", "srtf", processes=[watch])
    assert left == [0.0, 20.0]


def test_the_clock_does_not_go_back_after_a_rounding_error():
    """SimPy adds 1.7 - 0.6 to 0.6, which is later than 1.7. A job begins and ends at 1.7 s."""
    assert 0.6 + (1.7 - 0.6) > 1.7

    class Fast:
        def rates(self, table, run, nodes):
            return [1e12 if run.jobs == (2,) else 1.0]

    def idle(engine):
        yield engine.env.timeout(0)

    jobs = trace((0, 50, 1), (0.6, 50, 1), (1.7, 1e-6, 1))
    result = simulate(jobs, "1x3", "srtf", perf=Fast(), processes=[idle])
    assert result.jobs["end_time"].tolist() == [50, 50.6, 1.7]


# costs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Toll(Overhead):
    pause: float = 3.0
    resume: float = 5.0

    def pause_s(self, table, job):
        return self.pause

    def resume_s(self, table, job):
        return self.resume


def test_preemption_costs():
    """Stopped at 20 s, the long job drains to 23 s; resumed at 33 s, it loads until 38 s."""
    result = simulate(trace((0, 100, 1), (20, 10, 1)), "1x1", "srtf", overhead=Toll())
    assert spans(result, 0) == [(0, 20), (33, 118)]
    assert spans(result, 1) == [(20, 33)]
    assert result.jobs["preemptions"].tolist() == [1, 0]
    assert result.meta["overhead_s"] == 8


def test_a_job_that_progressed_for_less_than_a_second_drains_too():
    result = simulate(trace((0, 100, 1), (0.5, 10, 1)), "1x1", "srtf", overhead=Toll())
    assert spans(result, 1) == [(0.5, 13.5)]
    assert spans(result, 0) == [(0, 0.5), (13.5, 118.0)]


def test_clean_gpus_are_used_before_draining_ones():
    """Two of four GPUs are idle: only a gang of more than two has to wait for the drain."""
    narrow = simulate(trace((0, 100, 4), (20, 10, 2)), "1x6", "srtf", overhead=Toll())
    assert spans(narrow, 1) == [(20, 30)]
    wide = simulate(trace((0, 100, 4), (20, 10, 4)), "1x6", "srtf", overhead=Toll())
    assert spans(wide, 1) == [(20, 33)]


def test_a_job_stopped_before_it_got_going_drains_no_longer_than_its_predecessor():
    rows = ((0, 100, 1), (20, 50, 1), (21, 10, 1))
    result = simulate(trace(*rows), "1x1", "srtf", overhead=Toll())
    # job 1 held the GPU from 20 s but could not have begun before 23 s: nothing to checkpoint
    assert spans(result, 2) == [(21, 33)]


def test_a_job_stopped_while_it_loads_leaves_at_once():
    rows = ((0, 100, 1), (20, 10, 1), (34, 1, 1))
    result = simulate(trace(*rows), "1x1", "srtf", overhead=Toll())
    # resumed at 33 s, it would have gone on at 38 s; 1 s of loading was spent in vain
    assert spans(result, 0) == [(0, 20), (33, 34), (35, 120)]
    assert spans(result, 2) == [(34, 35)]
    assert result.meta["overhead_s"] == 3 + 1 + 5


def test_a_first_start_costs_nothing():
    result = simulate(trace((0, 10, 1)), "1x1", "srtf", overhead=Toll())
    assert result.jobs["jct"].tolist() == [10]
    assert result.meta["overhead_s"] == 0
