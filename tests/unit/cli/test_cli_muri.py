"""What `repro simulate` refuses of traces with stage times: one line that names the place."""

from __future__ import annotations

import json

import pytest

from repro.cli import app
from repro.trace.load import DROP_HINT

HEAD = (
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,"
    "iteration_time,resource_time_0,resource_time_1,resource_time_2,priority"
)
FIRST = "0,1,0,1000,vgg16,16,107000,0,107,117,68,0,1"
SECOND = "1,2,6000,1000,vgg19,16,205000,0,205,115,83,41,0"
NATIVE = "job_id,submit_time,duration,num_gpus"
COUNTED = f"{NATIVE},iterations,iteration_time"
SPEND = "an iteration takes time in at least one stage: "


@pytest.fixture
def simulate(tmp_path, capsys):
    def _simulate(lines, *words, format="muri", policy="muri-s", code=2):
        path = tmp_path / "jobs.csv"
        out = tmp_path / "o.csv"
        path.write_text("\n".join(lines) + "\n")
        given = ["simulate", "--trace", path, "--format", format, "--cluster", "1x4"]
        given += ["--policy", policy, "--out", out, "--json", *words]
        assert app.main([str(word) for word in given]) == code
        shown = capsys.readouterr()
        if code:
            assert shown.out == "" and not out.exists()
            (line,) = shown.err.strip().splitlines()
            return line.removeprefix("repro: ").replace(str(path), "jobs.csv")
        assert out.exists()
        return json.loads(shown.out)

    return _simulate


def test_the_good_file_runs(simulate):
    assert simulate([HEAD, FIRST, SECOND], "--rules", "muri", code=0)["n_finished"] == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("115,83,41", "-115,83,41", "resource_time_0: negative (-115); a stage time is"),
        ("115,83,41", "115,83,-41", "resource_time_2: negative (-41); a stage time is"),
        ("115,83,41", "0,0,0", f"resource_time_0: all stage times are zero (0); {SPEND}resource_"),
        ("vgg19", "vgg91", "model_name: unknown model (vgg91); did you mean 'vgg19'"),
        ("vgg19", "", "model_name: unknown model (empty); known: vgg16, vgg19"),
        ("1,2,6000", "1,8,6000", "num_gpu: more GPUs than the cluster has (8); job 1"),
        (",115,", ",x,", "resource_time_0: not a number (x)"),
    ],
)
def test_bad_rows_name_file_line_and_column(simulate, old, new, message):
    line = simulate([HEAD, FIRST, SECOND.replace(old, new)])
    assert line.startswith(f"jobs.csv:3:{message}"), line


def test_an_unknown_model_is_told_what_to_do(simulate):
    line = simulate([HEAD, FIRST, SECOND.replace("vgg19", "inception4")])
    assert line.endswith(
        "known: vgg16, vgg19, resnet18, shufflenet_v2_x1_0, bert, gpt2, a2c, dqn; "
        f"write a file with other models in format repro; {DROP_HINT}"
    )


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("max_group=5", "policy 'muri-s': max_group is 5; give a whole number of jobs from 2 to 4"),
        ("max_group=1", "policy 'muri-s': max_group is 1; give a whole number of jobs from 2 to 4"),
        ("max_group=x", "policy 'muri-s': max_group is 'x'; give a whole number"),
        ("noise=2", "policy 'muri-s': noise is 2; give a number from 0 to 1"),
        ("ordering=x", "policy 'muri-s': ordering is 'x'; give best or worst"),
        ("interval=0", "policy 'muri-s': interval is 0; give a number of seconds above 0"),
    ],
)
def test_settings_out_of_range(simulate, setting, message):
    assert simulate([HEAD, FIRST], "--set", setting).startswith(message)


@pytest.mark.parametrize(
    ("lines", "policy", "message"),
    [
        ([NATIVE, "0,0,10,1"], "srtf", "jobs.csv: no column 'iterations'; these rules count"),
        ([COUNTED, "0,0,10,1,10,1"], "srtf", "jobs.csv: no column 'model'; these rules charge"),
        (
            [f"{COUNTED},model", "7,0,10,1,10,,bert"],
            "srtf",
            "jobs.csv: row 0 (job 7) has no iteration_time",
        ),
        ([f"{COUNTED},model", "7,0,10,1,10,1,x"], "srtf", "jobs.csv: job 7: unknown model 'x'"),
    ],
)
def test_the_rules_need_what_they_count(simulate, lines, policy, message):
    words = ["--rules", "muri"]
    assert simulate(lines, *words, format="repro", policy=policy).startswith(message)


def test_grouping_needs_stage_times(simulate):
    line = simulate([NATIVE, "0,0,10,1"], format="repro")
    assert line.startswith("jobs.csv: no column 'stage_storage'; grouped jobs need their stage")


def test_stages_of_any_format_are_not_all_zero(simulate):
    lines = [f"{NATIVE},stage_cpu,stage_gpu", "0,0,10,1,1,2", "1,0,10,1,0,0", "2,0,10,1,,0"]
    line = simulate(lines, format="repro", policy="srtf")
    assert line == (
        f"jobs.csv:3:stage_cpu: all stage times are zero (0); {SPEND}stage_cpu, stage_gpu; "
        f"{DROP_HINT}"
    )
    assert simulate(lines[:2] + lines[3:], format="repro", policy="srtf", code=0)["n_jobs"] == 2
