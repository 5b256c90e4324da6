"""Starts that are paid in every interval or once, guests on GPUs of others, ties of completions."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import pytest
from hand_traces import spans, trace

from repro import simulate
from repro.base.errors import PolicyError
from repro.model.decision import Run, RunSet
from repro.model.performance import Overhead
from repro.model.policy import Policy
from repro.perf.overhead import StartOverhead
from repro.perf.stages import Interleaving
from repro.policies.baselines.scripted import Scripted

PATIENT = Scripted((Run((0,), 1), Run((1,), 1), Run((2,), 1)))


@dataclass(frozen=True)
class Load(Overhead):
    """The same for every job (s)."""

    seconds: float = 5.0
    every_interval: bool = True

    def start_s(self, table, job):
        return self.seconds

    def resume_s(self, table, job):
        return self.seconds


# starts ------------------------------------------------------------------------------------------


def test_every_interval_but_the_last_pays_a_start():
    """A: 30 s, of which 25 count; 20 s, of which 15 count; the remaining 60 s in one go."""
    result = simulate(trace((0, 100, 1), (30, 20, 1)), "1x2", PATIENT, overhead=Load())
    assert result.jobs["end_time"].tolist() == [110.0, 50.0]
    assert result.meta["overhead_s"] == 10.0


def test_an_interval_shorter_than_a_start_is_lost():
    """C arrives 3 s after B: neither A nor B has moved, and only A's first interval counted."""
    jobs = trace((0, 100, 1), (30, 20, 1), (33, 1, 1))
    result = simulate(jobs, "1x3", PATIENT, overhead=Load())
    # C ends at 34, again too soon; B has its 20 s from there, A lost 5 s more when B ends
    assert result.jobs["end_time"].tolist() == [54.0 + 75 - 15, 54.0, 34.0]


def test_an_interval_as_long_as_a_start_has_no_progress():
    """A has no progress at 5 s, when B arrives, and 15 s of it when B ends at 25 s."""
    result = simulate(trace((0, 100, 1), (5, 20, 1)), "1x2", PATIENT, overhead=Load())
    assert result.jobs["end_time"].tolist() == [110.0, 25.0]
    assert result.meta["overhead_s"] == 10.0


def test_all_jobs_of_an_interval_end_before_the_next_decision():
    jobs = trace((0, 12, 1), (0, 14, 1))
    options = {"overhead": Load(), "interval": 100.0}
    assert simulate(jobs, "1x2", PATIENT, **options).jobs["end_time"].tolist() == [12.0, 14.0]


def test_on_starts_only_the_others_come_and_go_without_cost():
    overhead = Load(every_interval=False)
    jobs = trace((0, 100, 1), (30, 20, 1), (33, 1, 1))
    result = simulate(jobs, "1x3", PATIENT, overhead=overhead)
    assert result.jobs["end_time"].tolist() == [105.0, 55.0, 39.0]
    assert result.meta["overhead_s"] == 15.0


def test_on_starts_only_a_resumed_job_loads_anew():
    """A runs 25 s of work until B (10 s) takes the GPU; both load once more than they are idle."""
    result = simulate(
        trace((0, 100, 1), (30, 10, 1)), "1x1", "srtf", overhead=Load(every_interval=False)
    )
    assert spans(result, 0) == [(0.0, 30.0), (45.0, 125.0)]
    assert spans(result, 1) == [(30.0, 45.0)]


def muri_jobs(*rows, **columns):
    """Rows are (submit, iterations, gpus, model); an iteration takes 1 s in the trace."""
    submits, counts, widths, models = zip(*rows, strict=True)
    frame = trace(*((s, c, g) for s, c, g in zip(submits, counts, widths, strict=True)))
    return frame.assign(iterations=counts, iteration_time=1.0, model=models, **columns)


def test_measured_starts_by_model():
    """bert 10 s, dqn 5 s on one GPU; an iteration takes 1.015 s."""
    jobs = muri_jobs((0, 1000, 1, "bert"), (100, 100, 1, "dqn"))
    ends = simulate(jobs, "1x2", "srtf", rules="muri").jobs["end_time"]
    done = (100 - 10) / 1.015 + (101.5 - 10) / 1.015
    assert ends[1] == pytest.approx(201.5, rel=1e-12)
    assert ends[0] == pytest.approx(201.5 + (1000 - done) * 1.015, rel=1e-12)
    once = StartOverhead(every_interval=False)
    ends = simulate(jobs, "1x2", "srtf", rules="muri", overhead=once).jobs["end_time"]
    assert ends.tolist() == pytest.approx([10 + 1015, 100 + 5 + 101.5], rel=1e-12)


def test_a_group_pays_the_starts_of_all_members():
    """Period 2 s for both; bert and dqn pay 15 s; dqn arrives elsewhere at 100 s."""
    stages = {"stage_storage": [1.0, 0.0, 1.0], "stage_gpu": [0.0, 2.0, 1.0]}
    jobs = muri_jobs(
        (0, 500, 1, "bert"), (0, 100, 1, "dqn"), (100, 10, 1, "dqn"), **stages, stage_network=0.0
    )
    plan = Scripted((Run((0, 1), 1), Run((2,), 1)))
    result = simulate(jobs, "1x2", plan, rules="muri", perf=Interleaving())
    ends = result.jobs["end_time"].tolist()
    third = 100 + 10 * 1.015
    assert ends[2] == pytest.approx(third, rel=1e-12)
    # the 10.15 s of the third are no longer than the start: lost to the group
    second = third + (100 - (100 - 15) / 2) * 2
    assert ends[1] == pytest.approx(second, rel=1e-12)
    # the second's end cost the first one more start of the group; alone it has 1.015 s
    done = (100 - 15) / 2 + (second - third - 15) / 2
    assert ends[0] == pytest.approx(second + (500 - done) * 1.015, rel=1e-12)


