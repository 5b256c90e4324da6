"""Groups by kind: always a partition, never worse than matching afresh, few changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.perf.stages import Interleaving
from repro.policies.muri._grouping import GroupsByKind, Profiles, matchings
from repro.policies.muri._grouping.matchings import Matchings
from repro.solve.matching import KindMatcher

STAGES = [(3.0, 1.0, 0.5, 0.5), (0.5, 3.0, 1.0, 0.5), (0.5, 0.5, 3.0, 1.0), (1.0, 0.5, 0.5, 3.0)]


def grouping(jobs, gpus, max_group=4, widths=(1, 1)):
    stages = [STAGES[job % 4] for job in range(jobs)]
    profiles = Profiles(stages, three_stages=False, perf=Interleaving(), max_group=max_group)
    return GroupsByKind(profiles, [widths[job % 2] for job in range(jobs)], 2, gpus)


def gamma(profiles, kind, other):
    return profiles.weights((kind, other))[0, 1]


def groups_of(state):
    return [group for groups in state.groups.values() for same in groups.values() for group in same]


def test_four_complementary_jobs_share_one_gpu():
    state = grouping(8, gpus=2)
    for job in range(8):
        state.add([job])
    state.arrange()
    profiles = sorted(tuple(sorted(job % 4 for job in group)) for group in groups_of(state))
    assert profiles == [(0, 1, 2, 3), (0, 1, 2, 3)]


def test_jobs_stay_alone_while_there_are_gpus():
    state = grouping(4, gpus=4)
    for job in range(4):
        state.add([job])
    assert sorted(state.arrange()) == [(1, (0,)), (1, (1,)), (1, (2,)), (1, (3,))]


def test_a_departure_changes_one_group():
    state = grouping(41, gpus=10)
    for job in range(40):
        state.add([job])
    state.arrange()
    before = set(groups_of(state))
    state.remove([0])
    state.add([40])
    state.arrange()
    assert len(set(groups_of(state)) - before) == 1


def test_the_most_efficient_pairs_merge_first():
    """Six jobs on five GPUs: one pair, of least waste."""
    state = grouping(6, gpus=5)
    for job in range(6):
        state.add([job])
    state.arrange()
    pair = next(group for group in groups_of(state) if len(group) == 2)
    profiles = state._profiles
    alone = profiles.alone
    best = max(gamma(profiles, alone[a], alone[b]) for a in range(6) for b in range(6) if a != b)
    assert gamma(profiles, alone[pair[0]], alone[pair[1]]) == best


@pytest.mark.parametrize(("gpus", "pairs"), [(16, 0), (15, 1), (14, 1), (13, 2), (8, 4)])
def test_wide_groups_merge_until_they_fit(gpus, pairs):
    """Eight jobs of two GPUs; a pair frees two."""
    state = grouping(8, gpus, 2, widths=(2, 2))
    state.add(range(8))
    state.arrange()
    assert sorted(map(len, groups_of(state))) == sorted([2] * pairs + [1] * (8 - 2 * pairs))


@given(
    moves=st.lists(st.tuples(st.booleans(), st.integers(0, 39)), min_size=1, max_size=60),
    gpus=st.integers(4, 20),
)
@settings(max_examples=60)
def test_groups_are_a_partition_and_as_efficient_as_a_fresh_start(moves, gpus):
    state = grouping(40, gpus, widths=(1, 2))
    present = set()
    for come, job in moves:
        if come and job not in present:
            present.add(job)
            state.add([job])
        elif not come and job in present:
            present.remove(job)
            state.remove([job])
        state.arrange()
    grouped = sorted(job for group in groups_of(state) for job in group)
    assert grouped == sorted(present)
    assert all(len({job % 2 for job in group}) == 1 for group in groups_of(state))
    afresh = grouping(40, gpus, widths=(1, 2))
    for job in sorted(present):
        afresh.add([job])
    afresh.arrange()
    assert numbers(state) == numbers(afresh)


def numbers(state):
    return {
        (width, kind): len(same)
        for width, groups in state.groups.items()
        for kind, same in groups.items()
    }


@pytest.mark.parametrize(
    ("collapse", "count", "by_kind"), [(True, 2, True), (True, 1, False), (False, 2, False)]
)
def test_kinds_of_two_groups_on_average_are_matched_by_kind(monkeypatch, collapse, count, by_kind):
    matchers = []

    def matcher(weights):
        matchers.append(weights)
        return KindMatcher(weights)

    monkeypatch.setattr(matchings, "KindMatcher", matcher)
    profiles = Profiles(STAGES, three_stages=False, perf=Interleaving(), max_group=2)
    Matchings(profiles, collapse=collapse).counts([dict.fromkeys(profiles.alone, count)])
    assert bool(matchers) == by_kind


def test_a_long_list_of_rare_kinds_is_matched_group_by_group(monkeypatch):
    """Among equal weights near neighbours in the list are paired."""
    stages = [(1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)]
    # 18 kinds of 34 groups, with the same weight of any two kinds of different resources
    stages = [tuple(time + 1e-12 * (job // 4) for time in stages[job % 2]) for job in range(34)]
    profiles = Profiles(stages, three_stages=False, perf=Interleaving(), max_group=2)
    # the kinds of one resource ascend along the list, those of the other descend
    kinds = list(profiles.alone)
    kinds[1::2] = kinds[::-2]
    partner = Matchings(profiles, collapse=True).partners(tuple(kinds), [])
    assert partner == [position ^ 1 for position in range(34)]


def test_collapsing_changes_no_total():
    rng = np.random.default_rng(0)
    stages = [tuple(rng.integers(1, 5, 4).astype(float)) for _ in range(30)]
    totals = []
    for collapse in (True, False):
        profiles = Profiles(stages, three_stages=False, perf=Interleaving(), max_group=2)
        counts = {}
        for kind in profiles.alone:
            counts[kind] = counts.get(kind, 0) + 1
        (pairs,) = Matchings(profiles, collapse=collapse).counts([counts])
        totals.append(sum(pair[0] * number for pair, number in pairs.items()))
    assert abs(totals[0] - totals[1]) < 1e-6
