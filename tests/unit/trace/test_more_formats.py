"""ElasticFlow, AcmeTrace, Alibaba PAI, Gavel's twelve fields, Batsim: five rows by hand."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import pandas as pd
import pytest

from repro.base.errors import ParamError, TraceError
from repro.trace.load import load

ELASTICFLOW = """\
job_id,submission_time,duration,num_gpu
5d-c3,100,604,16
ec-aa,40,767,16
4f-eb,100,68253,2
16-f4,2000,4936,2
17-cf,2001,7144,4
"""
ACME = """\
job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue
a,u,8,64,960,Other,FAILED,{0}10:00:00{1},{0}10:00:10{1},{0}10:00:18{1},{2},10
b,u,1,8,128,SFT,COMPLETED,{0}10:00:30{1},{0}10:01:00{1},{0}10:02:00{1},{3},30
c,v,1,0,8,Debug,COMPLETED,{0}10:00:00{1},{0}10:00:10{1},{0}10:00:18{1},8,10
d,v,1,8,8,Debug,CANCELLED,{0}10:00:00{1},,,0,10
e,v,1,8,8,Debug,CANCELLED,{0}10:00:00{1},{0}10:00:00{1},{0}10:00:00{1},0,0
"""
PAI = """\
job_id,user,submit_time,duration,num_inst,num_cpu,num_gpu,gpu_type,wait_time
0,u1,0,100.0,1,600,50,T4,0
1,u1,0,50.0,3,600,25,T4,0
2,u2,5,10.0,2,600,100,MISC,3
3,u2,7,0.0,2,600,100,MISC,3
4,u2,9,10.0,1,600,0,,3
5,u2,9,20.0,1,600,200,V100,3
"""
SPEEDS = pd.DataFrame(
    {"job_type": ["A3C"], "scale_factor": 1, "gpu_type": "v100", "steps_per_second": 8.0}
)
TWELVE = """\
A3C\tmain.py\trl\t--n\t0\t480\t1\tgns\t2\t-1.0\t60\t30
A3C\tmain.py\trl\t--n\t0\t800\t1\tstatic\t1\t1.5\t250\t0
"""
BATSIM = {
    "nb_res": 8,
    "jobs": [
        {"id": "w0!a", "subtime": 5, "walltime": 200, "res": 2, "profile": "short"},
        {"id": "w0!b", "subtime": 0, "walltime": 60, "res": 4, "profile": "short"},
        {"id": "w0!c", "subtime": 6.5, "walltime": -1, "res": 1, "profile": "short", "user": "u"},
        {"id": "w0!d", "subtime": 7, "res": 1, "profile": "flops"},
        {"id": "w0!e", "subtime": 8, "res": 1, "profile": "none"},
    ],
    "profiles": {
        "short": {"type": "delay", "delay": 100},
        "none": {"type": "delay", "delay": 0},
        "flops": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0},
    },
}


@pytest.fixture
def read(tmp_path):
    def _read(text: str, format: str | None = None, **options):
        path = tmp_path / "jobs"
        path.write_text(text)
        return load(path, format, **options)

    return _read


def test_elasticflow_by_hand(read):
    frame = read(ELASTICFLOW)
    assert frame.attrs["format"] == "elasticflow"
    assert frame["job_id"].tolist() == ["ec-aa", "5d-c3", "4f-eb", "16-f4", "17-cf"]
    assert frame["submit_time"].tolist() == [40.0, 100.0, 100.0, 2000.0, 2001.0]
    assert frame["duration"].tolist() == [767.0, 604.0, 68253.0, 4936.0, 7144.0]
    assert frame["num_gpus"].tolist() == [16, 16, 2, 2, 4]
    with pytest.raises(TraceError, match=r"jobs:3:num_gpu: not a number \(many\)"):
        read(ELASTICFLOW.replace("767,16", "767,many"))


ARCHIVE = (
    Path(os.environ.get("REPRO_TRACE_MIRROR", "none"))
    / "microsoft+elasticflow-traces/data/raw-traces.tar.gz"
)


@pytest.mark.skipif(not ARCHIVE.is_file(), reason="the public file is not here")
def test_the_ten_clusters_of_elasticflow(tmp_path):
    jobs = 0
    with tarfile.open(ARCHIVE) as archive:
        names = [name for name in archive.getnames() if name.endswith(".csv")]
        for name in names:
            stream = archive.extractfile(name)
            assert isinstance(stream, io.BufferedReader)
            path = tmp_path / Path(name).name
            path.write_bytes(stream.read())
            frame = load(path)
            assert frame.attrs["format"] == "elasticflow"
            assert frame.attrs["dropped"] == {}
            jobs += len(frame)
    assert (len(names), jobs) == (10, 69_351)


@pytest.mark.parametrize(
    ("day", "offset", "durations", "notes"),
    [
        # Seren: run times and an offset
        ("2023-03-01 ", "+08:00", (8, 60), []),
        # Kalos: queue and run
        (
            "2023-05-17 ",
            "",
            (18, 90),
            [
                "duration includes the time in the queue in 2 of 5 rows: run time is end - start",
            ],
        ),
    ],
)
def test_acme_by_hand(read, day, offset, durations, notes):
    frame = read(ACME.format(day, offset, *durations))
    assert frame.attrs["format"] == "acme"
    assert frame["job_id"].tolist() == ["a", "b"]
    assert frame["submit_time"].tolist() == [0.0, 30.0]
    assert frame["duration"].tolist() == [8.0, 60.0]
    assert frame["num_gpus"].tolist() == [64, 8]
    assert frame["num_cpus"].tolist() == [960.0, 128.0]
    assert frame.attrs["dropped"] == {"no GPU": 1, "never ran": 1, "ran for 0 s": 1}
    assert frame.attrs["notes"][1:] == notes


def test_acme_notes_other_contradictions(read):
    frame = read(ACME.format("2023-05-17 ", "", 18, 77), "acme")
    assert frame.attrs["notes"] == [
        "duration includes the time in the queue in 1 of 5 rows: run time is end - start",
        "duration contradicts end - start in 1 of 2 rows: run time is end - start",
    ]


def test_pai_by_hand(read):
    frame = read(PAI)
    assert frame.attrs["format"] == "alibaba-pai"
    assert frame["job_id"].tolist() == [0, 1, 2, 5]
    assert frame["duration"].tolist() == [100.0, 50.0, 10.0, 20.0]
    # each instance holds whole GPUs: 1 of 50 %, 3 of 25 %, 2 of 100 %, 1 of 200 %
    assert frame["num_gpus"].tolist() == [1, 3, 2, 2]
    assert frame["num_cpus"].tolist() == [6.0, 18.0, 12.0, 6.0]
    assert frame["gpu_type"].tolist() == ["T4", "T4", "MISC", "V100"]
    assert "gpu_share" not in frame
    assert frame.attrs["dropped"] == {"no GPU": 1, "ran for 0 s": 1}
    # 50 + 37.5 + 20 + 40 GPU-s in use, 100 + 150 + 20 + 40 held
    assert frame.attrs["notes"][1:] == [
        "num_gpu counts hundredths of a GPU",
        "2 jobs of 4 with a part of a GPU per instance, rounded up to whole GPUs: 148 GPU-s of "
        "work read as 310 GPU-s",
    ]


def test_pai_parts_of_gpus_on_demand(read):
    frame = read(PAI, gpu_share="keep")
    assert frame["num_gpus"].tolist() == [1, 3, 2, 2]
    assert frame["gpu_share"].tolist() == [0.5, 0.25, 1.0, 1.0]
    with pytest.raises(TraceError, match=r"jobs:2:num_gpu: not whole GPUs \(50\); .*gpu_share=c"):
        read(PAI, gpu_share="refuse")
    frame = read(PAI, per="job")
    assert frame["num_gpus"].tolist() == [1, 1, 1, 2]
    with pytest.raises(ParamError, match="gpu_unit=x: give auto, percent or gpu"):
        read(PAI, gpu_unit="x")
    with pytest.raises(ParamError, match="per=node: give instance or job"):
        read(PAI, per="node")
    with pytest.raises(ParamError, match="gpu_share=round: give ceil, keep or refuse"):
        read(PAI, gpu_share="round")
    with pytest.raises(TraceError, match=r"jobs:2:num_gpu: not a number \(x\)"):
        read(PAI.replace("600,50", "600,x"))


@pytest.mark.parametrize(
    ("demands", "unit", "gpus"),
    [
        (("0.5", "12"), "auto", [1, 12]),
        (("1", "8"), "auto", [1, 8]),
        (("50", "800"), "auto", [1, 8]),
        (("1", "8"), "percent", [1, 1]),
    ],
)
def test_the_unit_of_pai_follows_from_its_numbers(read, demands, unit, gpus):
    head = "job_id,submit_time,duration,num_inst,num_gpu\n"
    rows = "".join(f"{job},0,5,1,{demand}\n" for job, demand in enumerate(demands))
    assert read(head + rows, gpu_unit=unit)["num_gpus"].tolist() == gpus


def test_gavels_twelve_fields_by_hand(read):
    frame = read(TWELVE, throughputs=SPEEDS)
    assert frame.attrs["format"] == "gavel"
    assert frame["submit_time"].tolist() == [0.0, 30.0]
    # 800 and 480 steps at 8 steps/s; the file records 250 s and 60 s
    assert frame["duration"].tolist() == [100.0, 60.0]
    assert frame["priority_weight"].tolist() == [1.0, 2.0]
    assert frame["slo"].tolist()[0] == 1.5
    assert frame.attrs["notes"][1:] == [
        "recorded duration differs from steps / throughput by more than 1 % in 1 of 2 jobs: run "
        "time is steps / throughput (throughputs= takes the table of the cluster that the trace is "
        "from)"
    ]
    assert "mode" in frame.attrs["unread"]


def test_batsim_by_hand(read):
    frame = read(json.dumps(BATSIM))
    assert frame.attrs["format"] == "batsim"
    assert frame["job_id"].tolist() == ["w0!b", "w0!a", "w0!c"]
    assert frame["submit_time"].tolist() == [0.0, 5.0, 6.5]
    # b is stopped at its walltime of 60 s
    assert frame["duration"].tolist() == [60.0, 100.0, 100.0]
    assert frame["num_gpus"].tolist() == [4, 2, 1]
    assert frame["time_limit"].tolist()[:2] == [60.0, 200.0]
    assert frame["time_limit"].isna().tolist() == [False, False, True]
    assert frame.attrs["dropped"] == {"profile without a run time": 1, "ran for 0 s": 1}
    assert frame.attrs["notes"][1:] == [
        "resources are read as GPUs; nb_res is 8",
        "1 job stopped at walltime",
    ]
    assert frame.attrs["unread"] == ["jobs.user"]


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"id": 1, "subtime": 0, "res": 1}, "jobs:row 0:profile: missing key"),
        ({"profile": "long"}, "jobs:row 0:profile: no such profile (long)"),
        ({"profile": "odd"}, "jobs:row 0:profile: not a delay (soon)"),
        ({"walltime": "x"}, "jobs:row 0:walltime: not a number (x)"),
        (
            {"walltime": 0},
            "jobs:row 0:walltime: not positive (0); a walltime is seconds above 0, or",
        ),
        ({"walltime": -2}, "jobs:row 0:walltime: not positive (-2)"),
        ({"res": 1.5}, "jobs:row 0:res: not a whole number (1.5)"),
        ({"subtime": "x"}, "jobs:row 0:subtime: not a number (x)"),
    ],
)
def test_bad_jobs_of_batsim_are_one_line(read, job, message):
    good = BATSIM["jobs"][0]
    profiles = BATSIM["profiles"] | {"odd": {"type": "delay", "delay": "soon"}}
    bad = job if "profile" not in job and "id" in job else good | job
    workload = {"nb_res": 8, "jobs": [bad, good | {"id": "z"}], "profiles": profiles}
    with pytest.raises(TraceError) as caught:
        read(json.dumps(workload), "batsim")
    assert message in str(caught.value)
    frame = read(json.dumps(workload), "batsim", drop_bad_rows=True)
    assert frame["job_id"].tolist() == ["z"]


def test_a_workload_of_batsim_has_its_keys(read):
    with pytest.raises(TraceError, match=r"jobs:1:nb_res,profiles: missing key; a workload of"):
        read('{"jobs": []}', "batsim")
    with pytest.raises(TraceError, match="no jobs"):
        read('{"nb_res": 1, "jobs": [], "profiles": {}}', "batsim")


def test_contradictory_numbers_of_pai_need_the_unit(read):
    text = "job_id,submit_time,duration,num_inst,num_gpu\n0,0,5,1,12.5\n1,0,5,1,100\n"
    message = (
        r"jobs:num_gpu: fractions \(12\.5\) beside numbers above 8 \(100\): give the unit, "
        r"gpu_unit=percent or gpu_unit=gpu"
    )
    with pytest.raises(TraceError, match=message):
        read(text)
    assert read(text, gpu_unit="percent")["num_gpus"].tolist() == [1, 1]
