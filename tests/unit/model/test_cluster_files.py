import math
import os
from itertools import pairwise

import pytest

from repro.base.errors import TraceError
from repro.model.cluster import Cluster, Node

TIRESIAS = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n"
OPENB = "sn,cpu_milli,memory_mib,gpu,model\n"


def write(folder, text, name="cluster.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_tiresias_csv(tmp_path):
    path = write(tmp_path, TIRESIAS + "5,32,8,128,256\n")
    cluster = Cluster.parse(path)
    assert cluster.nodes == Cluster.parse("5x32x8").nodes
    assert str(cluster) == "cluster.csv"
    assert Cluster.parse(str(path)) == cluster


def test_tiresias_rows_add_up(tmp_path):
    cluster = Cluster.parse(write(tmp_path, TIRESIAS + "1,2,4,1,1\n2,1,8,1,1\n"))
    assert [(n.gpus, n.switch) for n in cluster.nodes] == [(4, 0), (4, 0), (8, 1), (8, 2)]


def test_openb_csv(tmp_path):
    rows = "a,64000,262144,2,P100\nb,1,1,0,\nc,1,1,8,V100M32\nd,1,1,1,\n"
    cluster = Cluster.parse(write(tmp_path, OPENB + rows))
    assert cluster.nodes == (
        Node(2, "P100", cpus=64.0, memory_mib=262144.0),
        Node(8, "V100M32", cpus=0.001, memory_mib=1.0),
        Node(1, cpus=0.001, memory_mib=1.0),
    )
    assert cluster.gpu_types == {"P100": 2, "V100M32": 8}


def test_cpu_cores_and_memory_are_infinite_where_unknown(tmp_path):
    path = write(tmp_path, "sn,cpu_milli,gpu,model\na,96000,2,P100\nb,,2,P100\n")
    known, unknown = Cluster.parse(path).nodes
    assert (known.cpus, known.memory_mib) == (96.0, math.inf)
    assert (unknown.cpus, unknown.memory_mib) == (math.inf, math.inf)
    path = write(tmp_path, "nodes: [{gpus: 4, cpus: 48, memory_mib: 1024}]", "c.yaml")
    assert Cluster.parse(path).nodes == (Node(4, cpus=48.0, memory_mib=1024.0),)
    path = write(tmp_path, "sn,cpu_milli,gpu,model\na,many,2,P100\n")
    with pytest.raises(TraceError, match="column cpu_milli is 'many'; a whole number from 1"):
        Cluster.parse(path)


def test_byte_order_mark_crlf_and_blank_lines(tmp_path):
    text = "\ufeff" + (TIRESIAS + "1,2,4,8,9\n\n").replace("\n", "\r\n")
    assert Cluster.parse(write(tmp_path, text)).num_gpus == 8


def test_yaml(tmp_path):
    text = "nodes:\n- {count: 2, gpus: 8, type: v100, switch: 1}\n- {gpus: 4}\n"
    for name in ("c.yaml", "c.yml", "C.YAML"):
        cluster = Cluster.parse(write(tmp_path, text, name))
        assert cluster.nodes == (Node(8, "v100", 1), Node(8, "v100", 1), Node(4))
        assert cluster.switches == {0: (2,), 1: (0, 1)}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (b"", "file is empty"),
        (b" \n", "file is empty"),
        (b"\xff\xfe1,2", "not UTF-8"),
        ("<html><body>404</body></html>", ":1: columns"),
        (TIRESIAS.replace(",", ";") + "1;2;4;8;9\n", ":1: columns .* separated by commas"),
        (TIRESIAS, "no node with a GPU"),
        (TIRESIAS + "1,2,4\n", ":2: 3 values under 5 columns"),
        (TIRESIAS + "1,2,4,8,9\n1,two,4,8,9\n", ":3: column num_node_p_switch is 'two'"),
        (TIRESIAS + "1,2,4.5,8,9\n", "column num_gpu_p_node is '4.5'"),
        (TIRESIAS + "0,2,4,8,9\n", "column num_switch is '0'; a whole number from 1"),
        (TIRESIAS + "1,-2,4,8,9\n", "column num_node_p_switch is '-2'"),
        (TIRESIAS + "1,2,10000000,8,9\n", ":2: 2 nodes, 10000000 GPUs in one; at most"),
        (TIRESIAS + "9999,9999,8,8,9\n", ":2: 99980001 nodes; at most 1000000"),
        (OPENB + "a,1,1,,P100\n", ":2: column gpu is ''"),
        (OPENB + "a,1,1,nan,P100\n", ":2: column gpu is 'nan'"),
        (OPENB + "a,1,1,0,\n", "no node with a GPU"),
        (TIRESIAS + "1,2," + "4" * 140_000 + ",8,9\n", r":2: not CSV \(field larger"),
        (TIRESIAS + "1,2," + "4" * 5_000 + ",8,9\n", ":2: column num_gpu_p_node is '4444"),
        (TIRESIAS + '1,2,"4,8,9\n', ":2: not CSV"),
        (TIRESIAS + "1,2,4,8,9\0\n", ":2: a byte is zero"),
        (TIRESIAS + ",,,,\n", ":2: column num_switch is ''"),
        ("num_switch," + TIRESIAS + "1,2,1,4,8,9\n", ":1: column 'num_switch' stands twice"),
        (TIRESIAS[:-1] + ",gpu_type\n1,2,4,8,9,v100\n", ":1: column 'gpu_type' has no meaning"),
        (OPENB + "a,1,1,4,P\x1b[31m\n", r":2: column model is 'P\\x1b\[31m'"),
    ],
)
def test_bad_csv(tmp_path, text, where):
    path = write(tmp_path, text)
    with pytest.raises(TraceError, match=where) as error:
        Cluster.parse(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("nodes: [", ":1: not valid YAML"),
        ("nodes: {gpus: 4}", ":1: needs a list under the key nodes"),
        ("- gpus: 4", "needs a list under the key nodes"),
        ("nodes: []", "no node with a GPU"),
        ("nodes: [4]", r"nodes\[0\] is not a mapping with the key gpus"),
        ("nodes: [{count: 2}]", r"nodes\[0\] is not a mapping with the key gpus"),
        ("nodes: [{gpus: 4}, {gpu: 4, gpus: 1}]", r"nodes\[1\] .* did you mean 'gpus'"),
        ("nodes: [{gpus: 0}]", r"nodes\[0\].gpus is '0'"),
        ("nodes: [{gpus: true}]", r"nodes\[0\].gpus is 'True'"),
        ("nodes: [{gpus: 4.0}]", r"nodes\[0\].gpus is '4.0'"),
        ("nodes: [{gpus: 4, switch: -1}]", r"nodes\[0\].switch is '-1'"),
        ("nodes: [{gpus: 4, type: 100}]", r"nodes\[0\].type is 100"),
        ("nodes: [{gpus: 4, count: 1e6}]", r"nodes\[0\].count is '1000000.0'"),
        ("nodes: [{gpus: 4, count: 1000001}]", "at most 1000000 nodes"),
        ("nodes:\n- gpus: 4\n  gpus: 8", r":3:nodes\.0\.gpus: given twice \(first on line 2\)"),
        ("nodes: [{gpus: 4}]\nnodes: [{gpus: 8}]", ":2:nodes: given twice"),
        ("nodes: [{gpus: 4}]\nfoo: 1", ":2: unknown key 'foo'"),
        ("nodes:\n- gpus: 1:30", r":2: nodes\[0\].gpus is '1:30'"),
        ("nodes:\n- gpus: 010", r":2:nodes\.0\.gpus: 010 has a leading zero"),
        ("nodes: [{gpus: '4'}]", r"nodes\[0\].gpus is '4'"),
        ("nodes: [{gpus: 4, type: ''}]", r"nodes\[0\].type is ''; a name"),
        ("nodes: [{gpus: 4, type: ' a'}]", r"nodes\[0\].type is ' a'; a name"),
        ('nodes: [{gpus: 4, type: "a\\u0000b"}]', r":1:nodes\.0\.type: character U\+0000"),
        ("nodes: [{gpus: 4}]\n\0", r":2: character U\+0000"),
        ("nodes: " + "[" * 3_000, ":1: nested more than 50 levels"),
        ("nodes: [{gpus: " + "9" * 5_000 + "}]", r"nodes\.0\.gpus: 9999.* is too large"),
        ("nodes: [{gpus: 1, count: " + "9" * 200 + "}]", "a whole number from 1 to"),
        ("nodes: [{gpus: 2020-13-45}]", "gpus is '2020-13-45'"),
        ("nodes: [{gpus: 4}]\n---\nnodes: [{gpus: 4}]", ":2: not valid YAML: expected a single"),
        ("nodes: !!set {gpus}", ":1: tag 'tag:yaml.org,2002:set' is not accepted"),
    ],
)
def test_bad_yaml(tmp_path, text, where):
    path = write(tmp_path, text, "c.yaml")
    with pytest.raises(TraceError, match=where) as error:
        Cluster.parse(path)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400
    assert str(error.value).startswith(f"{path}:")


