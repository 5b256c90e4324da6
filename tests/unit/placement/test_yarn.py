"""Consolidated placement against a plain O(nodes) reading of the rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.base.errors import PolicyError
from repro.model.cluster import Cluster, Node
from repro.placement import make


class Naive:
    """The rule as the paper's simulator words it, walking all nodes each time."""

    def __init__(self, cluster):
        self.size = [node.gpus for node in cluster.nodes]
        self.idle = list(self.size)
        self.switches = list(cluster.switches.values())

    def strict(self, gpus):
        for members in self.switches:
            largest = max(self.size[i] for i in members)
            if gpus <= largest:
                for node in members:
                    if self.idle[node] >= gpus:
                        return {node: gpus}
                continue
            full, rest = divmod(gpus, largest)
            whole = [i for i in members if self.idle[i] == largest][:full]
            if len(whole) < full:
                continue
            found = dict.fromkeys(whole, largest)
            if rest:
                last = [i for i in members if i not in found and self.idle[i] >= rest]
                if not last:
                    continue
                found[last[0]] = rest
            return found
        return None

    def fallback(self, gpus):
        order = [i for members in self.switches for i in members]
        found = {}
        for node in sorted(order, key=lambda i: -self.idle[i]):
            share = min(gpus, self.idle[node])
            if share:
                found[node] = share
                gpus -= share
        return found


def compare(cluster, script):
    placer = make("yarn").bind(cluster, np.random.default_rng(0))
    naive = Naive(cluster)
    live = {}
    for number, (frees, amount) in enumerate(script):
        if frees and live:
            job = list(live)[amount % len(live)]
            placer.give_back(job)
            for node, share in live.pop(job).items():
                naive.idle[node] += share
        elif placer.free:
            for gpus in range(1, min(cluster.num_gpus, 20) + 1):
                assert placer.fits(gpus) == (naive.strict(gpus) is not None)
            gpus = amount % placer.free + 1
            expected = naive.strict(gpus) or naive.fallback(gpus)
            assert placer.take(number, gpus, None) == tuple(sorted(expected.items()))
            for node, share in expected.items():
                naive.idle[node] -= share
            live[number] = expected
        assert placer.idle == naive.idle


scripts = st.lists(st.tuples(st.booleans(), st.integers(0, 60)), max_size=60)


@settings(max_examples=80)
@given(nodes=st.integers(1, 8), gpus=st.integers(1, 8), script=scripts)
def test_one_switch(nodes, gpus, script):
    compare(Cluster((Node(gpus),) * nodes), script)


@settings(max_examples=80)
@given(
    shape=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=4),
    gpus=st.integers(1, 4),
    script=scripts,
)
def test_several_switches(shape, gpus, script):
    nodes = [Node(gpus, switch=switch) for count, switch in shape for _ in range(count)]
    compare(Cluster(tuple(nodes)), script)


@settings(max_examples=80)
@given(
    nodes=st.lists(st.builds(Node, st.integers(1, 6), st.none(), st.integers(0, 2)), min_size=1),
    script=scripts,
)
def test_unequal_nodes(nodes, script):
    compare(Cluster(tuple(nodes)), script)


@pytest.mark.parametrize("spec", ["30x4", "6x5x8", "12x8,12x4,3x4x2", "40xk80"])
def test_long_sequences(spec):
    rng = np.random.default_rng(3)
    frees = rng.random(1500) < 0.45
    amounts = rng.geometric(0.15, 1500)
    compare(Cluster.parse(spec), list(zip(frees.tolist(), amounts.tolist(), strict=True)))


def bound(spec, **settings):
    return make("yarn", **settings).bind(Cluster.parse(spec), np.random.default_rng(0))


def test_small_gangs_go_to_the_first_node_that_fits():
    placer = bound("3x4")
    assert placer.take(0, 3) == ((0, 3),)
    assert placer.take(1, 2) == ((1, 2),)
    assert placer.take(2, 1) == ((0, 1),)
    assert placer.take(3, 2) == ((1, 2),)


def test_remainder_takes_the_first_other_node():
    placer = bound("4x4")
    placer.take(0, 1)
    # Nodes 1 and 2 are the first idle ones; node 0 comes first for the remainder.
    assert placer.take(1, 10) == ((0, 2), (1, 4), (2, 4))
    placer = bound("4x4")
    # Node 0 is already taken whole, so the remainder goes to the next idle one.
    assert placer.take(0, 6) == ((0, 4), (1, 2))


def test_remainder_needs_a_node_of_its_own():
    placer = bound("2x4")
    placer.take(0, 3)
    assert not placer.fits(6)
    assert placer.fits(5)
    assert placer.take(1, 5) == ((0, 1), (1, 4))


def test_a_gang_stays_within_one_switch():
    placer = bound("2x2x4")
    placer.take(0, 4)
    assert placer.take(1, 8) == ((2, 4), (3, 4))
    assert placer.possible(8)
    assert not placer.possible(9)
    assert not bound("2x2x4").fits(12)


def test_without_place_the_least_fragmented_nodes_are_used():
    placer = bound("4x4")
    for job, gpus in enumerate((3, 2, 2, 2)):
        placer.take(job, gpus)
    assert placer.idle == [1, 0, 2, 4]
    placer.take(9, 4)
    assert not placer.fits(3)
    assert placer.take(10, 3) == ((0, 1), (2, 2))
    across = bound("2x2x4")
    assert across.take(0, 12) == ((0, 4), (1, 4), (2, 4))


def test_without_fallback_a_gang_that_has_no_place_is_refused():
    placer = bound("2x4", fallback=None)
    placer.take(0, 3)
    placer.take(1, 3)
    assert not placer.fits(2)
    with pytest.raises(PolicyError, match=r"no nodes for 2 GPUs .* 2 are idle"):
        placer.take(2, 2)
    assert placer.idle == [1, 1]
    assert placer.take(2, 1) == ((0, 1),)


def test_smaller_nodes_do_not_count_as_whole_ones():
    nodes = (Node(8), Node(4), Node(4))
    placer = make("yarn").bind(Cluster(nodes), np.random.default_rng(0))
    assert placer.possible(12)
    assert not placer.possible(16)
    assert placer.take(0, 12) == ((0, 8), (1, 4))


def test_buckets_stay_bounded():
    placer = bound("50x8")
    rng = np.random.default_rng(0)
    live = []
    for job in range(20_000):
        gpus = int(rng.integers(1, 13))
        while placer.free < gpus:
            placer.give_back(live.pop(int(rng.integers(len(live)))))
        placer.take(job, gpus)
        live.append(job)
    assert sum(len(bucket) for bucket in placer.groups[0]._buckets) <= 50 * 9


def test_a_switch_whose_gpus_are_all_in_use_takes_no_gang():
    cluster = Cluster((Node(0, used=8), Node(4, switch=1), Node(4, switch=1)))
    placer = make("yarn").bind(cluster, np.random.default_rng(0))
    assert [placer.possible(gpus) for gpus in (1, 8, 9)] == [True, True, False]
    assert placer.take(0, 6) == ((1, 4), (2, 2))
