"""`repro trace dress`: the file it writes, what it prints, and what it refuses."""

from __future__ import annotations

import json

import pytest

from repro.cli.app import main
from repro.trace import dress
from repro.trace.load import load

CSV = "job_id,num_gpu,submit_time,duration\n0,1,0,600\n1,3,60,300\n2,16,100,900\n"


@pytest.fixture
def files(mirror, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text(CSV)
    return tmp_path


def run(capsys, *words: str) -> tuple[int, str, str]:
    code = main([*words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


DRESS = ("trace", "dress", "jobs.csv", "--format", "tiresias", "--out", "out.csv")


def test_the_file_has_the_columns_of_the_function(files, capsys):
    code, out, err = run(capsys, *DRESS, "--models", "all", "--seed", "2")
    assert (code, out) == (0, "3 jobs written to out.csv (format repro)\n")
    assert "models sampled by dress(models=all, seed=2): uniformly over vgg11" in err
    written = load("out.csv")
    dressed = dress(load("jobs.csv", "tiresias"), "all", 2)
    assert written.columns.tolist() == dressed.columns.tolist()
    assert written.equals(dressed)


def test_json_has_the_note(files, capsys):
    words = ("--models", "muri", "--weights", "gpt2=1,bert=3", "--json")
    code, out, _ = run(capsys, *DRESS, *words)
    facts = json.loads(out)
    assert (code, facts["jobs"], facts["out"]) == (0, 3, "out.csv")
    assert facts["notes"][0].startswith(
        "models sampled by dress(models=muri, seed=0): weights bert 0.75, gpt2 0.25"
    )


@pytest.mark.parametrize(
    "options",
    [
        ("--policy", "muri-s", "--cluster", "3x8"),
        ("--policy", "pcs", "--cluster", "3x8", "--speedups", "pcs-speedups"),
        ("--policy", "liquid", "--cluster", "3x8", "--set", "times=t4"),
        ("--policy", "srtf", "--cluster", "3x8", "--placement", "skew"),
        (
            *("--policy", "gavel-las", "--cluster", "2x8:v100,2x8:k80"),
            *("--throughputs", "gavel-throughputs"),
        ),
    ],
)
def test_policies_of_each_paper_run_on_the_file(files, capsys, options):
    assert run(capsys, *DRESS)[0] == 0
    code, out, err = run(capsys, "simulate", "--trace", "out.csv", "--json", *options)
    assert code == 0, err
    summary = json.loads(out)
    assert summary["n_finished"] == 3
    assert ("model" in summary["ignored"].get("columns", ())) == ("muri-s" in options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--models", "pollux"), "models: no table 'pollux' (accepted: muri, gavel, pcs, liquid"),
        (("--seed", "-1"), "seed=-1: give a whole number of 0 or more"),
        (("--weights", "vgg16"), "--weights vgg16: give each model once with a number"),
        (("--weights", "vgg16=1,vgg16=2"), "give each model once with a number"),
        (("--models", "muri", "--weights", "lm=1"), "weights: models=muri has no model 'lm'"),
        (("--reference-gpu", "a100"), "no throughputs for GPU type 'a100'"),
    ],
)
def test_bad_options_are_one_line(files, capsys, options, message):
    code, out, err = run(capsys, *DRESS, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_the_trace_itself_is_not_overwritten(files, capsys):
    words = ("trace", "dress", "jobs.csv", "--format", "tiresias", "--out", "jobs.csv")
    code, _, err = run(capsys, *words)
    assert (code, err) == (2, "repro: --out jobs.csv: is the trace itself; name another file\n")
    assert (files / "jobs.csv").read_text() == CSV


def test_a_trace_with_models_needs_replace(files, capsys):
    words = ("trace", "dress", "muri-testbed", "--out", "out.csv", "--models", "pcs")
    code, _, err = run(capsys, *words)
    assert code == 2
    assert "muri-testbed: has model, batch_size, iterations, iteration_time, stage_storage" in err
    assert "--replace" in err
    assert err.count("\n") == 1
    assert run(capsys, *words, "--replace")[0] == 0
    assert "stage_gpu" not in load("out.csv")
