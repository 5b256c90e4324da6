"""The engine's clock, costs and refusals, each on a trace one can follow by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.errors import ParamError, PolicyError, TraceError
from repro.policies.base import Order, Policy, make
from repro.sim.decision import Run, RunSet
from repro.testing import small_trace


def trace(*rows, **columns):
    """Rows are (submit, duration, gpus)."""
    submits, durations, widths = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "job_id": range(len(rows)),
            "submit_time": np.array(submits, float),
            "duration": np.array(durations, float),
            "num_gpus": widths,
            **columns,
        }
    )


def spans(result, job):
    rows = result.intervals[result.intervals["job_id"] == job]
    return list(zip(rows["start"].tolist(), rows["end"].tolist(), strict=True))


@dataclass(frozen=True)
class Fifo(Policy):
    """`decide` in its shortest form."""

    fill: str = "skip"

    def decide(self, view):
        return RunSet(view.jobs, fill=self.fill)


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
    assert result.jobs["start_time"].tolist() == [10, 30]
    assert result.jobs["end_time"].tolist() == [22, 35]


def test_a_grid_needs_a_positive_step():
    with pytest.raises(ParamError, match="interval is 0 s"):
        simulate(small_trace(), "1x4", "srtf", interval=0.0)


def test_a_policy_may_ask_to_be_woken():
    policy = Noting(wake=4.0)
    simulate(trace((0, 10, 1)), "1x1", policy)
    assert policy.asked == [(0, True), (4, False)]


def test_ties_end_with_the_job_id():
    frame = trace((0, 5, 1), (0, 5, 1), (0, 5, 1)).assign(job_id=[7, 2, 5])
    result = simulate(frame, "1x1", "yarn-cs")
    assert result.jobs["start_time"].tolist() == [10, 0, 5]
    assert result.jobs["job_id"].tolist() == [7, 2, 5]


def test_ties_keep_the_order_of_the_file_under_the_rules_of_the_public_simulator():
    frame = trace((0, 5, 1), (0, 5, 1), (0, 5, 1)).assign(job_id=[7, 2, 5])
    result = simulate(frame, "1x1", "yarn-cs", rules="tiresias")
    assert result.jobs["start_time"].tolist() == [0, 5, 10]


def test_text_ids():
    frame = trace((0, 5, 1), (0, 5, 1)).assign(job_id=["b", "a"])
    assert simulate(frame, "1x1", "yarn-cs").jobs["start_time"].tolist() == [5, 0]


def test_the_public_simulator_counts_whole_seconds():
    result = simulate(trace((0.9, 10.9, 1), (2.5, 0.4, 1)), "1x1", "yarn-cs", rules="tiresias")
    assert result.jobs["submit_time"].tolist() == [0, 2]
    assert result.jobs["duration"].tolist() == [10, 0]
    assert result.jobs["end_time"].tolist() == [10, 10]


def test_unknown_rules():
    with pytest.raises(ParamError, match="unknown rules 'mine'; accepted: paper, tiresias"):
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


# costs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Toll:
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


# what may be decided ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Returns(Policy):
    """Returns whatever it was given."""

    decision: object = None

    def decide(self, view):
        return self.decision


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (RunSet([0, 1], "exact"), "job 1: gives it 4 GPUs where 0 are left"),
        (RunSet([0, 0]), "job 0: names it twice"),
        (RunSet([2]), "job 2: names it which is not waiting or running"),
        (RunSet([17]), "17"),
        (RunSet([Run((0,), 0)]), "job 0: gives it 0 GPUs"),
        (RunSet([Run((0,), 4, "tpu")]), "job 0: asks for unknown GPU type 'tpu'"),
        (RunSet([Run((0,), 2)]), "job 0: gives it 2 GPUs but it asks for 4"),
        ([0, 1], r"returned list at 0 s; decide\(\) returns a RunSet or Shares"),
        (None, "returned NoneType"),
    ],
)
def test_wrong_decisions_are_refused(decision, message):
    frame = trace((0, 10, 4), (0, 10, 4), (50, 10, 1))
    with pytest.raises(PolicyError, match=message) as caught:
        simulate(frame, "1x4", Returns(decision))
    assert "'unnamed'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_waiting_for_ever_is_an_error_that_names_a_job():
    with pytest.raises(PolicyError, match="leaves 2 jobs waiting for ever at 0 s, first 0; every"):
        simulate(trace((0, 10, 4), (0, 10, 4)), "1x4", Returns(RunSet(())))


def test_waiting_for_ever_is_an_error_with_added_processes_too():
    def short(engine):
        yield engine.env.timeout(5)

    with pytest.raises(PolicyError, match="waiting for ever"):
        simulate(trace((0, 10, 4)), "1x4", Returns(RunSet(())), processes=[short])


@pytest.mark.parametrize(
    ("fill", "starts"), [("skip", [0, 10, 0]), ("block", [0, 10, 10])], ids=["skip", "block"]
)
def test_what_does_not_fit_is_skipped_or_blocks(fill, starts):
    frame = trace((0, 10, 2), (0, 10, 4), (0, 10, 1)).assign(num_gpus=[3, 3, 1])
    result = simulate(frame, "1x4", Fifo(fill))
    assert result.jobs["start_time"].tolist() == starts


def test_neither_decide_nor_key():
    with pytest.raises(PolicyError, match="neither `decide` nor `key`"):
        simulate(small_trace(), "1x4", Policy())
    with pytest.raises(PolicyError, match="no `key`"):
        simulate(small_trace(), "1x4", Order())


# groups, fractions, types ----------------------------------------------------------------------


class HalfSpeed:
    """Members of a group run at half speed."""

    def rates(self, table, run, nodes):
        return [1.0 / len(run.jobs)] * len(run.jobs)


@dataclass(frozen=True)
class Together(Policy):
    """All jobs share the same GPUs."""

    elastic = True

    def decide(self, view):
        return RunSet([Run(tuple(view.jobs), 2)] if view.jobs else [])


def test_a_group_shares_its_gpus():
    """Two jobs at half speed; when the first is done the other goes on alone."""
    result = simulate(trace((0, 10, 2), (0, 20, 2)), "1x2", Together(), perf=HalfSpeed())
    assert result.jobs["end_time"].tolist() == [20, 30]
    assert result.intervals["gpus"].tolist() == [1, 1, 2]
    assert result.summary()["utilisation"] == 1


def test_a_group_needs_a_performance_model():
    with pytest.raises(PolicyError, match="performance model"):
        simulate(trace((0, 10, 2), (0, 20, 2)), "1x2", Together())


@dataclass(frozen=True)
class Evenly(Policy):
    """Divides all GPUs among the jobs."""

    elastic = True

    def decide(self, view):
        each = view.cluster.num_gpus / max(1, len(view.jobs))
        return RunSet([Run((job,), each) for job in view.jobs])


def test_fractions_of_gpus():
    """2 GPUs for 3 jobs of one GPU each: two thirds of the speed until the first ends."""
    result = simulate(trace((0, 4, 1), (0, 6, 1), (0, 6, 1)), "1x2", Evenly())
    assert result.jobs["end_time"].tolist() == pytest.approx([6, 8, 8])
    first = result.intervals.iloc[0]
    assert first["gpus"] == pytest.approx(2 / 3)
    assert first["rate"] == pytest.approx(2 / 3)


def test_more_gpus_than_asked_for_run_faster():
    result = simulate(trace((0, 10, 1)), "1x4", Evenly())
    assert result.jobs["end_time"].tolist() == [2.5]


@dataclass(frozen=True)
class OnType(Policy):
    gpu_type: str = "v100"

    def decide(self, view):
        return RunSet([Run((job,), view.gpus(job), self.gpu_type) for job in view.jobs])


class Fast:
    """V100s run three times as fast."""

    def rates(self, table, run, nodes):
        return [3.0 if run.gpu_type == "v100" else 1.0]


def test_gpu_types_have_their_own_capacity_and_speed():
    frame = trace((0, 12, 2), (0, 12, 2))
    result = simulate(frame, "1x2:v100,1x4:k80", OnType("v100"), perf=Fast())
    assert result.jobs["end_time"].tolist() == [4, 8]
    result = simulate(frame, "1x2:v100,1x4:k80", OnType("k80"), perf=Fast())
    assert result.jobs["end_time"].tolist() == [12, 12]
    assert set(result.intervals["gpu_type"]) == {"k80"}


def test_a_job_keeps_its_type_while_it_has_room():
    """Without a wish, arrivals do not move what runs."""
    frame = trace((0, 10, 1), (1, 10, 1), (2, 10, 1))
    result = simulate(frame, "1x2:v100,1x2:k80", Fifo())
    assert [len(spans(result, job)) for job in range(3)] == [1, 1, 1]
    assert result.jobs["preemptions"].sum() == 0


# before the run --------------------------------------------------------------------------------


def test_a_job_that_can_never_fit_is_named_before_the_run():
    asked = []

    @dataclass(frozen=True)
    class Asked(Policy):
        def decide(self, view):
            asked.append(view.now)
            return RunSet(view.jobs)

    frame = trace((0, 10, 1), (5, 10, 9))
    with pytest.raises(TraceError, match="job 1 asks for 9 GPUs and can never run on 2x4"):
        simulate(frame, "2x4", Asked())
    assert not asked


def test_a_gang_wider_than_a_switch_can_never_be_consolidated():
    frame = trace((0, 10, 8))
    with pytest.raises(TraceError, match="under this placement"):
        simulate(frame, "2x1x4", "yarn-cs")
    assert simulate(frame, "2x1x4", "yarn-cs", placement="count").summary()["n_finished"] == 1
    assert simulate(frame, "2x1x4", "srtf", placement="yarn").summary()["n_finished"] == 1


def test_an_empty_trace():
    with pytest.raises(TraceError, match="has no jobs"):
        simulate(small_trace().iloc[:0], "1x4", "srtf")


def test_a_cluster_spec_that_cannot_be_read():
    with pytest.raises(ParamError, match="cluster spec"):
        simulate(small_trace(), "many", "srtf")


def test_an_unknown_policy_gets_near_matches():
    with pytest.raises(PolicyError, match="did you mean 'srtf'"):
        simulate(small_trace(), "1x4", "srft")


# records ---------------------------------------------------------------------------------------


def test_records():
    result = simulate(trace((0, 10, 2), (2, 3, 2)), "1x2", "srtf")
    assert list(result.jobs.columns) == [
        "job_id", "submit_time", "start_time", "end_time", "jct", "num_gpus", "duration",
        "queueing", "preemptions", "promotions",
    ]  # fmt: skip
    assert result.jobs["jct"].tolist() == [13, 3]
    assert result.jobs["queueing"].tolist() == [3, 0]
    assert spans(result, 0) == [(0, 2), (5, 13)]
    assert result.meta["policy"] == "srtf"
    assert result.meta["cluster"] == "1x2"
    assert "nodes" not in result.intervals


def test_records_name_nodes_when_the_placement_does():
    result = simulate(trace((0, 10, 4), (0, 10, 6)), "3x4", "yarn-cs")
    assert result.intervals["nodes"].tolist() == [((0, 4),), ((1, 4), (2, 2))]


def test_models_are_passed_on():
    frame = trace((0, 1, 1), model=["vgg16"])
    assert simulate(frame, "1x1", "srtf").jobs["model"].tolist() == ["vgg16"]


def test_placements_that_draw_repeat_with_the_seed():
    frame = trace(*[(i, 20, 2) for i in range(8)])
    first, again, other = (
        simulate(frame, "6x4", "srtf", placement="random", seed=seed).intervals["nodes"].tolist()
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_the_trace_is_left_alone():
    frame = small_trace().sample(frac=1, random_state=3)
    before = frame.copy()
    simulate(frame, "1x4", make("tiresias-l"))
    pd.testing.assert_frame_equal(frame, before)


def test_any_index_will_do():
    frame = small_trace().set_index(pd.Index([9, 9, 3, 4, 1, 0]))
    plain = simulate(small_trace(), "1x4", "srtf").jobs
    pd.testing.assert_frame_equal(simulate(frame, "1x4", "srtf").jobs, plain)
