"""Rounds of whole steps, overheads, round lengths, ideal execution: examples by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from given_shares import SPEEDS, Told, jobs

from repro import make, simulate
from repro.base.errors import ParamError
from repro.model.decision import Shares
from repro.model.policy import Policy
from repro.trace import synth

ONE = "1xv100,1xk80"
TWO = "2xv100,2xk80"
FAST = Told((1.0, 0.0))


def run(trace, cluster=TWO, policy=FAST, rules="gavel", **options):
    rounds = options.pop("rounds", {})
    if rules == "gavel":
        rounds = {"min_realloc_interval_s": 0.0} | rounds
    return simulate(trace, cluster, policy, rules=rules, perf=SPEEDS, rounds=rounds, **options)


def ends(*args, **options):
    return run(*args, **options).jobs["end_time"].tolist()


# whole steps -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", ["paper", "gavel"])
@pytest.mark.parametrize("steps", [1, 2519, 2520, 5000, 123456])
def test_one_job_alone_takes_its_steps(rules, steps):
    assert ends(jobs(steps, model="odd"), rules=rules) == pytest.approx([steps / 7])


def test_a_round_ends_with_the_last_step_of_its_slowest_run():
    trace = jobs([70, 20], model=["odd", "slow"])
    result = run(trace, rounds={"round_s": 9.5})
    # 66 steps of 1/7 s against 9 steps of 1 s; the last round but one is as long as its 9 steps
    assert result.jobs["end_time"].tolist() == pytest.approx([66 / 7 + 4 / 7, 66 / 7 + 9 + 2])


def test_a_job_that_is_done_early_leaves_its_gpu_idle_until_the_round_ends():
    trace = jobs([80, 800], model="even")
    # one GPU: the first ends after 10 s, and so does its round
    assert ends(trace, "1xv100", Told((0.5,), ("v100",))) == [10, 110]
    # next to a job that needs the whole round the GPU idles
    trace = jobs([80, 8000, 80], model="even")
    result = run(trace, "2xv100", Told((0.6,), ("v100",)))
    assert result.jobs["start_time"].tolist() == [0, 0, 360]


@pytest.mark.parametrize("rules", ["paper", "gavel"])
def test_less_than_a_step_a_round(rules):
    """Part of a step counts where none fits into a round."""
    end_times = ends(jobs(2, model="part"), rules=rules, rounds={"round_s": 10.0})
    assert end_times == pytest.approx([40])


def test_whole_steps_count_where_one_fits_into_a_round():
    """In each round of 30 s the first job makes one step of 20 s, the second 30 of 1 s."""
    trace = jobs([2, 60], model=["part", "slow"])
    assert ends(trace, rounds={"round_s": 30.0}) == pytest.approx([50, 60])


def test_each_job_of_a_pair_is_charged_half():
    trace = jobs([40, 15], model=["even", "slow"])
    pair = Told((((0, 1), (1.0,)), (1, (0.0,))), ("v100",))
    intervals = run(trace, "1xv100", pair).intervals
    assert intervals["job_id"].tolist() == [0, 1]
    assert intervals["gpus"].tolist() == [0.5, 0.5]
    assert intervals["used"].tolist() == [1.0, 1.0]
    # steps per second together over those alone: 4 / 8 and 0.75 / 1
    assert intervals["rate"].tolist() == [0.5, 0.75]


def test_a_pair_ends_with_its_later_member():
    trace = jobs([40, 15], model=["even", "slow"])
    pair = Told((((0, 1), (1.0,)), (1, (0.0,))), ("v100",))
    # together 4 and 0.75 steps/s: 10 s and 20 s
    assert ends(trace, "1xv100", pair, "gavel") == [20, 20]
    # otherwise at separate instants; the later job keeps the speed of the pair to the round's end
    assert ends(trace, "1xv100", pair, "paper") == [10, 20]
    # alone again from 100 s on: 75 steps until then, 5 after
    trace = jobs([40, 80], model=["even", "slow"])
    assert ends(trace, "1xv100", pair, "paper", rounds={"round_s": 100.0}) == [10, 105]


def test_a_pair_never_runs_where_it_does_not_fit_into_memory():
    trace = jobs([40, 15], model=["even", "slow"])
    pair = (((0, 1), (0.5, 0.5)), (0, (0.0, 0.0)), (1, (0.0, 0.0)))
    result = run(trace, ONE, Told(pair), rounds={"round_s": 5.0})
    together = result.intervals.groupby("group")["job_id"].transform("nunique") > 1
    assert together.any()
    assert set(result.intervals.loc[together, "gpu_type"]) == {"v100"}


def test_steps_of_a_trace_without_a_table_take_their_part_of_the_duration():
    trace = jobs([4800, 720], model=["even", "slow"])
    result = simulate(trace, "1x4", "gavel-las", rules="gavel")
    assert result.jobs["end_time"].tolist() == pytest.approx([600, 720])


# lengths and recomputations ----------------------------------------------------------------------


@pytest.mark.parametrize("rules", ["paper", "gavel"])
@pytest.mark.parametrize("round_s", [60.0, 720.0])
def test_an_arrival_waits_for_the_next_round(rules, round_s):
    trace = jobs([80_000, 80], [0, 5], "even")
    result = run(trace, rules=rules, rounds={"round_s": round_s})
    assert result.jobs["start_time"].tolist() == [0, round_s]


@pytest.mark.parametrize("rules", ["paper", "gavel"])
@pytest.mark.parametrize("first", [0, 10])
@pytest.mark.parametrize(
    ("min_realloc_s", "drop_unallocated", "start_round"),
    [
        (0, True, 2),
        (1000, True, 4),
        # until X is computed it takes leftover GPUs
        (1000, False, 2),
    ],
)
def test_x_is_not_computed_too_soon(rules, first, min_realloc_s, drop_unallocated, start_round):
    # X at 0 s counts as never computed, so that the second job waits for the next round only
    trace = jobs([80_000, 80, 80], [first, first + 20, first + 400], "even")
    settings = {
        "min_realloc_interval_s": min_realloc_s,
        "drop_unallocated": drop_unallocated,
    }
    result = run(trace, rules=rules, rounds=settings).jobs["start_time"].tolist()
    assert result == [first, first + 360, first + 360 * start_round]


@pytest.mark.parametrize("rules", ["paper", "gavel"])
def test_two_jobs_take_turns(rules):
    result = run(jobs([720, 720], model="slow"), "1xv100", Told((0.5,), ("v100",)), rules)
    spans = result.intervals.sort_values("start")
    assert spans["job_id"].tolist() == [0, 1, 0, 1]
    assert result.jobs["end_time"].tolist() == [1080, 1440]


# overheads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lease_renewal", "overhead", "end"), [(True, 60, 720), (False, 0, 720), (False, 60, 840)]
)
@pytest.mark.parametrize("rules", ["paper", "gavel"])
def test_a_job_that_keeps_its_gpus(rules, lease_renewal, overhead, end):
    """Without renewal each round after the first loses 60 s: 360 + 300 + 60 steps."""
    settings = {"lease_renewal": lease_renewal, "preemption_overhead_s": overhead}
    assert ends(jobs(720, model="slow"), rules=rules, rounds=settings) == [end]


@pytest.mark.parametrize(("rules", "last"), [("paper", 1920), ("gavel", 1680)])
def test_jobs_that_take_turns_pay_for_each_return(rules, last):
    """360 + 300 + 60 steps; the second has its third turn at the next round, or at once."""
    settings = {"preemption_overhead_s": 60}
    policy = Told((0.5,), ("v100",))
    assert ends(jobs([720, 720], model="slow"), "1xv100", policy, rules, rounds=settings) == [
        1560,
        last,
    ]


@pytest.mark.parametrize("rules", ["paper", "gavel"])
def test_another_type_is_a_return_too(rules):
    """Half the time on each type: a round at 1 step/s, then one at 0.5."""
    trace = jobs(360 + 0.5 * 200, model="slow")
    turns = {"whole_queue": True, "prior_rounds": 0}
    without_overhead, with_overhead = (
        ends(trace, policy=Told((0.5, 0.5)), rules=rules, rounds=turns | overhead)
        for overhead in ({}, {"preemption_overhead_s": 60})
    )
    assert (without_overhead, with_overhead) == ([360 + 200], [360 + 60 + 200])


# ideal execution ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", ["paper", "gavel"])
def test_fluid(rules):
    """Half of a V100 and half of a K80: (8 + 2) / 2 steps a second from the first instant on."""
    trace = jobs([500, 800], [3, 40])
    end_times = ends(trace, ONE, Told((0.5, 0.5)), rules, rounds={"ideal": "fluid"})
    assert end_times == pytest.approx([103, 200])


def test_artifact_ends_jobs_at_arrivals():
    """Four steps a second each; after the last arrival jobs end when they are done."""
    trace = jobs([100, 100, 100], [0, 10, 60])
    end_times = ends(trace, TWO, Told((0.5, 0.0)), rounds={"ideal": "artifact"})
    assert end_times == [60, 60, 85]


@pytest.mark.parametrize(("steps", "end"), [(22, 10), (22.25, 60)])
def test_artifact_counts_whole_steps_on_each_type(steps, end):
    """A quarter of 7 and of 2 steps a second for 10 s: 17.5 and 5 steps, of which 22 count."""
    trace = jobs([steps, 1, 1], [0, 10, 60], "odd")
    end_times = ends(trace, TWO, Told((0.25, 0.25)), rounds={"ideal": "artifact"})
    assert end_times[0] == end


# what is recorded --------------------------------------------------------------------------------


def test_until_ends_the_run_with_the_last_awaited_job():
    trace = jobs([800, 8_000, 80], [0, 0, 100])
    result = run(trace, until=[0, 2]).jobs
    assert result["end_time"].isna().tolist() == [False, True, False]
    whole = run(trace).jobs
    pd.testing.assert_frame_equal(result.iloc[[0, 2]], whole.iloc[[0, 2]])
    with pytest.raises(ParamError, match="until names job 9, which is not in the trace"):
        run(trace, until=[9])


@pytest.mark.parametrize("rules", ["paper", "gavel"])
@pytest.mark.parametrize(
    "policy", ["gavel-las", "las-agnostic", "gavel-las-ss", "gavel-fifo", "gavel-makespan"]
)
def test_runs_without_intervals_are_the_same_runs(policy, rules):
    trace = synth.make("gavel-multiple", 3, jobs=40, rate=6.0, throughputs="gavel-like-throughputs")
    runs = [
        simulate(trace, "8xv100,8xk80", make(policy, rules), rules=rules, keep_intervals=keep)
        for keep in (True, False)
    ]
    pd.testing.assert_frame_equal(runs[0].jobs, runs[1].jobs)
    assert len(runs[0].intervals) > len(trace) and runs[1].intervals.empty


@pytest.mark.parametrize("keep_intervals", [True, False])
def test_a_run_stops_at_an_instant(keep_intervals):
    trace = jobs([80, 80_000], model="even")
    result = run(
        trace, "2xv100", Told((1.0,), ("v100",)), stop_time=5000.0, keep_intervals=keep_intervals
    )
    assert result.jobs["end_time"].tolist() == pytest.approx([10, float("nan")], nan_ok=True)


# a gang with fewer steps than GPUs, as in the public simulator -----------------------------------


def test_a_gang_without_a_step_for_each_gpu_loses_them_and_is_given_up():
    # rounds of 8 steps; the last of 17 is too little for two GPUs, five times an eighth of a second
    trace = jobs([17, 17], model="even", gang=[2, 1])
    rounds = {"round_s": 1.0, "gang_tries": 5}
    result = run(trace, "3xv100", Told((1.0,), ("v100",)), rounds=rounds).jobs
    assert result["end_time"].tolist() == pytest.approx([2 + 5 / 8, 2 + 1 / 8])
    assert result["given_up"].tolist() == [True, False]
    whole = run(trace, "3xv100", Told((1.0,), ("v100",)), rounds={"round_s": 1.0}).jobs
    assert whole["end_time"].tolist() == pytest.approx([2 + 1 / 8, 2 + 1 / 8])
    assert "given_up" not in whole


def test_steps_last_as_long_as_the_trace_says_where_durations_are_rounded():
    trace = jobs([1000], model="even").assign(duration=125.0, iteration_time=0.1254)
    result = simulate(trace, "1x1", "gavel-las", rules="gavel", rounds={"round_s": 1e6})
    assert result.jobs["end_time"].tolist() == pytest.approx([125.4])


def test_each_turn_of_another_job_is_a_preemption():
    # ten rounds each, in turns: every job is stopped after each round but its last
    trace = jobs([1000, 1000], model="slow")
    alternating = run(trace, "1xv100", Told((0.5,), ("v100",)), "paper", rounds={"round_s": 100.0})
    assert alternating.jobs["end_time"].tolist() == [1900, 2000]
    assert alternating.jobs["preemptions"].tolist() == [9, 9]


def test_a_return_costs_time_also_before_the_last_job_has_started():
    # Two jobs take turns. Each makes 100 steps, then pays 10 s and makes 90 steps.
    trace = jobs([190, 190, 10], arrival=[0, 0, 10_000], model="slow")
    rounds = {"round_s": 100.0, "preemption_overhead_s": 10.0}
    end_times = ends(trace, "1xv100", Told((0.3,), ("v100",)), rounds=rounds)
    assert end_times[:2] == [300, 400]


@dataclass(frozen=True)
class AsksOften(Told):
    """Notes the instants at which shares are computed."""

    asked: list = field(default_factory=list)

    def decide(self, view):
        self.asked.append(view.now)
        return super().decide(view)


def test_old_shares_are_computed_anew_without_an_event():
    policy = AsksOften((1.0,), ("v100",))
    run(jobs(3600, model="slow"), "1xv100", policy, rounds={"max_realloc_interval_s": 1000.0})
    assert policy.asked == [0, 1080, 2160, 3240]


class Half:
    """Every job runs at half speed."""

    def rates(self, table, run, nodes):
        return [0.5] * len(run.jobs)


@dataclass(frozen=True)
class Whole(Policy):
    """Every job gets all of its time."""

    def decide(self, view):
        return Shares(tuple(view.jobs), view.gpu_types, np.ones((len(view.jobs), 1)))


@pytest.mark.parametrize("rounds", [{"ideal": "fluid"}, {"round_s": 7.0}])
@pytest.mark.parametrize("keep_intervals", [True, False])
def test_a_performance_model_sets_the_speed(rounds, keep_intervals):
    options = {"perf": Half(), "rounds": rounds, "keep_intervals": keep_intervals}
    result = simulate(jobs([80, 40]), "4xv100", Whole(), **options)
    assert result.jobs["end_time"].tolist() == [20.0, 10.0]


def test_an_added_process_sees_the_gangs_of_a_round():
    seen = []

    def watch(engine):
        yield engine.env.timeout(5)
        seen.append(sorted(engine.holdings.runs))

    simulate(jobs([80, 80]), "4xv100", Whole(), processes=[watch])
    assert seen == [[0, 1]]
