"""Measured folders: rates, pairs, stages and pauses of one GPU, and their way into simulations."""

from __future__ import annotations

import pandas as pd
import pytest

import repro
from repro.base import paths
from repro.base.errors import ParamError, TraceError
from repro.engine.overheads import named_overhead
from repro.perf.measured_folder import measured_folder
from repro.perf.throughput_files import load_throughputs, provenance, throughputs_of
from repro.trace import dress

ISOLATED = """\
mode,job,batch_size,when,iters_per_s
timeslice,a,8,first,10
timeslice,a,8,last,14
timeslice,b,4,first,2
mps,a,8,first,11
"""
COLOCATED = """\
mode,k,job_a,job_b,norm_a,norm_b
timeslice,2,b,a,0.5,0.25
timeslice,3,a,b,0.1,0.1
mps,2,a,a,0.4,0.8
"""
STAGES = """\
job,batch_size,storage_s,cpu_s,gpu_s,network_s,total_s
a,2,1,1,1,1,4
a,8,1,2,3,4,10
b,4,0,0,2,0,2
"""
PAUSE = """\
job,save_d2h_s,save_write_s,save_fsync_s,exit_s,resume_total_s,error
a,1,2,3,4,20,
b,0,0,0,2,10,
c,,,,,,out of memory
"""
FILES = {
    "isolated.csv": ISOLATED,
    "colocated.csv": COLOCATED,
    "stages.csv": STAGES,
    "pause.csv": PAUSE,
}


def write(folder, files=FILES, gpu_type=None):
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    if gpu_type is not None:
        (folder / "machine.csv").write_text(f"name,value\ngpu_type,{gpu_type}\ngpu,Some GPU\n")
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "mine", gpu_type="a100")


def jobs(**columns):
    frame = pd.DataFrame({"job_id": [0, 1], "submit_time": 0.0, "duration": 100.0})
    return frame.assign(num_gpus=columns.pop("num_gpus", 1), **columns)


def test_a_second_gpu_type_of_a_machine_is_refused(folder):
    with (folder / "machine.csv").open("a") as file:
        file.write("gpu_type,h100\n")
    with pytest.raises(TraceError, match=r"machine.csv:4:name: repeated row \(gpu_type\)"):
        load_throughputs(folder)


def test_rates_are_medians_of_one_mode(folder):
    measured = measured_folder(folder)
    assert measured.gpu_type == "a100"
    assert measured.rates_alone() == {"a": 12.0, "b": 2.0}
    assert measured.rates_alone("mps") == {"a": 11.0}


def test_a_pair_measured_several_times_has_its_medians(tmp_path):
    again = "timeslice,2,a,b,0.05,0.7\ntimeslice,2,a,b,0.35,0.6\n"
    path = write(tmp_path / "mine", FILES | {"colocated.csv": COLOCATED + again})
    # a: 0.25, 0.05 and 0.35 of 12; b: 0.5, 0.7 and 0.6 of 2
    assert measured_folder(path).pair_rates() == {("a", "b"): pytest.approx((3.0, 1.2))}


def test_pairs_have_their_normalised_rates_in_the_order_of_names(folder):
    measured = measured_folder(folder)
    assert measured.pair_rates() == {("a", "b"): (3.0, 1.0)}
    assert measured.pair_rates("mps") == {("a", "a"): pytest.approx((6.6, 6.6))}


def test_stage_times_are_those_of_the_batch_size_alone(folder):
    stages = measured_folder(folder).stage_times()
    assert stages.loc["a"].tolist() == [8, 10, 1, 2, 3, 4]
    (folder / "isolated.csv").unlink()
    assert measured_folder(folder).stage_times().loc["a"].tolist() == [2, 4, 1, 1, 1, 1]


def test_throughputs_of_a_folder(folder):
    table = load_throughputs(folder)
    assert (table.reference, table.gpu_types) == ("a100", ("a100",))
    assert table.speeds("a", 1, ["a100"]) == [12.0]
    assert table.speeds("a", 4, ["a100"]) == [48.0]
    assert table.pair_speeds("b", 1, "a", 1, ["a100"])[:, 0].tolist() == [1.0, 3.0]
    # a pair that was not measured, and gangs, share nothing
    assert table.pair_speeds("a", 1, "a", 1, ["a100"]).sum() == 0
    assert table.pair_speeds("a", 2, "b", 2, ["a100"]).sum() == 0
    under_mps = load_throughputs(f"{folder}:mps")
    assert under_mps.pair_speeds("a", 1, "a", 1, ["a100"])[:, 0] == pytest.approx([6.6, 6.6])


@pytest.mark.parametrize("sharing", ["", ":mps", ":timeslice"])
def test_a_trace_names_its_folder_by_an_absolute_path(folder, monkeypatch, sharing):
    monkeypatch.chdir(folder.parent)
    attrs = provenance(f"{folder.name}{sharing}", "a100")
    assert attrs == {"throughputs": f"{folder}{sharing}", "reference_gpu": "a100"}
    monkeypatch.chdir("/")
    trace = pd.DataFrame()
    trace.attrs = attrs
    assert throughputs_of(trace) == load_throughputs(f"{folder}{sharing}")


