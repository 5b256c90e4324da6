"""Pages to read: without points, handed out with the assignments, every example runs off-line."""

from __future__ import annotations

import nbclient
import nbformat
import pytest

from repro.base.paths import PACKAGE
from repro_course.assignments import read, sources
from repro_course.release import release

PAGES = {name: path for name, path in sources(ungraded=True).items() if name not in sources()}

each = pytest.mark.parametrize("name", PAGES)


def test_the_traps_are_a_page_and_no_assignment():
    assert list(PAGES) == ["7_why_is_it_off"]


@each
def test_students_may_change_every_cell(name):
    assert all(cell["metadata"] == {} for cell in read(PAGES[name])["cells"])


@each
def test_a_release_has_the_page_as_it_is(name, tmp_path):
    pytest.importorskip("nbgrader", reason="repro-course brings nbgrader")
    release(tmp_path / "student")
    handed = read(tmp_path / "student" / f"{name}.ipynb")
    own = read(PAGES[name])
    texts = [["".join(cell["source"]) for cell in one["cells"]] for one in (handed, own)]
    assert texts[0] == texts[1]


@each
def test_examples_are_short(name):
    """As many lines as one takes in at a glance; the cell of imports is no example."""
    for cell in read(PAGES[name])["cells"]:
        if cell["cell_type"] == "code" and cell["id"] != "setup":
            lines = [line for line in "".join(cell["source"]).splitlines() if line.strip()]
            assert len(lines) <= 12, cell["id"]


@pytest.mark.nightly
@each
def test_it_runs_in_a_fresh_folder_without_network_and_public_traces(name, tmp_path, monkeypatch):
    """No download can succeed: connections go to a port where nobody listens."""
    for folder in ("cache", "here"):
        (tmp_path / folder).mkdir(mode=0o700)
    monkeypatch.delenv("REPRO_TRACE_MIRROR", raising=False)
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE.parent))
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    notebook = nbformat.read(PAGES[name], as_version=4)
    here = {"metadata": {"path": str(tmp_path / "here")}}
    nbclient.NotebookClient(notebook, timeout=200, resources=here).execute()
    examples = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.id != "setup"]
    for cell in examples:
        kinds = [one.output_type for one in cell.outputs]
        assert kinds in (["execute_result"], ["display_data"]), (cell.id, kinds)
    assert list((tmp_path / "here").iterdir()) == []
