"""Notebooks for tests: a tiny assignment, answers put into notebooks."""

from __future__ import annotations

import copy
import json
from importlib import metadata

import pytest

#: Mark of tests that go through the command line.
by_command = pytest.mark.skipif(
    not metadata.entry_points(group="repro.commands", name="course"),
    reason="repro-course is not installed: `pip install -e ./course`",
)
BLANK = "# YOUR CODE HERE\nraise NotImplementedError()"
#: One task: the GPU-seconds of a job.
ANSWER = """def service(seconds, gpus):
    ### BEGIN SOLUTION
    return seconds * gpus
    ### END SOLUTION
"""
TEST = """from repro.course import expect

expect("service", 3.0, 2, gives=6.0, because="two GPUs for 3 s are 6 GPU-seconds")
### BEGIN HIDDEN TESTS
expect("service", cases=[(2.0, 4), (5.0, 1)], gives=lambda s, g: s * g,
       mistakes={"GPUs are ignored": lambda s, g: s})
### END HIDDEN TESTS
"""
SECOND = """def twice(number):
    ### BEGIN SOLUTION
    return 2 * number
    ### END SOLUTION
"""
SECOND_TEST = """from repro.course import expect

expect("twice", 4, gives=8)
"""


def cell(source, name, points=None, solution=False):
    """Return a cell of code as nbgrader marks it."""
    mark = {
        "grade": points is not None,
        "grade_id": name,
        "locked": not solution,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    if points is not None:
        mark["points"] = points
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": {"nbgrader": mark},
        "outputs": [],
        "source": source,
    }


def notebook(*cells):
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": list(cells),
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def tiny():
    """Return the instructor's notebook of the tiny assignment: 2 and 1 points."""
    return notebook(
        cell(ANSWER, "task-1", solution=True),
        cell(TEST, "test-1", points=2),
        cell(SECOND, "task-2", solution=True),
        cell(SECOND_TEST, "test-2", points=1),
    )


def page():
    """Return a page to read: an example that has been run, no graded cell."""
    example = {**cell("1 + 1", "example"), "metadata": {}, "execution_count": 1}
    shown = {"data": {"text/plain": "2"}, "metadata": {}, "execution_count": 1}
    example["outputs"] = [{"output_type": "execute_result", **shown}]
    return notebook(example)


def answered(original, **answers):
    """Return a notebook with other sources in some cells, ``task_1`` being that of ``task-1``."""
    changed = copy.deepcopy(original)
    named = {name.replace("_", "-"): text for name, text in answers.items()}
    for one in changed["cells"]:
        name = one["metadata"].get("nbgrader", {}).get("grade_id")
        if name in named:
            one["source"] = named.pop(name)
    assert not named, f"no cells {list(named)}"
    return changed


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
