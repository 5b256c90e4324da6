"""Liquid's jobs: the batch that is in the project, and the lists of its experiments."""

from __future__ import annotations

import numpy as np
import pytest

from repro import load
from repro.base.errors import ParamError, TraceError
from repro.perf.parameter_server import named
from repro.trace import synth

HEAD = "case,index,job,model,batch_size,num_batches,num_ps,num_workers,gpu_mem_mb\n"


def test_the_batch_is_that_of_the_launchers(mirror):
    path = mirror.parent / "liquid_workloads.csv"
    if not path.is_file():
        pytest.skip("no liquid_workloads.csv beside the mirror of the public traces")
    theirs = load(path, "liquid", case="multi-batch")
    ours = synth.make("liquid-batch-jobs", 0)
    for name in ("model", "batch_size", "iterations", "duration", "num_gpus", "num_ps"):
        assert ours[name].tolist() == theirs[name].tolist()
    with pytest.raises(TraceError, match="holds 17 lists; choose one with case="):
        load(path, "liquid")
    # networks without a known rate
    assert (
        load(path, "liquid", case="mixed-pre").attrs["dropped"]["no run time under times=t4"] == 3
    )


def test_copies_arrive_at_once_or_apart():
    both = synth.make("liquid-batch-jobs", 0, jobs=16)
    assert both["submit_time"].eq(0).all()
    assert both["model"].tolist()[:8] == both["model"].tolist()[8:]
    apart = synth.make("liquid-batch-jobs", 0, jobs=4000, gap_s=60.0)["submit_time"]
    assert apart.iloc[0] == 0
    assert np.diff(apart).mean() == pytest.approx(60, rel=0.1)


def test_a_list_in_a_file(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(HEAD + "one,0,a,vgg16,12,250,1,2,8192\none,1,b,cnn,,,0,1,4096\n")
    jobs = load(path, "liquid", times="k80")
    assert jobs["duration"].tolist() == [named("k80").run_s("vgg16", (0, 0, 0), 12, 260)]
    assert jobs.attrs["dropped"] == {"no run time under times=k80": 1}
    assert jobs["gpu_mem_mb"].tolist() == [8192]


@pytest.mark.parametrize(
    ("row", "options", "line"),
    [
        ("one,0,a,vgg16,12,250,-1,2,8192", {}, "jobs.csv:2:num_ps: negative"),
        ("one,0,a,vgg16,0,250,1,2,8192", {}, "jobs.csv:2:batch_size: too small"),
        ("one,0,a,vgg16,12,250,1,2,8192", {"case": "two"}, "case 'two' is not in"),
        ("one,0,a,vgg16,12,250,1,2,8192", {"times": "v100"}, "accepted: measured, k80, t4"),
        ("one,0,a,vgg16,12,250,1,2,-5", {}, "gpu_mem_mb"),
    ],
)
def test_bad_lists(tmp_path, row, options, line):
    path = tmp_path / "jobs.csv"
    path.write_text(HEAD + row + "\n")
    with pytest.raises((TraceError, ParamError), match=line):
        load(path, "liquid", **options)


def test_bad_options():
    with pytest.raises(ParamError, match="gap_s=-1"):
        synth.make("liquid-batch-jobs", 0, gap_s=-1)


def test_models_without_a_run_time_are_named(tmp_path):
    path = tmp_path / "jobs.csv"
    known = "one,0,a,vgg16,12,250,1,2,8192\n"
    path.write_text(HEAD + known + "one,1,b,VGG-16,12,250,1,2,1\none,2,c,cnn,12,250,1,2,1\n")
    frame = load(path, "liquid")
    assert frame.attrs["dropped"] == {"no run time under times=t4": 2}
    assert frame.attrs["notes"] == [
        "models with no run time under times=t4: VGG-16 on line 3; did you mean 'vgg16'?, cnn on "
        "line 4"
    ]
    path.write_text(HEAD + "one,1,b,VGG-16,12,250,1,2,1\n")
    with pytest.raises(TraceError, match=r"jobs\.csv:2:model: no run time.*did you mean 'vgg16'"):
        load(path, "liquid")


def test_a_case_of_a_file_without_the_column_is_refused(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("job,model,batch_size,num_batches,num_ps,num_workers\na,vgg16,12,250,1,2\n")
    with pytest.raises(
        ParamError, match=r"^case 'B': .*jobs\.csv has no column case; leave it out$"
    ):
        load(path, "liquid", case="B")


def test_jobs_without_a_case_are_no_list(tmp_path):
    path = tmp_path / "jobs.csv"
    rows = "one,0,a,vgg16,12,250,1,2,8192\n,1,b,vgg16,12,250,1,2,8192\n"
    path.write_text(HEAD + rows)
    with pytest.raises(ParamError, match=r"case 'two' is not in .*jobs\.csv: one$"):
        load(path, "liquid", case="two")
    with pytest.raises(
        TraceError, match=r"jobs\.csv: holds 1 list and jobs without a case; choose"
    ):
        load(path, "liquid")
    assert len(load(path, "liquid", case="one")) == 1
    path.write_text(HEAD + ",1,b,vgg16,12,250,1,2,8192\n")
    with pytest.raises(ParamError, match=r"case 'one': the column case of .* is empty; leave it"):
        load(path, "liquid", case="one")
    assert len(load(path, "liquid")) == 1


def test_a_case_may_be_a_number(tmp_path):
    path = tmp_path / "jobs.csv"
    rows = [f"{case},{case},a,vgg16,12,250,1,2,8192\n" for case in (1, 2)]
    path.write_text(HEAD + "".join(rows))
    assert load(path, "liquid", case=2)["job_id"].tolist() == [2]


def test_a_model_without_this_plan_is_not_unknown(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(HEAD + "one,0,a,resnet50,12,250,3,9,8192\n")
    with pytest.raises(TraceError) as caught:
        load(path, "liquid", times="measured")
    message = str(caught.value)
    assert "no run time under times=measured (resnet50); " in message
    assert "did you mean" not in message
    assert "the model is known: give numbers of parameter servers and workers" in message
