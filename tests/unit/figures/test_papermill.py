"""Notebooks run by hand: with papermill, from any folder, and by other means."""

import json
import subprocess
import sys

import nbformat
import pytest

# left out by `make check`
pytestmark = pytest.mark.slow

FIGURE = "tiresias/fig01_one"


def papermill(project, *words, folder, code=0, name=FIGURE):
    notebook = project.root / "notebooks" / f"{name}.ipynb"
    command = [sys.executable, "-m", "papermill", str(notebook), str(folder / "ran.ipynb")]
    done = subprocess.run(
        [*command, "--no-progress-bar", *words],
        env=project.env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def elsewhere(project, tmp_path):
    project.add(FIGURE)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def test_what_papermill_ran_is_not_run_again(project, elsewhere):
    papermill(project, "-p", "seed", "0", folder=elsewhere)
    assert "1 of 1 figures are current" in project.cli("run", "--all").stdout
    papermill(project, "-p", "out", "own", "-p", "seed", "3", folder=elsewhere)
    # what papermill is given is meant from where it was started, the default from the project
    (path,) = (elsewhere / "own").rglob("result.json")
    assert path.parent.parent == elsewhere / "own" / "variations" / FIGURE
    assert not (project.root / "own").exists()
    again = project.cli("run", "--all", "--out", elsewhere / "own", "-p", "seed", "3")
    assert "1 of 1 figures are current" in again.stdout
    other = project.cli("run", "--all", "--out", elsewhere / "own")
    assert "are current" not in other.stdout


@pytest.mark.nightly
def test_papermill_names_a_figure_of_a_shared_notebook(project, tmp_path):
    for figure_id in ("tiresias/fig02_b", "tiresias/fig01_a"):
        project.add(figure_id, notebook="shared")
    for words in ((), ("-p", "figure_id", "tiresias/fig02_b")):
        papermill(project, *words, folder=tmp_path, name="tiresias/shared")
    assert "2 of 2 figures are current" in project.cli("run", "--all").stdout


def test_a_parameter_the_notebook_does_not_have_is_refused(project, elsewhere):
    done = papermill(project, "-p", "bogus", "3", "-p", "out", "own", folder=elsewhere, code=1)
    line = f"{FIGURE} has no parameter 'bogus' (accepted: profile, seed, out, seeds)"
    assert line in done.stderr
    assert not (elsewhere / "own").exists()


@pytest.mark.nightly
def test_a_changed_copy_does_not_count_as_the_figures_own(project, elsewhere):
    path = project.root / "notebooks" / f"{FIGURE}.ipynb"
    whole = path.read_text()
    path.write_text(whole.replace("range(5)", "range(5, 10)"))
    papermill(project, folder=elsewhere)
    assert "fingerprint" in project.result(FIGURE)
    path.write_text(whole)
    assert "are current" not in project.cli("run", "--all").stdout
    changed = nbformat.reads(whole.replace("range(5)", "range(5, 10)"), as_version=4)
    run_all(project, changed)
    assert "fingerprint" not in project.result(FIGURE)
    assert "are current" not in project.cli("run", "--all").stdout


def test_a_notebook_run_cell_by_cell_counts_if_it_is_the_file(project, elsewhere):
    path = project.root / "notebooks" / f"{FIGURE}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    run_all(project, notebook)
    assert "1 of 1 figures are current" in project.cli("run", "--all").stdout
    notebook.cells.append(notebook.cells[-1])  # the last cell twice, as one does in JupyterLab
    run_all(project, notebook)
    assert "fingerprint" not in project.result(FIGURE)


def run_all(project, notebook):
    """Run the cells as JupyterLab does, in the folder of the notebook."""
    script = (
        "import json, sys, nbformat, nbclient\n"
        "notebook = nbformat.from_dict(json.load(sys.stdin))\n"
        "nbclient.NotebookClient(notebook, kernel_name='python3').execute()\n"
    )
    subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(notebook),
        env=project.env,
        text=True,
        cwd=project.root / "notebooks" / "tiresias",
        check=True,
        timeout=300,
        capture_output=True,
    )


def commands(project, *words, folder, **variables):
    """Run a module of this Python as a command."""
    subprocess.run(
        [sys.executable, "-m", *map(str, words)],
        env={**project.env, **variables},
        cwd=folder,
        check=True,
        timeout=300,
        capture_output=True,
    )


@pytest.mark.nightly
def test_the_commands_of_the_workshop_page_count_as_the_figures_own_run(project, elsewhere):
    notebook = project.root / "notebooks" / f"{FIGURE}.ipynb"
    commands(project, "jupyter", "execute", notebook, folder=elsewhere)
    assert "1 of 1 figures are current" in project.cli("run", "--all").stdout
    (project.folder(FIGURE) / "result.json").unlink()
    # a kernel that knows the checkout, as a hub or an editor offers it
    prefix = elsewhere / "kernels"
    name = ("--name", "repro", "--display-name", "repro", "--env", "REPRO_HOME", project.root)
    commands(project, "ipykernel", "install", "--prefix", prefix, *name, folder=elsewhere)
    data = {"JUPYTER_PATH": str(prefix / "share" / "jupyter"), "REPRO_HOME": ""}
    copy = elsewhere / "mine.ipynb"
    copy.write_text(notebook.read_text())
    commands(project, "jupyter", "execute", copy, "--kernel_name=repro", folder=elsewhere, **data)
    assert project.result(FIGURE)["claims"][0]["ours"] == 6
    (project.folder(FIGURE) / "result.json").unlink()
    words = ("-k", "repro", "--no-progress-bar", "-p", "seed", "0")
    commands(
        project, "papermill", notebook, elsewhere / "ran.ipynb", *words, folder=elsewhere, **data
    )
    assert "1 of 1 figures are current" in project.cli("run", "--all").stdout