# ties --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gap", "together"), [(5e-10, True), (3e-9, False)])
def test_completions_within_a_billionth_are_one_event(gap, together):
    jobs = muri_jobs((0, 1e6, 1, "bert"), (0, 1e6 * (1 + gap), 1, "bert"))
    first, second = simulate(jobs, "1x2", "srtf", rules="muri").jobs["end_time"]
    assert first == 1e6 * 1.015
    assert (second == first) == together


def test_the_first_in_order_names_the_instant_of_a_tie():
    """Wider gangs are first in Muri's list, though this one would end a little later."""
    stages = {"stage_storage": 0.5, "stage_gpu": 0.5, "stage_network": 0.0}
    jobs = muri_jobs((0, 1e6, 1, "bert"), (0, 1e6 * (1 + 5e-10), 2, "bert"), **stages)
    ends = simulate(jobs, "1x4", "muri-s", rules="muri").jobs["end_time"].tolist()
    assert ends == [1e6 * (1 + 5e-10) * 1.015] * 2


@pytest.mark.parametrize("policy", ["muri-s", "muri-l"])
def test_muri_joins_a_completion_with_the_arrival_next_to_it_and_with_nothing_else(policy):
    stages = {"stage_storage": 0.5, "stage_gpu": 0.5, "stage_network": 0.0}
    near = 1000 + 5e-5 / 1.015
    jobs = muri_jobs((0, 1000, 1, "bert"), (0, near, 1, "bert"), **stages)
    first, second = simulate(jobs, "1x2", policy, rules="muri").jobs["end_time"]
    # the first one's end cost the second one another start (10 s)
    assert (first, second) == pytest.approx((1015.0, 1025.0 + 5e-5), abs=1e-9)
    for late, joined in ((5e-5, True), (-5e-5, True), (2e-4, False)):
        third = muri_jobs((1015.0 + late, 10, 1, "bert"), **stages)
        three = pd.concat([jobs, third.assign(job_id=2)], ignore_index=True)
        found = simulate(three, "1x3", policy, rules="muri").jobs["end_time"]
        assert (found[0] == 1015.0 + late) == joined
        assert found[1] > 1025.0


def test_tiresias_joins_only_equal_completions():
    jobs = muri_jobs((0, 1e6, 1, "bert"), (0, 1e6 * (1 + 5e-10), 1, "bert"))
    first, second = simulate(jobs, "1x2", "tiresias-l", rules="muri").jobs["end_time"]
    assert first < second


# guests ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Returns(Policy):
    """Returns the given runs as long as their jobs are there."""

    runs: tuple[Run, ...] = ()

    def decide(self, view):
        present = set(view.jobs)
        return RunSet([run for run in self.runs if present.issuperset(run.jobs)], "exact")


def test_capacity_counts_only_what_a_guest_does_not_share():
    runs = (Run((0,), 2), Run((1,), 2, hosts=(0,), shared=1), Run((2,), 1))
    result = simulate(trace((0, 10, 2), (0, 10, 2), (0, 10, 1)), "1x4", Returns(runs=runs))
    assert result.jobs["end_time"].tolist() == [10.0, 10.0, 10.0]
    charged = result.intervals.set_index("job_id")["gpus"]
    assert charged.to_dict() == {0: 2.0, 1: 1.0, 2: 1.0}
    more = (*runs[:2], Run((2,), 2))
    with pytest.raises(PolicyError, match="job 2: gives it 2 GPUs, but only 1 are free"):
        simulate(trace((0, 10, 2), (0, 10, 2), (0, 10, 2)), "1x4", Returns(runs=more))


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (
            (Run((1,), 2, hosts=(0,), shared=2),),
            "job 1: shares GPUs with job 0, which the decision",
        ),
        (
            (Run((1,), 2, hosts=(0,), shared=2), Run((0,), 2)),
            "job 1: shares GPUs with job 0, which the decision does not name",
        ),
        (
            (Run((0,), 2), Run((1,), 2, hosts=(0,), shared=3)),
            "job 1: shares 3 of its 2 GPUs with jobs that hold 2",
        ),
        (
            (Run((2,), 1), Run((1,), 2, hosts=(2,), shared=2)),
            "job 1: shares 2 of its 2 GPUs with jobs that hold 1",
        ),
    ],
)
def test_guests_need_hosts_that_run(runs, message):
    jobs = trace((0, 10, 2), (0, 10, 2), (0, 10, 1))
    with pytest.raises(PolicyError, match=message) as caught:
        simulate(jobs, "1x8", Returns(runs=runs))
    assert "\n" not in str(caught.value)


def test_a_guest_whose_host_leaves_goes_on_without_a_preemption():
    @dataclass(frozen=True)
    class Follow(Policy):
        def decide(self, view):
            host = 0 in view.jobs
            guest = Run((1,), 2, hosts=(0,), shared=2) if host else Run((1,), 2)
            return RunSet([*([0] if host else []), guest], "exact")

    result = simulate(trace((0, 4, 2), (0, 10, 2)), "1x2", Follow())
    assert result.jobs["end_time"].tolist() == [4.0, 10.0]
    assert result.jobs["preemptions"].tolist() == [0, 0]
    rows = result.intervals.query("job_id == 1")[["start", "end", "gpus"]]
    pd.testing.assert_frame_equal(
        rows.reset_index(drop=True),
        pd.DataFrame({"start": [0.0, 4.0], "end": [4.0, 10.0], "gpus": [0.0, 2.0]}),
        check_dtype=False,
    )
