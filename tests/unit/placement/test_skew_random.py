import numpy as np
import pandas as pd
import pytest

from repro.model.cluster import Cluster, Node
from repro.placement import make
from repro.placement.tiresias_models import tiresias_models

SKEWS = {"VGG16": 0.743, "ResNet50": 0.092, "edge": 0.5}


def skewed(spec="4x4", **settings):
    rule = make("skew", **{"skew": SKEWS, **settings})
    return rule.bind(Cluster.parse(spec), np.random.default_rng(0))


def test_a_skewed_model_is_consolidated_in_the_smallest_gap():
    placer = skewed()
    placer.take(0, 2, "VGG16")
    placer.take(1, 3, "VGG16")
    assert placer.idle == [2, 1, 4, 4]
    assert placer.take(2, 1, "VGG16") == ((1, 1),)
    assert placer.take(3, 3, "VGG16") == ((2, 3),)


def test_a_skewed_gang_larger_than_a_node_uses_the_fewest_nodes():
    placer = skewed("5x4")
    placer.take(0, 2, "VGG16")
    # Two whole nodes, then the gap on node 0 rather than a third idle node.
    assert placer.take(1, 10, "VGG16") == ((0, 2), (1, 4), (2, 4))


def test_other_models_fill_the_fewest_idle_gpus_first():
    placer = skewed()
    placer.take(0, 2, "VGG16")
    placer.take(1, 3, "VGG16")
    assert placer.take(2, 5, "ResNet50") == ((0, 2), (1, 1), (2, 2))
    assert placer.take(3, 3, None) == ((2, 2), (3, 1))


def test_unknown_models_and_the_limit_itself_count_as_not_skewed():
    for model in ("never-heard-of", None, "edge"):
        placer = skewed()
        placer.take(0, 3, "VGG16")
        assert placer.take(1, 2, model) == ((0, 1), (1, 1))
    placer = skewed(pack_limit=0.4)
    placer.take(0, 3, "VGG16")
    assert placer.take(1, 2, "edge") == ((1, 2),)


@pytest.mark.parametrize("missing", [float("nan"), pd.NA])
@pytest.mark.parametrize("name", ["skew", "ilp"])
def test_a_gap_in_the_model_column_is_no_model(name, missing):
    placer = make(name).bind(Cluster.parse("4x4"), np.random.default_rng(0))
    assert sum(gpus for _, gpus in placer.take(0, 3, missing)) == 3


@pytest.mark.parametrize("pack_limit", [0.15, 0.5, 0.6])
def test_published_models(pack_limit):
    consolidated = []
    for model in tiresias_models().index:
        placer = make("skew", pack_limit=pack_limit).bind(
            Cluster.parse("2x4"), np.random.default_rng(0)
        )
        placer.take(0, 3, "vgg16")
        if placer.take(1, 2, model.upper()) == ((1, 2),):
            consolidated.append(model)
    assert consolidated == ["vgg19", "vgg16", "vgg11", "alexnet"]


def test_any_gang_fits_while_gpus_are_idle():
    placer = skewed()
    placer.take(0, 5, "VGG16")
    assert [placer.fits(gpus) for gpus in (1, 11, 12)] == [True, True, False]


def test_random_draws_every_gpu_equally_often():
    cluster = Cluster((Node(6), Node(2), Node(4)))
    placer = make("random").bind(cluster, np.random.default_rng(5))
    placer.take(-1, 2)
    placer.give_back(-1)
    seen = np.zeros(3)
    for job in range(4000):
        for node, gpus in placer.take(job, 3):
            seen[node] += gpus
        placer.give_back(job)
    expected = 4000 * 3 * np.array([6, 2, 4]) / 12
    assert seen == pytest.approx(expected, rel=0.05)


def test_random_is_usually_spread():
    placer = make("random").bind(Cluster.parse("8x4"), np.random.default_rng(2))
    spread = []
    for job in range(300):
        spread.append(len(placer.take(job, 8)))
        placer.give_back(job)
    assert np.mean(spread) > 5
