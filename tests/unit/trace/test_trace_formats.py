from __future__ import annotations

import json

import pandas as pd
import pytest

from repro.base.errors import ParamError, TraceError
from repro.trace.formats import FORMATS, required_columns
from repro.trace.load import load

TIRESIAS = """\
job_id,num_gpu,submit_time,iterations,model_name,duration,interval
0,1,0,606,vgg19,164,30
2,8,53,133,vgg11,147,23
1,2,30,157,inception4,127.5,26
"""
MURI = """\
job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,\
resource_time_0,resource_time_1,resource_time_2,priority
0,1,0,153715,vgg19,16,16755000,145000,109,114,80,0,1
1,2,6500,34273,dqn,128,16794000,6000,490,446,8,0.5,0
"""
PCS = """\
app_id,submit_time,service,num_jobs,sleep_time,model_name
0,2,16482.0,1,2.0,TransformerModel256
1,6,800,4,4.0,VggnetModel256
2,0,90,3,0,VggnetModel256
"""
PHILLY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,11cb48
2017-10-09 06:13:03,2951.0,8,23608.0,6214e9

"""
HELIOS = """\
job_id,user,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
5,uA,8,16,1,COMPLETED,2020-06-09 18:41:27,2020-06-09 18:42:27,2020-06-09 18:45:36,189,60
6,uB,0,1,1,COMPLETED,2020-06-01 00:00:00,2020-06-01 00:00:00,2020-06-01 01:00:00,3600,0
7,uB,1,1,1,CANCELLED,2020-06-09 18:40:00,,,,
8,uB,1,1,1,FAILED,2020-06-09 18:50:00,2020-06-09 18:50:00,2020-06-09 18:50:00,0,0
9,uA,2,1,1,FAILED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0
"""
OPENB = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,\
scheduled_time
p0,1,1,1,460,,LS,Running,10,130,70
p1,1,1,8,1000,V100M16|V100M32,LS,Succeeded,0,1000,0
p2,1,1,0,0,,BE,Running,1,9,2
p3,1,1,1,1000,,BE,Pending,1,9,
p4,1,1,1,1000,,BE,Running,1,,2
"""
SPEEDS = pd.DataFrame(
    {
        "job_type": ["A3C", "LM (batch size 5)", "LM (batch size 5)"],
        "scale_factor": [1, 1, 2],
        "gpu_type": ["v100"] * 3,
        "steps_per_second": [8.0, 100.0, 160.0],
    }
)
GAVEL_LONG = """\
A3C\tpython3 main.py --env "Pong"\trl\t--max-steps\t0\t480\t1\t5\t-1.000000\t30
LM (batch size 5)\tpython3 main.py\tlm\t--steps\t1\t16000\t2\t1\t1.2\t0
"""
GAVEL_SHORT = """\
LM (batch size 5)\tcd %s && python3 main.py\t--steps\t1\t16000\t0.000000\t2
A3C\tcd %s && python3 main.py\t--max-steps\t0\t480\t6.500000\t4
"""


@pytest.fixture
def read(tmp_path):
    def _read(text: str, format: str, **options):
        path = tmp_path / "trace"
        path.write_bytes(text.encode())
        return load(path, format, **options)

    return _read


def test_tiresias(read):
    frame = read(TIRESIAS, "tiresias")
    assert frame["job_id"].tolist() == [0, 1, 2]
    assert frame["duration"].tolist() == [164.0, 127.5, 147.0]
    assert frame["model"].tolist() == ["vgg19", "inception4", "vgg11"]
    assert frame["iterations"].tolist() == [606.0, 157.0, 133.0]
    assert "interval" not in frame


def test_tiresias_needs_only_the_four_core_columns(read):
    frame = read("num_gpu,job_id,duration,submit_time\n4,a,9,0\n", "tiresias")
    assert list(frame.columns) == ["job_id", "submit_time", "duration", "num_gpus"]


