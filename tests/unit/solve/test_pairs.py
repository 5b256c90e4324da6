"""Space sharing: the programme over kinds against the programme over jobs, and its spreading."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from repro.base.errors import PolicyError
from repro.solve.pairs import programme as pairs_programme
from repro.solve.pairs.makespan import makespan_pairs, pools
from repro.solve.pairs.programme import (
    KindShares,
    PairableKinds,
    programme,
    solve,
    solved_shares,
    spread_evenly,
    spread_over_few_pairs,
)


def instance(seed, kinds=6, most=4, widths=(1,)):
    """Random values of kinds alone and in pairs; some pairs do not fit into memory."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.2, 3.0, (kinds, 3))
    paired = values[:, None] * rng.uniform(0.3, 1.0, (kinds, kinds, 3))
    for a, b in zip(*np.nonzero(rng.random((kinds, kinds)) < 0.15), strict=True):
        paired[a, b] = paired[b, a] = 0.0
    counts = rng.integers(1, most + 1, kinds).astype(float)
    wide = rng.choice(widths, kinds).astype(float)
    return PairableKinds(values, paired, wide, np.full(3, 4.0)), counts


def over_jobs(job_kinds, kind_of, demand):
    """Level of the programme with a column per job and pair of jobs."""
    values = job_kinds.value
    paired = job_kinds.paired
    widths = job_kinds.widths
    capacity = job_kinds.gpus
    jobs = len(kind_of)
    columns = 0
    entries = []
    for i in range(jobs):
        for second in [-1, *range(i + 1, jobs)]:
            if second >= 0 and widths[kind_of[i]] != widths[kind_of[second]]:
                continue
            for j in range(len(capacity)):
                a, b = kind_of[i], kind_of[second]
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
def test_kinds_give_the_level_of_jobs(seed, widths):
    job_kinds, counts = instance(seed, widths=widths)
    kind_of = np.repeat(np.arange(len(counts)), counts.astype(int))
    expected = over_jobs(job_kinds, kind_of, np.ones(len(kind_of)))
    problem = programme(job_kinds, counts)
    for method in ("centre", "vertex"):
        assert solve(problem, method)[1] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("pairs", ["working", "useful"])
