"""The notebook's API: inputs, random streams, named traces, what save() writes."""

import hashlib
import json
import os
import re
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import repro
from repro.base.errors import (
    ClaimError,
    DataMissingError,
    ParamError,
    ReproError,
    StandInWarning,
    TraceError,
)
from repro.batch import check
from repro.batch.report import write_report
from repro.figures import data, params, sweep
from repro.figures import figure as figures_figure
from repro.figures import saved as figures_saved
from repro.figures.saved import damaged, title_line
from repro.figures.sweep import Case, named_files
from repro.files import public
from repro.plot import line_chart
from repro.testing import small_trace

# left out by `make check`
pytestmark = pytest.mark.slow


@pytest.fixture
def fig(project, monkeypatch):
    monkeypatch.setenv("REPRO_HOME", str(project.root))
    monkeypatch.setenv("REPRO_CACHE_DIR", str(project.root / "cache"))
    project.add("tiresias/fig01_one")
    return repro.figure("tiresias/fig01_one", out=project.root / "out")


class FakeSynth:
    """Stands for repro.trace.synth: one generator, one stand-in."""

    generators = ("testbed",)

    @staticmethod
    def names():
        return ["testbed"]

    @staticmethod
    def stand_in_for(name):
        return "testbed" if name == "philly" else None, {"jobs": 3}

    @staticmethod
    def takes_seed(name):
        return False

    @staticmethod
    def make(name, rng, jobs=4):
        frame = small_trace().head(jobs).copy()
        return frame.assign(duration=rng.exponential(10, len(frame)))


@pytest.fixture
def synth(monkeypatch):
    monkeypatch.setattr(data, "synth", FakeSynth)
    return FakeSynth


@pytest.fixture
def offline(monkeypatch):

    def fetch(name):
        raise DataMissingError(f"{name} cannot be had")

    monkeypatch.setattr(public, "fetch", fetch)
    monkeypatch.setattr(public, "available", lambda name: False)


def saved(fig, values=None, table=None):
    table = pd.DataFrame({"x": [0, 1], "y": [1 / 3, 2.0]}) if table is None else table
    plot = line_chart(table, x="x", y="y", xlabel="x", ylabel="y")
    frame = fig.save(plot, table, {"jobs": 6, "big": 200} if values is None else values)
    return frame, json.loads((fig.folder / "result.json").read_text())


def test_verdicts_are_shown_whole_below_a_sentence_of_what_came_out(fig):
    frame, _ = saved(fig, {"jobs": 5, "big": 200})
    sentence = "1 of 2 claims reproduced, 1 missed. Missed: finished jobs."
    assert frame.attrs["sentence"] == sentence and repr(frame).startswith(sentence)
    assert frame["claim"].tolist() == ["finished jobs", "something large"]
    frame["claim"] = "a claim of very many words " * 5
    for text in (repr(frame), frame._repr_html_()):
        assert frame["claim"][0].strip() in text
    assert sentence in frame._repr_html_()


def test_inputs_are_the_file_the_profile_and_the_overrides(fig, project):
    assert fig.inputs.seeds == [0] and fig.inputs["cluster"] == "1x4"
    assert dict(fig.inputs) == {"cluster": "1x4", "seeds": [0]} and "seeds" in fig.inputs
    paper = repro.figure("tiresias/fig01", profile="paper", out=project.root, cluster=None)
    assert paper.inputs.seeds == [0, 1]
    assert repro.figure("tiresias/fig01_one", seeds=[5]).inputs.seeds == [5]
    assert paper.published == {"jobs": 6, "big": "> 100"}
    with pytest.raises(ParamError, match="unknown parameter 'sedes'; did you mean 'seeds"):
        repro.figure("tiresias/fig01_one", sedes=[1])
    with pytest.raises(ParamError, match="unknown profile"):
        repro.figure("tiresias/fig01_one", profile="big")
    with pytest.raises(ParamError, match="no input 'nope'"):
        fig.inputs["nope"]
    with pytest.raises(AttributeError, match="no input 'nope'"):
        _ = fig.inputs.nope
    for seed in (-1, 1.5, True, "0"):
        with pytest.raises(ParamError, match="seed is"):
            repro.figure("tiresias/fig01_one", seed=seed)


