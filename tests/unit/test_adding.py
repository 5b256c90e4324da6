"""docs/adding.md and its pages to the letter: every snippet is run as it stands there."""

from __future__ import annotations

import json
import pkgutil
import re
from pathlib import Path

import pandas as pd
import pytest

import repro
from repro import load, simulate
from repro.base.errors import ParamError
from repro.model.policy import policies
from repro.perf.stages import STAGE_COLUMNS
from repro.placement import placements
from repro.testing import small_trace
from repro.trace.formats import FORMATS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding.md"
#: Entry page, and its pages: adding-policy, adding-decisions, adding-placement, adding-format and
#: adding-figure.
PAGES = [PAGE, *sorted(PAGE.parent.glob("adding-*.md"))]
pytestmark = [
    pytest.mark.skipif(not PAGE.exists(), reason="not run from a checkout"),
    # left out by `make check`
    pytest.mark.slow,
]
TEXTS = [path.read_text() for path in PAGES if path.exists()]
TEXT = "\n".join(TEXTS)


def snippets(language: str, part: str = "") -> list[str]:
    text = TEXT
    if part:
        (page,) = [page for page in TEXTS if f"\n{part}\n" in page]
        text = page.split(f"\n{part}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


FIGURE = "## A figure"
SHARED = "## Several figures of one notebook"
POLICIES = {"newest", "shortest", "small-first", "user-turns", "pairs", "even-time", "equal-gpus"}
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


def test_every_example_registers_one_thing_and_brings_its_imports(tidy):
    """Each example calls `check_policy`, or runs what it defines, itself."""
    names = [run(text) for text in registered()]
    assert all(len(name) == 1 for name in names), names
    assert set().union(*names) == POLICIES | {"emptiest", "hours"}


def test_examples_of_policies_use_the_flat_names(tidy):
    for text in registered():
        if "@repro.register" in text:
            assert "import repro\n" in text and "repro.check_policy(" in text
            deep = set(re.findall(r"^from (repro\S*) import", text, re.M))
            assert deep <= {"repro.perf", "repro.testing"}, text


def test_the_policies_decide_as_they_say(tidy):
    for text in registered():
        run(text)
    jobs = pd.DataFrame(
        {
            "job_id": ["a", "b", "c"],
            "submit_time": [0.0, 1.0, 2.0],
            "duration": [50.0, 20.0, 30.0],
            "num_gpus": [4, 4, 4],
            "user": ["ann", "ann", "bob"],
        }
    )
    expected = {
        "newest": ["c", "b", "a"],
        "shortest": ["b", "c", "a"],
        "small-first": ["a", "b", "c"],
        "equal-gpus": ["b", "c", "a"],
    }
    assert {name: order(simulate(jobs, "1x4", name)) for name in expected} == expected
    assert order(simulate(jobs, "1x8", "user-turns")) == ["c", "a", "b"]
    narrow = jobs.assign(num_gpus=[4, 2, 4])
    assert order(simulate(narrow, "1x4", "small-first")) == ["b", "a", "c"]
    assert order(simulate(narrow, "1x4", repro.make("small-first", limit=1))) == ["a", "b", "c"]
    shared = simulate(small_trace().assign(**dict.fromkeys(STAGE_COLUMNS, 0.1)), "1x4", "pairs")
    assert shared.intervals.groupby(["group", "start"]).size().max() == 2


def order(result):
    """Names of the jobs by their end."""
    return result.jobs.sort_values("end_time")["job_id"].tolist()


def test_the_format_is_read_listed_and_checked(tidy, tmp_path):
    for text in registered():
        run(text)
    path = tmp_path / "jobs.csv"
    path.write_text("arrival,hours,gpus,user\n0,0.5,1,ann\n1,2,4,bob\n")
    frame = load(path, "hours", scale="2")
    assert frame.duration.tolist() == [3600.0, 14400.0]
    assert frame.submit_time.tolist() == [0.0, 3600.0]
    assert frame.user.tolist() == ["ann", "bob"]
    with pytest.raises(ParamError, match="scale=abc: give a number"):
        load(path, "hours", scale="abc")


def write_trace(project) -> None:
    """Write the trace of the page, which is also that of your_figure.md."""
    (trace,) = snippets("csv", FIGURE)
    assert trace in (ROOT / "docs/your_figure.md").read_text()
    (project.root / "data").mkdir()
    (project.root / "data/mine.csv").write_text(trace)


def test_the_figure_comes_out(project):
    (spec,) = snippets("yaml", FIGURE)
    parameters, body = snippets("python", FIGURE)
    project.add("own/fig02_mine", parameters=parameters)
    path = project.root / "notebooks/own/fig02_mine.ipynb"
    notebook = json.loads(path.read_text())
    notebook["cells"][1]["source"] = body
    path.write_text(json.dumps(notebook))
    (project.root / "params/own/fig02_mine.yaml").write_text(spec)
    write_trace(project)
    assert "own/fig02_mine" in project.cli("list").stdout
    project.cli("run", "own/fig02")
    result = project.result("own/fig02_mine")
    assert [used["name"] for used in result["data"]] == ["data/mine.csv"]
    assert result["claims"][0]["ours"] == pytest.approx(2355)
    assert result["claims"][0]["verdict"] == "reproduced"
    project.cli("run", "own/fig02", "--force", "--profile", "paper")


def test_two_figures_of_one_notebook_come_out(project):
    (spec,) = snippets("yaml", FIGURE)
    (keys,) = snippets("yaml", SHARED)
    parameters, call = snippets("python", SHARED)
    body = re.sub(r"^fig = .*\n", call, snippets("python", FIGURE)[1], flags=re.M)
    write_trace(project)
    _, _, rest = spec.split("\n", 2)
    ids = ("own/fig03_one_node", "own/fig04_two_nodes")
    for figure_id, cluster in zip(ids, ("1x8", "2x8"), strict=True):
        project.add(figure_id, notebook="my_jobs", parameters=parameters)
        text = (keys + rest).replace("1x8", cluster)
        (project.root / f"params/{figure_id}.yaml").write_text(text)
    path = project.root / "notebooks/own/my_jobs.ipynb"
    notebook = json.loads(path.read_text())
    notebook["cells"][0]["source"] = parameters
    notebook["cells"][1]["source"] = body
    path.write_text(json.dumps(notebook))
    project.cli("run", *ids)
    clusters = [project.result(figure_id)["params"]["cluster"] for figure_id in ids]
    assert clusters == ["1x8", "2x8"]


def test_the_files_it_names_exist():
    for path in re.findall(r"`((?:repro|docs|traces|tests)/[\w/]+\.?\w*)`", TEXT):
        if "my_las" not in path:
            assert (ROOT / path).exists(), path
    for name in set(re.findall(r"`(repro(?:\.\w+)+)`", TEXT)) - GROUPS:
        pkgutil.resolve_name(name)
