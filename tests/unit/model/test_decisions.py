"""What the engine takes from a policy, what it refuses, and what it records."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import pytest
from hand_traces import spans, trace

from repro import simulate
from repro.base.errors import ParamError, PolicyError, TraceError
from repro.model.decision import Run, RunSet
from repro.model.policy import Order, Policy, make
from repro.testing import small_trace


@dataclass(frozen=True)
class Fifo(Policy):
    """`decide` in its shortest form."""

    fill: str = "skip"

    def decide(self, view):
        return RunSet(view.jobs, fill=self.fill)


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
        (RunSet([0, 1], "exact"), "job 1: gives it 4 GPUs, but only 0 are free"),
        (RunSet([0, 0]), "job 0: names the job twice"),
        (RunSet([Run((0, 0), 4)]), "job 0: names the job twice"),
        (RunSet([Run((0, 0), 4)], keep=True), "job 0: names the job twice"),
        (RunSet([2]), "job 2: names a job that is neither waiting nor running"),
        (RunSet([17]), "17"),
        (RunSet([Run((0,), 0)]), "job 0: gives it 0 GPUs"),
        (RunSet([Run((0,), 4, "tpu")]), "job 0: asks for unknown GPU type 'tpu'"),
        (RunSet([Run((0,), 2)]), "job 0: gives it 2 GPUs, but its demand is 4"),
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


def test_an_order_that_stops_jobs_cannot_block():
    @dataclass(frozen=True)
    class Blocking(Order):
        blocking = True

        def key(self, view, job):
            return view.submit(job)

    @dataclass(frozen=True)
    class WithoutPreemption(Blocking):
        preemptive = False

    with pytest.raises(PolicyError, match="blocking needs preemptive = False") as caught:
        Blocking()
    assert "\n" not in str(caught.value)
    jobs = trace((0, 10, 1), (0, 10, 2), (0, 10, 1))
    starts = simulate(jobs, "1x2", WithoutPreemption()).jobs["start_time"]
    assert starts.tolist() == [0, 10, 20]


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
    with pytest.raises(TraceError, match="the placement finds no nodes for them; use"):
        simulate(frame, "2x1x4", "yarn-cs")
    assert simulate(frame, "2x1x4", "yarn-cs", placement="count").summary()["n_finished"] == 1
    assert simulate(frame, "2x1x4", "srtf", placement="yarn").summary()["n_finished"] == 1


def test_an_empty_trace():
    with pytest.raises(TraceError, match="no jobs; a trace holds at least one"):
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
        "job_id",
        "submit_time",
        "start_time",
        "end_time",
        "jct",
        "num_gpus",
        "duration",
        "queueing",
        "preemptions",
        "promotions",
    ]
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
