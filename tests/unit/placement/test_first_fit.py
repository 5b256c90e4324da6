from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.model.cluster.node import Node
from repro.model.cluster.spec import Cluster
from repro.placement.first_fit import FirstFit
from repro.placement.yarn import Yarn

CLUSTERS = ["8x8", "4x8", "8x4", "2x8", "3x4,2x8", "2x8,1x4", "2x2x4", "1x1", "5x3"]


def as_yarn(spec, widths):
    """What consolidated placement says of each gang, one after the other on idle nodes."""
    placer = Yarn(fallback=None).bind(Cluster.parse(spec), np.random.default_rng(0))
    taken = []
    for job, width in enumerate(widths):
        fits = placer.fits(width)
        if fits:
            placer.take(job, width)
        taken.append(fits)
    return taken, placer.free


@settings(max_examples=300)
@given(
    st.sampled_from(CLUSTERS),
    st.lists(st.sampled_from([1, 2, 3, 4, 5, 6, 8, 12, 16, 32]), max_size=40),
    st.integers(0, 20),
)
def test_answers_like_consolidated_placement(spec, widths, before):
    nodes = FirstFit(Cluster.parse(spec))
    for width in reversed(widths[:before]):
        nodes.take(width)
    nodes.clear()
    assert ([nodes.take(width) for width in widths], nodes.free) == as_yarn(spec, widths)


@settings(max_examples=200)
@given(st.sampled_from(CLUSTERS), st.lists(st.sampled_from([1, 2, 4, 8, 16, 32]), max_size=60))
def test_gangs_that_are_only_counted_find_the_same_places(spec, widths):
    nodes = FirstFit(Cluster.parse(spec), set(widths))
    assert ([nodes.take(width) for width in widths], nodes.free) == as_yarn(spec, widths)


def test_a_gang_refused_for_its_remainder_leaves_no_trace():
    nodes = FirstFit(Cluster.parse("3x4"))
    # 6 = a whole node and 2 of another, where 1 is left
    assert [nodes.take(gpus) for gpus in (3, 3, 6, 2, 2)] == [True, True, False, True, True]
    assert nodes.free == 2


@pytest.mark.parametrize(("widths", "free"), [((8, 8), 0), ((1, 16), 15), ((1, 8, 1), 6)])
def test_wide_gangs_take_whole_nodes(widths, free):
    nodes = FirstFit(Cluster.parse("2x8"))
    for width in widths:
        nodes.take(width)
    assert nodes.free == free


def test_a_switch_whose_gpus_are_all_in_use_takes_no_gang():
    nodes = FirstFit(Cluster((Node(0, used=8), Node(4, switch=1), Node(4, switch=1))))
    assert [nodes.take(gpus) for gpus in (4, 8, 2, 4)] == [True, False, True, False]
