from __future__ import annotations

import gzip
import hashlib

import pytest

from repro.base.errors import TraceError
from repro.model.cluster.spec import Cluster
from repro.trace.load import load

HEAD = "job_id,submit_time,duration,num_gpus"


@pytest.fixture
def read(tmp_path):
    def _read(content: str | bytes, format: str = "repro"):
        path = tmp_path / "jobs.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return load(path, format)

    return _read


@pytest.mark.parametrize(
    ("ids", "read_as"),
    [
        (["007", "7"], ["007", "7"]),
        (["7", "8"], [7, 8]),
        (["-7", "0"], [-7, 0]),
        (["7", "x"], ["7", "x"]),
        (["+7", "8"], ["+7", "8"]),
        (["1.0", "2"], ["1.0", "2"]),
        (["1e3", "2"], ["1e3", "2"]),
        (["9" * 25, "2"], ["9" * 25, "2"]),
        (["9007199254740993", "9007199254740992"], [9007199254740993, 9007199254740992]),
    ],
)
def test_ids_are_whole_numbers_if_all_are_written_so(read, ids, read_as):
    rows = "".join(f"{name},0,60,1\n" for name in ids)
    assert read(f"{HEAD}\n{rows}")["job_id"].tolist() == read_as


def test_equal_submissions_keep_the_order_of_the_file(read):
    rows = "".join(f"{name},5,60,1\n" for name in "dbca")
    assert read(f"{HEAD}\n{rows}z,0,60,1\n")["job_id"].tolist() == [*"zdbca"]


def test_gzip_is_read_and_hashed_as_it_is(read, tmp_path):
    packed = gzip.compress(f"{HEAD}\n0,0,60,1\n".encode())
    frame = read(packed)
    assert frame["duration"].tolist() == [60.0]
    assert frame.attrs["sha256"] == hashlib.sha256(packed).hexdigest()


def test_the_line_that_names_the_delimiter_is_no_header(read):
    assert read(f"sep=,\r\n{HEAD}\r\n0,0,60,1\r\n")["job_id"].tolist() == [0]
    with pytest.raises(TraceError, match=r"jobs\.csv:3:duration: not positive \(0\)"):
        read(f"sep=,\n{HEAD}\n0,0,0,1\n")
    with pytest.raises(TraceError, match="2: wrong delimiter: found semicolon"):
        read(f"sep=;\n{HEAD}\n0,0,60,1\n".replace(",", ";"))


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD},,\n0,0,60,1,,\n,,,,,\n1,5,60,1,,\n,,,,,\n",
        f"{HEAD}\n0,0,60,1\n,,,\n1,5,60,1\n,\n",
        f"{HEAD},\n0,0,60,1\n,,,,\n1,5,60,1\n,,,\n",
        f"{HEAD}\n0,0,60,1,,\n1,5,60,1\n,,,,,,\n,,,\n",
    ],
)
def test_blank_rows_and_columns_are_left_out(read, text):
    frame = read(text)
    assert frame["job_id"].tolist() == [0, 1]
    assert frame.attrs["dropped"] == {"blank row": 2}
    assert frame.attrs["unread"] == []
    assert frame.attrs["notes"] == []


def test_lines_are_right_below_blank_rows(read):
    with pytest.raises(TraceError, match=r"jobs\.csv:5:duration: not positive \(0\)"):
        read(f"{HEAD},\n0,0,60,1,\n,,,,\n\n1,0,0,1,\n")


def test_columns_without_a_name_are_named_by_their_place(read):
    frame = read(f"{HEAD},,\n0,0,60,1,x,y\n")
    assert frame.attrs["unread"] == ["column 5 (unnamed)", "column 6 (unnamed)"]
    assert frame.attrs["notes"] == ["columns 5 and 6 have no name"]


