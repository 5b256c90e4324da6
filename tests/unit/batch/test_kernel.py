"""What the batch files of a notebook that a kernel has run."""

import json
from pathlib import Path

from repro.batch import kernel


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
