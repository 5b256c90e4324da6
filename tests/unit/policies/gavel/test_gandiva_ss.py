"""Random packing: when pairs are made, kept and dissolved."""

from __future__ import annotations

import random

import pytest

from repro import make, simulate
from repro.policies.gavel.gandiva_ss import RandomPairs
from repro.trace import synth


def gains(one, other):
    return 3.0


def test_no_packing_while_all_fit():
    groups = RandomPairs(0, gains)
    assert groups.update([0, 1, 2], [1, 1, 1], 3) == [(0, -1), (1, -1), (2, -1)]


def test_pairs_are_drawn_from_the_stream():
    groups = RandomPairs(7, gains)
    drawn = random.Random(7).sample([0, 1, 2], 2)
    single = ({0, 1, 2} - set(drawn)).pop()
    assert set(groups.update([0, 1, 2], [1, 1, 1], 2)) == {tuple(sorted(drawn)), (single, -1)}


def test_pairs_last_until_a_member_leaves():
    groups = RandomPairs(0, gains)
    first = groups.update([0, 1, 2, 3], [1] * 4, 2)
    assert groups.update([0, 1, 2, 3], [1] * 4, 2) == first
    left = first[0]
    rest = [job for job in range(4) if job != left[0]]
    after = groups.update(rest, [1] * 3, 2)
    assert first[1] in after and (left[1], -1) in after


def test_pairs_are_remembered_while_all_fit():
    groups = RandomPairs(0, gains)
    packed = groups.update([0, 1, 2, 3], [1] * 4, 2)
    assert groups.update([0, 1, 2, 3], [1] * 4, 4) == [(job, -1) for job in range(4)]
    assert groups.update([0, 1, 2, 3], [1] * 4, 2) == packed


def test_any_pair_may_take_what_is_left_over_and_streams_draw_others():
    trace = synth.make("gavel-single", 1, jobs=40, rate=1.5)

    def ends(any_pair, interval_s, stream=0):
        policy = make("gandiva-ss", "gavel", any_pair=any_pair, stream=stream)
        rounds = {"min_realloc_interval_s": interval_s}
        found = simulate(trace, "3xv100,3xp100,3xk80", policy, rules="gavel", rounds=rounds)
        return found.jobs["end_time"].tolist()

    assert ends(True, 1920.0) != ends(False, 1920.0)
    assert ends(True, 1920.0) != ends(True, 1920.0, stream=1)


def test_pairs_that_do_not_run_are_dissolved():
    calls = []

    def gain(one, other):
        calls.append((one, other))
        return 0.0

    groups = RandomPairs(1, gain)
    first = groups.update([0, 1, 2, 3], [1] * 4, 2)
    groups.update([0, 1, 2, 3], [1] * 4, 4)
    assert {tuple(sorted(pair)) for pair in calls} == set(first)
    assert groups.update([0, 1, 2, 3], [1] * 4, 4) == [(job, -1) for job in range(4)]


@pytest.mark.parametrize("seed", range(5))
def test_only_gangs_of_one_size_are_packed(seed):
    groups = RandomPairs(seed, gains)
    width = [1, 2, 1, 2, 2]
    for one, other in groups.update(list(range(5)), width, 3):
        assert other < 0 or width[one] == width[other]