def test_a_relative_folder_is_taken_from_the_top_of_the_checkout(fig, project):
    other = repro.figure("tiresias/fig01_one", out="build/figures")
    assert other.folder == project.root / "build/figures/tiresias/fig01_one"


def test_random_streams_depend_on_figure_seed_and_purpose(fig, project):
    def first(figure, *args, **kwargs):
        return figure.rng(*args, **kwargs).random()

    project.add("tiresias/fig02_two")
    others = [
        first(fig, "b"),
        first(fig, "a", seed=3),
        first(repro.figure("tiresias/fig02_two"), "a"),
        first(repro.figure("tiresias/fig01_one", seed=1), "a"),
    ]
    assert first(fig, "a") == first(fig, "a") == first(repro.figure("tiresias/fig01_one"), "a")
    assert len({first(fig, "a"), *others}) == 5
    assert first(fig, "a", seed=3) == first(repro.figure("tiresias/fig01_one", seed=3), "a")
    assert data.stream("a", 1).random() == pytest.approx(0.26386059058304356, abs=0)


def test_the_same_name_and_seed_is_the_same_trace_in_every_figure(fig, project, synth):
    project.add("tiresias/fig02_two")
    other = repro.figure("tiresias/fig02_two", seed=9)
    assert fig.trace("testbed", seed=4).equals(other.trace("testbed", seed=4))
    assert not fig.trace("testbed").equals(other.trace("testbed"))
    assert len(fig.trace("testbed", jobs=2)) == 2


def test_generated_data_is_recorded_with_its_seed(fig, synth):
    frame = fig.trace("testbed")
    fig.trace("testbed")
    assert frame.attrs["synthetic"] is True
    shown, record = saved(fig)
    (used,) = record["data"]
    assert used["kind"] == "generated" and used["seed"] == 0 and used["synthetic"] is True
    assert len(used["sha256"]) == 64
    assert record["stand_in"] is None and "stand-in" not in repr(shown)


def test_a_missing_public_trace_is_replaced_and_everything_says_so(fig, synth, offline):
    with pytest.warns(StandInWarning, match="philly cannot be had; generating a synthetic"):
        assert len(fig.trace("philly")) == 3
    shown, record = saved(fig)
    text = "synthetic stand-in for philly"
    assert record["stand_in"] == text
    assert record["data"][0]["kind"] == "synthetic stand-in"
    assert text in repr(shown).lower() and text in shown._repr_html_().lower()
    svg = re.sub(r"<[^>]*>", " ", (fig.folder / "fig01_one.svg").read_text())
    assert text in " ".join(svg.split())
    assert text in (fig.folder / "fig01_one.csv").read_text()


def test_the_stand_in_of_the_paper_is_not_that_of_another_trace(fig, monkeypatch):
    spec = fig._spec.model_copy(update={"stand_in": "drawn from the published distribution"})
    monkeypatch.setattr(fig, "_spec", spec)
    monkeypatch.setattr(fig, "variation", {"seed": [3, 0]})
    assert fig._stand_in() == spec.stand_in
    monkeypatch.setattr(fig, "variation", {"trace": ["mine.csv", "testbed"]})
    assert fig._stand_in() is None


@pytest.mark.parametrize("reads", [True, False])
def test_a_seed_on_which_nothing_depends_is_noted(fig, monkeypatch, reads):
    monkeypatch.setattr(fig, "variation", {"seed": [3, 0]})
    drawn = fig.seed + 1 if reads else 1
    _, record = saved(fig)
    note = "nothing in this figure depends on the seed of the run"
    assert (note in record["notes"]) is not reads and drawn


def test_a_missing_public_trace_without_stand_in_is_an_error(fig, synth, offline):
    with pytest.raises(DataMissingError, match="muri-trace1 cannot be had"):
        fig.trace("muri-trace1")


def test_an_unknown_trace_names_what_there_is(fig, synth):
    with pytest.raises(ParamError, match=r"unknown trace 'phily'.*testbed.*did you mean 'philly'"):
        fig.trace("phily")