@pytest.mark.parametrize("seed", range(4))
def test_pairs_left_out_do_not_change_the_level(seed, pairs):
    arguments = instance(seed, kinds=12)
    level = solve(programme(*arguments))[1]
    fewer = programme(*arguments, pairs=pairs)
    assert len(fewer.first_kind) < len(programme(*arguments).first_kind)
    assert solve(fewer)[1] == pytest.approx(level, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_optimum_is_feasible_and_the_level_is_reached(seed):
    problem = programme(*instance(seed, widths=(1, 2)))
    x, level = solve(problem)
    used = np.zeros(len(problem.limits))
    np.add.at(used, problem.rows, problem.coefs * x[:, None])
    assert x.min() >= 0
    assert (used + problem.level_coefs * level <= problem.limits + 1e-6).all()


def test_the_centre_of_kinds_is_that_of_jobs():
    # two kinds of equal values, or one kind: the barrier counts a kind as often as it has jobs
    values = np.array([[2.0, 1.0]])
    paired = np.array([[[1.5, 0.7]]])
    capacity = np.array([1.0, 3.0])
    single = programme(PairableKinds(values, paired, np.ones(1), capacity), np.array([3.0]))
    twice = PairableKinds(np.repeat(values, 2, 0), np.tile(paired, (2, 2, 1)), np.ones(2), capacity)
    split = programme(twice, np.array([1.0, 2.0]))
    single_x, level = solve(single)
    split_x, split_level = solve(split)
    assert level == pytest.approx(split_level, rel=1e-7)
    for gpu_type in range(2):
        for alone in (True, False):
            times = [
                x[(p.gpu_type == gpu_type) & ((p.second_kind < 0) == alone)].sum()
                for p, x in ((single, single_x), (split, split_x))
            ]
            assert times[0] == pytest.approx(times[1], abs=1e-5)


def test_the_order_of_kinds_does_not_matter():
    job_kinds, counts = instance(3, kinds=7)
    order = np.random.default_rng(0).permutation(7)
    inverse = np.argsort(order)
    expected = solved_shares(programme(job_kinds, counts))
    paired = job_kinds.paired[np.ix_(order, order)]
    moved = PairableKinds(job_kinds.value[order], paired, job_kinds.widths[order], job_kinds.gpus)
    permuted = solved_shares(programme(moved, counts[order]))
    assert permuted.alone[inverse] == pytest.approx(expected.alone, abs=1e-5)


def test_a_solver_that_fails_is_replaced(monkeypatch):
    problem = programme(*instance(1))
    expected = solve(problem)[1]
    monkeypatch.setattr(pairs_programme, "MAX_STEPS", 3)
    assert solve(problem)[1] == pytest.approx(expected, rel=1e-6)
    infeasible = programme(*instance(1))
    infeasible.limits[:] = -1.0
    with pytest.raises(PolicyError, match="6 job kinds"):
        solve(infeasible)


def test_the_centre_of_all_points_that_reach_a_level():
    problem = programme(*instance(2))
    best, level = solve(problem)
    x, floor = solve(problem, level=0.9 * level)
    assert floor == 0.9 * level
    used = np.zeros(len(problem.limits))
    np.add.at(used, problem.rows, problem.coefs * x[:, None])
    slack = problem.limits - used - problem.level_coefs * floor
    assert slack.min() > 1e-6
    assert np.abs(x - best).max() > 1e-3


@pytest.mark.parametrize("pairs", ["all", "working", "useful"])
@pytest.mark.parametrize("widths", [(1,), (1, 2, 8)])
def test_columns_are_the_jobs_and_pairs_on_offer(pairs, widths):
    job_kinds, counts = instance(5, kinds=7, widths=widths)
    values = job_kinds.value
    paired = job_kinds.paired
    wide = job_kinds.widths
    capacity = job_kinds.gpus
    values[0, 0] = 0.0
    # kinds by width, so that kinds that share columns are neighbours
    order = np.argsort(wide, kind="stable").tolist()
    expected = []
    for j in range(3):
        for a in order:
            if wide[a] <= capacity[j] and (values[a, j] > 0 or pairs == "all"):
                expected.append((a, -1, j, counts[a], 0.0, -values[a, j]))
    for position, a in enumerate(order):
        for j in range(3):
            for b in order[position:]:
                value_a = paired[a, b, j]
                value_b = paired[b, a, j]
                offered = pairs == "all" or (value_a > 0 and value_b > 0)
                if offered and pairs == "useful":
                    with np.errstate(divide="ignore"):
                        gain = value_a / values[a, j] + value_b / values[b, j]
                    offered = values[a, j] == 0 or gain > 1
                if wide[a] != wide[b] or wide[a] > capacity[j] or not offered:
                    continue
                if a == b and counts[a] >= 2:
                    number = counts[a] * (counts[a] - 1) / 2
                    expected.append((a, a, j, number, -2 * value_a, 0.0))
                elif a != b:
                    expected.append((a, b, j, counts[a] * counts[b], -value_a, -value_b))
    problem = programme(job_kinds, counts, pairs=pairs)
    assert expected == list(
        zip(
            problem.first_kind,
            problem.second_kind,
            problem.gpu_type,
            problem.column_weights,
            problem.coefs[:, 2],
            problem.coefs[:, 3],
            strict=True,
        )
    )
    assert (problem.coefs[:, 4] == wide[problem.first_kind]).all()


def test_where_no_pair_runs_none_is_offered():
    job_kinds, counts = instance(6)
    unpairable = PairableKinds(
        job_kinds.value, 0 * job_kinds.paired, job_kinds.widths, job_kinds.gpus
    )
    assert (programme(unpairable, counts).second_kind < 0).all()


# spreading -------------------------------------------------------------------------------------


def totals(rows, jobs):
    members, fractions = rows
    time = np.zeros((jobs, fractions.shape[1]))
    np.add.at(time, members[:, 0], fractions)
    is_pair = members[:, 1] >= 0
    np.add.at(time, members[is_pair, 1], fractions[is_pair])
    return time


@pytest.mark.parametrize("seed", range(5))
def test_both_ways_of_spreading_give_jobs_the_same(seed):
    job_kinds, counts = instance(seed, kinds=5, most=5)
    kind_of = np.random.default_rng(seed).permutation(np.repeat(np.arange(5), counts.astype(int)))
    answer = solved_shares(programme(job_kinds, counts))
    jobs = np.arange(len(kind_of))
    even = spread_evenly(jobs, kind_of, counts, answer)
    thin = spread_over_few_pairs(jobs, kind_of, 1.0 / counts[kind_of], answer)
    assert len(thin[0]) <= len(even[0])
    assert totals(thin, len(jobs)) == pytest.approx(totals(even, len(jobs)), abs=2e-5)
    for kind in range(5):
        same = totals(even, len(jobs))[kind_of == kind]
        assert same == pytest.approx(np.tile(same[0], (len(same), 1)))
    for rows in (even, thin):
        pairs = rows[0][rows[0][:, 1] >= 0]
        assert (pairs[:, 0] < pairs[:, 1]).all()
        assert totals(rows, len(jobs)).sum(axis=1).max() <= 1 + 1e-6


def test_unequal_fractions_of_a_kind_paired_with_itself():
    fractions = np.array([0.5, 0.2, 0.2, 0.1])
    kind_shares = KindShares(np.zeros((1, 1)), np.array([0]), np.array([0]), np.array([[1.0]]), 1.0)
    rows = spread_over_few_pairs(np.arange(4), np.zeros(4, dtype=int), fractions, kind_shares)
    assert totals(rows, 4).ravel() == pytest.approx(2 * fractions)


# makespan --------------------------------------------------------------------------------------


def static(seed, jobs=14, kinds=4):
    job_kinds, _ = instance(seed, kinds)
    rng = np.random.default_rng(seed)
    kind_of = rng.integers(0, kinds, jobs)
    remaining_steps = 10 ** rng.uniform(0, 2, jobs)
    one_gpu_each = PairableKinds(job_kinds.value, job_kinds.paired, np.ones(kinds), np.full(3, 1.0))
    return one_gpu_each, kind_of, remaining_steps


@pytest.mark.parametrize("seed", range(6))
def test_makespan_over_pools_is_that_over_jobs(seed):
    job_kinds, kind_of, remaining_steps = static(seed)
    values = job_kinds.value
    paired = job_kinds.paired
    level = over_jobs(job_kinds, kind_of, remaining_steps)
    members, fractions, end = makespan_pairs(job_kinds, kind_of, remaining_steps)
    assert end == pytest.approx(1 / level, rel=1e-5)
    *_, alone = makespan_pairs(job_kinds, kind_of, remaining_steps, short=0.0)
    assert alone == pytest.approx(1 / level, rel=1e-6)
    throughput = np.zeros(len(remaining_steps))
    for (job, partner), x in zip(members, fractions, strict=True):
        a, b = kind_of[job], kind_of[partner]
        throughput[job] += (values[a] if partner < 0 else paired[a, b]) @ x
        if partner >= 0:
            throughput[partner] += paired[b, a] @ x
    assert (remaining_steps / throughput).max() == pytest.approx(end, rel=1e-3)
    assert totals((members, fractions), len(remaining_steps)).sum(axis=1).max() <= 1 + 1e-6


def test_two_short_jobs_of_a_kind_share_a_gpu_though_one_has_most_of_their_work():
    """On one GPU: 100 s of the long job, 4 / 0.9 s of both short jobs, 8 s of the longer one."""
    paired = np.zeros((2, 2, 1))
    paired[0, 0] = 0.9
    kinds = PairableKinds(np.ones((2, 1)), paired, np.ones(2), np.ones(1))
    *_, end = makespan_pairs(kinds, np.array([0, 0, 1]), np.array([12.0, 4.0, 100.0]))
    assert end == pytest.approx(108 + 4 / 0.9, rel=1e-6)


def test_a_pool_has_no_job_with_most_of_its_work():
    steps = np.array([5.0, 3.0, 2.0, 60.0, 1.0, 900.0])
    pool_of = pools(np.array([0, 0, 0, 0, 1, 1]), steps, np.ones(6))
    assert pool_of.tolist() == [0, 0, 0, 1, 2, 3]


def test_bisection_ends_above_the_optimum_within_its_tolerance():
    job_kinds, kind_of, remaining_steps = static(0)
    remaining_steps = remaining_steps * 1000
    *_, best = makespan_pairs(job_kinds, kind_of, remaining_steps)
    *_, end = makespan_pairs(job_kinds, kind_of, remaining_steps, tolerance=0.05)
    assert best < end <= 1.05 * best