@pytest.mark.parametrize(
    ("text", "format", "message"),
    [
        ('{"nb_res":4,"jobs":[]}', "repro", "1: JSON, not a table (looks like a workload of Bats"),
        ("[1, 2]", "tiresias", "1: JSON, not a table; write a table with the columns job_id, num"),
        ('[{"jobid":"a","attempts":[]}]', "helios", "1: JSON, not a table; looks like the Philly"),
        ("[1]", "gavel", "1: JSON, not a table"),
        ("; Computer: x\n1" + " -1" * 17 + "\n", "repro", "1: looks like SWF"),
        ("JobID|User|State\n1|u|COMPLETED\n", "helios", "1: looks like the output of sacct -P"),
        ("apiVersion: batch/v1\nkind: Job\n", "repro", "1: looks like a Kubernetes object of kin"),
        ("jobs:\n- {id: 1}\n", "repro", "1: looks like YAML, not a table"),
        ("\t".join("x" * 11) + "\n", "gavel", "1: 11 fields where 10 are expected; one field per"),
        (
            "job_id,submission_time,duration,num_gpu\n",
            "tiresias",
            "1:submit_time: missing column (found job_id, submission_time, duration, num_gpu); "
            "submission_time looks like submit_time: rename it",
        ),
        (
            "name,time,application,num_replicas,batch_size\n",
            "repro",
            "1:job_id,submit_time,duration,num_gpus: missing column (found name, time, application,"
            " num_replicas, batch_size); name looks like job_id, time looks like submit_time, "
            "num_replicas looks like num_gpus: rename them; no column name looks like a run "
            "time; add the missing columns, or give --format (repro trace formats "
            "lists them), or add --map job_id=name,submit_time=time,duration=…,"
            "num_gpus=num_replicas",
        ),
        (
            f"# mine\n{HEAD}\n",
            "repro",
            "1:job_id,submit_time,duration,num_gpus: missing column (found # mine); line 1 is a "
            "comment: take it out",
        ),
    ],
)
def test_what_is_no_table_is_named(read, text, format, message):
    with pytest.raises(TraceError) as caught:
        read(text, format)
    assert str(caught.value).partition("jobs.csv:")[2].startswith(message)


@pytest.mark.parametrize(
    "head",
    [
        "job_id,user,submit_time,duration,num_inst,num_cpu,num_gpu,gpu_type,wait_time",
        "job_id,user,submit_time,duration,inst_num,plan_cpu,num_gpu,gpu_type,wait_time",
    ],
)
def test_a_trace_of_pai_is_refused_with_what_to_divide(read, head):
    with pytest.raises(TraceError) as caught:
        read(f"{head}\n0,u,0,100,1,600,50,T4,0\n", "tiresias")
    message = str(caught.value)
    assert "jobs.csv:1:num_gpu: columns of Alibaba's PAI trace" in message
    assert "divide it by 100" in message and "gpu_share" in message
    assert "read it with format 'alibaba-pai'" in message


SACCT = "JobID    JobName  Partition\n------- -------- ----------\n1   a  b\n"


@pytest.mark.parametrize(
    ("content", "format", "message"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "repro", " an old Excel workbook (.xls)"),
        (f"{HEAD}\n".encode("utf-32"), "repro", " UTF-32 text; save it as UTF-8"),
        (f"{HEAD}\n".encode("utf-32-le"), "repro", "1: not UTF-8 (looks like UTF-32)"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:a\nsize 1\n",
            "gavel",
            " a Git LFS pointer, not the file; run git lfs pull",
        ),
        (SACCT, "repro", "1: looks like the output of sacct (Slurm) in columns of fixed width"),
        ('{"a":1}\n{"a":2}\n', "repro", "1: JSON lines, not a table"),
        ('{"a":1}\n{"a":2}\n', "philly-json", "1:1: JSON lines; write one list with commas: "),
        ('{"jobs":[]}', "philly-json", "1:1: not a JSON list"),
    ],
)
def test_packed_and_foreign_files_are_named(read, content, format, message):
    with pytest.raises(TraceError) as caught:
        read(content, format)
    assert str(caught.value).partition("jobs.csv:")[2].startswith(message)


def test_hidden_characters_are_shown(read):
    with pytest.raises(TraceError, match=r"num_gpus\\u200b looks like num_gpus: rename it"):
        read(f"{HEAD}\u200b\n0,0,60,1\n")
    with pytest.raises(TraceError, match=r"2:job_id: control characters \(a\\ufeff\)"):
        read(f"{HEAD}\na\ufeff,0,60,1\nb,0,60,1\n")
    with pytest.raises(TraceError, match=r"2:duration: not a number \(1\\xa0000\)"):
        read(f"{HEAD}\n0,0,1\u00a0000,1\n")
    with pytest.raises(TraceError, match=r"2:duration: not positive \(' -5'\)"):
        read(f"{HEAD}\n0,0, -5,1\n")


def test_the_line_of_a_header_below_others_is_right(read):
    with pytest.raises(TraceError, match=r"jobs\.csv:3:num_gpus: missing column"):
        read(f"\n\n{HEAD.replace('num_gpus', 'pods')}\n0,0,60,1\n")


def test_node_lists_with_other_names(tmp_path):
    path = tmp_path / "nodes.csv"
    path.write_text("gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,4,8,n1\n")
    with pytest.raises(TraceError) as caught:
        Cluster.parse(path)
    message = str(caught.value)
    for part in ("node_name to sn", "gpu_capacity_num to gpu", "gpu_model to model"):
        assert f"rename {part}" in message
    assert message.endswith("leave out cpu_num")