def test_muri_milliseconds_and_stages(read):
    frame = read(MURI, "muri")
    assert frame["submit_time"].tolist() == [0.0, 6.5]
    assert frame["duration"].tolist() == [16755.0, 16794.0]
    assert frame["iteration_time"].tolist() == [0.109, 0.49]
    assert frame["stage_storage"].tolist() == [0.114, 0.446]
    assert frame["stage_gpu"].tolist() == [0.08, 0.008]
    assert frame["stage_network"].tolist() == [0.0, 0.0005]
    assert frame["priority"].tolist() == [1, 0]
    assert "stage_cpu" not in frame


def test_muri_file_is_not_read_as_seconds(read):
    with pytest.raises(TraceError, match="milliseconds; read it with format 'muri'"):
        read(MURI, "tiresias")


def test_pcs_arrivals_are_summed_gaps(read):
    frame = read(PCS, "pcs")
    assert frame["submit_time"].tolist() == [2.0, 6.0, 6.0]
    assert frame["service"].tolist() == [16482.0, 800.0, 90.0]
    vgg = {3: 3.020532 / 1.263951, 4: 3.020532 / 0.868694}
    assert frame["duration"].tolist() == [16482.0, 800 / vgg[4], 90 / vgg[3]]
    assert frame["num_gpus"].tolist() == [1, 4, 3]
    assert frame["model"].tolist()[0] == "TransformerModel256"


def test_pcs_without_models_is_linear(read, tmp_path):
    bare = "\n".join(line.rpartition(",")[0] for line in PCS.splitlines()) + "\n"
    empty = PCS.replace("TransformerModel256", "").replace("VggnetModel256", "")
    for text in (bare, empty):
        frame = read(text, "pcs")
        assert frame["duration"].tolist() == [16482.0, 200.0, 30.0]
        assert frame["service"].tolist() == [16482.0, 800.0, 90.0]


def test_pcs_with_curves_of_ones_own(read, tmp_path):
    curves = tmp_path / "curves.csv"
    curves.write_text("model,gpus,speedup\nmine,1,1\nmine,2,1.5\n")
    text = "app_id,service,num_jobs,sleep_time,model_name\n0,30,2,0,mine\n1,30,2,0,\n"
    assert read(text, "pcs", speedups=str(curves))["duration"].tolist() == [20.0, 15.0]
    with pytest.raises(
        TraceError, match=r"2:model_name: no speed-up curve .mine.; there are curve"
    ):
        read(text, "pcs")


def test_philly(read):
    frame = read(PHILLY, "philly")
    assert frame["job_id"].tolist() == [1, 0]
    assert frame["submit_time"].tolist() == [0.0, 2932.0]
    assert frame["vc"].tolist() == ["6214e9", "11cb48"]


def test_helios_drops_are_counted(read):
    frame = read(HELIOS, "helios")
    assert frame["job_id"].tolist() == [9, 5]
    assert frame["submit_time"].tolist() == [0.0, 26.0]
    assert frame["duration"].tolist() == [36848.0, 189.0]
    assert frame["user"].tolist() == ["uA", "uA"]
    assert frame.attrs["dropped"] == {"no GPU": 1, "never ran": 1, "ran for 0 s": 1}


def test_helios_with_vc(read):
    head, *rows = HELIOS.splitlines()
    text = "\n".join([f"{head},vc", *(f"{row},vcX" for row in rows)])
    assert read(text, "helios")["vc"].tolist() == ["vcX", "vcX"]


def test_helios_without_a_gpu_job(read):
    head, _, cpu, *_ = HELIOS.splitlines()
    with pytest.raises(TraceError, match=r"no job left \(no GPU: 1\)"):
        read(f"{head}\n{cpu}\n", "helios")


def test_openb(read):
    frame = read(OPENB, "alibaba-openb")
    assert frame["job_id"].tolist() == ["p1", "p0"]
    assert frame["duration"].tolist() == [1000.0, 60.0]
    assert frame["num_gpus"].tolist() == [8, 1]
    assert frame["gpu_share"].tolist() == [1.0, 0.46]
    assert frame["gpu_type"].isna().tolist() == [False, True]
    assert frame.attrs["dropped"] == {"no GPU": 1, "never ran": 1, "still running": 1}


