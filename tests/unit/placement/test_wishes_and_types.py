"""Placement wishes, and placement within one GPU type."""

from __future__ import annotations

import numpy as np
import pytest

from repro.base.errors import PolicyError
from repro.model.cluster.spec import Cluster
from repro.placement import make
from repro.placement.by_type import by_type

RNG = np.random.default_rng(0)


def wished(cluster="2x2"):
    return make("wished").bind(Cluster.parse(cluster), RNG)


def test_wishes_are_granted_and_given_back():
    placer = wished()
    assert placer.claim(7, (1, 0, 1)) == ((0, 1), (1, 2))
    assert placer.free == 1
    assert placer.take(8, 1) == ((0, 1),)
    placer.give_back(7)
    assert (placer.free, placer.idle) == (3, [1, 2])


@pytest.mark.parametrize("tasks", [(0, 0, 0), (2,), (-1,)])
def test_wishes_beyond_a_node_are_refused_whole(tasks):
    placer = wished()
    with pytest.raises(PolicyError, match="names"):
        placer.claim(0, tasks)
    assert (placer.free, placer.idle) == (4, [2, 2])


def test_a_job_wishes_once():
    placer = wished()
    placer.claim(0, (0,))
    with pytest.raises(PolicyError, match="already holds"):
        placer.claim(0, (1,))


@pytest.mark.parametrize("name", ["count", "yarn", "random"])
def test_rules_that_choose_take_no_wishes(name):
    with pytest.raises(PolicyError, match="placement 'wished'"):
        make(name).bind(Cluster.parse("2x2"), RNG).claim(0, (0,))


MIXED = Cluster.parse("1x2:v100,2x2:k80,1x4:v100")


@pytest.mark.parametrize("name", ["count", "yarn", "random", "wished"])
def test_each_type_has_its_own_nodes(name):
    placers = by_type(make(name), MIXED, RNG)
    assert {kind: placer.num_gpus for kind, placer in placers.items()} == {"v100": 6, "k80": 4}
    allocation = placers["k80"].take(0, 4)
    assert allocation in ((), ((1, 2), (2, 2)))
    assert (placers["k80"].free, placers["v100"].free) == (0, 6)
    with pytest.raises(PolicyError):
        placers["k80"].take(1, 1)
    placers["k80"].give_back(0)
    assert placers["k80"].free == 4
    assert placers["k80"].fits(4) and not placers["k80"].possible(5)


def test_wishes_name_nodes_of_the_cluster():
    placers = by_type(make("wished"), MIXED, RNG)
    assert placers["v100"].claim(0, (3, 3, 0)) == ((0, 1), (3, 2))
    with pytest.raises(PolicyError, match="not all of these nodes have that type"):
        placers["v100"].claim(1, (1,))


def test_refused_wishes_name_nodes_of_the_cluster():
    wished_v100 = by_type(make("wished"), MIXED, RNG)["v100"]
    with pytest.raises(PolicyError, match="5 GPUs of node 3, which has 4 idle; name only"):
        wished_v100.claim(0, (3,) * 5)
    with pytest.raises(PolicyError, match="names nodes but YarnPlacer chooses"):
        by_type(make("yarn"), MIXED, RNG)["v100"].claim(0, (3, 0))


def test_a_cluster_without_types_has_none():
    assert by_type(make("yarn"), Cluster.parse("2x2"), RNG) == {}
