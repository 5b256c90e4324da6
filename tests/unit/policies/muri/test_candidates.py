"""Candidates for grouping, and the order among equal values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.model.cluster.spec import Cluster
from repro.placement.yarn import Yarn
from repro.policies.muri._grouping import Candidates

NOTHING = range(0)


def plain_candidates(order, widths, cluster, size):
    """One walk over all jobs: a slot for whoever fits, with the next ones of its width."""
    placer = Yarn(fallback=None).bind(cluster, np.random.default_rng(0))
    lines = {}
    for job in order:
        lines.setdefault(widths[job], []).append(job)
    taken = set()
    found = {width: [] for width in lines}
    for job in order:
        if job in taken or not placer.fits(widths[job]):
            continue
        placer.take(job, widths[job])
        line = found[widths[job]]
        more = lines[widths[job]][len(line) : len(line) + size]
        line += more
        taken.update(more)
    return {width: line for width, line in found.items() if line}


@settings(max_examples=200, deadline=None)
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
    lanes = Candidates(widths, cluster, size, wide_first)
    first_fresh = random.randrange(len(jobs) + 1)
    for job, (value, _) in enumerate(jobs):
        lanes.add([job], [float(value)])
    # ties: wider ones first and those that came just now last, or the order of rows
    order = sorted(
        range(len(jobs)),
        key=lambda job: (
            (jobs[job][0], job >= first_fresh, -widths[job] * (job < first_fresh), job)
            if wide_first
            else (jobs[job][0], job)
        ),
    )
    entries = lanes.choose({}, range(first_fresh, len(jobs)))
    found = {width: [job for _, _, job in line] for width, line in entries.items()}
    expected = plain_candidates(order, widths, cluster, size)
    assert found == expected
    assert list(found) == list(expected)


def test_who_runs_is_taken_out_and_ranks_with_those_that_wait():
    lanes = Candidates([1] * 4, Cluster.parse("1x2"), 2, wide_first=True)
    for job, value in enumerate([1.0, 2.0, 3.0, 4.0]):
        lanes.add([job], [value])
    lanes.remove([0])
    running = lanes.ranked(np.array([0]), np.array([2.5]))
    line = lanes.choose(running, NOTHING)[1]
    assert [job for _, _, job in line] == [1, 0, 2, 3]


@pytest.mark.parametrize(
    ("now", "order"),
    [
        (2.0, [0, 1, 2]),  # rose to the value of the others: stays ahead of them
        (1.0, [0, 1, 2]),
        (3.0, [1, 2, 0]),
    ],
)
def test_a_list_sorted_in_place_keeps_the_order_of_equals(now, order):
    lanes = Candidates([1] * 4, Cluster.parse("1x1"), 3, wide_first=True)
    for job, value in enumerate([1.0, 2.0, 2.0]):
        lanes.add([job], [value])
    lanes.remove([0])
    line = lanes.choose(lanes.ranked(np.array([0]), np.array([now])), NOTHING)[1]
    assert [job for _, _, job in line] == order


def test_a_value_that_fell_to_that_of_others_goes_behind_them():
    lanes = Candidates([1] * 4, Cluster.parse("1x1"), 3, wide_first=True)
    for job, value in enumerate([5.0, 2.0, 2.0]):
        lanes.add([job], [value])
    lanes.remove([0])
    line = lanes.choose(lanes.ranked(np.array([0]), np.array([2.0])), NOTHING)[1]
    assert [job for _, _, job in line] == [1, 2, 0]
    plain = Candidates([1] * 4, Cluster.parse("1x1"), 3, wide_first=False)
    for job, value in enumerate([5.0, 2.0, 2.0]):
        plain.add([job], [value])
    plain.remove([0])
    line = plain.choose(plain.ranked(np.array([0]), np.array([2.0])), NOTHING)[1]
    assert [job for _, _, job in line] == [0, 1, 2]
