"""Random packing: when pairs are formed, kept and dissolved."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest

from repro import make, simulate
from repro.policies.gavel.gandiva_ss import RandomPairs, pair_gain
from repro.trace import synth


def gains(one, other):
    return 3.0


def test_no_packing_while_all_fit():
    pairs = RandomPairs(0, gains)
    assert pairs.update([0, 1, 2], [1, 1, 1], 3) == [(0, -1), (1, -1), (2, -1)]


def test_pairs_come_from_the_random_stream():
    pairs = RandomPairs(7, gains)
    sampled = random.Random(7).sample([0, 1, 2], 2)
    single = ({0, 1, 2} - set(sampled)).pop()
    assert set(pairs.update([0, 1, 2], [1, 1, 1], 2)) == {tuple(sorted(sampled)), (single, -1)}


def test_pairs_last_until_a_member_leaves():
    pairs = RandomPairs(0, gains)
    first = pairs.update([0, 1, 2, 3], [1] * 4, 2)
    assert pairs.update([0, 1, 2, 3], [1] * 4, 2) == first
    leaving, staying = first[0]
    unfinished = [job for job in range(4) if job != leaving]
    after = pairs.update(unfinished, [1] * 3, 2)
    assert first[1] in after and (staying, -1) in after


def test_pairs_are_remembered_while_all_fit():
    pairs = RandomPairs(0, gains)
    packed = pairs.update([0, 1, 2, 3], [1] * 4, 2)
    assert pairs.update([0, 1, 2, 3], [1] * 4, 4) == [(job, -1) for job in range(4)]
    assert pairs.update([0, 1, 2, 3], [1] * 4, 2) == packed


def test_any_pair_may_take_gpus_left_over_and_streams_differ():
    trace = synth.make("gavel-single", 1, jobs=40, rate=1.5)

    def ends(any_pair, interval_s, stream=0):
        policy = make("gandiva-ss", "gavel", any_pair=any_pair, stream=stream)
        rounds = {"min_realloc_interval_s": interval_s}
        result = simulate(trace, "3xv100,3xp100,3xk80", policy, rules="gavel", rounds=rounds)
        return result.jobs["end_time"].tolist()

    assert ends(True, 1920.0) != ends(False, 1920.0)
    assert ends(True, 1920.0) != ends(True, 1920.0, stream=1)


def test_pairs_that_do_not_run_are_dissolved():
    calls = []

    def gain(one, other):
        calls.append((one, other))
        return 0.0

    pairs = RandomPairs(1, gain)
    first = pairs.update([0, 1, 2, 3], [1] * 4, 2)
    pairs.update([0, 1, 2, 3], [1] * 4, 4)
    assert {tuple(sorted(pair)) for pair in calls} == set(first)
    assert pairs.update([0, 1, 2, 3], [1] * 4, 4) == [(job, -1) for job in range(4)]


def test_a_pair_that_gains_as_much_as_one_job_stays():
    for seed in range(5):
        pairs = RandomPairs(seed, lambda one, other: 1.0)
        packed = pairs.update(list(range(8)), [1] * 8, 4)
        assert pairs.update(list(range(8)), [1] * 8, 4) == packed


def test_the_gain_is_the_sum_of_retained_fractions_or_0():
    together = {
        (0, 1): np.array([[1.0, 2.0], [3.0, 1.0]]),
        (0, 2): np.array([[1.0, 2.0], [3.0, 0]]),
    }
    view = SimpleNamespace(
        pair_speeds=lambda one, other: together[one, other],
        speeds=lambda job: np.array([2.0, 4.0]),
    )
    gain = pair_gain(view, {0: "a", 1: "b", 2: "c"})
    assert gain(0, 1) == 0.5 + 0.5 + 1.5 + 0.25
    assert gain(0, 2) == 0


@pytest.mark.parametrize("seed", range(5))
def test_only_gangs_of_equal_demand_are_packed(seed):
    pairs = RandomPairs(seed, gains)
    widths = [1, 2, 1, 2, 2]
    for one, other in pairs.update(list(range(5)), widths, 3):
        assert other < 0 or widths[one] == widths[other]


def test_the_gain_of_a_pair_does_not_depend_on_which_job_is_first():
    """The fractions add up to 1, but their rounded sum is below 1 in one of the orders."""
    together = np.array([[0.1, 0.6], [0.2, 0.1]])
    view = SimpleNamespace(
        pair_speeds=lambda one, other: together if one < other else together[::-1],
        speeds=lambda job: np.ones(2),
    )
    gain = pair_gain(view, {0: "a", 1: "b"})
    assert gain(0, 1) == gain(1, 0) == 1.0
    pairs = RandomPairs(0, pair_gain(view, {0: "a", 1: "b"}))
    assert pairs.update([0, 1], [1, 1], 1) == [(0, 1)]
    assert pairs.update([0, 1], [1, 1], 1) == [(0, 1)]