def test_a_public_name_is_no_folder_and_a_path_is_one(tmp_path, monkeypatch):
    write(tmp_path / "gavel-throughputs")
    monkeypatch.chdir(tmp_path)
    assert provenance("gavel-throughputs", "v100")["throughputs"] == "gavel-throughputs"
    attrs = provenance("./gavel-throughputs", "a100")
    assert attrs["throughputs"] == str(tmp_path / "gavel-throughputs")


def test_no_job_of_a_pair_is_faster_than_alone(tmp_path):
    scattered = FILES | {"colocated.csv": COLOCATED.replace("0.5,0.25", "1.2,0.9")}
    table = load_throughputs(write(tmp_path / "scatter", scattered))
    assert table.pair_speeds("a", 1, "b", 1, ["scatter"])[:, 0] == pytest.approx([10.8, 2.0])


def test_a_table_without_pairs_shares_nothing(tmp_path):
    path = write(tmp_path / "t4", {"isolated.csv": ISOLATED})
    table = load_throughputs(path)
    assert table.pairs == {}
    assert table.gpu_types == ("t4",)


def test_subfolders_are_gpu_types_of_one_table(tmp_path):
    write(tmp_path / "all" / "v100")
    write(tmp_path / "all" / "second", gpu_type="a100")
    table = load_throughputs(tmp_path / "all")
    assert (table.reference, table.gpu_types) == ("v100", ("a100", "v100"))
    assert load_throughputs(tmp_path / "all", "a100").reference == "a100"
    write(tmp_path / "all" / "third", gpu_type="a100")
    with pytest.raises(TraceError, match="a second folder of GPU type a100"):
        load_throughputs(tmp_path / "all")


def test_the_folder_of_the_checkout():
    table = load_throughputs("h100")
    assert table.reference == "h100"
    assert len(table.rows) == 16
    isolated = pd.read_csv(paths.traces_dir() / "measured" / "isolated.csv")
    sliced = isolated[isolated["mode"] == "timeslice"].set_index("job")["iters_per_s"]
    assert table.speeds("bert", 1, ["h100"]) == [sliced["bert"].median()]
    # a name of the map of names
    assert table.speeds("lm", 2, ["h100"]) == [2 * sliced["lstm"].median()]
    shared = [key for key, row in table.pairs.items() if row["h100"] != (0, 0)]
    assert len(shared) == 120
    under_mps = load_throughputs("h100:mps")
    assert sum(row["h100"] != (0, 0) for row in under_mps.pairs.values()) == 118
    for name in ("h100", "h100:mps"):
        assert provenance(name, "h100") == {"throughputs": name, "reference_gpu": "h100"}


def test_another_reference_type_is_refused(folder):
    with pytest.raises(TraceError, match=r"no throughputs for GPU type 'v100'.*one of: a100"):
        load_throughputs(folder, "v100")


def test_pauses_of_a_folder(folder):
    overhead = named_overhead(str(folder))
    assert overhead.pause == {"a": 10.0, "b": 2.0}
    assert (overhead.resume, overhead.default_pause) == (15.0, 6.0)
    assert named_overhead("h100").pause["shufflenet_v2_x1_0"] == pytest.approx(0.351, abs=1e-3)
    result = repro.simulate(jobs(model=["a", "b"]), "1x1", "srtf", overhead=str(folder))
    assert len(result.jobs) == 2


def test_profiles_sample_models_for_a_trace_without_models(folder):
    dressed = dress(jobs(num_gpus=[1, 2]), profiles=folder, seed=3)
    assert set(dressed["model"]) <= {"a", "b"}
    row = dressed[dressed["model"] == "b"].iloc[0] if "b" in set(dressed["model"]) else None
    assert row is None or (row["batch_size"], row["iterations"], row["stage_gpu"]) == (4, 50, 2)
    assert dressed["duration"].tolist() == [100, 100]
    assert "1 jobs of more GPUs have the times of one GPU" in dressed.attrs["notes"][-1]
    again = dress(jobs(num_gpus=[1, 2]), profiles=folder, seed=3)
    pd.testing.assert_frame_equal(dressed, again)
    weighted = dress(jobs(), profiles=folder, weights={"a": 1})
    assert weighted["model"].tolist() == ["a", "a"]


def test_profiles_keep_the_models_of_a_trace(folder):
    trace = jobs(model=["b", "a"], iterations=[1.0, 1.0], iteration_time=[9.0, 9.0])
    trace.attrs |= {"throughputs": "gavel-throughputs", "reference_gpu": "v100"}
    dressed = dress(trace, profiles=folder)
    assert dressed["model"].tolist() == ["b", "a"]
    assert dressed["iteration_time"].tolist() == [2.0, 10.0]
    assert dressed["iterations"].tolist() == [50.0, 10.0]
    stages = ["stage_storage", "stage_cpu", "stage_gpu", "stage_network"]
    assert dressed[stages].to_numpy().tolist() == [[0, 0, 2, 0], [1, 2, 3, 4]]
    # the throughputs of the trace were of other models
    assert "throughputs" not in dressed.attrs
    replaced = dress(trace, profiles=folder, weights={"a": 1}, replace=True)
    assert replaced["model"].tolist() == ["a", "a"]


