"""Groups by matching and by blocks: weights, sizes, end of merging, repeated pairs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from repro.perf.muri_models import muri_profiles
from repro.perf.stages import Interleaving
from repro.policies.muri._grouping import GroupsByList, Profiles

#: CPU-heavy and GPU-heavy (Figure 4): one of each has a period of 4, two of a kind one of 5
CPU = (0.0, 2.0, 1.0, 0.0)
GPU = (0.0, 1.0, 2.0, 0.0)


def make_profiles(stages, max_group=4):
    return Profiles(
        stages, three_stages=len(stages[0]) == 3, perf=Interleaving(), max_group=max_group
    )


def gamma(profiles, one, other):
    return profiles.weights((one, other))[0, 1]


def grouping(stages, max_group=4, rounds=4, collapse=True):
    return GroupsByList(make_profiles(stages, max_group), max_group, rounds, collapse=collapse)


def measured(rng, number, models=8):
    """Stage times of jobs on one GPU, each of one of ``models`` models."""
    table = muri_profiles().query("num_gpus == 1")
    rows = table[["stage_data", "stage_gpu", "stage_network"]].to_numpy()
    return [tuple(row) for row in rows[rng.integers(models, size=number)].tolist()]


def weight(groups, profiles):
    return sum(
        gamma(profiles, profiles.alone[group[0]], profiles.alone[group[1]])
        for group in groups
        if len(group) == 2
    )


@pytest.mark.parametrize("seed", range(40))
def test_pairs_weigh_what_blossom_finds_by_kind_and_job_by_job(seed):
    rng = np.random.default_rng(seed)
    number = int(rng.integers(2, 40))
    stages = measured(rng, number, int(rng.integers(1, 9)))
    profiles = make_profiles(stages, 2)
    graph = nx.Graph()
    for job in range(number):
        for other in range(job):
            graph.add_edge(
                job,
                other,
                weight=gamma(profiles, profiles.alone[job], profiles.alone[other]),
            )
    best = sum(graph.edges[pair]["weight"] for pair in nx.max_weight_matching(graph))
    for collapse in (True, False):
        groups = grouping(stages, 2, 1, collapse).match({1: list(range(number))}, 0)[1]
        assert sorted(job for group in groups for job in group) == list(range(number))
        assert weight(groups, profiles) == pytest.approx(best, rel=1e-6)


def test_figure_4_prefers_the_plan_that_wastes_less():
    groups = grouping([CPU, GPU, CPU, GPU]).match({1: [0, 1, 2, 3]}, 2)[1]
    assert all({job % 2 for job in group} == {0, 1} for group in groups)


@pytest.mark.parametrize(
    ("gpus", "sizes"),
    [(4, [1, 1, 1, 1]), (5, [1, 1, 1, 1]), (3, [1, 1, 2]), (2, [2, 2]), (1, [4])],
)
def test_merging_ends_when_the_groups_fit(gpus, sizes):
    groups = grouping([CPU, GPU, CPU, GPU]).match({1: [0, 1, 2, 3]}, gpus)[1]
    assert sorted(map(len, groups)) == sizes


def test_groups_that_fit_keep_the_order_of_the_list():
    groups = grouping([CPU, CPU, GPU, GPU]).match({1: [0, 1, 2, 3]}, 4)[1]
    assert groups == [(0,), (1,), (2,), (3,)]


@pytest.mark.parametrize(("most", "sizes"), [(2, [2] * 4), (3, [2] * 4), (4, [4, 4])])
def test_groups_are_no_larger_than_allowed(most, sizes):
    """Two pairs make four: with three at most, only the first round merges."""
    groups = grouping([CPU, GPU] * 4, most, most).match({1: list(range(8))}, 1)[1]
    assert sorted(map(len, groups)) == sizes


def test_buckets_merge_in_order():
    stages = [CPU, GPU] * 4
    groups = grouping(stages).match({2: [0, 1, 2, 3], 1: [4, 5, 6, 7]}, 8)
    assert [sorted(map(len, groups[width])) for width in (2, 1)] == [[2, 2], [1] * 4]
    groups = grouping(stages).match({1: [4, 5, 6, 7], 2: [0, 1, 2, 3]}, 8)
    assert [sorted(map(len, groups[width])) for width in (2, 1)] == [[1, 1, 2], [2, 2]]


def test_pairs_of_the_last_decision_stay_together_where_the_weight_allows():
    """All these pairs have equal weight; a new job in front changes no pair."""
    state = grouping([CPU, GPU] * 3 + [CPU, GPU], 2, 1)
    first = {frozenset(group) for group in state.match({1: [0, 1, 2, 3, 4, 5]}, 3)[1]}
    again = {frozenset(group) for group in state.match({1: [6, 5, 4, 3, 2, 1, 0, 7]}, 4)[1]}
    assert first < again


def test_only_pairs_of_the_last_decision_are_repeated():
    state = grouping([CPU, GPU] * 20, 2, 1)
    everyone = list(range(40))
    state.match({1: everyone}, 20)
    without_two = [job for job in everyone if job not in (1, 2)]
    (pair,) = [group for group in state.match({1: without_two}, 37)[1] if len(group) == 2]
    assert set(pair) == {0, 3}
    assert pair in state.match({1: everyone}, 20)[1]


def test_blocks_in_order_of_priority():
    """8 jobs on 3 GPUs: five merges, three in the first block, two in the second."""
    blocks = grouping([CPU] * 8).blocks({1: list(range(8))}, 3)[1]
    assert blocks == [(0, 1, 2, 3), (7,), (4, 5, 6)]
    assert grouping([CPU] * 8, 2).blocks({1: list(range(8))}, 6)[1] == [
        (0, 1),
        (2, 3),
        (5,),
        (4,),
        (7,),
        (6,),
    ]
    assert grouping([CPU] * 3).blocks({1: [2, 0, 1]}, 3)[1] == [(0,), (1,), (2,)]


def test_noise_free_profiles_are_shared_by_equal_jobs():
    profiles = make_profiles([CPU, GPU, CPU])
    assert profiles.of_job == [0, 1, 0]
    assert gamma(profiles, *profiles.alone[:2]) == pytest.approx(6 / 16)
    assert gamma(profiles, profiles.alone[0], profiles.alone[0]) == pytest.approx(6 / 20)
    assert gamma(profiles, profiles.kind((0, 0, 1)), profiles.kind((0, 1))) == 0.0
    assert profiles.best_period((0, 1)) == 4.0


@pytest.mark.parametrize(
    ("perf", "period"), [(Interleaving(), 228), (Interleaving(None, "worst", (1.5,)), 345 * 1.5)]
)
def test_gamma_is_the_busy_share_of_four_resources(perf, period):
    stages = [(117.0, 68.0, 0.0), (0.5, 160.0, 0.0)]
    profiles = Profiles(stages, three_stages=True, perf=perf, max_group=2)
    assert gamma(profiles, *profiles.alone[:2]) == pytest.approx(345.5 / (4 * period))
