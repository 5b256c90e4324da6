"""Space sharing: the programme over job types against the one over jobs, and its spreading."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from repro.base.errors import PolicyError
from repro.solve.pairs import programme as pairs_programme
from repro.solve.pairs.makespan import makespan_pairs
from repro.solve.pairs.programme import (
    KindShares,
    PairCrowd,
    programme,
    shares,
    solve,
    spread_evenly,
    spread_thinly,
)


def instance(seed, types=6, most=4, widths=(1,)):
    """Random values of types alone and in pairs; some pairs do not fit into memory."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.2, 3.0, (types, 3))
    paired = values[:, None] * rng.uniform(0.3, 1.0, (types, types, 3))
    for a, b in zip(*np.nonzero(rng.random((types, types)) < 0.15), strict=True):
        paired[a, b] = paired[b, a] = 0.0
    counts = rng.integers(1, most + 1, types).astype(float)
    wide = rng.choice(widths, types).astype(float)
    return PairCrowd(values, paired, wide, np.full(3, 4.0)), counts


def over_jobs(crowd, kinds, demand):
    """Return the level of the programme with a column per job and pair of jobs."""
    values = crowd.value
    paired = crowd.paired
    widths = crowd.widths
    capacity = crowd.gpus
    jobs = len(kinds)
    columns = 0
    entries = []
    for i in range(jobs):
        for second in [-1, *range(i + 1, jobs)]:
            if second >= 0 and widths[kinds[i]] != widths[kinds[second]]:
                continue
            for j in range(len(capacity)):
                a, b = kinds[i], kinds[second]
                alone = second < 0
                entries += [(i, columns, 1.0), (2 * jobs + j, columns, widths[a])]
                value = values[a, j] if alone else paired[a, b, j]
                entries.append((jobs + i, columns, -value))
                if not alone:
                    entries.append((second, columns, 1.0))
                    entries.append((jobs + second, columns, -paired[b, a, j]))
                columns += 1
    matrix = np.zeros((2 * jobs + len(capacity), columns + 1))
    for row, column, value in entries:
        matrix[row, column] += value
    matrix[jobs : 2 * jobs, -1] = demand
    limits = np.concatenate([np.ones(jobs), np.zeros(jobs), capacity])
    answer = linprog(-np.eye(columns + 1)[-1], A_ub=matrix, b_ub=limits, method="highs")
    return answer.x[-1]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("widths", [(1,), (1, 2)])
def test_types_give_the_level_of_jobs(seed, widths):
    crowd, counts = instance(seed, widths=widths)
    kinds = np.repeat(np.arange(len(counts)), counts.astype(int))
    expected = over_jobs(crowd, kinds, np.ones(len(kinds)))
    problem = programme(crowd, counts)
    for method in ("centre", "vertex"):
        assert solve(problem, method)[1] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("pairs", ["working", "useful"])
