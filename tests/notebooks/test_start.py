"""notebooks/start.ipynb: the first page of a newcomer runs from top to bottom."""

import re
import shutil
from pathlib import Path

import nbclient
import nbformat
import pytest

from repro.figures import params

ROOT = Path(__file__).resolve().parents[2]
START = ROOT / "notebooks" / "start.ipynb"


@pytest.fixture
def notebook():
    return nbformat.read(START, as_version=4)


def test_it_is_no_figure():
    assert START not in [entry.notebook for entry in params.discover(ROOT)]


def test_its_links_lead_somewhere(notebook):
    texts = "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)]+)\)", texts)
    assert len(links) > 10
    assert not [link for link in links if not (START.parent / link).exists()]


def test_make_lab_opens_it():
    assert "default_url=/lab/tree/notebooks/start.ipynb " in (ROOT / "Makefile").read_text()


@pytest.mark.slow
def test_it_runs_in_the_folder_of_the_notebook(notebook, tmp_path, monkeypatch):
    for name in ("notebooks", "params", "traces"):
        ignored = shutil.ignore_patterns(".ipynb_checkpoints")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    folder = {"metadata": {"path": str(tmp_path / "notebooks")}}
    nbclient.NotebookClient(notebook, kernel_name="python3", resources=folder).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    kinds = [output.get("data", {}) for output in outputs]
    charts = sum("data:image/svg+xml" in kind.get("text/html", "") for kind in kinds)
    assert charts + sum("image/svg+xml" in kind for kind in kinds) == 6
    text = "".join(output.get("text", "") for output in outputs)
    for line in (
        "variation, cluster 4x8 instead of 8x8",
        "variation, with tiresias-l",
        "{'cluster': ['4x8', '8x8']}",
        "muri/fig09_known_durations: with tiresias-l (",
    ):
        assert line in text
    assert "failed" not in text