def test_a_public_trace_is_recorded_with_its_checksum(fig, synth, mirror, monkeypatch):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    frame = fig.trace("tiresias-60")
    _, record = saved(fig)
    (used,) = record["data"]
    assert (used["kind"], used["synthetic"]) == ("public", False)
    assert used["sha256"] == frame.attrs["sha256"] and len(frame) == 60


def test_a_public_trace_is_read_although_a_file_in_the_folder_has_its_name(
    fig, synth, mirror, monkeypatch, tmp_path
):
    """The result of a figure does not depend on the folder of its kernel."""
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    public_trace = fig.trace("tiresias-60")
    folder = tmp_path / "kernel"
    folder.mkdir()
    (folder / "tiresias-60").write_text(JOBS)
    monkeypatch.chdir(folder)
    assert len(repro.load("tiresias-60", format="repro")) == 2
    assert fig.trace("tiresias-60").equals(public_trace)
    assert fig.trace("tiresias-60").attrs["name"] == "tiresias-60"


def test_a_policy_that_names_public_data_leaves_a_record(fig, synth, offline):
    for policy in ("tiresias-l", "srtf"):
        fig.simulate(small_trace(), cluster="1x4", policy=policy)
    assert saved(fig)[1]["data"] == []
    history = repro.make("tiresias-g", history="tiresias-history-5000")
    assert named_files(history) == ["tiresias-history-5000"]


def test_a_misspelt_setting_is_refused_with_the_one_that_is_near(fig):
    with pytest.raises(ParamError, match=r"no setting 'interva'; did you mean 'interval'"):
        fig.simulate(small_trace(), cluster="1x4", policy="srtf", interva=5.0)


def missing_jobs(case):
    return {"missing": 6 - len(case.trace)}


def test_a_sweep_gives_what_each_case_measures_by_label(fig):
    whole = fig.sweep({jobs: Case(small_trace().head(jobs), "1x4", "srtf") for jobs in (6, 3)})
    assert [(jobs, len(result.jobs)) for jobs, result in whole.items()] == [(6, 6), (3, 3)]
    case = Case(small_trace().head(4), "1x4", "srtf", measure=missing_jobs)
    found = fig.sweep({"a": case, "b": case}, workers=2)
    assert [found[label]["missing"] for label in "ab"] == [2, 2]
    assert found["a"]["wall_s"] >= 0


def test_own_files_of_a_sweep_are_recorded_and_make_other_cases(fig, project):
    text = "job_type,scale_factor,gpu_type,steps_per_second\nA3C,1,v100,8\n"
    own(project, "speeds.csv", text)
    own(project, "mine.csv")
    case = Case("data/mine.csv", "1x4", "srtf", options={"format": "repro"})
    assert len(fig.sweep({0: case}, workers=1)[0].jobs) == 2
    own(project, "mine.csv", JOBS + "2,6,30,1\n")
    assert len(fig.sweep({0: case}, workers=1)[0].jobs) == 3
    names = [used["name"] for used in saved(fig)[1]["data"]]
    assert names == ["data/mine.csv"]


def test_saved_files(fig):
    table = pd.DataFrame({"x": [0, 1], "y": [1 / 3, np.nan], "name": ["a", "b"]})
    shown, record = saved(fig, table=table)
    assert (fig.folder / "fig01_one.csv").read_bytes() == b"x,y,name\n0,0.3333333333,a\n1,,b\n"
    assert shown["verdict"].tolist() == ["reproduced", "reproduced"]
    assert record["id"] == "tiresias/fig01_one" and record["verdict"] == "reproduced"
    assert record["wall_s"] > 0
    title = "Tiresias · Fig 1 · profile quick · seed 0 · 2 of 2 claims reproduced"
    assert title in (fig.folder / "fig01_one.svg").read_text()
    assert [path.name for path in fig.folder.glob(".*")] == []


def test_a_second_save_replaces_the_first_and_sweeps_leftovers(fig):
    saved(fig)
    (fig.folder / ".fig01_one.svg-0123456789abcdef").write_text("half")
    _, record = saved(fig, {"jobs": 5, "big": 3.0})
    assert record["verdict"] == "missed"
    assert not list(fig.folder.glob(".*"))


