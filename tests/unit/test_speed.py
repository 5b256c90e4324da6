"""The tables of docs/speed.md are written from what the benches measured."""

import importlib
from pathlib import Path

import pandas as pd
import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def speed(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("speed")


def test_costs_become_rows(speed):
    row = {
        "U_s": 0.1,
        "cpu_s": 1.94,
        "cost_U": 19.44,
        "utilisation": 0.8051,
        "queued_share": 0.124,
        "preemptions": 1536,
        "peak_gib": None,
    }
    costs = pd.DataFrame([row] * len(speed.ROWS), index=list(speed.ROWS), dtype=float)
    costs.loc["5,000,000 jobs tiresias-l", "peak_gib"] = 4.556
    lines = speed.table(costs).splitlines()
    assert (
        "| Muri trace1, `muri-s`, `--rules muri` | 1,494 | 64 | 81% | 12% | 1,536 | 19.4 U | 1.94 |"
        in lines
    )
    assert any("(4.6 GiB) | 5,000,000 |" in line for line in lines)
    assert lines[-1] == "(U = 0.100 to 0.100 s.)"


def test_growth_names_every_size_and_the_exponent(speed):
    sizes = pd.DataFrame({"n_jobs": [1000, 10_000], "cost_U": [0.327, 3.278]})
    assert speed.growth(sizes, 1.0228).splitlines() == [
        "| 1,000 jobs | 10,000 jobs |",
        "| --- | --- |",
        "| 0.33 U | 3.28 U |",
        "",
        "The cost grows as the number of jobs to the power 1.02.",
    ]


PEER = {
    "policy": "srtf",
    "rules": "muri",
    "U_s": 0.08,
    "cost_U": 101.4,
    "our_cost_U": 0.5,
    "jct": 200.0,
    "our_jct": 200.0,
    "date": "2026-11-26",
    "source": "commit 4e69a78",
    "command": "cd Muri/simulator; python run_sim.py --trace_file=FILE",
}


def test_a_measured_peer_becomes_a_row(speed):
    measured = pd.DataFrame([PEER], index=["muri shortest"])
    assert speed.peers(measured, "").splitlines()[2:] == [
        "| Muri's simulator, `shortest` | 101 U | `srtf`, `--rules muri` | 0.5 U | 203 | equal "
        "| 0.080 s | 2026-11-26, commit 4e69a78 "
        "| `cd Muri/simulator; python run_sim.py --trace_file=FILE` |"
    ]


def test_another_average_jct_is_stated(speed):
    changed = PEER | {"jct": 201.0, "rules": "paper", "source": None}
    measured = pd.DataFrame([changed], index=["accasim fifo"])
    row = speed.peers(measured, "").splitlines()[-1]
    assert "| `srtf` |" in row
    assert "| 2026-11-26 |" in row
    assert "| +0.5 % of ours |" in row


def test_a_peer_that_was_not_measured_keeps_its_row(speed):
    before = speed.peers(pd.DataFrame([PEER], index=["muri shortest"]), "")
    later = PEER | {"date": "2026-12-01", "policy": "yarn-cs"}
    rows = speed.peers(pd.DataFrame([later], index=["ciw fifo"]), before).splitlines()
    assert len(rows) == 4
    assert "2026-12-01" in rows[2]
    assert rows[3] == before.splitlines()[-1]


def test_tables_that_nobody_measured_stay(speed, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(speed, "BENCH", tmp_path)
    page = speed.PAGE.read_text()
    assert speed.written(page) == page
    assert capsys.readouterr().out.count("stay") == 2
    pd.DataFrame([PEER], index=pd.Index(["muri shortest"], name="name")).to_csv(
        tmp_path / "peers.csv"
    )
    assert "| 101 U | `srtf`, `--rules muri` |" in speed.written(page)


def test_text_between_marks_is_replaced(speed):
    page = "a\n<!-- growth: begin -->\nold\n<!-- growth: end -->\nb\n"
    assert speed.filled(page, "growth", "new") == page.replace("old", "new")
    committed = (DOCS / "speed.md").read_text()
    assert all(
        committed.count(f"<!-- {name}: end -->") == 1 for name in ("costs", "growth", "peers")
    )
