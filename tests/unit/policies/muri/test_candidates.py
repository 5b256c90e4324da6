"""Candidates for grouping, and the order among equal values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.model.cluster.spec import Cluster
from repro.placement.yarn import Yarn
from repro.policies.muri._grouping import Candidates

NO_FRESH = range(0)


def plain_candidates(order, widths, cluster, size):
    """Candidates by one walk: a job that fits brings the next jobs of its width."""
    placer = Yarn(fallback=None).bind(cluster, np.random.default_rng(0))
    queues = {}
    for job in order:
        queues.setdefault(widths[job], []).append(job)
    reserved = set()
    chosen = {width: [] for width in queues}
    for job in order:
        if job in reserved or not placer.fits(widths[job]):
            continue
        placer.take(job, widths[job])
        bucket = chosen[widths[job]]
        more = queues[widths[job]][len(bucket) : len(bucket) + size]
        bucket += more
        reserved.update(more)
    return {width: bucket for width, bucket in chosen.items() if bucket}


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from([1, 2, 4, 8, 16])), max_size=60),
    st.sampled_from(["8x8", "4x8", "8x4", "2x8", "1x16"]),
    st.integers(2, 4),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_equals_a_walk_over_all_jobs(jobs, spec, size, wide_first, random):
    cluster = Cluster.parse(spec)
    widths = [width for _, width in jobs]
    candidates = Candidates(widths, cluster, size, wide_first)
    first_fresh = random.randrange(len(jobs) + 1)
    for job, (value, _) in enumerate(jobs):
        candidates.add([job], [float(value)])
    # ties: wider jobs first and jobs that arrived just now last, or the order of rows
    order = sorted(
        range(len(jobs)),
        key=lambda job: (
            (jobs[job][0], job >= first_fresh, -widths[job] * (job < first_fresh), job)
            if wide_first
            else (jobs[job][0], job)
        ),
    )
    entries = candidates.choose({}, range(first_fresh, len(jobs)))
    chosen = {width: [job for _, _, job in bucket] for width, bucket in entries.items()}
    expected = plain_candidates(order, widths, cluster, size)
    assert chosen == expected
    assert list(chosen) == list(expected)


def test_running_jobs_rank_with_waiting_jobs():
    candidates = Candidates([1] * 4, Cluster.parse("1x2"), 2, wide_first=True)
    for job, value in enumerate([1.0, 2.0, 3.0, 4.0]):
        candidates.add([job], [value])
    candidates.remove([0])
    running = candidates.rerank(np.array([0]), np.array([2.5]))
    bucket = candidates.choose(running, NO_FRESH)[1]
    assert [job for _, _, job in bucket] == [1, 0, 2, 3]


@pytest.mark.parametrize(
    ("now", "order"),
    [
        (2.0, [0, 1, 2]),  # rose to the value of the others: stays ahead of them
        (1.0, [0, 1, 2]),
        (3.0, [1, 2, 0]),
    ],
)
def test_a_list_sorted_in_place_keeps_the_order_of_equals(now, order):
    candidates = Candidates([1] * 4, Cluster.parse("1x1"), 3, wide_first=True)
    for job, value in enumerate([1.0, 2.0, 2.0]):
        candidates.add([job], [value])
    candidates.remove([0])
    bucket = candidates.choose(candidates.rerank(np.array([0]), np.array([now])), NO_FRESH)[1]
    assert [job for _, _, job in bucket] == order


def test_a_priority_that_fell_to_that_of_others_goes_behind_them():
    candidates = Candidates([1] * 4, Cluster.parse("1x1"), 3, wide_first=True)
    for job, value in enumerate([5.0, 2.0, 2.0]):
        candidates.add([job], [value])
    candidates.remove([0])
    bucket = candidates.choose(candidates.rerank(np.array([0]), np.array([2.0])), NO_FRESH)[1]
    assert [job for _, _, job in bucket] == [1, 2, 0]
    plain = Candidates([1] * 4, Cluster.parse("1x1"), 3, wide_first=False)
    for job, value in enumerate([5.0, 2.0, 2.0]):
        plain.add([job], [value])
    plain.remove([0])
    bucket = plain.choose(plain.rerank(np.array([0]), np.array([2.0])), NO_FRESH)[1]
    assert [job for _, _, job in bucket] == [0, 1, 2]
