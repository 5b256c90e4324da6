"""Each assignment: what nbgrader says, a blank one, the solution, and typical wrong answers."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
import yaml
from sheets import answered, write

from repro_course.assignments import read, sources
from repro_course.grade import Limits, grade
from repro_course.release import release

HERE = Path(__file__).parent
SOURCES = sources()
LIMITS = Limits(cell=60, wall=200, cpu=200)
#: What the messages of a cell without an answer say.
EMPTY = ("is still empty", "is not defined yet")

each = pytest.mark.parametrize("name", SOURCES)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    pytest.importorskip("nbgrader", reason="repro-course brings nbgrader")
    folder = tmp_path_factory.mktemp("course") / "student"
    release(folder)
    return folder


@pytest.fixture
def graded(tmp_path):
    """Return a function that grades versions of an assignment; a row and the feedback of each."""

    def rows(name, **handed):
        for student, content in handed.items():
            write(tmp_path / student / f"{name}.ipynb", content)
        jobs = min(2, os.cpu_count() or 1)
        table = pd.read_csv(grade(tmp_path, LIMITS, jobs=jobs), index_col="student")
        number = name.partition("_")[0]
        return {
            student: (row, (tmp_path / student / f"feedback-{number}.txt").read_text())
            for student, row in table.iterrows()
        }

    return rows


@cache
def marks(name):
    """Return the cells of an assignment by their id: source and nbgrader's marks."""
    cells = read(SOURCES[name])["cells"]
    return {
        one["metadata"]["nbgrader"]["grade_id"]: (
            "".join(one["source"]),
            one["metadata"]["nbgrader"],
        )
        for one in cells
    }


@each
def test_nbgrader_accepts_the_marks(name):
    steps = pytest.importorskip("nbgrader.preprocessors", reason="brought by repro-course")
    import nbformat

    steps.CheckCellMetadata().preprocess(nbformat.read(SOURCES[name], as_version=4), {})


@each
def test_every_cell_is_marked_and_every_graded_cell_helps_and_grades(name):
    cells = read(SOURCES[name])["cells"]
    assert len(marks(name)) == len(cells), "ids are unique"
    tests = {one: source for one, (source, mark) in marks(name).items() if mark["grade"]}
    answers = {one: source for one, (source, mark) in marks(name).items() if mark["solution"]}
    assert 3 <= len(tests) <= 5 and len(answers) >= 3
    for source in tests.values():
        visible, _, hidden = source.partition("### BEGIN HIDDEN TESTS")
        assert "expect(" in visible and "expect(" in hidden.partition("### END HIDDEN TESTS")[0]
    for source in answers.values():
        assert "### BEGIN SOLUTION" in source and "### END SOLUTION" in source


@each
def test_a_release_has_no_solution_and_no_hidden_test(name, released):
    text = (released / f"{name}.ipynb").read_text()
    assert "SOLUTION" not in text and "HIDDEN" not in text
    assert "repro_course" not in text
    for one, (source, mark) in marks(name).items():
        begin, end = ("SOLUTION", "END SOLUTION") if mark["solution"] else ("HIDDEN", "END HIDDEN")
        if mark["solution"] or mark["grade"]:
            secret = source.partition(f"### BEGIN {begin}")[2].partition(f"### {end}")[0]
            lines = [line.strip() for line in secret.splitlines()[1:]]
            told = [line for line in lines if len(line) > 25 and json.dumps(line)[1:-1] in text]
            assert told == [], one


@each
def test_a_blank_one_is_told_so_in_every_cell(name, released, graded):
    row, said = graded(name, ann=read(released / f"{name}.ipynb"))["ann"]
    assert row["points"] == 0
    for one in (one for one, (_, mark) in marks(name).items() if mark["grade"]):
        told = said.partition(f"{one}: ")[2].partition("\ntest-")[0]
        assert any(words in told for words in EMPTY), (one, told)


@each
def test_the_solution_has_all_points(name, graded):
    row, said = graded(name, ann=read(SOURCES[name]))["ann"]
    assert row["points"] == row["of"], said
    assert row["of"] == sum(mark.get("points", 0) for _, mark in marks(name).values())


@pytest.mark.slow
@each
@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.nightly)])
def test_wrong_answers_fail_and_the_message_names_the_mistake(name, every, graded):
    """A twelfth of the wrong answers here, all of them at night."""
    file = HERE / "wrong" / f"{name}.yaml"
    if not file.is_file():
        pytest.skip(f"no {file.name} yet")
    wrong = yaml.safe_load(file.read_text())[::every]
    original = read(SOURCES[name])
    handed = {
        f"wrong{number:02}": answered(original, **{one["cell"]: one["source"]})
        for number, one in enumerate(wrong)
    }
    rows = graded(name, **handed)
    passed = [
        wrong[int(student[5:])]["mistake"]
        for student, (row, _) in rows.items()
        if row["points"] == row["of"]
    ]
    assert passed == []
    unnamed = [
        (one["mistake"], said)
        for one, (_, said) in zip(wrong, rows.values(), strict=True)
        if not all(words.lower() in said.lower() for words in one["says"])
    ]
    assert len(unnamed) <= len(wrong) // 10, unnamed
