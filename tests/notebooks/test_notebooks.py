"""Every notebook of the project: its shape as committed, and its results at the quick profile."""

import ast
import html
import json
import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from repro.figures import params
from repro.figures.claims import MISSED, NOT_PUBLISHED, figure_verdict, judge_all, points_of
from repro.figures.notebook import FIGURE_ID, notebook_defaults
from repro.figures.points import read_points
from repro.figures.saved import verdict_counts

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = params.discover(ROOT)
COMMITTED = [entry for entry in ENTRIES if (ROOT / "figures" / entry.id).is_dir()]
NOTEBOOKS = sorted(
    path for path in (ROOT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts
)
KINDS = ("svg", "csv")
# Under xdist with --dist loadgroup, one worker runs the notebooks and all their checks.
pytestmark = pytest.mark.xdist_group("notebooks")


def figures_of(notebook):
    """Figures that a notebook plots."""
    return [entry for entry in ENTRIES if entry.notebook == notebook]


each_figure = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)


def code_cells(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def source(cell):
    return "".join(cell["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: str(p.relative_to(ROOT / "notebooks")))
def test_committed_without_outputs(path):
    for cell in code_cells(path):
        assert cell["outputs"] == [] and cell["execution_count"] is None


@each_figure
def test_shape(entry):
    cells = code_cells(entry.notebook)
    tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    assert len(tagged) == 1, "one cell is tagged `parameters`"
    parameters = notebook_defaults(entry.notebook)
    assert {"profile", "out"} <= parameters.keys()
    assert len(cells) <= 7
    assert sum(len(source(cell).splitlines()) for cell in cells) <= 90
    argument = f'"{entry.id}"'
    if len(figures_of(entry.notebook)) > 1:
        argument = FIGURE_ID
        assert parameters[FIGURE_ID] in {figure.id for figure in figures_of(entry.notebook)}
    assert f"figure({argument}" in "".join(map(source, cells)).replace("\n    ", "")


@each_figure
def test_opens_with_its_picture_and_names_its_steps(entry):
    cells = json.loads(entry.notebook.read_text(encoding="utf-8"))["cells"]
    opened = entry
    if len(figures := figures_of(entry.notebook)) > 1:
        default = notebook_defaults(entry.notebook)[FIGURE_ID]
        (opened,) = (figure for figure in figures if figure.id == default)
        assert f"`{entry.id}`" in source(cells[0]), "the table of figures names each"
        assert f"(../../figures/{entry.id}/{entry.stem}.svg)" in source(cells[0])
    title, _, picture = cells[0]["source"][:3]
    assert title.startswith("# ")
    link = re.fullmatch(r"!\[.+\]\((.+)\)", picture.strip())
    shown = (entry.notebook.parent / link[1]).resolve()
    assert shown == ROOT / "figures" / opened.id / f"{opened.stem}.svg"
    assert shown.is_file()
    for before, cell in pairwise(cells):
        if cell["cell_type"] == "code" and "parameters" not in cell["metadata"].get("tags", []):
            assert source(before).startswith("## "), "each step has a heading"


@each_figure
def test_functions_in_notebooks_are_short(entry):
    for cell in code_cells(entry.notebook):
        for node in ast.walk(ast.parse(source(cell))):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 8, f"{node.name} belongs into the package"


@each_figure
def test_a_parameter_seed_is_used(entry):
    code = "".join(map(source, code_cells(entry.notebook)))
    samples = re.search(r'fig\.rng\((f?"[^"]*")\)', code)
    may_sample = re.search(r"fig\.(rng|traces?|seed)\b|\(fig[,)]", code)
    assert may_sample if "seed" in notebook_defaults(entry.notebook) else not samples


@each_figure
def test_error_bars_and_bands_are_explained(entry):
    code = "".join(map(source, code_cells(entry.notebook)))
    drawn = re.search(r"\bspread=|\bends=.*\blow\b|(?<!published_)\bband=", code)
    assert entry.load().marks or not drawn


@each_figure
def test_parameters_and_claims_are_valid(entry):
    spec = entry.load()
    for profile in params.PROFILES:
        spec.merged(profile, {})


@pytest.fixture(scope="session")
def quick(tmp_path_factory):
    """Run every notebook once at the quick profile; return the folder of results."""
    fcntl = pytest.importorskip("fcntl")
    top = tmp_path_factory.getbasetemp()
    # What one test process has run, the others take: not every pytest keeps a group in one process.
    shared = top.parent if "PYTEST_XDIST_WORKER" in os.environ else top
    with (shared / "figures.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "figures" / "index.html").is_file():
            run_all(shared / "figures")
    return shared / "figures"


def copy_made(out):
    """Copy the results of `make figures`; a run then computes those that are not current."""
    made = ROOT / "build" / "figures"
    for entry in ENTRIES:
        if (made / entry.id).is_dir() and entry.executed_notebook.is_file():
            shutil.copytree(made / entry.id, out / entry.id, dirs_exist_ok=True)


def run_all(out):
    copy_made(out)
    words = ["run", "--all", "--profile", "quick", "-j", "2", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "repro.cli", *words],
        cwd=ROOT,
        env={**os.environ, "REPRO_HOME": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert (out / "index.html").is_file(), done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(1800)
@each_figure
def test_quick_profile(entry, quick):
    folder = quick / entry.id
    error = folder / "error.json"
    assert not error.exists(), json.loads(error.read_text())["traceback"]
    check_result(entry, folder, "quick")
    check_document(entry.executed_notebook)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("figure", "verdicts"),
    [
        ("muri/fig08_queue_blocking_utilisation", {"not comparable"}),
        ("tiresias/artifact_runs", {"reproduced", "not comparable"}),
    ],
)
def test_points_that_need_public_traces_are_not_comparable_without_them(tmp_path, figure, verdicts):
    """Claims about these points are judged all the same, and nothing fails."""
    env = {**os.environ, "REPRO_CACHE_DIR": str(tmp_path), "REPRO_HOME": str(ROOT)}
    env |= {"HTTPS_PROXY": "http://127.0.0.1:9", "REPRO_TRACE_MIRROR": ""}
    words = ["run", figure, "--profile", "quick", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "repro.cli", *words]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    claims = json.loads((tmp_path / figure / "result.json").read_text(encoding="utf-8"))["claims"]
    spec = params.resolve(figure, ENTRIES).load()
    about_points = {claim.id for claim in spec.claims if claim.series}
    told = {row["verdict"] for row in claims if row["id"] in about_points}
    assert told == verdicts


def check_document(executed):
    """One picture, a last output that says what came out, and no folder of this machine."""
    cells = code_cells(executed)
    outputs = [output for cell in cells for output in cell["outputs"]]
    pages = ["".join(output.get("data", {}).get("text/html", "")) for output in outputs]
    assert sum('src="data:image/svg+xml;base64,' in page for page in pages) == 1
    for kind in ("text/html", "text/plain"):
        said = "".join(outputs[-1]["data"][kind])
        assert re.match(r"(<p>)?(\d+ of \d+ (claims reproduced|own checks hold)|No claims)", said)
    told = "".join("".join(one["text"]) for one in outputs if one["output_type"] == "stream")
    assert str(ROOT) not in told + "".join(map(source, cells))
    assert not re.search(r":\d+: \w+Warning", told), "a warning names a line of code"


@pytest.mark.parametrize("entry", COMMITTED, ids=lambda entry: entry.id)
def test_committed_result(entry):
    check_result(entry, ROOT / "figures" / entry.id, "paper")


@pytest.mark.parametrize("entry", COMMITTED, ids=lambda entry: entry.id)
def test_committed_caption_has_the_verdicts_of_the_result(entry):
    folder = ROOT / "figures" / entry.id
    claims = json.loads((folder / "result.json").read_text(encoding="utf-8"))["claims"]
    picture = (folder / f"{entry.stem}.svg").read_text(encoding="utf-8")
    lines = html.unescape(" ".join(re.findall(r">([^<>]+)</text>", picture)))
    caption = " ".join(lines.split())
    assert [text for text in verdict_counts(claims) if text not in caption] == []


def check_result(entry, folder, profile):
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert (result["id"], result["paper"], result["profile"]) == (entry.id, entry.paper, profile)
    for kind in KINDS:
        assert (folder / f"{entry.stem}.{kind}").stat().st_size > 0
    claims = entry.load().claims
    assert [row["id"] for row in result["claims"]] == [claim.id for claim in claims]
    # Judged again from the stored values: nothing a file says of itself is believed.
    stored = [{**row, "ours": numbers(row["ours"])} for row in result["points"]]
    points = read_points(pd.DataFrame(stored)) if stored else []
    values = {row["id"]: numbers(row["ours"]) for row in result["claims"] if "series" not in row}
    reasons = {row["reason"] for row in result["claims"] if "reason" in row}
    again = judge_all(claims, values, points, reason=min(reasons, default=NOT_PUBLISHED))
    for verdict, row in zip(again, result["claims"], strict=True):
        assert numbers(row) == verdict.row()
        assert verdict.outcome != MISSED or verdict.claim.deviation, row
    data = "stand-in" if result["stand_in"] else entry.load().data
    ids = {claim.id for claim in claims}
    given = [point for point in points if point.series not in ids]
    spec = entry.load()
    facts = {"origin": spec.origin, "fitted_on": spec.fitted_on, "unknown": spec.unknown}
    facts["rules"] = params.judged_rules(result["params"])
    derived = points_of(again, given, data=data, **facts)
    assert [point.row() for point in points] == stored
    assert points[len(points) - len(derived) :] == derived
    assert result["verdict"] == figure_verdict(verdict.row() for verdict in again)


def numbers(stored):
    """Return what was stored with infinities, which JSON holds as text, as numbers again."""
    if isinstance(stored, dict):
        return {**stored, "ours": numbers(stored["ours"])}
    if isinstance(stored, list):
        return [numbers(item) for item in stored]
    return float(stored) if stored in ("inf", "-inf") else stored
