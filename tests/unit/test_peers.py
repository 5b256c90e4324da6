"""What `make peers` hands to other simulators, and what it reads from them."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import ReproError
from repro.base.interpreted import ENV_SECONDS

BENCH = Path(__file__).resolve().parents[1] / "bench"


@pytest.fixture
def bench(monkeypatch):
    """Import a module of the benches."""
    # `costs` sets it for its own process
    monkeypatch.setenv(ENV_SECONDS, "0")
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module


@pytest.fixture
def peers(bench):
    return bench("peers")


@pytest.fixture
def jobs():
    return pd.DataFrame(
        {
            "job_id": [7, 8, 9],
            "submit_time": [0.0, 6.0, 6.0],
            "duration": [100.0, 50.0, 30.0],
            "num_gpus": [4, 1, 2],
            "model": ["vgg19", "dqn", "bert"],
        }
    )


def test_swf_has_18_fields_with_gpus_as_processors(peers, jobs):
    lines = [line.split() for line in peers.swf(jobs).splitlines()]
    assert [len(line) for line in lines] == [18, 18, 18]
    submit, run, allocated, requested, estimate = 1, 3, 4, 7, 8
    assert [line[submit] for line in lines] == ["0", "6", "6"]
    assert [line[run] for line in lines] == [line[estimate] for line in lines]
    assert [line[run] for line in lines] == ["100", "50", "30"]
    assert [line[requested] for line in lines] == [line[allocated] for line in lines]
    assert [line[requested] for line in lines] == ["4", "1", "2"]


def test_fractions_of_a_second_are_refused(peers, jobs):
    with pytest.raises(ReproError, match="whole seconds"):
        peers.swf(jobs.assign(duration=[1.5, 2.0, 3.0]))


def test_ciw_gets_the_gpu_seconds_that_repro_runs_on_one_gpu(peers, bench, jobs, tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(peers.services(jobs))
    gaps, durations = bench("peer_ciw").read(path)
    assert gaps == [0.0, 6.0, 0.0]
    ours = peers.one_gpu_each(jobs)
    assert ours["duration"].tolist() == durations == [400.0, 50.0, 60.0]
    assert ours["num_gpus"].tolist() == [1, 1, 1]
    assert simulate(ours, "1x64", "yarn-cs").summary()["avg_jct"] == sum(durations) / 3


def test_tiresias_csv_has_its_columns(peers, jobs):
    header, first, *_ = peers.tiresias_csv(jobs).splitlines()
    row = dict(zip(header.split(","), first.split(","), strict=True))
    assert row["num_gpu"] == "4"
    assert row["submit_time"] == "0"
    assert row["duration"] == "100"


def test_accasims_plan_gives_the_average_jct(bench):
    plan = (
        "9;1;1970-01-01 00:00:10__2;1#__1970-01-01 00:00:20;1970-01-01 00:01:10;1;1;NA;50;\n"
        "3;1;1970-01-01 23:59:00__1;1#2;1#__1970-01-02 00:00:00;1970-01-02 00:01:00;2;2;NA;60;\n"
    )
    assert bench("peer_accasim").average_jct(plan) == (60 + 120) / 2


def test_commands_get_their_paths(peers):
    muri = next(peer for peer in peers.PEERS if peer.name == "muri shortest")
    words = muri.words(Path("/in put/jobs.csv"), Path("/out"))
    assert words[:2] == [str(peers.PYTHON), "run_sim.py"]
    assert "--schedule=shortest" in words
    assert words[-2:] == ["--trace_file=/in put/jobs.csv", "--log_path=/out"]


def test_a_peer_that_is_not_there_is_named(peers, tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "PYTHON", Path(sys.executable))
    accasim, muri = peers.PEERS[0], peers.PEERS[-1]
    assert accasim.why_not(None) == ""
    assert muri.why_not(None) == muri.why_not(tmp_path) == "no Muri/simulator in PEERS"
    (tmp_path / muri.checkout).mkdir(parents=True)
    assert muri.why_not(tmp_path) == ""
    monkeypatch.setattr(peers, "PYTHON", tmp_path / "python")
    assert accasim.why_not(None) == f"no {tmp_path / 'python'}"


def test_the_process_of_a_peer_is_timed_without_ours(peers, tmp_path):
    code = "import time\nwhile time.process_time() < 0.3: pass\nprint('done')"
    seconds, printed = peers.process_cpu([sys.executable, "-c", code], tmp_path)
    assert seconds >= 0.3
    assert printed == "done\n"
    with pytest.raises(ReproError, match="ended with 3"):
        peers.process_cpu([sys.executable, "-c", "raise SystemExit(3)"], tmp_path)


@pytest.mark.skipif(not shutil.which("git"), reason="no git")
def test_a_row_says_which_commit_was_measured(peers, tmp_path):
    folder = tmp_path / "Muri" / "simulator"
    folder.mkdir(parents=True)
    assert peers.source_of(folder) == "a copy, no checkout"
    git = ["git", "-C", str(folder.parent), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    word, commit = peers.source_of(folder).split()
    assert word == "commit"
    assert len(commit) >= 7


def test_rows_measured_before_are_kept(peers, tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "OUT", tmp_path)
    monkeypatch.setattr(peers, "TABLE", tmp_path / "peers.csv")
    peers.keep("a", {"cost_U": 1.5, "date": "2026-01-01"})
    peers.keep("b", {"cost_U": 2.5, "date": "2026-01-02"})
    peers.keep("a", {"cost_U": 3.5, "date": "2026-01-03"})
    rows = pd.read_csv(tmp_path / "peers.csv", index_col="name")
    assert rows["cost_U"].to_dict() == {"b": 2.5, "a": 3.5}
