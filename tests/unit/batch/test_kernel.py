"""What the batch files of a notebook that a kernel has run."""

import json
from pathlib import Path

from repro.batch import kernel
from repro.batch.task import DONE, Task
from repro.figures.params import FigureEntry


def tidied(*texts):
    outputs = [{"output_type": "stream", "name": "stderr", "text": text} for text in texts]
    executed = {
        "cells": [{"cell_type": "code", "outputs": outputs}, {"cell_type": "markdown"}],
        "metadata": {"papermill": {"output_path": "/scratch/nb.ipynb", "duration": 1.0}},
    }
    found = json.loads(kernel._tidied(executed, Path("/home/me/checkout")))
    assert found["metadata"]["papermill"] == {"duration": 1.0}
    return ["".join(one["text"]) for one in found["cells"][0]["outputs"]]


def test_a_warning_is_told_once_and_without_its_place_in_the_code():
    placed = "/home/me/checkout/repro/a.py:3: StandInWarning: no file\n  table = load(name)\n"
    other = "/tmp/ipykernel_1/2.py:7: StandInWarning: no file\n"
    assert tidied(placed + other, other) == ["StandInWarning: no file\n"]


def test_files_of_the_checkout_are_named_from_its_top():
    assert tidied("read /home/me/checkout/data/a.csv\nread\n") == ["read data/a.csv\nread\n"]


def test_a_notebook_that_was_never_written_is_not_filed():
    assert kernel._tidied({}, Path()) == b""


def test_a_page_that_cannot_be_rendered_loses_no_result(tmp_path, monkeypatch):
    root = tmp_path / "checkout"
    entry = FigureEntry("own/fig01", root)
    parameters = {"profile": "quick", "out": str(tmp_path / "out")}
    task = Task(entry, parameters, "fingerprint", tmp_path)

    def run_notebook(task, scratch):
        task.folder.mkdir(parents=True)
        (task.folder / "result.json").write_text('{"claims": []}')
        executed = {"cells": [], "metadata": {}}
        (scratch / kernel.EXECUTED).write_text(json.dumps(executed))

    def as_page(notebook, figure_id, gallery):
        raise AttributeError("no attribute\n'parse_axt_heading'")

    task.executed_notebook.parent.mkdir(parents=True)
    task.executed_notebook.with_suffix(".html").write_text("the page of an earlier run")
    monkeypatch.setattr(kernel, "_run_notebook", run_notebook)
    monkeypatch.setattr(kernel, "as_page", as_page)
    outcome = kernel.execute(task)
    assert outcome.status == DONE
    assert outcome.warnings == (
        "no HTML page of own/fig01: nbconvert failed (AttributeError: no attribute "
        "'parse_axt_heading'); its notebook is kept",
    )
    assert json.loads((task.folder / "result.json").read_text())["fingerprint"] == "fingerprint"
    assert task.executed_notebook.is_file()
    assert not task.executed_notebook.with_suffix(".html").exists()
