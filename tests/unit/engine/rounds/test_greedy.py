"""The compiled greedy choice against a sorted list, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.engine.rounds.kernel import choose_greedily, priorities


def naive(members, demands, runnable, priority, deficit, x, capacity, order, whole_queue, idle_ok):
    """Choose from sorted lists, one over all types or one per type."""
    free = list(capacity)
    taken = set()
    chosen = []
    queues = [list(order)] if whole_queue else [[column] for column in order]
    for queue in queues:
        entries = [
            ((-priority[a, j], -deficit[a, j], -x[a, j], queue.index(j), a), a, j)
            for a in range(len(x))
            for j in queue
            if runnable[a, j] and (priority[a, j] > 0 or not idle_ok)
        ]
        for _, a, j in sorted(entries):
            jobs = {job for job in members[a] if job >= 0}
            if not jobs & taken and demands[a] <= free[j]:
                taken |= jobs
                free[j] -= demands[a]
                chosen.append((a, j))
    return chosen


@st.composite
def instances(draw):
    jobs = draw(st.integers(1, 9))
    types = draw(st.integers(1, 3))
    gangs = draw(st.lists(st.sampled_from([1, 1, 2, 4]), min_size=jobs, max_size=jobs))
    rows = [(job, -1) for job in range(jobs)]
    for job in range(jobs):
        for partner in range(job + 1, jobs):
            if gangs[job] == gangs[partner] and draw(st.booleans()):
                rows.append((job, partner))
    shape = (len(rows), types)

    def values(choices):
        size = len(rows) * types
        return np.array(
            draw(st.lists(st.sampled_from(choices), min_size=size, max_size=size))
        ).reshape(shape)

    return {
        "members": np.array(rows, dtype=np.int64),
        "demands": np.array([gangs[job] for job, _ in rows], dtype=np.int64),
        "runnable": values([True, True, False]),
        # few values, so that ties are common
        "priority": values([0.0, 0.5, 1.0, np.inf]),
        "deficit": values([-1.0, 0.0, 1.0]),
        "x": values([0.0, 0.25]),
        "capacity": np.array(draw(st.lists(st.integers(0, 6), min_size=types, max_size=types))),
        "order": np.array(draw(st.permutations(range(types)))),
        "whole_queue": draw(st.booleans()),
        "idle_ok": draw(st.booleans()),
    }


def chosen_greedily(case):
    scratch = np.zeros(len(case["demands"]), dtype=np.bool_)
    rows, columns = choose_greedily(**case, scratch=scratch)
    assert not scratch.any(), "the scratch array must be left all false"
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


@given(case=instances())
@settings(max_examples=300)
def test_the_choice_is_that_from_a_sorted_list(case):
    assert chosen_greedily(case) == naive(**case)


@given(case=instances())
@settings(max_examples=200)
def test_a_job_at_most_once_within_the_gpus_of_each_type(case):
    chosen = chosen_greedily(case)
    jobs = [job for a, _ in chosen for job in case["members"][a].tolist() if job >= 0]
    assert len(jobs) == len(set(jobs))
    used = np.zeros(len(case["capacity"]))
    for a, j in chosen:
        assert case["runnable"][a, j]
        used[j] += case["demands"][a]
    assert (used <= case["capacity"]).all()
    if case["idle_ok"]:
        assert all(case["priority"][a, j] > 0 for a, j in chosen)
    elif not case["whole_queue"]:
        # work conserving: no waiting job would fit
        for a, (job, partner) in enumerate(case["members"].tolist()):
            if job not in jobs and partner not in jobs:
                fits = case["runnable"][a] & (case["demands"][a] <= case["capacity"] - used)
                assert not fits.any()


def column(*values):
    return np.array([values], dtype=float).T


def small(priorities, **changes):
    """One GPU of one type for jobs of one GPU."""
    count = len(priorities)
    case = {
        "members": np.column_stack([np.arange(count), np.full(count, -1)]),
        "demands": np.ones(count, dtype=np.int64),
        "runnable": np.ones((count, 1), dtype=np.bool_),
        "priority": column(*priorities),
        "deficit": np.zeros((count, 1)),
        "x": np.zeros((count, 1)),
        "capacity": np.array([1]),
        "order": np.array([0]),
        "whole_queue": False,
        "idle_ok": False,
    }
    return chosen_greedily(case | changes)


def test_priority_then_deficit_then_share_then_order():
    assert small([1.0, 2.0]) == [(1, 0)]
    assert small([1.0, 1.0], deficit=column(0.0, 5.0)) == [(1, 0)]
    assert small([1.0, 1.0], x=column(0.1, 0.2)) == [(1, 0)]
    assert small([1.0, 1.0], deficit=column(5.0, 0.0), x=column(0.1, 0.2)) == [(0, 0)]
    assert small([1.0, 1.0]) == [(0, 0)]


def test_jobs_without_a_share_run_only_if_gpus_may_not_idle():
    assert small([0.0]) == [(0, 0)]
    assert small([0.0], idle_ok=True) == []


def test_one_queue_over_all_types_or_one_after_the_other():
    """The job with the highest priority on the type filled last loses it in separate queues."""
    case = {
        "members": np.array([[0, -1], [1, -1]]),
        "demands": np.ones(2, dtype=np.int64),
        "runnable": np.ones((2, 2), dtype=np.bool_),
        "priority": np.array([[1.0, 9.0], [0.5, 5.0]]),
        "deficit": np.zeros((2, 2)),
        "x": np.zeros((2, 2)),
        "capacity": np.array([1, 1]),
        "order": np.array([0, 1]),
        "idle_ok": False,
    }
    assert chosen_greedily(case | {"whole_queue": True}) == [(0, 1), (1, 0)]
    assert chosen_greedily(case | {"whole_queue": False}) == [(0, 0), (1, 1)]
    # the order decides which queue comes first
    assert chosen_greedily(case | {"whole_queue": False, "order": np.array([1, 0])}) == [
        (0, 1),
        (1, 0),
    ]


def test_a_gang_that_does_not_fit_is_passed_over():
    case = {"demands": np.array([3, 1, 1]), "capacity": np.array([2])}
    assert small([3.0, 2.0, 1.0], **case) == [(1, 0), (2, 0)]


def test_a_pair_takes_both_of_its_jobs():
    members = np.array([[0, -1], [1, -1], [0, 1]])
    assert small([1.0, 1.0, 2.0], members=members, capacity=np.array([2])) == [(2, 0)]
    assert small([3.0, 1.0, 2.0], members=members, capacity=np.array([2])) == [(0, 0), (1, 0)]


@pytest.mark.parametrize(
    ("ranks_by_time", "expected"),
    [
        # X over rounds received: infinite before the first round
        (True, [[0.5 / 2, np.inf], [0.0, 0.25 / 4]]),
        # X over the part of all time received; a billion times X before the first round
        (False, [[0.5 / (2 / 8), 0.5e9], [0.0, 0.25 / (4 / 4)]]),
    ],
)
def test_priorities(ranks_by_time, expected):
    x = np.array([[0.5, 0.5], [0.0, 0.25]])
    time = np.array([[2.0, 0.0], [6.0, 4.0]])
    total = np.array([8.0, 4.0])
    np.testing.assert_allclose(priorities(x, time, total, ranks_by_time), expected)
    before_any_round = priorities(x, 0 * time, 0 * total, ranks_by_time)
    assert before_any_round[1, 0] == 0 and before_any_round[0, 0] >= 0.5e9