def test_aliases_that_grow_without_bound(tmp_path):
    rows = ["a: &a [" + "x," * 9 + "x]"]
    rows += [f"{new}: &{new} [" + f"*{old}," * 9 + f"*{old}]" for old, new in pairwise("abcdefgh")]
    with pytest.raises(TraceError, match="expanded aliases exceed 100,000 values or 50 levels"):
        Cluster.parse(write(tmp_path, "\n".join([*rows, "nodes: *h"]), "c.yaml"))


def test_what_is_no_regular_file_or_too_large(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    for name in ("pipe.csv", "zero.yaml"):
        with pytest.raises(TraceError, match=r"cannot be read \(it is no regular file\)"):
            Cluster.parse(tmp_path / name)
    with (tmp_path / "huge.yaml").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(TraceError, match="larger than 1,048,576 bytes"):
        Cluster.parse(tmp_path / "huge.yaml")


def test_missing_file_folder_and_other_suffix(tmp_path):
    with pytest.raises(TraceError, match="does not exist"):
        Cluster.parse("nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TraceError, match="is a folder"):
        Cluster.parse(tmp_path / "folder.csv")
    with pytest.raises(TraceError, match=r"must end in \.csv or \.yaml"):
        Cluster.parse(write(tmp_path, "8x8", "cluster.txt"))


@pytest.mark.parametrize(
    ("path", "spec"),
    [("n1g4", "1x1x4"), ("n32g4", "1x32x4"), ("n160g8", "5x32x8"), ("n256g8", "8x32x8")],
)
def test_published_tiresias_clusters(mirror, path, spec):
    found = Cluster.parse(mirror / "SymbioticLab+Tiresias" / "simulator" / f"{path}.csv")
    assert found.nodes == Cluster.parse(spec).nodes


def test_published_openb_nodes(mirror):
    folder = mirror / "alibaba+clusterdata" / "cluster-trace-gpu-v2023" / "csv"
    cluster = Cluster.parse(folder / "openb_node_list_gpu_node.csv")
    assert (cluster.num_nodes, cluster.num_gpus) == (1213, 6212)
    assert cluster.gpu_types["G2"] == 4392