def contents(fig):
    return {path.name: path.read_bytes() for path in fig.folder.iterdir()}


def test_a_second_save_of_the_same_leaves_every_byte(fig, monkeypatch):
    saved(fig)
    first = contents(fig)
    before = (fig.folder / "result.json").stat().st_mtime_ns
    saved(fig)
    assert contents(fig) == first
    assert (fig.folder / "result.json").stat().st_mtime_ns > before, "a batch sees that it saved"
    monkeypatch.setattr(figures_saved, "versions", lambda: {"numpy": "9"})
    saved(fig)
    assert contents(fig) == first, "other versions gave the same"


def test_a_save_with_another_value_verdict_or_note_is_written(fig):
    _, first = saved(fig)
    fig.note("a remark")
    _, second = saved(fig)
    assert second["notes"] == ["a remark"] and second["files"] != first["files"]
    _, third = saved(fig, {"jobs": 5, "big": 200})
    assert third["claims"][0]["ours"] == 5


def test_a_damaged_file_is_written_again(fig):
    saved(fig)
    first = contents(fig)
    (fig.folder / "fig01_one.svg").write_text("edited")
    saved(fig)
    assert (fig.folder / "fig01_one.svg").read_bytes() == first["fig01_one.svg"]


def test_a_result_without_a_field_of_this_version_is_written_again(fig):
    _, record = saved(fig)
    record.pop("cpu_s")
    (fig.folder / "result.json").write_text(json.dumps(record))
    _, again = saved(fig)
    assert again["cpu_s"] > 0


def test_a_png_is_written_only_on_demand(fig, monkeypatch):
    monkeypatch.setenv("REPRO_PNG", "1")
    _, record = saved(fig)
    png = fig.folder / "fig01_one.png"
    assert png.read_bytes().startswith(b"\x89PNG")
    assert set(record["files"]) == {"fig01_one.svg", "fig01_one.csv"}
    assert damaged(fig.folder, "fig01_one", record) == []
    monkeypatch.delenv("REPRO_PNG")
    saved(fig)
    assert not png.exists(), "it may show an earlier picture"


def test_values_must_match_the_claims(fig, project):
    paper = repro.figure("tiresias/fig01_one", profile="paper", out=project.root / "out")
    with pytest.raises(ClaimError, match="no value for claim big"):
        saved(paper, {"jobs": 6})
    with pytest.raises(ClaimError, match="value for unknown claim bigg"):
        saved(fig, {"jobs": 6, "bigg": 200})
    assert not fig.folder.exists()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"plot": None}, "the plot is None; give a matplotlib Figure"),
        ({"plot": "fig01.svg"}, "the plot is a str; give a matplotlib Figure"),
        ({"table": None}, "the table is None; give a DataFrame"),
        ({"table": [1, 2]}, "the table is a list without DataFrames; give a DataFrame, or a list"),
        ({"table": []}, "the table is a list without DataFrames; give a DataFrame, or a list"),
        ({"points": "line"}, "points are a str; give a DataFrame"),
        ({"values": 5.0}, "values are a float; give a dict of values by claim id"),
        ({"values": [6, 200]}, "values are a list; give a dict"),
    ],
)
def test_a_save_refuses_arguments_of_another_type(fig, changed, says):
    table = pd.DataFrame({"x": [0, 1], "y": [1.0, 2.0]})
    arguments = {"plot": line_chart(table, x="x", y="y"), "table": table, "values": {"jobs": 6}}
    with pytest.raises(ParamError, match=f"^fig.save: {says}") as caught:
        fig.save(**arguments | changed)
    assert "\n" not in str(caught.value)
    assert not fig.folder.exists()


def test_a_smaller_run_may_leave_claims_without_a_value(fig):
    _, record = saved(fig, {"jobs": 6})
    verdicts = {row["id"]: row["verdict"] for row in record["claims"]}
    assert verdicts == {"jobs": "reproduced", "big": "not comparable"}
    assert record["claims"][1]["reason"] == "not at this profile"