def test_profiles_know_the_names_of_the_map():
    dressed = dress(jobs(model=["inception3", "inception_v3"]), profiles="h100")
    assert dressed["model"].tolist() == ["inception3", "inception_v3"]
    assert dressed["stage_gpu"].iloc[0] == dressed["stage_gpu"].iloc[1]


def test_profiles_replace_times_only_of_a_trace_that_keeps_its_models(folder):
    with pytest.raises(TraceError, match=r"^trace: has iterations, stage_gpu already; repro trace"):
        dress(jobs(iterations=1.0, stage_gpu=2.0), profiles=folder)
    replaced = dress(jobs(iterations=1.0, stage_gpu=2.0), profiles=folder, replace=True)
    assert set(replaced["iterations"]) <= {50.0, 10.0}


def test_names_of_the_folder_come_before_other_names(tmp_path):
    files = {
        "isolated.csv": "mode,job,batch_size,when,iters_per_s\n"
        "timeslice,lm,8,first,10\ntimeslice,lstm,8,first,2\n",
        "stages.csv": "job,batch_size,storage_s,cpu_s,gpu_s,network_s,total_s\n"
        "lm,8,0,0,1,0,1\nlstm,8,0,0,2,0,2\n",
        "pause.csv": "job,save_d2h_s,save_write_s,save_fsync_s,exit_s,resume_total_s\n"
        "lm,1,0,0,0,5\nlstm,2,0,0,0,5\n",
    }
    folder = write(tmp_path / "mine", files, gpu_type="a100")
    assert dress(jobs(model=["lm", "lstm"]), profiles=folder)["stage_gpu"].tolist() == [1, 2]
    table = load_throughputs(folder)
    assert [table.steps_per_s(model, 1, "a100") for model in ("lm", "lstm")] == [10, 2]
    assert named_overhead(str(folder)).pause["lm"] == 1.0


def test_profiles_refuse_what_they_lack(folder):
    with pytest.raises(TraceError, match=r"model vgg is not in .*\(a, b\).*--replace") as error:
        dress(jobs(model=["a", "vgg"]), profiles=folder)
    assert "\n" not in str(error.value)
    with pytest.raises(ParamError, match="takes the place of models"):
        dress(jobs(), "muri", profiles=folder)
    with pytest.raises(ParamError, match="has models, which profiles keeps"):
        dress(jobs(model=["a", "b"]), profiles=folder, weights={"a": 1})
    (folder / "stages.csv").unlink()
    with pytest.raises(ParamError, match="no such file; write it with repro measure stages"):
        dress(jobs(), profiles=folder)


@pytest.mark.parametrize("source", ["nowhere", ""])
def test_a_folder_without_tables_is_one_line(source, tmp_path):
    with pytest.raises(ParamError, match="not a measured folder") as error:
        measured_folder(tmp_path / source)
    assert "\n" not in str(error.value)
    with pytest.raises(TraceError, match="is a folder"):
        load_throughputs(tmp_path)


def test_bad_tables_name_the_cell(folder):
    (folder / "isolated.csv").write_text(ISOLATED.replace(",14", ",fast"))
    with pytest.raises(TraceError, match=r"isolated.csv:3:iters_per_s: .*fast"):
        load_throughputs(folder)
    (folder / "isolated.csv").write_text(ISOLATED)
    with pytest.raises(ParamError, match="sharing mig: give timeslice or mps"):
        measured_folder(folder).rates_alone("mig")
    only_mps = "".join(ISOLATED.splitlines(keepends=True)[::4])
    (folder / "isolated.csv").write_text(only_mps)
    with pytest.raises(ParamError, match="no rows of mode timeslice; it has mps"):
        load_throughputs(folder)
    (folder / "machine.csv").write_text("name,value\ngpu,Some GPU\n")
    with pytest.raises(TraceError, match="no row gpu_type"):
        _ = measured_folder(folder).gpu_type
    failed = "".join(PAUSE.splitlines(keepends=True)[::3])
    (folder / "pause.csv").write_text(failed)
    with pytest.raises(TraceError, match="no row of a measurement that ended"):
        measured_folder(folder).pauses()


def test_a_changed_file_is_read_again(folder):
    assert measured_folder(folder).rates_alone()["b"] == 2
    (folder / "isolated.csv").write_text(ISOLATED.replace("b,4,first,2", "b,4,first,25"))
    assert measured_folder(folder).rates_alone()["b"] == 25


def test_policies_run_on_a_folder(folder):
    dressed = dress(jobs(), profiles=folder)
    table = load_throughputs(folder)
    for policy in ("srtf", "muri-s", "gavel-las-ss"):
        result = repro.simulate(dressed, "1x1:a100", policy, perf=table)
        assert result.summary()["n_finished"] == 2
