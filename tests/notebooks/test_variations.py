"""Every notebook runs with other parameters than the paper's, and nothing is judged."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from repro.figures import params
from repro.figures.notebook import notebook_defaults

ROOT = Path(__file__).resolve().parents[2]
ALL = params.discover(ROOT)
ENTRIES = [entry for entry in ALL if "cluster" in notebook_defaults(entry.notebook)]


def doubled(cluster):
    """The cluster with twice the nodes of each type."""
    return re.sub(r"\d+(?=x)", lambda count: str(2 * int(count[0])), cluster)


def run(entry, name, value, out):
    """Run a figure at the quick profile with another value of one parameter."""
    words = ["run", entry.id, "--profile", "quick", "-p", name, value, "--out", str(out)]
    return subprocess.run(
        [sys.executable, "-m", "repro.cli", "--debug", *words],
        cwd=ROOT,
        env={**os.environ, "REPRO_HOME": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def first_items():
    """Figures, their parameters with several items, and the first item of each."""
    for entry in ALL:
        inputs = entry.load().merged("quick", {})
        for name in notebook_defaults(entry.notebook):
            items = inputs.get(name)
            if isinstance(items, list) and len(items) > 1:
                yield entry, name, items[:1]
            elif isinstance(items, dict) and len(items) > 1 and name == "traces":
                yield entry, name, dict(list(items.items())[:1])


FIRST_ITEMS = list(first_items())


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
    done = run(entry, "cluster", other, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(tmp_path.rglob("error.json"))
    (path,) = tmp_path.rglob("result.json")
    assert path.is_relative_to(tmp_path / "variations" / entry.id)
    result = json.loads(path.read_text(encoding="utf-8"))
    assert result["variation"] == {"cluster": [other, usual]}
    assert result["claims"] == result["points"] == [] and result["verdict"] is None


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("entry", "name", "items"),
    FIRST_ITEMS,
    ids=[f"{entry.id}-{name}" for entry, name, _ in FIRST_ITEMS],
)
def test_with_the_first_item_only(entry, name, items, tmp_path):
    """A figure with one item of a list is plotted, or refused in a line that says why."""
    done = run(entry, name, json.dumps(items), tmp_path)
    errors = [json.loads(path.read_text()) for path in tmp_path.rglob("error.json")]
    if not errors:
        assert done.returncode == 0, done.stdout + done.stderr
        (path,) = tmp_path.rglob("result.json")
        assert json.loads(path.read_text(encoding="utf-8"))["variation"]
    assert all(error["error"].startswith("ParamError: ") for error in errors), errors


def saved(figure, name, value, out, suffix):
    """Text of a file that a figure writes with another value of one parameter."""
    done = run(params.resolve(figure, ALL), name, value, out)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = out.rglob(f"{params.resolve(figure, ALL).stem}.{suffix}")
    return path.read_text(encoding="utf-8")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_seed_of_the_run_chooses_the_noise_of_profiling(tmp_path):
    first, second = (
        saved("muri/fig14", "seed", seed, tmp_path / seed, "csv") for seed in ("1", "2")
    )
    assert first != second


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("figure", "name", "value", "title", "absent"),
    [
        ("pcs/fig11b", "cluster", "1x32", "99th percentile over mean: ", "the text: about"),
        ("tiresias/tab04", "trace", "own.csv", ">one workload<", "1 workloads"),
        ("tiresias/tab04", "seeds", "[1]", ">one workload<", "1 workloads"),
        # the one tick was that of 40 jobs
        ("gavel/fig12", "jobs", "[40,50]", ">512<", ">50<"),
    ],
)
def test_titles_and_ticks_fit_the_variation(figure, name, value, title, absent, tmp_path):
    if name == "trace":
        trace = tmp_path / value
        jobs = [f"{number},{60 * number},{600 + number},1\n" for number in range(9)]
        trace.write_text("".join(["job_id,submit_time,duration,num_gpus\n", *jobs]))
        value = str(trace)
    picture = saved(figure, name, value, tmp_path / "out", "svg")
    assert title in picture and absent not in picture