def test_a_quick_run_with_the_inputs_of_the_paper_needs_every_value(fig, project):
    path = project.root / "params/tiresias/fig01_one.yaml"
    path.write_text(path.read_text().replace("quick: {seeds: [0]}", "quick: {seeds: [0, 1]}"))
    whole = repro.figure("tiresias/fig01_one", out=project.root / "out")
    with pytest.raises(ClaimError, match="no value for claim big"):
        saved(whole, {"jobs": 6})
    _, record = saved(whole, {"jobs": 6, "big": None})
    assert record["claims"][1]["reason"] == "not published"


def test_tables_are_written_below_each_other(fig):
    tables = [pd.DataFrame({"x": [0], "y": [1.0]}), pd.DataFrame({"x": [1], "z": ["a"]})]
    plot = line_chart(tables[0], x="x", y="y")
    fig.save(plot, tables, {"jobs": 6, "big": 200})
    assert (fig.folder / "fig01_one.csv").read_bytes() == b"x,y,z\n0,1,\n1,,a\n"


def test_every_policy_runs_on_every_trace_under_every_rule_set(fig):
    trace = small_trace()
    by_seed = {0: trace, 1: trace.head(3)}
    policies = {"srtf": {}, "three": ["yarn-cs", {}], "four": {"policy": "srsf", "settings": {}}}
    results = fig.run_all(by_seed, policies, rules=["paper", "tiresias"])
    assert list(results)[:3] == [("paper", "srtf", 0), ("paper", "srtf", 1), ("paper", "three", 0)]
    assert len(results) == 12 and len(results["tiresias", "four", 1].jobs) == 3
    alone = fig.simulate(trace, cluster="1x4", policy=repro.make("yarn-cs"))
    assert fig.run_all(trace, policies, rules="paper")["three"].jobs.equals(alone.jobs)
    assert list(fig.run_all(by_seed, ["srtf"], rules="paper")) == [("srtf", 0), ("srtf", 1)]
    two_sizes = fig.run_all(trace, ["srtf"], rules="paper", cluster=["2x4", "15x4"])
    assert [(key, result.meta["num_gpus"]) for key, result in two_sizes.items()] == [
        (("srtf", "2x4"), 8),
        (("srtf", "15x4"), 60),
    ]
    seeded = fig.run_all(trace, ["srtf"], rules="paper", seed=3)["srtf"]
    assert seeded.jobs.equals(fig.simulate(trace, cluster="1x4", policy="srtf", seed=3).jobs)


def test_traces_are_those_of_the_inputs(fig, project, synth):
    own(project, "mine.csv")
    fig.inputs |= {"trace": "testbed", "seeds": [0, 4]}
    assert fig.traces()[4].equals(fig.trace("testbed", seed=4))
    fig.inputs["trace"] = "data/mine.csv"
    assert list(fig.traces()) == [0]
    assert fig.inputs.seeds == [0]
    fig.inputs["traces"] = {"A": "testbed", "B": "data/mine.csv"}
    assert [len(trace) for trace in fig.traces().values()] == [4, 2]


def test_a_format_is_that_of_the_users_traces(project, fig, synth):
    own(project, "mine.csv")
    run = repro.figure("tiresias/fig01_one", format="muri", out=project.root / "out")
    assert len(run.trace("testbed")) == 4
    with pytest.raises(TraceError, match="missing column"):
        run.trace("data/mine.csv")
    run = repro.figure("tiresias/fig01_one", format="repro", out=project.root / "out")
    assert len(run.trace("data/mine.csv")) == 2 and not run.variation
    case = Case("data/mine.csv", "1x4", "srtf")
    assert len(run.sweep({0: case}, workers=1)[0].jobs) == 2
    assert not saved(run)[1]["notes"]


def test_a_format_that_no_trace_has_is_noted(project, fig, synth):
    run = repro.figure("tiresias/fig01_one", format="muri", out=project.root / "out")
    run.trace("testbed")
    note = "format muri is not used, because no trace is a file of yours"
    assert saved(run)[1]["notes"] == [note]


def test_infinite_and_missing_values_are_valid_json(fig):
    _, record = saved(fig, {"jobs": None, "big": np.inf})
    assert record["claims"][0]["verdict"] == "not comparable"
    assert record["claims"][1]["ours"] == "inf"


JOBS = "job_id,submit_time,duration,num_gpus\n0,0,60,4\n1,5,30,1\n"