@pytest.mark.parametrize("seed", range(4))
def test_pairs_left_out_do_not_change_the_level(seed, pairs):
    given = instance(seed, types=12)
    level = solve(programme(*given))[1]
    fewer = programme(*given, pairs=pairs)
    assert len(fewer.first) < len(programme(*given).first)
    assert solve(fewer)[1] == pytest.approx(level, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_optimum_is_feasible_and_the_level_is_reached(seed):
    problem = programme(*instance(seed, widths=(1, 2)))
    x, level = solve(problem)
    used = np.zeros(len(problem.limits))
    np.add.at(used, problem.rows, problem.coefs * x[:, None])
    assert x.min() >= 0
    assert (used + problem.free * level <= problem.limits + 1e-6).all()


def test_the_centre_of_types_is_that_of_jobs():
    # two types of equal speeds, or one: the barrier weighs a type by its jobs
    values = np.array([[2.0, 1.0]])
    beside = np.array([[[1.5, 0.7]]])
    one = np.ones(1)
    capacity = np.array([1.0, 3.0])
    together = programme(PairCrowd(values, beside, one, capacity), 3 * one)
    twice = PairCrowd(np.repeat(values, 2, 0), np.tile(beside, (2, 2, 1)), np.ones(2), capacity)
    split = programme(twice, np.array([1.0, 2.0]))
    whole, level = solve(together)
    parts, same = solve(split)
    assert level == pytest.approx(same, rel=1e-7)
    for kind in range(2):
        for alone in (True, False):
            of = [
                x[(p.column == kind) & ((p.second < 0) == alone)].sum()
                for p, x in ((together, whole), (split, parts))
            ]
            assert of[0] == pytest.approx(of[1], abs=1e-5)


def test_the_order_of_types_does_not_matter():
    crowd, counts = instance(3, types=7)
    order = np.random.default_rng(0).permutation(7)
    back = np.argsort(order)
    straight = shares(programme(crowd, counts))
    paired = crowd.paired[np.ix_(order, order)]
    moved = PairCrowd(crowd.value[order], paired, crowd.widths[order], crowd.gpus)
    turned = shares(programme(moved, counts[order]))
    assert turned.alone[back] == pytest.approx(straight.alone, abs=1e-5)


def test_a_solver_that_fails_is_replaced(monkeypatch):
    problem = programme(*instance(1))
    expected = solve(problem)[1]
    monkeypatch.setattr(pairs_programme, "MOST_STEPS", 3)
    assert solve(problem)[1] == pytest.approx(expected, rel=1e-6)
    nothing = programme(*instance(1))
    nothing.limits[:] = -1.0
    with pytest.raises(PolicyError, match="6 job types"):
        solve(nothing)


def test_a_point_amid_those_that_reach_a_level():
    problem = programme(*instance(2))
    best, level = solve(problem)
    amid, given = solve(problem, level=0.9 * level)
    assert given == 0.9 * level
    used = np.zeros(len(problem.limits))
    np.add.at(used, problem.rows, problem.coefs * amid[:, None])
    slack = problem.limits - used - problem.free * given
    assert slack.min() > 1e-6
    assert np.abs(amid - best).max() > 1e-3


@pytest.mark.parametrize("pairs", ["all", "working", "useful"])
@pytest.mark.parametrize("widths", [(1,), (1, 2, 8)])
def test_columns_are_the_jobs_and_pairs_offered(pairs, widths):
    crowd, counts = instance(5, types=7, widths=widths)
    values = crowd.value
    paired = crowd.paired
    wide = crowd.widths
    capacity = crowd.gpus
    values[0, 0] = 0.0
    # types by width, so that those that share columns lie together
    order = np.argsort(wide, kind="stable").tolist()
    expected = []
    for j in range(3):
        for a in order:
            if wide[a] <= capacity[j] and (values[a, j] > 0 or pairs == "all"):
                expected.append((a, -1, j, counts[a], 0.0, -values[a, j]))
    for place, a in enumerate(order):
        for j in range(3):
            for b in order[place:]:
                one, two = paired[a, b, j], paired[b, a, j]
                works = pairs == "all" or (one > 0 and two > 0)
                if works and pairs == "useful":
                    works = values[a, j] == 0 or one / values[a, j] + two / values[b, j] > 1
                if wide[a] != wide[b] or wide[a] > capacity[j] or not works:
                    continue
                if a == b and counts[a] >= 2:
                    number = counts[a] * (counts[a] - 1) / 2
                    expected.append((a, a, j, number, -2 * one, 0.0))
                elif a != b:
                    expected.append((a, b, j, counts[a] * counts[b], -one, -two))
    found = programme(crowd, counts, pairs=pairs)
    assert expected == list(
        zip(
            found.first,
            found.second,
            found.column,
            found.column_weights,
            found.coefs[:, 2],
            found.coefs[:, 3],
            strict=True,
        )
    )
    assert (found.coefs[:, 4] == wide[found.first]).all()


def test_where_no_pair_runs_none_is_offered():
    crowd, counts = instance(6)
    nothing = PairCrowd(crowd.value, 0 * crowd.paired, crowd.widths, crowd.gpus)
    assert (programme(nothing, counts).second < 0).all()


# spreading -------------------------------------------------------------------------------------


def totals(rows, jobs):
    members, fractions = rows
    time = np.zeros((jobs, fractions.shape[1]))
    np.add.at(time, members[:, 0], fractions)
    two = members[:, 1] >= 0
    np.add.at(time, members[two, 1], fractions[two])
    return time


@pytest.mark.parametrize("seed", range(5))
def test_both_ways_of_spreading_give_jobs_the_same(seed):
    given = instance(seed, types=5, most=5)
    counts = given[1]
    kinds = np.random.default_rng(seed).permutation(np.repeat(np.arange(5), counts.astype(int)))
    answer = shares(programme(*given))
    jobs = np.arange(len(kinds))
    even = spread_evenly(jobs, kinds, counts, answer)
    thin = spread_thinly(jobs, kinds, 1.0 / counts[kinds], answer)
    assert len(thin[0]) <= len(even[0])
    assert totals(thin, len(jobs)) == pytest.approx(totals(even, len(jobs)), abs=2e-5)
    for kind in range(5):
        same = totals(even, len(jobs))[kinds == kind]
        assert same == pytest.approx(np.tile(same[0], (len(same), 1)))
    for rows in (even, thin):
        pairs = rows[0][rows[0][:, 1] >= 0]
        assert (pairs[:, 0] < pairs[:, 1]).all()
        assert totals(rows, len(jobs)).sum(axis=1).max() <= 1 + 1e-6


def test_unequal_parts_of_a_type_paired_with_itself():
    parts = np.array([0.5, 0.2, 0.2, 0.1])
    given = KindShares(np.zeros((1, 1)), np.array([0]), np.array([0]), np.array([[1.0]]), 1.0)
    rows = spread_thinly(np.arange(4), np.zeros(4, dtype=int), parts, given)
    assert totals(rows, 4).ravel() == pytest.approx(2 * parts)


# makespan --------------------------------------------------------------------------------------


def static(seed, jobs=14, types=4):
    crowd, _ = instance(seed, types)
    rng = np.random.default_rng(seed)
    place = rng.integers(0, types, jobs)
    left = 10 ** rng.uniform(0, 2, jobs)
    return PairCrowd(crowd.value, crowd.paired, np.ones(types), np.full(3, 1.0)), place, left


@pytest.mark.parametrize("seed", range(6))
def test_makespan_over_classes_is_that_over_jobs(seed):
    crowd, place, left = static(seed)
    values = crowd.value
    paired = crowd.paired
    level = over_jobs(crowd, place, left)
    members, fractions, end = makespan_pairs(crowd, place, left)
    assert end == pytest.approx(1 / level, rel=1e-5)
    *_, alone = makespan_pairs(crowd, place, left, short=0.0)
    assert alone == pytest.approx(1 / level, rel=1e-6)
    # what the rows give every job suffices, and no job is given more than all of its time
    got = np.zeros(len(left))
    for (one, two), x in zip(members, fractions, strict=True):
        a, b = place[one], place[two]
        got[one] += (values[a] if two < 0 else paired[a, b]) @ x
        if two >= 0:
            got[two] += paired[b, a] @ x
    assert (left / got).max() == pytest.approx(end, rel=1e-3)
    assert totals((members, fractions), len(left)).sum(axis=1).max() <= 1 + 1e-6


def test_bisection_ends_above_the_optimum_within_its_tolerance():
    given = static(0)
    left = given[-1] * 1000
    *_, best = makespan_pairs(*given[:-1], left)
    *_, end = makespan_pairs(*given[:-1], left, tolerance=0.05)
    assert best < end <= 1.05 * best