def test_gavel_ten_fields(read):
    frame = read(GAVEL_LONG, "gavel", throughputs=SPEEDS)
    assert frame["job_id"].tolist() == [1, 0]
    assert frame["model"].tolist() == ["LM (batch size 5)", "A3C"]
    assert frame["duration"].tolist() == [100.0, 60.0]
    assert frame["iterations"].tolist() == [16000.0, 480.0]
    assert frame["num_gpus"].tolist() == [2, 1]
    assert frame["priority_weight"].tolist() == [1.0, 5.0]
    assert frame["slo"].iloc[0] == 1.2
    assert pd.isna(frame["slo"].iloc[1])
    assert frame.attrs["notes"] == []


def test_gavel_seven_fields_fall_back_to_one_gpu(read):
    frame = read(GAVEL_SHORT, "gavel", throughputs=SPEEDS)
    assert frame["submit_time"].tolist() == [0.0, 6.5]
    assert frame["duration"].tolist() == [100.0, 60.0]
    assert frame["num_gpus"].tolist() == [2, 4]
    assert "1 of 2 durations from one-GPU throughputs" in frame.attrs["notes"][0]


def test_gavel_throughputs_from_json_and_csv(read, tmp_path):
    table = {"k80": {}, "v100": {"('A3C', 1)": {"null": 4.0, "('A3C', 1)": [1.0, 1.0]}}}
    as_json = tmp_path / "speeds.json"
    as_json.write_text(json.dumps(table))
    as_csv = tmp_path / "speeds.csv"
    SPEEDS.to_csv(as_csv, index=False)
    line = GAVEL_LONG.splitlines()[0]
    assert read(line, "gavel", throughputs=as_json)["duration"].tolist() == [120.0]
    assert read(line, "gavel", throughputs=as_csv)["duration"].tolist() == [60.0]
    with pytest.raises(TraceError, match="no throughputs for GPU type 'k80'"):
        read(line, "gavel", throughputs=as_json, reference_gpu="k80")
    as_json.write_text("[1]")
    with pytest.raises(TraceError, match="not a Gavel throughput table"):
        read(line, "gavel", throughputs=as_json)


def test_gavel_unknown_job_type_is_named(read):
    text = GAVEL_LONG.replace("A3C", "GPT")
    with pytest.raises(TraceError, match=r"trace:1:job_type: no throughput on v100 .* \(GPT\)"):
        read(text, "gavel", throughputs=SPEEDS)


def test_native_ignores_unknown_columns(read):
    text = "job_id,submit_time,duration,num_gpus,user,comment\nj1,0,60,4,007,hello\n"
    frame = read(text, "repro")
    assert "comment" not in frame
    assert frame["user"].tolist() == ["007"]


def test_text_that_looks_missing_is_kept(read):
    text = "job_id,submit_time,duration,num_gpus,user\nNA,0,60,4,None\nnan,0,60,4,\n"
    frame = read(text, "repro")
    assert frame["job_id"].tolist() == ["NA", "nan"]
    assert frame["user"].iloc[0] == "None"
    assert pd.isna(frame["user"].iloc[1])


def test_unknown_option_and_format(read):
    with pytest.raises(ParamError, match="format 'tiresias' has no option 'speed'"):
        read(TIRESIAS, "tiresias", speed=1)
    with pytest.raises(TraceError, match=r"unknown trace format 'tiresia'; did you mean"):
        read(TIRESIAS, "tiresia")


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (5, "5 is no function; register a function of a Document"),
        (
            lambda: None,
            r"<lambda>\(\) \(test_trace_formats.py:\d+\) takes other arguments than repro.load "
            r"passes; define <lambda>\(document\)",
        ),
    ],
)
def test_what_is_no_function_of_a_document_is_not_registered(item, says):
    with pytest.raises(TraceError, match=f"^trace format 'five': {says}"):
        FORMATS.register("five")(item)
    assert "five" not in FORMATS