def own(project, name, text=JOBS):
    path = project.root / "data" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path, f"data/{name}"


def test_an_own_trace_is_read_from_the_top_of_the_project_and_recorded(fig, project, monkeypatch):
    path, name = own(project, "mine.csv")
    monkeypatch.chdir(project.root / "notebooks")
    frame = fig.trace(name, format="repro")
    assert frame["duration"].tolist() == [60, 30]
    (used,) = saved(fig)[1]["data"]
    assert used == {
        "name": name,
        "kind": "own file",
        "synthetic": False,
        "seed": None,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


def test_an_own_trace_that_is_not_there_or_has_no_format_is_one_line(fig, project):
    with pytest.raises(ParamError, match=r"unknown trace 'data/no.csv': no file .*/data/no.csv"):
        fig.trace("data/no.csv", format="repro")
    own(project, "mine.csv", "job_id,num_gpu,submit_time,submission_time,duration\n0,4,0,0,60\n")
    with pytest.raises(TraceError, match="needs a format"):
        fig.trace("data/mine.csv")
    with pytest.raises(
        DataMissingError, match=r"data/no\.txt: no such file; paths are relative to .*project"
    ):
        fig.file("data/no.txt")


def test_own_speeds_clusters_and_other_files_are_recorded(fig, project):
    head = "job_type,scale_factor,gpu_type,steps_per_second\n"
    own(project, "speeds.csv", head + "A3C,1,v100,8\n")
    own(project, "nodes.yaml", "nodes:\n  - {count: 1, gpus: 4}\n")
    own(project, "other.txt", "1 2 3")
    assert fig.throughputs("data/speeds.csv").steps_per_s("A3C", 1, "v100") == 8
    assert fig.file("data/other.txt").read_text() == "1 2 3"
    result = fig.simulate(small_trace(), cluster="data/nodes.yaml", policy="srtf")
    assert result.summary()["n_finished"] == 6
    names = [used["name"] for used in saved(fig)[1]["data"]]
    assert names == ["data/nodes.yaml", "data/other.txt", "data/speeds.csv"]


def test_the_tables_of_a_measured_folder_are_recorded(fig, project, monkeypatch):
    measured = Path(repro.__file__).parents[1] / "traces" / "measured"
    shutil.copytree(measured, project.root / "data" / "gavel-throughputs")
    shutil.copytree(measured, project.root / "traces" / "measured", dirs_exist_ok=True)
    monkeypatch.chdir(project.root / "notebooks")
    source = "./data/gavel-throughputs:mps"
    assert fig.throughputs(source).gpu_types == ("h100",)
    assert fig.throughputs("h100").gpu_types == ("h100",)
    case = fig._resolved(Case(small_trace(), "1x4", "srtf", settings={"perf": source}))
    assert case.settings["perf"] == f"{project.root}/data/gavel-throughputs:mps"
    names = {used["name"] for used in saved(fig)[1]["data"]}
    assert "data/gavel-throughputs/isolated.csv" in names
    assert all(name.startswith("data/gavel-throughputs/") for name in names)


def test_a_trace_read_past_the_figure_is_named_too(fig, project):
    path, _ = own(project, "mine.csv")
    frame = repro.load(path, "repro")
    fig.simulate(frame, cluster="1x4", policy="srtf")
    (used,) = saved(fig)[1]["data"]
    assert (used["name"], used["kind"]) == ("mine.csv", "own file")
    assert used["sha256"] == frame.attrs["sha256"]


def test_what_was_written_is_known_by_its_checksums(fig):
    _, record = saved(fig)
    assert record["files"] == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in fig.folder.iterdir()
        if path.name != "result.json"
    }
    assert damaged(fig.folder, "fig01_one", record) == []


def test_a_result_made_outside_the_notebook_is_not_the_batchs_own(fig):
    assert "fingerprint" not in saved(fig)[1]


def test_text_that_a_spreadsheet_would_run_is_quoted(fig):
    table = pd.DataFrame({"x": [-1, 1], "y": [1.0, -2.5], "=cmd": ["@SUM(1)", "-"]})
    saved(fig, table=table)
    content = (fig.folder / "fig01_one.csv").read_text()
    assert content == "x,y,'=cmd\n-1,1,'@SUM(1)\n1,-2.5,'-\n"


