import time

import pytest

from repro.base.errors import ParamError
from repro.model.cluster import Cluster, Node


@pytest.mark.parametrize(
    ("spec", "nodes", "gpus", "switches", "types"),
    [
        ("8x8", 8, 64, 1, {}),
        ("1x1", 1, 1, 1, {}),
        ("8x4:v100", 8, 32, 1, {"v100": 32}),
        ("5x32x8", 160, 1280, 5, {}),
        ("2x3x4:A100-80G", 6, 24, 2, {"A100-80G": 24}),
        ("36xv100,36xp100,36xk80", 108, 108, 1, {"v100": 36, "p100": 36, "k80": 36}),
        ("2x4:v100,8xk80", 10, 16, 1, {"v100": 8, "k80": 8}),
        (" 2x4 , 1x8 ", 3, 16, 1, {}),
        ("2X4", 2, 8, 1, {}),
        # the name of a GPU type may contain an X
        ("2x4:RTX6000,3XRTX3090", 5, 11, 1, {"RTX6000": 8, "RTX3090": 3}),
        ("2X2×4:GTX1080X", 4, 16, 2, {"GTX1080X": 16}),
        ("2×4", 2, 8, 1, {}),
        ("4x2,2x3x8", 10, 56, 3, {}),
    ],
)
def test_specs(spec, nodes, gpus, switches, types):
    cluster = Cluster.parse(spec)
    assert (cluster.num_nodes, cluster.num_gpus) == (nodes, gpus)
    assert len(cluster.switches) == switches
    assert cluster.gpu_types == types
    assert cluster.num_gpus == sum(node.gpus for node in cluster.nodes)
    assert sorted(i for members in cluster.switches.values() for i in members) == list(range(nodes))


def test_parts_without_switch_share_one():
    cluster = Cluster.parse("2x4,2x1x8,1x2")
    assert [node.switch for node in cluster.nodes] == [0, 0, 1, 2, 0]


def test_name_and_repr():
    cluster = Cluster.parse(" 8x4:v100, 2x8 ")
    assert str(cluster) == "8x4:v100,2x8"
    assert repr(cluster) == "Cluster('8x4:v100,2x8', nodes=10, gpus=48)"
    assert str(Cluster((Node(4), Node(2)))) == "2 nodes with 6 GPUs"


def test_parse_keeps_a_cluster_and_equal_specs_are_equal():
    cluster = Cluster.parse("2x4")
    assert Cluster.parse(cluster) is cluster
    assert Cluster.parse("2x4") == cluster
    assert hash(Cluster.parse("2x4")) == hash(cluster)
    assert cluster.gpus_per_node == 4
    assert cluster.nodes[0] == Node(gpus=4, gpu_type=None, switch=0)


@pytest.mark.parametrize(
    "spec",
    [
        "",
        " ",
        "8",
        "x8",
        "8x",
        "axb",
        "8x8x8x8",
        "8x8,",
        ",8x8",
        "8x-8",
        "8.5x8",
        "-1x4",
        "8x8:",
        "8x8:4gb",
        "8*8",
        "٣x٤",
        "8x4;v100",
        "nodes=8",
        "8x 8y",
    ],
)
def test_unreadable_specs(spec):
    with pytest.raises(ParamError, match="accepted: NODESxGPUS") as error:
        Cluster.parse(spec)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("spec", ["0x8", "8x0", "0xv100", "0x2x4", "2x0x4", "8x8,0x1", "000x1"])
def test_zero(spec):
    with pytest.raises(ParamError, match=r"at least 1, e\.g\. 8x8"):
        Cluster.parse(spec)


@pytest.mark.parametrize(
    "spec",
    [
        "1000001x1",
        "1x1025",
        "99999999999999999999x8",
        f"{'9' * 5000}x1",
        "1000x1000x2x",
        "1001x1000x2",
    ],
)
def test_too_large(spec):
    with pytest.raises(ParamError) as error:
        Cluster.parse(spec)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("spec", [None, 8, 8.5, ["8x8"], (8, 8), b"8x8"])
def test_not_a_spec(spec):
    with pytest.raises(ParamError, match=r"cluster spec .* is a .*accepted"):
        Cluster.parse(spec)


def test_large_clusters_are_fast():
    start = time.process_time()
    cluster = Cluster.parse("12500x8")
    assert (cluster.num_gpus, cluster.gpus_per_node) == (100_000, 8)
    assert len(cluster.switches[0]) == 12_500
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("1x2:v100,1x2:V100", "differ only in case"),
        (f"8x8:{'v' * 101}", "has 101 characters; at most 100"),
    ],
)
def test_names_of_types_can_be_told_apart(spec, message):
    with pytest.raises(ParamError, match=message):
        Cluster.parse(spec)


def test_a_type_whose_gpus_are_all_in_use_is_none_of_the_types():
    cluster = Cluster((Node(0, "v100", used=8), Node(4, "k80"), Node(2, "k80", used=2)))
    assert cluster.gpu_types == {"k80": 6}
