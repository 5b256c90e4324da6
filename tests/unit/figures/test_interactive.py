"""Notebooks that a reader runs: errors in one line, a bar for long sweeps, neither in a batch."""

import nbclient
import nbformat
import pytest

from repro.figures.progress import ENV_PROGRESS

# left out by `make check`
pytestmark = pytest.mark.slow

FIGURE = "tiresias/fig01_one"
OPEN = f"import sys, repro\nfig = repro.figure({FIGURE!r}, seed=1)"
SWEEP = """\
from repro import figure
from repro.figures import progress
from repro.figures.sweep import Case
from repro.testing import small_trace
progress._BAR_AFTER_S = progress._LINE_EVERY_S = 0.0
cases = {jobs: Case(small_trace().head(jobs), "1x4", "srtf") for jobs in (1, 2, 3)}
results = figure("tiresias/fig01_one").sweep(cases, workers=1)"""


@pytest.fixture
def ran(project, monkeypatch):
    """Function that runs cells in a kernel of the project; return the cells and the error."""
    project.add(FIGURE)
    for name, value in project.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(ENV_PROGRESS, raising=False)

    def run(*sources, allow_errors=False, **env):
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        notebook = nbformat.v4.new_notebook(cells=cells)
        client = nbclient.NotebookClient(notebook, kernel_name="python3", allow_errors=allow_errors)
        try:
            client.execute(cwd=str(project.root))
        except nbclient.exceptions.CellExecutionError as error:
            return notebook.cells, error
        return notebook.cells, None

    return run


def texts(cell):
    return "".join(output.get("text", "") for output in cell.outputs)


def test_an_error_of_the_package_is_one_line_and_the_cell_fails(ran):
    cells, error = ran(OPEN, "fig.inputs['nope']", "never = 1")
    assert error.ename == "ParamError" and error.evalue.startswith("no input 'nope'")
    (output,) = cells[1].outputs
    assert output.output_type == "error"
    (line,) = output.traceback
    assert line.startswith("\x1b[31mParamError: no input 'nope'") and "\n" not in line
    assert cells[2].execution_count is None


def test_the_traceback_is_kept_for_the_debugger(ran):
    look = "print(sys.last_value, sys.last_traceback.tb_next.tb_frame.f_code.co_name)"
    debugger = "shell = get_ipython().InteractiveTB.tb\nprint(shell is sys.last_traceback)"
    cells, _ = ran(
        OPEN, "1 / 0", "fig.inputs['nope']", look, debugger, "%tb", "1 / 0", allow_errors=True
    )
    assert texts(cells[3]).startswith("no input 'nope'")
    assert texts(cells[4]) == "True\n"
    assert len("".join(cells[5].outputs[-1].traceback).splitlines()) > 5
    # other errors look as ever
    assert len(cells[6].outputs[0].traceback) > 1


def test_a_handler_of_the_reader_stays(ran):
    own = "get_ipython().set_custom_exc((KeyError,), lambda *given, tb_offset=None: ['own'])"
    cells, _ = ran("import sys, repro", own, OPEN, "fig.inputs['nope']", allow_errors=True)
    assert len(cells[3].outputs[0].traceback) > 1


def test_a_batch_keeps_the_traceback(ran, tmp_path):
    cells, error = ran(OPEN, "fig.inputs['nope']", **{ENV_PROGRESS: str(tmp_path / "fig")})
    assert error.ename == "ParamError"
    assert len(cells[1].outputs[0].traceback) > 1


def test_a_sweep_shows_one_bar(ran):
    cells, error = ran(SWEEP)
    assert error is None
    assert "of 3 simulations" not in texts(cells[0])
    # with widgets the bar is a widget, else text that returns to the start of its line
    shown = [
        "application/vnd.jupyter.widget-view+json" in output.get("data", {})
        or output.get("text", "").startswith("\r")
        for output in cells[0].outputs
    ]
    assert shown and all(shown)


def test_a_sweep_prints_lines_where_tqdm_is_absent(ran):
    cells, error = ran("import sys\nsys.modules['tqdm.auto'] = None", SWEEP)
    assert error is None
    assert "3 of 3 simulations\n" in texts(cells[1])


def test_a_batch_shows_no_bar(ran, tmp_path):
    cells, error = ran(SWEEP, **{ENV_PROGRESS: str(tmp_path / "fig")})
    assert error is None
    assert {output.get("name") for output in cells[0].outputs} == {"stdout"}
    assert "3 of 3 simulations\n" in texts(cells[0])