ONE_ATTEMPT = {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23"}
DETAIL = {"detail": [{"ip": "m47", "gpus": ["gpu0"]}]}
JOB = {"status": "Pass", "vc": "v", "jobid": "a", "submitted_time": "2017-10-07 01:11:39"}
LOG = [
    JOB | {"user": "u", "attempts": [ONE_ATTEMPT | DETAIL]},
    JOB | {"jobid": "b", "user": "u", "attempts": []},
    JOB | {"jobid": "c", "user": "u", "attempts": [ONE_ATTEMPT | {"end_time": None} | DETAIL]},
    JOB | {"jobid": "d", "user": "u", "attempts": [ONE_ATTEMPT]},
    JOB | {"jobid": "e", "submitted_time": None, "attempts": [ONE_ATTEMPT | DETAIL]},
]
NATIVE = "job_id,submit_time,duration,num_gpus,user,comment\nj1,0,60,4,007,hello\n"
SACCT = """\
JobID|State|Submit|Start|End|AllocTRES|JobName
1|COMPLETED|2024-02-01T10:00:00|2024-02-01T10:00:00|2024-02-01T10:01:00|gres/gpu=1|a
1.0|COMPLETED|2024-02-01T10:00:00|2024-02-01T10:00:00|2024-02-01T10:01:00|cpu=1|a
2|RUNNING|2024-02-01T10:00:00|2024-02-01T10:00:00|Unknown|gres/gpu=1|a
"""
ACME = """\
job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue
a,u,1,8,128,SFT,FAILED,2023-03-01 00:00:00,2023-03-01 00:01:00,2023-03-01 00:03:00,180,60
b,u,1,0,8,Other,COMPLETED,2023-03-01 00:00:00,2023-03-01 00:01:00,2023-03-01 00:03:00,120,60
"""
BATSIM = {
    "nb_res": 8,
    "command": "x",
    "jobs": [
        {"id": 1, "subtime": 0, "res": 2, "profile": "p"},
        {"id": 2, "subtime": 0, "res": 2, "profile": "q"},
    ],
    "profiles": {"p": {"type": "delay", "delay": 5}, "q": {"type": "parallel"}},
}
LEFT_OUT = {
    "acme": (ACME, ["node_num", "type"], {"no GPU": 1}),
    "alibaba-pai": (
        "job_id,submit_time,duration,num_inst,num_gpu,wait_time\n0,0,5,1,50,3\n1,0,0,1,100,3\n",
        ["wait_time"],
        {"ran for 0 s": 1},
    ),
    "batsim": (json.dumps(BATSIM), ["command"], {"profile without a run time": 1}),
    "elasticflow": (
        "job_id,submission_time,duration,num_gpu,note\na,0,60,4,x\n",
        ["note"],
        {},
    ),
    "slurm": (SACCT, ["JobName"], {"job step": 1, "still running": 1}),
    "swf": (
        "1 0 0 60 1" + " -1" * 13 + "\n2 0 0 0 1" + " -1" * 13 + "\n",
        [],
        {"ran for 0 s": 1},
    ),
    "alibaba-openb": (
        OPENB,
        ["qos"],
        {"no GPU": 1, "never ran": 1, "still running": 1},
    ),
    "gavel": (GAVEL_LONG, ["command", "working_dir", "steps_arg", "needs_data_dir"], {}),
    "helios": (
        f"{HELIOS}10,uA,1,1,1,FAILED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10,,0\n",
        ["node_num", "queue"],
        {"no GPU": 1, "never ran": 1, "ran for 0 s": 1},
    ),
    "liquid": (
        "case,job,queue,model,batch_size,num_batches,num_ps,num_workers\n"
        "one,a,q,vgg16,12,250,1,2\none,b,q,cnn,12,250,0,1\n",
        ["queue"],
        {"no run time under times=t4": 1},
    ),
    "muri": (MURI, ["interval"], {}),
    "pcs": (PCS, ["submit_time"], {}),
    "philly": (PHILLY, ["gpu_time"], {}),
    "philly-json": (
        json.dumps(LOG),
        ["status"],
        {"never ran": 1, "still running": 1, "no GPU": 1, "no submit time": 1},
    ),
    "repro": (NATIVE, ["comment"], {}),
    "tiresias": (TIRESIAS, ["interval"], {}),
}


@pytest.mark.parametrize("format", list(FORMATS))
def test_rows_and_columns_left_out_are_named(read, format):
    text, unread, dropped = LEFT_OUT[format]
    frame = read(text, format, **({"throughputs": SPEEDS} if format == "gavel" else {}))
    assert frame.attrs["unread"] == unread
    assert frame.attrs["dropped"] == dropped
    lines = text.rstrip("\n").count("\n") + (format in ("gavel", "swf"))
    rows = {"philly-json": len(LOG), "batsim": len(BATSIM["jobs"])}.get(format, lines)
    assert len(frame) + sum(dropped.values()) == rows


@pytest.mark.parametrize(
    "format", [name for name in LEFT_OUT if name not in ("philly-json", "batsim")]
)
def test_a_file_cut_in_its_last_line_is_refused(read, format):
    text = LEFT_OUT[format][0].rstrip("\n")
    delimiter = {"gavel": "\t", "slurm": "|", "swf": " "}.get(format, ",")
    cut = text[: text.rindex(delimiter)]
    options = {"throughputs": SPEEDS} if format == "gavel" else {}
    line = cut.count("\n") + 1
    with pytest.raises(TraceError, match=rf"trace:{line}: \d+ fields where \d+ are expected"):
        read(cut, format, **options)


def test_a_cut_row_is_found_beside_quoted_delimiters(read):
    head, *rows = TIRESIAS.splitlines()
    rows[0] = rows[0].replace("vgg19", '"vgg,19"')
    frame = read("\n".join([head, *rows]), "tiresias")
    assert frame["model"].tolist()[0] == "vgg,19"
    with pytest.raises(TraceError, match="trace:4: 6 fields where 7 are expected"):
        read("\n".join([head, *rows])[:-3], "tiresias")


def test_a_column_without_name_is_named_by_its_place(read):
    text = "job_id,submit_time,duration,num_gpus,\nj1,0,60,4,x\n"
    assert read(text, "repro").attrs["unread"] == ["column 5 (unnamed)"]


def test_contradictions_of_muri_are_counted(read_muri):
    frame = read_muri("0,1,0,100,500000,1000,200,500,300", "1,1,0,100,100000,1000,200,500,300")
    assert frame["duration"].tolist() == [500.0, 100.0]
    assert frame.attrs["notes"] == [
        "duration contradicts iterations x iteration_time in 1 of 2 rows: rules paper use "
        "duration, rules muri use iterations x iteration_time"
    ]
    frame = read_muri("0,1,0,100,100000,1000,2000,5000,3000")
    assert frame.attrs["notes"] == [
        "stage times sum to more than 2 x iteration_time in 1 of 1 rows"
    ]
    # a last iteration that is cut off, and a gap, contradict nothing
    assert not read_muri("0,1,0,100,99200,1000,200,500,300").attrs["notes"]
    assert not read_muri("0,1,0,,100000,1000,200,500,300").attrs["notes"]


@pytest.fixture
def read_muri(tmp_path):
    def _read(*rows):
        path = tmp_path / "muri.csv"
        head = "job_id,num_gpu,submit_time,iterations,duration,iteration_time"
        head += ",resource_time_0,resource_time_1,resource_time_2"
        path.write_text("\n".join([head, *rows]) + "\n")
        return load(path, "muri")

    return _read


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_required_columns_are_names(name):
    names = required_columns(name)
    assert names and not any(word.isdigit() or word in ("none", "or") for word in names)
