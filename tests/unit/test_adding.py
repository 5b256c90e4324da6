"""docs/adding.md to the letter: every snippet is run as it stands there."""

from __future__ import annotations

import json
import pkgutil
import re
from pathlib import Path

import pytest

from repro import load, simulate
from repro.model.cluster.spec import Cluster
from repro.model.policy import policies
from repro.placement import placements
from repro.testing import check_policy, small_trace
from repro.trace.formats import FORMATS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="not run from a checkout")
TEXT = PAGE.read_text() if PAGE.exists() else ""


def snippets(language: str, part: str = "") -> list[str]:
    text = TEXT.split(f"\n{part}", 1)[1] if part else TEXT
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


FIGURE = "## A figure"
GROUPS = {"repro.placements", "repro.trace_formats"}


def registered() -> list[str]:
    return [text for text in snippets("python") if "register" in text]


@pytest.fixture
def tidy():
    """Forget what the snippets register."""
    kept = [(one, {name: one[name] for name in one}) for one in (policies, placements, FORMATS)]
    yield
    for registry, items in kept:
        registry._items.clear()
        registry._items.update(items)


def run(text: str) -> set[str]:
    before = {*policies, *placements, *FORMATS}
    exec(compile(text, str(PAGE), "exec", dont_inherit=True), {"__name__": "snippet"})
    return {*policies, *placements, *FORMATS} - before


def test_every_snippet_registers_one_thing_and_brings_its_imports(tidy):
    names = [run(text) for text in registered()]
    assert all(len(name) == 1 for name in names), names
    assert set().union(*names) == {
        "shortest-first",
        "newest-first",
        "pairs",
        "even-time",
        "emptiest",
        "hours",
    }


def test_the_policies_keep_every_rule(tidy):
    for text in registered():
        for name in run(text) & set(policies):
            if name == "pairs":
                stages = ("stage_storage", "stage_cpu", "stage_gpu", "stage_network")
                jobs = small_trace().assign(**dict.fromkeys(stages, 0.1))
                assert simulate(jobs, "1x4", name).summary()["n_finished"] == 6
            else:
                check_policy(name)
    (checked,) = [text for text in snippets("python") if "check_policy(" in text]
    exec(checked, {})


def test_the_placement_fills_every_gpu(tidy):
    for text in registered():
        run(text)
    result = simulate(small_trace(), Cluster.parse("3x2"), "newest-first", placement="emptiest")
    assert result.summary()["n_finished"] == 6


def test_the_format_is_read_listed_and_checked(tidy, tmp_path):
    for text in registered():
        run(text)
    path = tmp_path / "jobs.csv"
    path.write_text("arrival,hours,gpus,user\n0,0.5,1,ann\n1,2,4,bob\n")
    frame = load(path, "hours", scale="2")
    assert frame.duration.tolist() == [3600.0, 14400.0]
    assert frame.submit_time.tolist() == [0.0, 3600.0]
    assert frame.user.tolist() == ["ann", "bob"]


def test_the_figure_comes_out(project):
    (spec,) = snippets("yaml", FIGURE)
    parameters, body = snippets("python", FIGURE)
    project.add("own/fig01_mine", parameters=parameters)
    path = project.root / "notebooks/own/fig01_mine.ipynb"
    notebook = json.loads(path.read_text())
    notebook["cells"][1]["source"] = body
    path.write_text(json.dumps(notebook))
    (project.root / "params/own/fig01_mine.yaml").write_text(spec)
    (project.root / "data").mkdir()
    (project.root / "data/mine.csv").write_text(
        "job_id,submit_time,duration,num_gpus\n0,0,60,4\n1,5,30,2\n2,6,10,1\n"
    )
    assert "own/fig01_mine" in project.cli("list").stdout
    project.cli("run", "own/fig01")
    result = project.result("own/fig01_mine")
    assert [used["name"] for used in result["data"]] == ["data/mine.csv"]
    assert result["claims"][0]["ours"] == pytest.approx((90 + 30 + 10) / 3)
    project.cli("run", "own/fig01", "--force", "--profile", "paper")


def test_the_files_it_names_exist():
    for path in re.findall(r"`((?:repro|docs|traces|tests)/[\w/]+\.?\w*)`", TEXT):
        if "shortest_first" not in path:
            assert (ROOT / path).exists(), path
    for name in set(re.findall(r"`(repro(?:\.\w+)+)`", TEXT)) - GROUPS:
        pkgutil.resolve_name(name)
