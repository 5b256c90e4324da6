"""The round mechanism of one run: checks of X, choices of jobs, beginnings of rounds."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from given_shares import SPEEDS, Told, jobs
from hypothesis import given, settings
from hypothesis import strategies as st

from repro import simulate
from repro.base.errors import ParamError, PolicyError
from repro.engine.rounds.ideal import Ideal
from repro.engine.rounds.mechanism import TOLERANCE, GridRounds
from repro.engine.rounds.settings import RoundSettings
from repro.engine.rounds.whole_steps import WholeSteps
from repro.model.decision import Shares
from repro.model.jobs import JobTable
from repro.model.policy import Policy
from repro.model.rules import Rules
from repro.model.speeds import Speeds

CAPACITY = {"k80": 2, "v100": 2}
TYPES = ("k80", "v100")


def policy(**traits):
    """Policy whose traits differ from the usual ones."""
    return type("WithTraits", (Policy,), {"name": "given", **traits})()


def mechanism(trace, capacity=None, steps=False, **options):
    """Mechanism whose jobs have all arrived."""
    seed = options.pop("seed", 0)
    traits = {name: options.pop(name) for name in ("tells_types", "idle_ok") if name in options}
    table = JobTable(trace, Rules(steps=steps))
    table.active = dict.fromkeys(range(table.count))
    table.arrived = table.count
    speeds = Speeds(table, SPEEDS, capacity or CAPACITY)
    made = RoundSettings(whole_steps=steps, **options)
    execution = WholeSteps if steps else GridRounds
    if made.ideal:
        execution = Ideal
    return execution(table, speeds, policy(**traits), made, seed=seed)


def shares(entries, x, types=TYPES):
    return Shares(entries, types, np.array(x, dtype=float))


def names(runset):
    return [(run.jobs, run.gpu_type) for run in runset.runs]


# adopting X --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "x", "message"),
    [
        ((0, 1), [[0.5, 0.5], [0.7, 0.4]], "sum to at most 1 per job"),
        ((0, 1, (0, 1)), [[0.5, 0], [0, 0], [0.6, 0]], "sum to at most 1 per job"),
        ((1, (0, 1)), [[0.5, 0], [0, 0.6]], "sum to at most 1 per job"),
        ((0, 1), [[0.5, -0.5], [0.5, 0.4]], "shares must be >= 0"),
        ((0, 1), [[0.5, math.nan], [0.5, 0.4]], "shares must be >= 0"),
        ((0, 1, 2), [[1, 0], [1, 0], [1, 0]], "fit the GPUs"),
        ((0, 3), [[0.1, 0], [1.0, 0]], "fit the GPUs"),
        (((0, 3),), [[0.5, 0]], "jobs that share GPUs must have equal demand"),
        ((0,), [[0.5, 0], [0.5, 0]], r"shares of shape \(2, 2\) for 1 rows"),
        ((0,), [[0.5, 0, 0]], r"shares of shape \(1, 3\) for 1 rows"),
    ],
)
def test_impossible_shares(entries, x, message):
    rounds = mechanism(jobs([1] * 4, gang=[1, 1, 1, 2]))
    with pytest.raises(PolicyError, match=f"policy 'given': .*{message}"):
        rounds.set_allocation(shares(entries, x), 0.0)


@pytest.mark.parametrize(
    ("entries", "x", "message"),
    [
        ((0, 1), [[0.5, 0], [0.1, -0.25]], "0: at 720 s the share of job 'b' on 'v100' is -0.25"),
        (
            (0, (1, 2)),
            [[0.5, 0], [-1, 0]],
            "0: at 720 s the share of jobs 'b' and 'c' on 'k80' is -1",
        ),
        ((0, 1), [[-1, 0], [math.nan, 0]], "0: at 720 s the share of job 'b' on 'k80' is nan"),
        ((0, 1), [[1, 0], [0.7, 0.4]], "1 per job: at 720 s the shares of job 'b' sum to 1.1"),
        ((0, (0, 2)), [[0.5, 0], [0, 0.6]], "1 per job: at 720 s the shares of job 'a' sum to 1.1"),
        ((0, 1, 2), [[0, 1], [0, 1], [0, 0.5]], "type: at 720 s jobs use 2.5 of 2 GPUs of 'v100'"),
        (
            (0, (1, 3)),
            [[0.25, 0], [0.5, 0]],
            "equal demand: at 720 s jobs 'b' and 'd' ask for 1 and 2 GPUs",
        ),
        ((0, 3), [[0.25, 0], [1.0, 0]], "type: at 720 s jobs use 2.25 of 2 GPUs of 'k80'"),
    ],
)
def test_the_violated_constraint_is_named(entries, x, message):
    rounds = mechanism(jobs([1] * 4, gang=[1, 1, 1, 2]).assign(job_id=list("abcd")))
    with pytest.raises(PolicyError) as caught:
        rounds.set_allocation(shares(entries, x), 720.0)
    assert str(caught.value).endswith(message)


def test_a_type_that_the_cluster_does_not_have():
    with pytest.raises(PolicyError, match="the cluster has"):
        mechanism(jobs([1])).set_allocation(shares((0,), [[0.5]], ("t4",)), 0.0)


def test_types_may_be_named_in_any_order_or_left_out():
    for types, x in ((("v100", "k80"), [[0.75, 0.25]]), (("v100",), [[0.75]])):
        rounds = mechanism(jobs([1]))
        rounds.set_allocation(shares((0,), x, types), 0.0)
        assert rounds.ledger.rows.x[0].tolist() == ([0.25, 0.75] if len(types) == 2 else [0, 0.75])


def test_rounding_errors_are_trimmed():
    rounds = mechanism(jobs([1, 1, 1]))
    rounds.set_allocation(
        shares((0, 1, 2), [[0.5, 0.5 + 5e-7], [1, -1e-9], [0.5 + 5e-7, 0.5]]), 0.0
    )
    x = rounds.ledger.rows.x
    assert x.min() == 0
    assert (x.sum(axis=0) <= 2).all()


def test_the_rounding_error_of_a_sum_is_not_trimmed():
    """The last bit of a share can decide between jobs of equal priority."""
    x = [[float(np.nextafter(0.5, 1)), 0.25]] * 4
    assert sum(row[0] for row in x) > 2
    rounds = mechanism(jobs([1] * 4))
    rounds.set_allocation(shares((0, 1, 2, 3), x), 0.0)
    assert rounds.ledger.rows.x.tolist() == x


def test_equal_rows_come_in_order_of_arrival():
    """A pair exists from the arrival of its later member on."""
    rounds = mechanism(jobs([1] * 3))
    entries = ((2, 0), (1, 0), 2, 1, (1, 2), 0)
    rounds.set_allocation(shares(entries, [[0.1, 0.1]] * 6), 0.0)
    assert rounds.ledger.rows.members.tolist() == [
        [0, -1],
        [1, -1],
        [0, 1],
        [2, -1],
        [0, 2],
        [1, 2],
    ]


# choosing ----------------------------------------------------------------------------------------


def test_a_round_names_only_what_changes():
    rounds = mechanism(jobs([10_000] * 3, model="slow"), {"v100": 2})
    rounds.set_allocation(shares((0, 1, 2), [[1.0], [0.5], [0.5]], ("v100",)), 0.0)
    first = rounds.next_round(0.0)
    assert names(first) == [((0,), "v100"), ((1,), "v100")] and not first.stop
    second = rounds.next_round(360.0)
    # job 0 keeps its GPU, the other two take turns
    assert (names(second), second.stop) == ([((2,), "v100")], [1])
    assert second.keep


def test_a_finished_job_frees_its_gpu_for_the_next_round():
    rounds = mechanism(jobs([10_000] * 2, model="slow"), {"v100": 1})
    rounds.set_allocation(shares((0, 1), [[0.9], [0.1]], ("v100",)), 0.0)
    assert names(rounds.next_round(0.0)) == [((0,), "v100")]
    del rounds.table.active[0]
    rounds.finish(0, 360.0)
    later = rounds.next_round(360.0)
    assert (names(later), later.stop) == ([((1,), "v100")], [])


def test_jobs_without_a_share_take_gpus_left_over_unless_they_may_idle():
    for idle_ok, expected in ((False, [((0,), "v100"), ((1,), "v100")]), (True, [((0,), "v100")])):
        rounds = mechanism(jobs([100] * 2), {"v100": 2}, idle_ok=idle_ok)
        rounds.set_allocation(shares((0, 1), [[1.0], [0.0]], ("v100",)), 0.0)
        assert names(rounds.next_round(0.0)) == expected


def test_without_a_prior_the_type_with_less_time_comes_first():
    rounds = mechanism(jobs([10_000] * 2), {"k80": 1, "v100": 1}, whole_queue=True, prior_rounds=0)
    rounds.set_allocation(shares((0, 1), [[0.5, 0.5], [0.5, 0.5]]), 0.0)
    # 100 s on the K80 and 200 s on the V100; the sum over all rows does not count
    rounds.ledger.add_received(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([100, 200, 1000]))
    rounds.finish(1, 0.0)
    assert names(rounds.next_round(0.0)) == [((0,), "k80")]


def test_shares_in_an_array_change_no_gang_that_stays():
    rounds = mechanism(jobs([10_000] * 2, model="slow"), {"v100": 2})
    rounds.set_allocation(shares(np.array([0]), [[1.0]], ("v100",)), 0.0)
    rounds.arrive(1)
    assert names(rounds.next_round(0.0)) == [((0,), "v100"), ((1,), "v100")]
    rounds.set_allocation(shares(np.array([0, 1]), [[1.0], [1.0]], ("v100",)), 360.0)
    assert names(rounds.next_round(360.0)) == []


def test_no_shares_are_feasible():
    rounds = mechanism(jobs([100]), {"v100": 1})
    rounds.set_allocation(shares(np.empty((0, 2), np.int64), np.empty((0, 1)), ("v100",)), 0.0)
    rounds.arrive(0)
    assert names(rounds.next_round(0.0)) == [((0,), "v100")]


def test_a_share_may_be_negative_by_the_tolerance():
    rounds = mechanism(jobs([100]), {"v100": 1})
    rounds.set_allocation(shares((0,), [[-TOLERANCE]], ("v100",)), 0.0)
    assert rounds.ledger.rows.x.tolist() == [[0.0]]


def test_a_job_without_throughput_is_named():
    rounds = mechanism(jobs([100] * 2).assign(model=["unknown", "even"]))
    with pytest.raises(ParamError, match="job 0: the throughput table has no model 'unknown'"):
        rounds.set_allocation(shares((0,), [[0.5, 0.5]]), 0.0)


def test_a_job_that_arrived_since_has_one_row():
    rounds = mechanism(jobs([10_000] * 2, model="slow"), {"v100": 2})
    rounds.set_allocation(shares((0,), [[1.0]], ("v100",)), 0.0)
    rounds.arrive(1)
    rounds.next_round(0.0)
    rounds.next_round(360.0)
    assert rounds.ledger.rows.members.tolist() == [[0, -1], [1, -1]]


@pytest.mark.parametrize("dropped", [True, False])
def test_a_job_that_arrived_since(dropped):
    rounds = mechanism(jobs([100] * 2), {"v100": 2}, drop_unallocated=dropped)
    rounds.set_allocation(shares((0,), [[1.0]], ("v100",)), 0.0)
    rounds.arrive(1)
    assert names(rounds.next_round(0.0)) == [((0,), "v100")] + [((1,), "v100")] * (not dropped)
    # once it has a share it runs
    rounds.set_allocation(shares((0, 1), [[1.0], [0.5]], ("v100",)), 360.0)
    assert names(rounds.next_round(360.0)) == [((1,), "v100")] * dropped


@pytest.mark.parametrize("shuffle_types", [True, False])
@pytest.mark.parametrize("tells_types", [True, False])
def test_the_order_of_types(tells_types, shuffle_types):
    """v100, p100, k80, shuffled anew for each round for policies that do not tell types apart."""
    capacity = {"k80": 1, "p100": 1, "v100": 1}
    trace = jobs([10**9])
    table = JobTable(trace.drop(columns="model"))
    table.active = {0: None}
    table.arrived = 1
    speeds = Speeds(table, None, capacity)
    made = RoundSettings(shuffle_types=shuffle_types)
    rounds = GridRounds(table, speeds, policy(tells_types=tells_types), made, seed=4)
    rounds.set_allocation(shares((0,), [[1 / 3] * 3], ("k80", "p100", "v100")), 0.0)
    stream = random.Random(4 + 5)
    last_type = None
    used_types = []
    for number in range(12):
        order = ["v100", "p100", "k80"]
        if shuffle_types and not tells_types:
            stream.shuffle(order)
        changes = names(rounds.next_round(360.0 * number))
        assert changes == ([] if order[0] == last_type else [((0,), order[0])])
        last_type = order[0]
        used_types.append(last_type)
    assert len(set(used_types)) == (3 if shuffle_types and not tells_types else 1)


def test_the_order_of_types_depends_on_the_seed():
    @dataclass(frozen=True)
    class Blind(Told):
        tells_types: ClassVar[bool] = False

    trace = jobs([360.0] * 12, model="slow")
    runs = [
        simulate(trace, "1xv100,1xk80", Blind((1 / 12, 1 / 12)), perf=SPEEDS, seed=seed).jobs
        for seed in (1, 1, 2)
    ]
    pd.testing.assert_frame_equal(runs[0], runs[1])
    assert runs[0]["end_time"].tolist() != runs[2]["end_time"].tolist()


# time --------------------------------------------------------------------------------------------


def test_rounds_on_a_grid():
    rounds = mechanism(jobs([1]), round_s=100.0)
    assert [rounds.begins_round(now) for now in (0.0, 50.0, 99.999, 300.0)] == [
        True,
        False,
        False,
        True,
    ]
    assert [rounds.next_boundary(now) for now in (0.0, 50.0, 100.0)] == [100, 100, 200]


def test_fluid_execution_has_no_rounds():
    rounds = mechanism(jobs([1]), ideal="fluid")
    assert rounds.begins_round(12.3) and rounds.next_boundary(12.3) == math.inf


def test_x_may_be_computed_again_after_a_while():
    rounds = mechanism(jobs([1]), min_realloc_interval_s=1000.0)
    assert rounds.may_compute(5.0)
    rounds.set_allocation(shares((0,), [[1.0, 0.0]]), 5.0)
    assert [rounds.may_compute(now) for now in (5.0, 1004.0, 1005.0)] == [False, False, True]
    # as if it had never been computed
    rounds.set_allocation(shares((0,), [[1.0, 0.0]]), 0.0)
    assert rounds.may_compute(1.0)


def test_shares_that_are_too_old_are_computed_anew():
    rounds = mechanism(jobs([1]), steps=True, max_realloc_interval_s=1000.0)
    rounds.set_allocation(shares((0,), [[1.0, 0.0]]), 5.0)
    assert [rounds.record_round(now) for now in (5.0, 1004.0, 1005.0)] == [False, False, True]
    never = mechanism(jobs([1]), steps=True)
    never.set_allocation(shares((0,), [[1.0, 0.0]]), 5.0)
    assert not never.record_round(1e9)


def test_whole_steps_predict_completions_once():
    rounds = mechanism(jobs([80, 16_000]), {"v100": 2}, steps=True)
    rounds.set_allocation(shares((0, 1), [[1.0], [1.0]], ("v100",)), 0.0)
    rounds.next_round(0.0)
    assert rounds.ends == [(10.0, 0)]
    assert not rounds.begins_round(359.0) and rounds.begins_round(360.0)
    assert rounds.next_boundary(10.0) == 360.0


def test_ideal_execution_is_not_for_pairs():
    rounds = mechanism(jobs([80, 80], model=["even", "slow"]), ideal="fluid")
    rounds.set_allocation(shares((0, 1, (0, 1)), [[0, 0], [0, 0], [0, 1.0]]), 0.0)
    with pytest.raises(
        PolicyError, match="lets jobs share GPUs; ideal execution takes single jobs"
    ):
        rounds.next_round(0.0)


# whole runs --------------------------------------------------------------------------------------


@st.composite
def traces(draw):
    count = draw(st.integers(1, 8))
    models = [draw(st.sampled_from(["even", "slow", "odd"])) for _ in range(count)]
    steps = [draw(st.integers(1, 6000)) for _ in range(count)]
    arrivals = sorted(draw(st.integers(0, 3000)) for _ in range(count))
    gangs = [draw(st.sampled_from([1, 1, 2])) for _ in range(count)]
    return jobs(steps, arrivals, models, gangs)


@pytest.mark.slow
@given(
    trace=traces(),
    rules=st.sampled_from(["paper", "gavel"]),
    policy=st.sampled_from(["gavel-las", "las-agnostic", "gavel-las-ss", "gavel-fifo", "isolated"]),
    chosen=st.fixed_dictionaries(
        {
            "round_s": st.sampled_from([60.0, 360.0]),
            "min_realloc_interval_s": st.sampled_from([0.0, 500.0]),
            "max_realloc_interval_s": st.sampled_from([0.0, 700.0]),
            "drop_unallocated": st.booleans(),
            "whole_queue": st.booleans(),
            "prior_rounds": st.sampled_from([0, 0.5]),
            "lease_renewal": st.booleans(),
            "preemption_overhead_s": st.sampled_from([0, 7]),
        }
    ),
)
@settings(max_examples=120)
def test_jobs_end_once_within_the_gpus_of_each_type(trace, rules, policy, chosen):
    result = simulate(trace, "2xv100,2xk80", policy, rules=rules, perf=SPEEDS, rounds=chosen)
    assert result.jobs["end_time"].notna().all()
    # a V100 is the fastest type: no job ends sooner than alone on it
    assert (result.jobs["jct"] >= trace["duration"] * (1 - 1e-9)).all()
    spans = result.intervals
    for _, holds in spans.groupby("job_id"):
        order = holds.sort_values("start")
        assert (order["end"].to_numpy()[:-1] <= order["start"].to_numpy()[1:] + 1e-9).all()
    for now in spans["start"].unique():
        present = spans[(spans["start"] <= now) & (spans["end"] > now)]
        for gpu_type, used in present.groupby("gpu_type")["gpus"].sum().items():
            assert used <= 2 + 1e-9, (now, gpu_type)
