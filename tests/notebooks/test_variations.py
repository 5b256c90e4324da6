"""Every notebook with a parameter `cluster` runs on another cluster, and nothing is judged."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from repro.figures import params
from repro.figures.notebook import accepted

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = [entry for entry in params.discover(ROOT) if "cluster" in accepted(entry.notebook)]


def doubled(cluster):
    """The cluster with twice the nodes of each type."""
    return re.sub(r"\d+(?=x)", lambda count: str(2 * int(count[0])), cluster)


def test_the_other_cluster_has_twice_the_nodes():
    assert len(ENTRIES) > 40
    assert doubled("36xv100,9x4:k80") == "72xv100,18x4:k80"


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_on_another_cluster(entry, tmp_path):
    usual = entry.load().merged("quick", {})["cluster"]
    other = doubled(usual)
    words = ["run", entry.id, "--profile", "quick", "-p", "cluster", other, "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "repro.cli", "--debug", *words],
        cwd=ROOT,
        env={**os.environ, "REPRO_HOME": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(tmp_path.rglob("error.json"))
    (path,) = tmp_path.rglob("result.json")
    assert path.is_relative_to(tmp_path / "variations" / entry.id)
    result = json.loads(path.read_text(encoding="utf-8"))
    assert result["variation"] == {"cluster": [other, usual]}
    assert result["claims"] == result["points"] == [] and result["verdict"] is None
