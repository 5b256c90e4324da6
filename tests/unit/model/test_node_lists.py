"""Clusters from the node lists of Philly and of Alibaba's PAI."""

import math
import warnings

import pytest

from repro.base.errors import InputWarning, ParamError, TraceError
from repro.cli import main
from repro.model.cluster import Cluster, Node

#: The header has blanks after its commas, as the published file.
PHILLY = """\
machineId, number of GPUs, single GPU mem
m1,2, 12GB
m2,8, 24GB
m3,8,24 gb
m4,2,
m5,2, 12GB
"""
#: The published file has no header.
PAI = """\
a1,T4,96,512,2
b2,MISC,64,512,8
c3,CPU,96,384,0
d4,V100M32,96.0,371.5,8
e5,T4,96,512,2
"""
PAI_HEADER = "machine,gpu_type,cap_cpu,cap_mem,cap_gpu\n"


def write(folder, text, name="nodes.csv"):
    path = folder / name
    path.write_text(text)
    return path


def test_five_machines_of_philly_by_hand(tmp_path):
    cluster = Cluster.parse(write(tmp_path, PHILLY))
    # 12GB are 12,000 MB; a machine has no GPU type
    assert cluster.nodes == (
        Node(2, gpu_mem_mb=12_000.0),
        Node(8, gpu_mem_mb=24_000.0),
        Node(8, gpu_mem_mb=24_000.0),
        Node(2),
        Node(2, gpu_mem_mb=12_000.0),
    )
    assert cluster.num_gpus == 22 and cluster.gpu_types == {}
    assert len(cluster.switches) == 1


def test_the_published_name_has_no_ending(tmp_path, monkeypatch):
    path = write(tmp_path, PHILLY, "cluster_machine_list")
    assert Cluster.parse(path).num_gpus == 22
    assert Cluster.parse(str(path)).num_gpus == 22
    monkeypatch.chdir(tmp_path)
    assert Cluster.parse("cluster_machine_list").num_gpus == 22
    # a spec stays a spec, whatever files there are
    for spec in ("2x4", "3xv100"):
        write(tmp_path, PHILLY, spec)
        assert Cluster.parse(spec).num_gpus < 22
    with pytest.raises(ParamError, match="cannot read 'cluster_machine'"):
        Cluster.parse("cluster_machine")
    with pytest.raises(TraceError, match=r"must end in \.csv or \.yaml"):
        Cluster.parse("8/8")


@pytest.mark.parametrize("header", ["", PAI_HEADER])
def test_five_machines_of_pai_by_hand(tmp_path, header):
    path = write(tmp_path, header + PAI)
    with pytest.warns(InputWarning) as caught:
        cluster = Cluster.parse(path)
    assert [str(warning.message) for warning in caught] == [
        f"{path}: 1 of 5 nodes have no GPU and are left out"
    ]
    # memory in GiB: 512 x 1024 MiB
    assert cluster.nodes == (
        Node(2, "T4", cpus=96.0, memory_mib=524_288.0),
        Node(8, "MISC", cpus=64.0, memory_mib=524_288.0),
        Node(8, "V100M32", cpus=96.0, memory_mib=380_416.0),
        Node(2, "T4", cpus=96.0, memory_mib=524_288.0),
    )
    assert cluster.gpu_types == {"T4": 4, "MISC": 8, "V100M32": 8}


def test_columns_in_another_order_and_unknown_values(tmp_path):
    text = "cap_gpu,machine,gpu_type,cap_mem,cap_cpu\n2,a,,,\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (node,) = Cluster.parse(write(tmp_path, text)).nodes
    assert node == Node(2, None, cpus=math.inf, memory_mib=math.inf)


def test_nodes_without_a_gpu_are_counted_for_openb_too(tmp_path):
    path = write(tmp_path, "sn,gpu,model\na,0,\nb,2,T4\n")
    with pytest.warns(InputWarning, match="1 of 2 nodes have no GPU and are left out"):
        assert Cluster.parse(path).num_nodes == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PHILLY + "m6,two,24GB\n", ":7: column number of GPUs is 'two'; a whole number from 0"),
        (PHILLY + "m6,8,24\n", ":7: column single GPU mem is '24'; a memory such as 24GB is"),
        (PHILLY + "m6,8,0GB\n", ":7: column single GPU mem is '0GB'"),
        (PHILLY + "m6,8\n", ":7: 2 values under 3 columns"),
        (PHILLY + "m2,8,24GB\n", "nodes.csv:7: column machineId is 'm2', as at "),
        (PHILLY.replace(" mem", " mem,rack"), ":1: column 'rack' has no meaning in a cluster file"),
        (PAI + "f6,T4,96,512,two\n", ":6: column cap_gpu is 'two'; a whole number from 0"),
        (PAI + "f6,T4,many,512,2\n", ":6: column cap_cpu is 'many'; a number above 0 is needed"),
        (PAI + "f6,T4,96,0,2\n", ":6: column cap_mem is '0'; a number above 0 is needed"),
        (PAI + "f6,CPU,96,512,2\n", ":6: column gpu_type is 'CPU', a machine without a GPU, but"),
        (PAI + "a1,T4,96,512,2\n", ":6: column machine is 'a1', as at "),
        ("a1,CPU,96,512,0\n", "no node with a GPU that jobs can get"),
        ("a1,4,96,512,2\n", "are those of no node list; give a Tiresias cluster, an openb"),
        ("node,gpus\na,2\n", "of no node list; to make it an openb node list: rename node to sn"),
    ],
)
def test_bad_lists_are_one_line(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(TraceError) as caught:
        Cluster.parse(path)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path}:")


def test_a_list_is_a_cluster_of_a_command(tmp_path, capsys):
    path = write(tmp_path, PAI)
    assert main(["cluster", "show", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "20 (4 T4, 8 MISC, 8 V100M32)" in out
    assert err == f"repro: warning: {path}: 1 of 5 nodes have no GPU and are left out\n"
