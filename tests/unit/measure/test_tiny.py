"""`repro measure … --tiny` runs every path on the CPU; needs PyTorch."""

from __future__ import annotations

import csv
import multiprocessing
import sys
import types

import pytest

from repro.base import extras
from repro.cli import main
from repro.measure.columns import COLUMNS
from repro.measure.configuration import Configuration
from repro.measure.job_types import JOB_TYPES
from repro.measure.worker import Worker, WorkerError
from repro.perf.measured_folder import measured_folder
from repro.perf.throughput_files import load_throughputs

REASON = "PyTorch and Pillow are not installed (extra measure)"
has_torch = extras.is_installed("torch") and extras.is_installed("PIL")
needs_torch = pytest.mark.skipif(not has_torch, reason=REASON)

#: Command -> files, and the number of rows of each.
FILES = {
    "profiles": {"profiles.csv": 2},
    "pairs": {"isolated.csv": 2, "colocated.csv": 1},
    "stages": {"stages.csv": 2, "interleave.csv": 6},
    "pause": {"pause.csv": 1},
    "sequence": {"sequence.csv": 8},
}


@needs_torch
@pytest.mark.parametrize("command", FILES)
def test_tiny(command, tmp_path, capsys):
    words = ["measure", command, "--out", str(tmp_path / "mine"), "--tiny"]
    assert main(words) == 0
    for file, count in FILES[command].items():
        with (tmp_path / "mine" / file).open() as stream:
            rows = list(csv.DictReader(stream))
        assert len(rows) == count
        assert tuple(rows[0]) == COLUMNS[file]
        assert not any(row.get("error") for row in rows)
    assert multiprocessing.active_children() == []
    # the second run finds everything measured
    capsys.readouterr()
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("0 measurements")
    folder = measured_folder(tmp_path / "mine") if command not in ("profiles", "sequence") else None
    if command == "pairs":
        table = load_throughputs(tmp_path / "mine")
        assert table.reference == "cpu"
        assert table.pair_speeds("a2c", 1, "a2c", 1, ["cpu"]).min() > 0
    elif command == "stages":
        assert folder.stage_times()["stage_gpu"].min() > 0
    elif command == "pause":
        assert folder.pauses()[1] > 0


def refused(capsys, *words):
    assert main(["measure", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    return line


def test_without_the_extra_one_line_says_how_to_install_it(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(extras, "is_installed", lambda module: module != "torch")
    line = refused(capsys, "pairs", "--out", str(tmp_path / "mine"))
    assert "repro measure pairs needs torch, which is not installed" in line
    assert line.endswith('[measure]"')
    assert not (tmp_path / "mine").exists()


def test_without_a_gpu_one_line_says_so(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(extras, "is_installed", lambda module: True)
    without_gpu = types.SimpleNamespace(
        __version__="2", cuda=types.SimpleNamespace(is_available=lambda: False)
    )
    monkeypatch.setitem(sys.modules, "torch", without_gpu)
    line = refused(capsys, "pause", "--out", str(tmp_path / "mine"))
    assert "no CUDA GPU is available" in line and "--tiny" in line
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--minutes", "0"], "--minutes 0: give a number of minutes above 0"),
        (["--minutes", "inf"], "--minutes inf"),
        (["--models", "brt"], "did you mean 'bert'"),
        (["--models", ","], "names no job type"),
        (["--seed", "-1"], "--seed -1"),
    ],
)
def test_bad_arguments_are_one_line(capsys, tmp_path, words, text):
    assert text in refused(capsys, "stages", "--out", str(tmp_path / "mine"), *words)
    assert not (tmp_path / "mine").exists()


def test_a_file_is_no_folder(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file" in refused(capsys, "stages", "--out", str(tmp_path / "file"))


@pytest.mark.skipif(has_torch, reason="PyTorch is installed")
def test_a_job_that_does_not_launch_is_one_line_and_its_process_ends(tmp_path):
    job = JOB_TYPES["a2c"]
    configuration = Configuration(job, 2, 84, "fp32", "adam", tmp_path, "cpu")
    worker = Worker(configuration)
    with pytest.raises(WorkerError, match="a2c: ModuleNotFoundError: No module named"), worker:
        pass
    assert multiprocessing.active_children() == []
