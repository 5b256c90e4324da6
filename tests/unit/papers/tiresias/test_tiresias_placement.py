"""The search that checks the placement program, itself checked by counting and by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest

from repro.papers.tiresias import placement as placing
from repro.solve.placement_ilp import node_traffic

MODELS = pd.DataFrame(
    {"size_mb": [500.0, 100.0], "largest_ratio": [0.7, 0.1]}, index=["big", "even"]
)
SIZES = {"nodes": (2, 4), "workers": (2, 4), "node_gpus": 4, "busy_mb": 400.0}


def one_by_one(instance):
    nodes = range(len(instance.free))
    found = []
    for counts in itertools.product(*(range(gpus + 1) for gpus in instance.free)):
        if sum(counts) == instance.workers:
            for homes in itertools.product(nodes, repeat=len(instance.sizes)):
                found.append(max(node_traffic(counts, homes, instance.sizes, instance.traffic)))
    return found


def test_search_visits_every_placement():
    for instance in placing.sampled_instances(np.random.default_rng(1), MODELS, count=15, **SIZES):
        found = one_by_one(instance)
        assert placing.least_traffic(instance) == pytest.approx(min(found))
        servers = len(instance.sizes)
        assert placing.count_placements(instance.workers, servers, instance.free) == len(found)


def test_no_rule_beats_the_search():
    instances = placing.sampled_instances(np.random.default_rng(2), MODELS, count=12, **SIZES)
    table = placing.compare(instances, np.random.default_rng(3), MODELS, draws=3)
    for rule in ("ilp", "yarn", "skew", "random"):
        assert (table[rule] >= table["exhaustive"] - 1e-6).all()
    assert table["ilp"].to_numpy() == pytest.approx(table["exhaustive"].to_numpy(), rel=1e-6)


def test_drawn_instances_have_room():
    for instance in placing.sampled_instances(
        np.random.default_rng(4), MODELS, count=30, **{**SIZES, "nodes": (1, 2)}
    ):
        assert sum(instance.free) >= instance.workers == len(instance.sizes)
        assert sum(instance.sizes) == pytest.approx(MODELS["size_mb"][instance.model])


def test_placements_grow_with_nodes():
    table = placing.growth(range(2, 6), workers=4, node_gpus=4)
    assert (table["placements"].diff().dropna() > 0).all()
    # 35 ways to spread 4 workers over 4 nodes, 4 nodes for each of 4 servers
    assert table.set_index("nodes")["placements"][4] == 35 * 4**4