def test_a_note_stands_in_title_table_and_result(fig):
    for _ in range(2):
        fig.note("without the solver X: LAS")
    _, record = saved(fig)
    assert record["notes"] == ["without the solver X: LAS"] and record["stand_in"] is None
    svg = re.sub(r"<[^>]*>", " ", (fig.folder / "fig01_one.svg").read_text())
    assert "reproduced · without the solver X: LAS" in " ".join(svg.split())
    rows = (fig.folder / "fig01_one.csv").read_text().splitlines()
    assert rows[0] == "x,y,notes" and rows[1].endswith(",without the solver X: LAS")


@pytest.mark.parametrize("lock", [None, "numpy=={numpy}\npandas==0.1 # why\nnot a line!\n"])
def test_a_result_names_the_lock_and_what_differs_from_it(fig, project, lock):
    if lock is not None:
        text = f'{lock.format(numpy=np.__version__)}scipy==0.1; python_version < "3"\nnone==1\n'
        (project.root / "constraints.txt").write_text(text)
    _, record = saved(fig)
    assert {"python", "numpy", "numba", "kiwisolver", "pillow"} <= set(record["versions"])
    if lock is None:
        assert record["lock"] is None
        return
    assert record["lock"] == {
        "file": "constraints.txt",
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "differs": {"pandas": ["0.1", pd.__version__]},
    }


def test_check_and_gallery_name_what_is_damaged_noted_or_not_of_the_lock(fig, project):
    (project.root / "constraints.txt").write_text("pandas==0.1\n")
    fig.note("without the solver X: LAS")
    saved(fig)
    entries = params.discover(project.root)
    out = project.root / "out"
    found = check.stored(entries, out)
    assert check.is_fine(found) and not found[0].damage
    assert "[without the solver X: LAS]" in check.lines(found)[0]
    assert check.as_json(out, found)["figures"][0]["notes"] == ["without the solver X: LAS"]
    page = write_report(out, found).read_text()
    assert "without the solver X: LAS</p>" in page
    assert f"other versions: pandas {pd.__version__} instead of 0.1" in page
    (fig.folder / "fig01_one.svg").write_text("")
    (fig.folder / "fig01_one.csv").write_text("x,y\n0,5\n")
    found = check.stored(entries, out)
    assert not check.is_fine(found)
    shown = "\n".join(check.lines(found))
    assert "fig01_one.svg: empty" in shown
    assert "fig01_one.csv: changed since it was written" in shown


def test_points_of_an_earlier_run_go(fig):
    saved(fig)
    points = fig.folder / "fig01_one.points.csv"
    points.write_text("old")
    fig._spec = fig._spec.model_copy(update={"claims": []})
    _, result = saved(fig, values={})
    assert result["points"] == [] and not points.exists()


@dataclass(frozen=True)
class Deadly:
    """Measure whose process dies until a file is there."""

    path: Path
    alive: bool = True

    def __call__(self, case):
        if not self.path.exists():
            if self.alive:
                self.path.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"jobs": len(sweep.trace_of(case))}


def deadly(path, alive=True):
    return {
        n: Case(small_trace().head(n), "1x4", "srtf", measure=Deadly(path, alive)) for n in (2, 3)
    }


def test_a_dead_worker_is_replaced_and_its_simulation_repeated(fig, tmp_path, capsys):
    found = fig.sweep(deadly(tmp_path / "dead"), workers=2)
    assert [one["jobs"] for one in found.values()] == [2, 3]
    assert "a worker process died; its simulations run again" in capsys.readouterr().out


def test_workers_that_keep_dying_end_the_sweep_in_one_line(fig, tmp_path):
    with pytest.raises(ReproError, match="died 3 times in a row, 2 simulations are left"):
        fig.sweep(deadly(tmp_path / "dead", alive=False), workers=2)


