"""Running notebooks leaves no change in git: the filter and the hook that `make lab` sets up."""

import copy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest
from jupyter_server.services.contents.largefilemanager import LargeFileManager
from traitlets.config import PyFileConfigLoader

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
NAME = "notebooks/one.ipynb"
pytestmark = pytest.mark.skipif(
    not (ROOT / "Makefile").exists() or not shutil.which("git") or not shutil.which("make"),
    reason="needs a checkout, git and make",
)


def run(folder, *command, check=True):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


def set_up(folder, bin_folder=BIN):
    return run(folder, "make", "--no-print-directory", "lab-filter", f"BIN={bin_folder}")


def changes(folder):
    return run(folder, "git", "status", "--porcelain")


def committed():
    """Return a notebook as we commit them."""
    cells = [
        nbformat.v4.new_markdown_cell("# One", id="118f61228200"),
        nbformat.v4.new_code_cell("print('x' * 9)\n{'display_name': 3}", id="a0ef01ba0499"),
    ]
    names = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": names, "language_info": {"name": "python"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


@pytest.fixture(scope="module")
def run_once():
    """The notebook after a run, with what JupyterLab writes beside the outputs."""
    notebook = committed()
    nbclient.NotebookClient(notebook).execute()
    assert len(notebook.cells[1].outputs) == 2 and "version" in notebook.metadata.language_info
    notebook.metadata.kernelspec.display_name = "Python 3 (ipykernel)"
    notebook.cells[1].metadata.update(editable=True, scrolled=True, slideshow={"slide_type": ""})
    notebook.cells.append(nbformat.v4.new_code_cell(""))
    return notebook


@pytest.fixture
def executed(run_once):
    return copy.deepcopy(run_once)


@pytest.fixture
def checkout(tmp_path):
    """A repository with the project's own set-up files and one notebook."""
    folder = tmp_path / "a checkout"
    (folder / "notebooks").mkdir(parents=True)
    for name in ("Makefile", ".gitattributes", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / ".jupyter", folder / ".jupyter", ignore=lambda *_: ["__pycache__"])
    nbformat.write(committed(), folder / NAME)
    run(folder, "git", "init", "--quiet")
    run(folder, "git", "add", ".")
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    run(folder, "git", *who, "commit", "--quiet", "-m", "as committed")
    return folder


def save(folder, notebook):
    """Save as the server of `make lab` does, and wait for what it does afterwards."""
    loader = PyFileConfigLoader("jupyter_server_config.py", path=str(folder / ".jupyter"))
    config = loader.load_config()
    manager = LargeFileManager(root_dir=str(folder), config=config)
    manager.save({"type": "notebook", "format": "json", "content": notebook}, NAME)
    config.FileContentsManager.post_save_hook.__globals__["_IN_TURN"].shutdown(wait=True)


def test_a_notebook_run_and_saved_in_jupyterlab_is_no_change(checkout, executed):
    set_up(checkout)
    save(checkout, executed)
    assert "xxxxxxxxx" in (checkout / NAME).read_text(), "the reader keeps the outputs"
    assert changes(checkout) == ""
    executed.cells[1].outputs = []
    save(checkout, executed)
    assert changes(checkout) == ""


def test_without_the_filter_the_same_notebook_is_a_change(checkout, executed):
    save(checkout, executed)
    assert changes(checkout) == f" M {NAME}\n"


def test_an_edit_stays_a_change_and_unstaged(checkout, executed):
    set_up(checkout)
    executed.cells[0].source = "# Two"
    save(checkout, executed)
    assert changes(checkout) == f" M {NAME}\n"
    diff = run(checkout, "git", "diff", "--unified=0").splitlines()
    assert [line for line in diff if line[0] in "+-"][2:] == ['-    "# One"', '+    "# Two"']


def test_a_notebook_run_in_place_is_no_change_after_the_set_up(checkout, executed):
    set_up(checkout)
    nbformat.write(executed, checkout / NAME)
    assert run(checkout, "git", "diff") == ""
    set_up(checkout)
    assert changes(checkout) == ""
    assert run(checkout, "git", "show", f":{NAME}") == run(checkout, "git", "show", f"HEAD:{NAME}")


def test_a_filter_whose_program_is_gone_blocks_nothing(checkout, executed):
    set_up(checkout, checkout / "removed")
    nbformat.write(executed, checkout / NAME)
    assert changes(checkout) == f" M {NAME}\n"
    run(checkout, "git", "add", NAME)
    assert "xxxxxxxxx" in run(checkout, "git", "show", f":{NAME}")
    run(checkout, "git", "checkout", "--quiet", "HEAD", "--", NAME)
    assert changes(checkout) == ""


def test_outside_a_repository_the_set_up_does_nothing(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    run(tmp_path, "git", "init", "--quiet")
    set_up(tmp_path)
    assert run(tmp_path, "git", "config", "--get-regexp", "filter", check=False) == ""


@pytest.mark.slow
def test_make_lab_starts_jupyterlab_with_the_hook(checkout):
    shown = run(checkout, "make", "lab", f"BIN={BIN}", "LAB_ARGS=--show-config")
    assert "after_save" in shown
    assert "nbstripout" in run(checkout, "git", "config", "filter.repro-notebook.clean")


def test_committed_notebooks_pass_the_filter_as_they_are(checkout, tmp_path):
    listed = subprocess.run(
        ["git", "archive", "HEAD", "notebooks"], cwd=ROOT, capture_output=True, check=False
    )
    if listed.returncode:
        pytest.skip("not run from a repository")
    subprocess.run(["tar", "-x", "-C", tmp_path], input=listed.stdout, check=True)
    set_up(checkout)
    clean = run(checkout, "git", "config", "filter.repro-notebook.clean")
    before = b""
    notebooks = sorted((tmp_path / "notebooks").rglob("*.ipynb"))
    for path in notebooks:
        before += path.read_bytes()
    strip = [*shlex.split(clean.rpartition("| ")[2]), "--textconv", *notebooks]
    assert subprocess.run(strip, capture_output=True, check=True).stdout == before
    assert before.count(b'"display_name": "Python 3",') == len(notebooks) > 60
