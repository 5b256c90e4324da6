"""``repro cluster show``: tree, totals, JSON and picture of a cluster; bad input is one line."""

import json

import pytest

from repro.cli import main
from repro.model.cluster.outline import outline_of
from repro.model.cluster.spec import Cluster

TWO_DOMAINS = """
nodes:
  - {count: 4, gpus: 4, type: v100}
  - {count: 2, gpus: 4, type: v100, switch: 1, used: 2}
  - {count: 1, gpus: 8, type: p100, switch: 1, gpu_mem_mb: 16000, bandwidth_mb_s: 1250}
  - {count: 30, gpus: 8, type: k80, domain: 1}
"""


@pytest.fixture
def show(tmp_path, capsys):
    def _show(*words):
        code = main(["cluster", "show", *map(str, words)])
        return code, *capsys.readouterr()

    return _show


@pytest.fixture
def two_domains(tmp_path):
    path = tmp_path / "two.yaml"
    path.write_text(TWO_DOMAINS)
    return path


def test_equal_nodes_are_counted(show):
    code, out, err = show("2x8x4:v100")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "╙── 2x8x4:v100: 16 nodes, 64 GPUs",
        "    ├── rack 0: 8 nodes x 4 v100",
        "    └── rack 1: 8 nodes x 4 v100",
        "nodes    16",
        "GPUs     64 (64 v100)",
        "racks    2",
        "domains  1",
    ]


def test_a_file_of_two_domains(show, two_domains):
    _, out, _ = show(two_domains)
    assert out.splitlines() == [
        "╙── two.yaml: 37 nodes, 268 GPUs",
        "    ├── domain 0: 28 GPUs",
        "    │   ├── rack 0: 4 nodes x 4 v100",
        "    │   └── rack 1: 3 nodes",
        "    │       ├── 2 nodes x 2 v100 (2 more in use)",
        "    │       └── 1 node x 8 p100, 16,000 MB per GPU, 1,250 MB/s",
        "    └── domain 1: 240 GPUs",
        "        └── rack 0: 30 nodes x 8 k80",
        "nodes    37",
        "GPUs     268 (20 v100, 8 p100, 240 k80)",
        "racks    3",
        "domains  2",
        "in use   4 GPUs that jobs cannot get",
    ]


def test_many_equal_racks_are_one_line(show):
    _, out, _ = show("1000x20x8,5x4")
    assert out.splitlines()[1:3] == [
        "    ├── racks 0 to 999: each 20 nodes x 8 GPUs",
        "    └── rack 1000: 5 nodes x 4 GPUs",
    ]


def test_many_unequal_racks_end_in_a_count(show, tmp_path):
    racks = "\n".join(f"- {{gpus: {1 + n % 7}, switch: {n}}}" for n in range(100))
    (tmp_path / "many.yaml").write_text(f"nodes:\n{racks}\n")
    _, out, _ = show(tmp_path / "many.yaml")
    assert "    └── 60 racks more" in out.splitlines()
    assert len(out.splitlines()) == 1 + 41 + 4


def test_many_unequal_nodes_end_in_a_count(show, tmp_path):
    nodes = "\n".join(f"- {{gpus: {1 + n // 2}, switch: 0}}" for n in range(100))
    (tmp_path / "many.yaml").write_text(f"nodes:\n{nodes}\n")
    _, out, _ = show(tmp_path / "many.yaml")
    assert out.splitlines()[41] == "        ├── 2 nodes x 40 GPUs"
    assert out.splitlines()[42] == "        └── 20 nodes more"


@pytest.mark.parametrize("spec", ["17x1x4", "20x1x8:v100"])
def test_every_node_of_a_small_cluster_is_listed(spec):
    cluster = Cluster.parse(spec)
    outline = outline_of(cluster, max_listed_nodes=24)
    labels = [label for _, label in outline.nodes(data="label")]
    assert sum(label.startswith("node ") for label in labels) == cluster.num_nodes


def test_json(show, two_domains):
    code, out, err = show(two_domains, "--json")
    assert (code, err) == (0, "")
    report = json.loads(out)
    tree = report.pop("tree")
    assert report == {
        "cluster": "two.yaml",
        "nodes": 37,
        "gpus": 268,
        "gpus_by_type": {"v100": 20, "p100": 8, "k80": 240},
        "used_gpus": 4,
        "racks": 3,
        "domains": 2,
    }
    assert [len(domain["racks"]) for domain in tree] == [2, 1]
    assert tree[0]["racks"][1]["nodes"][1] == {
        "count": 1,
        "gpus": 8,
        "gpu_type": "p100",
        "used": 0,
        "gpu_mem_mb": 16000.0,
        "bandwidth_mb_s": 1250.0,
    }
    assert tree[1]["racks"][0]["nodes"][0]["bandwidth_mb_s"] is None


def test_picture(show, two_domains, tmp_path):
    for name in ("a.svg", "b.png"):
        assert show(two_domains, "--out", tmp_path / name)[0] == 0
    text = (tmp_path / "a.svg").read_text()
    for label in ("two.yaml", "domain 1: 240 GPUs", "rack 1: 3 nodes", "30 nodes x 8 k80"):
        assert f">{label}<" in text
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_of_few_nodes_names_each(show, tmp_path):
    show("3x4,1x8", "--out", tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert [f">node {n}: " in text for n in range(5)] == [True, True, True, True, False]
    show("25x4", "--out", tmp_path / "b.svg")
    assert ">25 nodes x 4 GPUs<" in (tmp_path / "b.svg").read_text()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["8y8"], "cannot read '8y8'; accepted: NODESxGPUS"),
        (["gone.yaml"], "gone.yaml"),
        (["8x8", "--out", "a.pdf"], "--out a.pdf: give a name that ends in .svg or .png"),
        (["8x8", "--out", "gone/a.svg"], "--out gone/a.svg: no folder gone; make it first"),
    ],
)
def test_bad_input_is_one_line(show, words, line):
    code, out, err = show(*words)
    assert (code, out) == (2, "")
    assert line in err and err.count("\n") == 1