@pytest.mark.parametrize(
    ("seeds", "line"),
    [
        ([0, 1, 2], "seeds 0 to 2"),
        ([7], "seed 7"),
        ([4567, 1954], "seeds 4567, 1954"),
        (5, "5 seeds"),
        ({"all": 3}, "3 seeds (all)"),
        ([3, 5], "seeds 3, 5"),
        (1, "1 seed"),
        ([], "seed 7"),
    ],
)
def test_the_line_under_a_picture_tells_the_seeds_that_were_run(seeds, line):
    spec = params.FigureSpec(
        title="T", paper="tiresias", reference="Fig 1", shows="s", marks="bands are ±1 s.d."
    )
    run = {"profile": "paper", "seed": 0, "stand_in": None, "notes": []}
    shown = title_line(spec, {**run, "params": {"seeds": seeds, "rules": "muri"}}, [], {7})
    assert f" · {line} · muri rules · no claims · bands are ±1 s.d." in shown
    assert "seed" not in title_line(spec, {**run, "params": {}}, [])
    named = spec.model_validate({**spec.model_dump(), "data": "author's"})
    assert " · authors' data · " in title_line(named, {**run, "params": {}}, [])
    another_trace = {"trace": ["mine.csv", "theirs"]}
    shown = title_line(named, {**run, "params": {}, "variation": another_trace}, [])
    assert "authors' data" not in shown
    shown = title_line(named, {**run, "params": {}, "variation": {"seed": [1, 0]}}, [])
    assert "authors' data" in shown


@pytest.mark.parametrize(
    ("listed", "used", "line"),
    [
        # a figure that adds the seed of the run, with traces of further seeds
        ([0], {5, 47}, "seed 5"),
        ([0, 1, 2], {5, 6, 7}, "seeds 5 to 7"),
        # a figure that does not add it
        ([0, 1], {0, 1, 5}, "seeds 0, 1"),
        ([0], {0, 5}, "seed 0"),
        ([0, 1], set(), "seeds 0, 1"),
    ],
)
def test_the_line_under_a_picture_has_seeds_to_which_that_of_the_run_was_added(listed, used, line):
    spec = params.FigureSpec(title="T", paper="tiresias", reference="Fig 1", shows="s")
    run = {"profile": "quick", "seed": 5, "stand_in": None, "notes": []}
    shown = title_line(spec, {**run, "params": {"seeds": listed}}, [], used)
    assert shown == f"Tiresias · Fig 1 · profile quick · {line} · no claims"


@pytest.mark.parametrize(("seeds", "has_range"), [([0, 1], True), ([3], False), (1, False)])
def test_the_line_under_a_picture_of_one_seed_claims_no_range(seeds, has_range):
    spec = params.FigureSpec(
        title="T", paper="tiresias", reference="Fig 1", shows="s", marks="±1 s.d. over the seeds"
    )
    run = {"profile": "quick", "seed": 0, "stand_in": None, "notes": []}
    shown = title_line(spec, {**run, "params": {"seeds": seeds}}, [])
    assert shown.endswith(
        "over the seeds" if has_range else "over the seeds · ours: one seed, no range"
    )


def test_cases_of_one_kind_of_policy_are_far_apart():
    """Processes that begin together then compile different code."""
    kinds = ["srtf", "srtf", "tiresias-l", "srtf", "tiresias-l", "yarn-cs"]
    cases = {n: Case(small_trace(), "1x4", one).resolved() for n, one in enumerate(kinds)}
    order = sweep._spread(cases)
    assert order == [0, 2, 5, 1, 4, 3]
    found = sweep.run(list(cases.values()), workers=1)
    alone = [sweep.outcome(case) for case in cases.values()]
    assert [one.jobs["jct"].sum() for one in found] == [one.jobs["jct"].sum() for one in alone]


def test_a_stand_in_behind_drawn_models_is_data_of_the_figure(fig, monkeypatch):
    monkeypatch.setattr(figures_figure, "is_stand_in", lambda name: True)
    monkeypatch.setattr(figures_figure, "load_throughputs", lambda name: None)
    dressed = small_trace()
    dressed.attrs["throughputs"] = "gavel-throughputs"
    fig.simulate(dressed, cluster="1x4", policy="srtf")
    (used,) = fig._used_data.values()
    assert (used.name, used.kind) == ("gavel-throughputs", data.STAND_IN)
