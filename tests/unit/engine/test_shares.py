"""Shares of GPU types: rounds, ideal execution, what is refused, arrivals between rounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from repro import make, simulate
from repro.base.errors import PolicyError, TraceError
from repro.model.decision import Run, RunSet, Shares
from repro.model.metrics import time_by_type
from repro.model.policy import Policy
from repro.papers.gavel.rounds import choose, received_after
from repro.perf import ThroughputTable
from repro.testing import check_policy

TWO_TYPES = "2xv100,2xk80"


def jobs(submit, duration, gpus=1):
    n = len(submit)
    return pd.DataFrame(
        {
            "job_id": range(n),
            "submit_time": np.array(submit, float),
            "duration": np.broadcast_to(np.asarray(duration, float), n),
            "num_gpus": np.broadcast_to(np.asarray(gpus), n),
        }
    )


@dataclass(frozen=True)
class Fixed(Policy):
    """The same row of shares for every job."""

    row: tuple[float, ...]
    kinds: tuple[str, ...] = ("v100", "k80")

    def decide(self, view):
        x = np.tile(np.array(self.row), (len(view.jobs), 1))
        return Shares(tuple(view.jobs), self.kinds, x)


def test_an_arrival_between_rounds_gets_its_share_at_the_next():
    result = simulate(jobs([0, 100], 1000), TWO_TYPES, Fixed((0.5, 0.5)))
    assert result.jobs["start_time"].tolist() == [0, 360]


def test_an_arrival_between_rounds_waits_for_the_next_and_the_first_begins_them():
    trace = jobs([0, 500], [100, 100])
    assert simulate(trace, TWO_TYPES, Fixed((0.5, 0.5))).jobs["start_time"].tolist() == [0, 720]
    late = simulate(jobs([100], 100), TWO_TYPES, Fixed((0.5, 0.5)))
    assert late.jobs["start_time"].tolist() == [100]


def test_gpus_of_a_finished_job_idle_until_the_round_ends():
    result = simulate(jobs([0, 0], [100, 500]), "1xv100,1xk80", Fixed((0.5, 0.5)))
    spans = result.intervals[result.intervals["job_id"] == 1]
    assert spans["end"].iloc[0] >= 360


@pytest.mark.parametrize("round_s", [60.0, 720.0])
def test_round_length(round_s):
    trace = jobs([0, 1], 100)
    rounds = {"round_s": round_s}
    result = simulate(trace, TWO_TYPES, Fixed((0.5, 0.5)), rounds=rounds)
    assert result.jobs["start_time"].tolist() == [0, round_s]


def test_ideal_execution_spreads_a_job_over_types():
    result = simulate(jobs([5], 100), TWO_TYPES, Fixed((0.5, 0.25)), rounds={"ideal": "fluid"})
    assert result.jobs["jct"].tolist() == pytest.approx([100 / 0.75])
    assert result.intervals["gpus"].tolist() == [0.75]
    assert result.intervals["gpu_type"].tolist() == [None]


@pytest.mark.parametrize(("rules", "ideal"), [("paper", "fluid"), ("gavel", "artifact")])
@pytest.mark.parametrize("idle_reset", [False, True])
def test_ideal_execution_waits_until_shares_may_be_computed(rules, ideal, idle_reset):
    # Shares are computed at 0 and 20 s, and then at 120 s at the earliest.
    trace = jobs([0, 20, 25], [10, 30, 10]).assign(iterations=[10.0, 30.0, 10.0])
    rounds = {"ideal": ideal, "min_realloc_interval_s": 100.0, "idle_reset": idle_reset}
    result = simulate(trace, "1x1", "gavel-fifo", rules=rules, rounds=rounds)
    assert result.jobs["end_time"].tolist()[1:] == [50.0, 130.0]


def test_shares_a_hair_too_large_are_trimmed():
    row = (1 + 1e-9, 0.0)
    result = simulate(jobs([0, 0], 100), "2xv100,2xk80", Fixed(row), rounds={"ideal": "fluid"})
    assert result.jobs["jct"].tolist() == pytest.approx([100, 100])


@pytest.mark.parametrize(
    ("policy", "word"),
    [
        (Fixed((0.6, 0.6)), "at most 1 per job"),
        (Fixed((-0.1, 0.5)), ">= 0"),
        (Fixed((0.5, 0.5), ("v100", "t4")), "the cluster has"),
        (Fixed((0.5,), ("v100", "k80")), "shape"),
    ],
)
def test_impossible_shares(policy, word):
    with pytest.raises(PolicyError, match=word):
        simulate(jobs([0], 100), TWO_TYPES, policy)


def test_shares_must_fit_the_gpus_of_a_type():
    with pytest.raises(PolicyError, match="fit the GPUs"):
        simulate(jobs([0] * 3, 100), TWO_TYPES, Fixed((1, 0)))


def test_a_gang_wider_than_any_type_is_named_at_once():
    with pytest.raises(TraceError, match=r"job 1 asks for 3 GPUs and .*\(2 GPUs of one type\)"):
        simulate(jobs([0, 0], 100, [1, 3]), TWO_TYPES, "las-agnostic")


def test_choice_prefers_the_larger_share_and_skips_what_does_not_fit():
    x = np.array([[0.9, 0.1], [0.5, 0.5], [0.5, 0.5]])
    assert choose(x, 0 * x, [2, 2, 1], [2, 1]) == [(0, 0), (2, 1)]
    assert choose(x, 0 * x, [1, 1, 1], [2, 1]) == [(0, 0), (1, 0), (2, 1)]


@pytest.mark.parametrize("seed", range(5))
def test_rounds_approach_the_shares(seed):
    rng = np.random.default_rng(seed)
    # a mixture of permutations could be realised exactly; greedy rounds now and then idle a GPU
    x = sum(w * np.eye(4)[rng.permutation(4)] for w in rng.dirichlet(np.ones(6)))
    received = received_after(x, 0 * x, [1] * 4, [1] * 4, more=1000)
    np.testing.assert_allclose(received / 1000, x, atol=0.02)


def test_rows_name_jobs_pairs_or_an_array_of_both():
    x = np.zeros((3, 1))
    expected = [[4, -1], [1, 2], [0, -1]]
    assert Shares((4, (1, 2), 0), ("v100",), x).members.tolist() == expected
    assert Shares((4, (1, 2), (0,)), ("v100",), x).members.tolist() == expected
    assert Shares(np.array(expected), ("v100",), x).members.tolist() == expected
    assert Shares((), ("v100",), x[:0]).members.shape == (0, 2)


@dataclass(frozen=True)
class Together(Policy):
    """Every two jobs share the GPUs of one type, given as tuples or as an array."""

    as_array: bool

    def decide(self, view):
        pairs = list(zip(view.jobs[::2], view.jobs[1::2], strict=False))
        alone = [(job, -1) for job in view.jobs[2 * len(pairs) :]]
        rows = [pair if pair[1] >= 0 else pair[0] for pair in [*pairs, *alone]]
        x = np.tile([1.0, 0.0], (len(rows), 1))
        entries = np.array([*pairs, *alone]).reshape(-1, 2) if self.as_array else tuple(rows)
        return Shares(entries, ("v100", "k80"), x)


@pytest.mark.parametrize("as_array", [True, False])
def test_jobs_that_share_gpus(as_array):
    """Each at 0.75 of its speed: 300 s of work take 400 s, on one GPU for both."""
    speed = {"v100": 4.0, "k80": 1.0}
    beside = {"v100": (3.0, 3.0), "k80": (0.5, 0.5)}
    table = ThroughputTable.of({"a": speed}, "v100", {("a", "a", 1): beside})
    trace = jobs([0, 0, 0], 300).assign(model="a")
    result = simulate(trace, TWO_TYPES, Together(as_array), perf=table)
    assert result.jobs["end_time"].tolist() == [400, 400, 300]
    assert result.intervals.groupby("job_id")["group"].first().tolist() == [0, 0, 2]
    # what a GPU is shared by is charged once
    assert result.intervals.groupby("job_id")["gpus"].first().tolist() == [0.5, 0.5, 1]


# policies that return shares ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gavel-las", "las-agnostic"])
@pytest.mark.parametrize("rounds", [{"round_s": 7.0}, {"ideal": "fluid"}])
def test_battery_on_two_types(name, rounds):
    check_policy(make(name), cluster="2x2:v100,1x4:k80", rounds=rounds, placement="yarn")


@dataclass(frozen=True)
class AnyType(Policy):
    """First come, first served, whatever the type."""

    def decide(self, view):
        return RunSet(view.jobs)


def test_a_gang_that_takes_any_type_stays_on_it():
    trace = jobs([0, 0, 10], [100, 50, 100], [2, 2, 1])
    result = simulate(trace, "2x2:v100,1x2:k80", AnyType(), placement="yarn")
    assert len(result.intervals) == 3
    assert result.intervals.set_index("job_id")["gpu_type"].to_dict() == {
        0: "v100",
        1: "v100",
        2: "k80",
    }


@dataclass(frozen=True)
class Halves(Policy):
    """Gives every job half of what it asks for."""

    def decide(self, view):
        return RunSet([Run((job,), view.gpus(job) / 2) for job in view.jobs])


def test_only_elastic_policies_may_resize():
    with pytest.raises(PolicyError, match="all or none"):
        simulate(jobs([0], 100, 2), "1x4", Halves())


def test_time_by_type_counts_up_to_an_instant():
    result = simulate(jobs([0, 0], 720), "1xv100,1xk80", Fixed((0.5, 0.5)))
    early = time_by_type(result, until=500)
    assert early.to_numpy().sum() == 1000
    assert time_by_type(result).sum(axis=1).tolist() == [720, 720]


@dataclass(frozen=True)
class Rows(Policy):
    """Equal shares of one GPU type for given rows of jobs."""

    rows: object = ()

    def decide(self, view):
        return Shares(self.rows, view.gpu_types, np.full((len(self.rows), 1), 0.1))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, 1, 2)], r"Shares.jobs\[0\] is \(0, 1, 2\)"),
        ([0, (0, 1, 2)], r"Shares.jobs\[1\] is \(0, 1, 2\)"),
        ([0, ()], r"Shares.jobs\[1\] is \(\)"),
        ([0, 99], "Shares.jobs names unknown row number 99"),
        ([0, (1, 99)], "Shares.jobs names unknown row number 99"),
        ([0, -1], "Shares.jobs names unknown row number -1"),
        ([0, (1, -2)], "Shares.jobs names unknown row number -2"),
        ([0, 2], "Shares.jobs names job 2, which is neither waiting nor running"),
        ([0, (1, 1)], "Shares.jobs pairs job 1 with itself"),
        ([0, "1"], r"Shares.jobs\[1\] is '1'"),
        ([0, (1, None)], r"Shares.jobs\[1\] is \(1, None\)"),
        ([0, 1.5], r"Shares.jobs\[1\] is 1.5"),
        (np.array([[0, 1, 2]]), r"Shares.jobs has shape \(1, 3\)"),
        (np.array([0.0, 1.5]), "Shares.jobs has shape .* float64"),
    ],
)
def test_a_row_of_shares_is_one_job_or_two(rows, message):
    with pytest.raises(PolicyError, match=f"'unnamed': {message}.*give ") as caught:
        simulate(jobs([0, 0, 5000], 100), "1x4", Rows(rows))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rows", [(), np.array([]), np.zeros((0, 2))])
def test_shares_may_have_no_rows(rows):
    shares = Shares(rows, (None,), np.zeros((0, 1)))
    assert shares.members.shape == (0, 2)
    assert simulate(jobs([0], 100), "1x4", Rows(rows), stop_time=5000).summary()["n_finished"] == 0


@dataclass(frozen=True)
class Listed(Policy):
    """Shares that are no array."""

    fractions: object

    def decide(self, view):
        return Shares(view.jobs, view.gpu_types, self.fractions)


def test_shares_may_be_a_list_of_lists():
    ends = simulate(jobs([0], 100), "1x4", Listed([[1]])).jobs["end_time"]
    assert ends.tolist() == [100.0]


@pytest.mark.parametrize("fractions", [[["a"]], [[1], [1, 2]], None, [[None]], {0: 1}])
def test_shares_that_are_no_numbers_are_refused(fractions):
    with pytest.raises(PolicyError, match=r"'unnamed': (Shares.fractions|shares) "):
        simulate(jobs([0], 100), "1x4", Listed(fractions))
