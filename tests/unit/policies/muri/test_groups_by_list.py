"""Groups by matching and by blocks: weights, sizes, when merging ends, who stays together."""

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


def profiles(stages, max_group=4, collapse=True):
    return Profiles(
        stages,
        merged=len(stages[0]) == 3,
        perf=Interleaving(),
        max_group=max_group,
        collapse=collapse,
    )


def gamma(profiles, one, other):
    return profiles.weights((one, other))[0, 1]


def grouping(stages, max_group=4, rounds=4, collapse=True):
    return GroupsByList(profiles(stages, max_group, collapse), max_group, rounds)


def measured(rng, number, models=8):
    """Stage times of jobs on one GPU, each of one of so many models."""
    table = muri_profiles().query("num_gpus == 1")
    rows = table[["stage_data", "stage_gpu", "stage_network"]].to_numpy()
    return [tuple(row) for row in rows[rng.integers(models, size=number)].tolist()]


def weight(found, known):
    return sum(
        gamma(known, known.alone[group[0]], known.alone[group[1]])
        for group in found
        if len(group) == 2
    )


@pytest.mark.parametrize("seed", range(40))
def test_pairs_weigh_what_blossom_finds_by_kind_and_job_by_job(seed):
    rng = np.random.default_rng(seed)
    number = int(rng.integers(2, 40))
    stages = measured(rng, number, int(rng.integers(1, 9)))
    known = profiles(stages, 2)
    graph = nx.Graph()
    for one in range(number):
        for other in range(one):
            graph.add_edge(one, other, weight=gamma(known, known.alone[one], known.alone[other]))
    best = sum(graph.edges[pair]["weight"] for pair in nx.max_weight_matching(graph))
    for collapse in (True, False):
        found = grouping(stages, 2, 1, collapse).match({1: list(range(number))}, 0)[1]
        assert sorted(job for group in found for job in group) == list(range(number))
        assert weight(found, known) == pytest.approx(best, rel=1e-6)


def test_figure_4_prefers_the_plan_that_wastes_less():
    found = grouping([CPU, GPU, CPU, GPU]).match({1: [0, 1, 2, 3]}, 2)[1]
    assert all({job % 2 for job in group} == {0, 1} for group in found)


@pytest.mark.parametrize(
    ("gpus", "sizes"),
    [(4, [1, 1, 1, 1]), (5, [1, 1, 1, 1]), (3, [1, 1, 2]), (2, [2, 2]), (1, [4])],
)
def test_merging_ends_when_the_groups_fit(gpus, sizes):
    found = grouping([CPU, GPU, CPU, GPU]).match({1: [0, 1, 2, 3]}, gpus)[1]
    assert sorted(map(len, found)) == sizes


@pytest.mark.parametrize(("most", "sizes"), [(2, [2] * 4), (3, [2] * 4), (4, [4, 4])])
def test_groups_are_no_larger_than_allowed(most, sizes):
    """Pairs of pairs are four: where three is the most, rounds after the first find nothing."""
    found = grouping([CPU, GPU] * 4, most, most).match({1: list(range(8))}, 1)[1]
    assert sorted(map(len, found)) == sizes


def test_the_buckets_met_first_merge_first():
    stages = [CPU, GPU] * 4
    found = grouping(stages).match({2: [0, 1, 2, 3], 1: [4, 5, 6, 7]}, 8)
    assert [sorted(map(len, found[width])) for width in (2, 1)] == [[2, 2], [1] * 4]
    found = grouping(stages).match({1: [4, 5, 6, 7], 2: [0, 1, 2, 3]}, 8)
    assert [sorted(map(len, found[width])) for width in (2, 1)] == [[1, 1, 2], [2, 2]]


def test_pairs_of_the_last_decision_stay_together_where_the_weight_allows():
    """All of these pairs are as good; the newcomer in front takes nobody's partner."""
    known = grouping([CPU, GPU] * 3 + [CPU, GPU], 2, 1)
    first = {frozenset(group) for group in known.match({1: [0, 1, 2, 3, 4, 5]}, 3)[1]}
    again = {frozenset(group) for group in known.match({1: [6, 5, 4, 3, 2, 1, 0, 7]}, 4)[1]}
    assert first < again


def test_blocks_in_order_of_priority():
    """8 jobs, 3 GPUs, 5 too many: the first block joins three, the second two; 7 is left out."""
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
    known = profiles([CPU, GPU, CPU])
    assert known.of_job == [0, 1, 0]
    assert gamma(known, *known.alone[:2]) == pytest.approx(6 / 16)
    assert gamma(known, known.alone[0], known.alone[0]) == pytest.approx(6 / 20)
    assert gamma(known, known.kind((0, 0, 1)), known.kind((0, 1))) == 0.0
    assert known.best_period((0, 1)) == 4.0


@pytest.mark.parametrize(
    ("perf", "period"), [(Interleaving(), 228), (Interleaving(None, "worst", (1.5,)), 345 * 1.5)]
)
def test_gamma_is_the_busy_share_of_four_resources(perf, period):
    stages = [(117.0, 68.0, 0.0), (0.5, 160.0, 0.0)]
    known = Profiles(stages, merged=True, perf=perf, max_group=2, collapse=True)
    assert gamma(known, *known.alone[:2]) == pytest.approx(345.5 / (4 * period))
