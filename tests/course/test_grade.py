"""Submissions are graded each in a process of its own, whatever is in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zipfile

import pandas as pd
import pytest
from sheets import TEST, answered, by_command, cell, notebook, page, tiny, write

from repro.base.errors import ParamError, ReproError
from repro.base.paths import PACKAGE
from repro.cli import main
from repro.files.whole import write_whole
from repro_course import grade as grading
from repro_course import pytest_plugin
from repro_course.assignments import PLACE, read, sources
from repro_course.grade import Limits, grade

LIMITS = Limits(cell=20, wall=40, cpu=40)
RIGHT = "def service(seconds, gpus):\n    return gpus * seconds\n"


@pytest.fixture
def source(tmp_path):
    write(tmp_path / "source" / "1_tiny.ipynb", tiny())
    return tmp_path / "source"


@pytest.fixture
def graded(tmp_path, source):
    """Return a function that grades notebooks by student and returns the rows by student."""

    def rows(limits=LIMITS, **handed):
        for student, content in handed.items():
            write(tmp_path / "in" / student / "1_tiny.ipynb", content)
        table = pd.read_csv(grade(tmp_path / "in", limits, source, jobs=2), index_col="student")
        return table.assign(note=table["note"].astype(object).fillna(""))

    rows.folder = tmp_path / "in"
    return rows


def feedback(graded, student):
    return (graded.folder / student / "feedback-1.txt").read_text()


def test_right_wrong_and_blank(graded):
    wrong = "def service(seconds, gpus):\n    return seconds\n"
    blank = "def service(seconds, gpus):\n    # YOUR CODE HERE\n    raise NotImplementedError()\n"
    table = graded(
        ann=answered(tiny(), task_1=RIGHT),
        bob=answered(tiny(), task_1=wrong),
        eve=answered(tiny(), task_1=blank),
    )
    assert table[["test-1", "test-2", "points", "of"]].to_dict("index") == {
        "ann": {"test-1": 2, "test-2": 1, "points": 3, "of": 3},
        "bob": {"test-1": 0, "test-2": 1, "points": 1, "of": 3},
        "eve": {"test-1": 0, "test-2": 1, "points": 1, "of": 3},
    }
    assert set(table["note"]) == {""}
    assert "test-1: fine" in feedback(graded, "ann")
    assert "gives 2.0 instead of 8.0" in feedback(graded, "bob")
    assert "`service` is still empty" in feedback(graded, "eve")


def test_an_error_of_a_library_is_no_empty_cell(graded):
    of_library = "import datetime\ndatetime.tzinfo().utcoffset(None)\n"
    blank = "raise NotImplementedError()\n"
    graded(
        ann=answered(tiny(), task_1=of_library),
        eve=answered(tiny(), task_1=blank),
    )
    assert "NotImplementedError: a tzinfo subclass must" in feedback(graded, "ann")
    assert "it is still empty" in feedback(graded, "eve")


def test_the_cells_of_tests_are_the_instructors(graded):
    own = notebook(
        cell("pass", "test-1", points=2),
        cell("def twice(number):\n    return number", "task-2", solution=True),
        cell("pass", "test-2", points=50),
    )
    patched = "import repro.course.checks as c\nc.expect = lambda *a, **k: None\n"
    table = graded(ann=own, bob=answered(tiny(), task_1=patched))
    assert (table["points"] == [0, 1]).all() and (table["of"] == 3).all()
    assert "`service` is not defined" in feedback(graded, "ann")


def test_a_page_without_points_is_neither_asked_for_nor_graded(graded, source):
    write(source / "2_page.ipynb", page())
    write(graded.folder / "ann" / "2_page.ipynb", page())
    assert list(sources(source)) == ["1_tiny"]
    table = graded(ann=answered(tiny(), task_1=RIGHT))
    assert table.loc["ann", "assignment"] == "1_tiny" and table.loc["ann", "points"] == 3
    assert not (graded.folder / "ann" / "feedback-2.txt").exists()


def test_a_folder_of_pages_without_points_has_no_assignments(tmp_path):
    write(tmp_path / "source/1_page.ipynb", page())
    with pytest.raises(ParamError, match="no assignments"):
        sources(tmp_path / "source")


def test_of_all_that_is_wrong_what_names_a_mistake_is_told(graded):
    table = graded(ann=answered(tiny(), task_1="def service(seconds, gpus):\n    return seconds"))
    assert table.loc["ann", "points"] == 1
    told = feedback(graded, "ann")
    assert "Likely mistake: GPUs are ignored." in told and "service(2.0, 4)" in told


def test_own_cells_and_magics_run_where_they_stand(graded):
    own = answered(tiny(), task_1="%matplotlib inline\nservice = helper\n")
    own["cells"].insert(0, {"cell_type": "code", "source": ["def helper(s, g):\n", " return s*g"]})
    assert graded(ann=own).loc["ann", "points"] == 3


def test_what_is_no_notebook_gets_nothing_and_a_note(graded):
    table = graded(ann="{", bob='{"cells": [1]}', eve='{"cells": []}')
    assert (table["points"] == 0).all()
    assert "is no notebook" in table.loc["ann", "note"] and "/" not in table.loc["ann", "note"]
    assert "is no notebook" in table.loc["bob", "note"]


def test_a_link_is_not_opened(graded, source):
    (graded.folder / "ann").mkdir(parents=True)
    (graded.folder / "ann" / "1_tiny.ipynb").symlink_to(source / "1_tiny.ipynb")
    table = graded()
    assert table.loc["ann", "points"] == 0 and "is a link" in table.loc["ann", "note"]


#: What keeps even the alarm of a cell away.
LOOP = "import time\nwhile True:\n    try: time.sleep(9)\n    except BaseException: pass\n"
SCORED = {
    "an endless loop in a cell": ("while True: pass", 1, "", "endless loop"),
    "an endless loop in an answer": (
        "def service(seconds, gpus):\n    while True: pass",
        1,
        "",
        "endless loop",
    ),
    "an endless loop that swallows one alarm": (
        "while True:\n    try:\n        while True: pass\n    except: begun = 1\n"
        "    while True: pass",
        1,
        "",
        "endless loop",
    ),
    "a loop that nothing stops": (
        LOOP,
        0,
        "stopped after",
        "was not run",
    ),
    "a crash": ("import os; os.abort()", 0, "crashed (SIGABRT)", "was not run"),
    "an early end": ("import os; os._exit(0)", 0, "ended early", "was not run"),
    "sys.exit": ("import sys; sys.exit()", 1, "", "SystemExit"),
    "memory": ("x = bytearray(10**11)", 1, "", "MemoryError"),
    "a flood": ("print('x' * 10**8)\n" + RIGHT, 3, "", "fine"),
    "a large file": ("open('x', 'wb').write(bytes(2**27))", 1, "", "File too large"),
    "a syntax error": ("def service(:", 1, "", "SyntaxError"),
    "input": ("input()", 1, "", "EOFError"),
    "a program": ("import subprocess; subprocess.run(['ls'])", 1, "subprocess", "not allowed"),
    "another folder": ("open('/tmp/mark-of-course', 'w')", 1, "writing outside", "not allowed"),
    "frames": ("import sys; sys._getframe(1)", 1, "sys._getframe", "not allowed"),
    "ctypes": ("import ctypes; ctypes.CDLL(None)", 1, "ctypes", "not allowed"),
    "memory of objects": ("import gc; gc.get_objects()", 1, "gc.get_objects", "not allowed"),
}


@pytest.mark.parametrize("what", SCORED)
def test_a_score_and_a_note_whatever_happens(what, graded):
    answer, points, note, told = SCORED[what]
    limits = Limits(cell=2, wall=8, cpu=40, memory_mb=4096)
    row = graded(limits, ann=answered(tiny(), task_1=answer)).loc["ann"]
    assert row["points"] == points
    assert note in row["note"] and bool(note) == bool(row["note"])
    assert told in feedback(graded, "ann")


READS = (
    "open({path!r}).read()",
    "import os; os.listdir(os.path.dirname({path!r}))",
    "import os; os.chdir(os.path.dirname({path!r}))",
    "import pathlib; pathlib.Path({path!r}).read_text()",
    "import os; os.symlink({path!r}, 'copy')",
    "import numpy; numpy.fromfile({path!r})",
)


@pytest.mark.parametrize("way", READS)
def test_the_instructors_notebooks_cannot_be_read(way, graded, source):
    answer = way.format(path=str(source / "1_tiny.ipynb")) + "\n" + RIGHT
    row = graded(ann=answered(tiny(), task_1=answer)).loc["ann"]
    assert row["points"] == 1
    assert "reading the instructor's files" in row["note"]


def test_graded_again_is_only_what_changed(graded, source):
    graded(ann=answered(tiny(), task_1=RIGHT))
    begun = time.monotonic()
    told = []
    write(graded.folder / "bob" / "1_tiny.ipynb", tiny())
    grade(graded.folder, LIMITS, source, tell=told.append)
    assert [row["student"] for row in told] == ["bob"]
    told.clear()
    begun = time.monotonic()
    grade(graded.folder, LIMITS, source, tell=told.append)
    assert told == [] and time.monotonic() - begun < 0.5
    assert len(pd.read_csv(graded.folder / "grades.csv")) == 2


def test_the_layout_of_nbgrader(tmp_path, source):
    write(tmp_path / "in/submitted/ann/1_tiny/1_tiny.ipynb", tiny())
    table = pd.read_csv(grade(tmp_path / "in", LIMITS, source))
    assert table.loc[0, "student"] == "ann" and table.loc[0, "points"] == 3


@by_command
def test_the_command(tmp_path, source, capsys):
    write(tmp_path / "in/=ann/1_tiny.ipynb", tiny())
    words = ["course", "grade", str(tmp_path / "in"), "--source", str(source), "-j", "1"]
    assert main(words) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("=ann 1_tiny: 3 of 3, ") and out[1].endswith("grades.csv")
    assert "'=ann" in (tmp_path / "in/grades.csv").read_text()
    assert main(["course", "grade", str(tmp_path / "nowhere")]) == 2
    with pytest.raises(ParamError, match="no submissions"):
        grade(source, LIMITS, source)


def rows_of(folder):
    """Return the rows of the table as they stand there."""
    return pd.read_csv(folder / "grades.csv", dtype=str, keep_default_na=False)


@by_command
def test_another_name_is_graded_and_what_is_no_submission_has_a_row(tmp_path, source, capsys):
    write(tmp_path / "in/ann/1_Tiny (1).ipynb", tiny())
    write(tmp_path / "in/bob/notes.pdf", "x")
    write(tmp_path / "in/eve/1_tiny (1).ipynb", tiny())
    write(tmp_path / "in/eve/1_tiny (2).ipynb", answered(tiny(), task_1=RIGHT))
    words = ["course", "grade", str(tmp_path / "in"), "--source", str(source), "-j", "1"]
    assert main(words) == 0
    table = rows_of(tmp_path / "in").set_index("student")
    assert table["assignment"].to_dict() == {"ann": "1_tiny", "bob": "", "eve": "1_tiny"}
    assert table["points"].to_dict() == {"ann": "3", "bob": "", "eve": ""}
    assert table["of"].to_dict() == {"ann": "3", "bob": "", "eve": "3"}
    assert table.loc["ann", "note"] == "found as 1_Tiny (1).ipynb"
    assert "notes.pdf" in table.loc["bob", "note"]
    assert "1_tiny (1).ipynb, 1_tiny (2).ipynb" in table.loc["eve", "note"]
    assert (tmp_path / "in/ann/feedback-1.txt").is_file()
    out = capsys.readouterr().out
    assert "bob: not graded (no notebook of an assignment; found notes.pdf)" in out
    assert "eve 1_tiny: not graded (may be any of" in out
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "ann" not in out.splitlines()[0] and "bob: not graded" in out


def test_an_archive_is_graded_where_it_lies(tmp_path, source):
    (tmp_path / "in/ann").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "in/ann/all.zip", "w") as archive:
        archive.writestr("all/1_tiny.ipynb", json.dumps(tiny()))
    grade(tmp_path / "in", LIMITS, source)
    (row,) = rows_of(tmp_path / "in").to_dict("records")
    assert (row["points"], row["note"]) == ("3", "found as all.zip/all/1_tiny.ipynb")
    assert sorted(path.name for path in (tmp_path / "in/ann").iterdir()) == [
        "all.zip",
        "feedback-1.txt",
    ]


@by_command
def test_without_pytest_nothing_is_graded(tmp_path, source, monkeypatch, capsys):
    write(tmp_path / "in/ann/1_tiny.ipynb", tiny())
    monkeypatch.setitem(sys.modules, "pytest", None)
    assert main(["course", "grade", str(tmp_path / "in"), "--source", str(source)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert "pytest is not installed; `pip install pytest` brings it" in err
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["ann"]
    assert [path.name for path in (tmp_path / "in/ann").iterdir()] == ["1_tiny.ipynb"]


def _no_plugin(monkeypatch):
    monkeypatch.setattr(grading, "_PLUGIN", "repro_course.no_such_plugin")


def _no_process(monkeypatch):
    def refuse(*words, **named):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(grading.subprocess, "Popen", refuse)


def _no_memory(monkeypatch):
    def refuse(*words, **named):
        raise MemoryError

    monkeypatch.setattr(grading.subprocess, "Popen", refuse)


def _bug(monkeypatch):
    def fail(*given):
        raise TypeError("a mistake of ours")

    monkeypatch.setattr(grading, "merge", fail)


def _no_feedback(monkeypatch):
    def refuse(path, data):
        if path.name == "feedback-1.txt":
            raise ReproError(f"{path}: cannot be written (Read-only file system); check the path")
        write_whole(path, data)

    monkeypatch.setattr(grading, "write_whole", refuse)


FAULTS = {
    "a module is missing": (_no_plugin, "no_such_plugin"),
    "no process can be started": (_no_process, "Resource temporarily unavailable"),
    "no memory is left": (_no_memory, "MemoryError"),
    "a mistake of the grader": (_bug, "TypeError: a mistake of ours"),
    "the feedback cannot be written": (_no_feedback, "Read-only file system"),
}


@by_command
@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_of_the_grader_is_no_score(what, tmp_path, source, monkeypatch, capsys):
    fault, told = FAULTS[what]
    write(tmp_path / "in/ann/1_tiny.ipynb", tiny())
    words = ["course", "grade", str(tmp_path / "in"), "--source", str(source), "-j", "1"]
    with monkeypatch.context() as broken:
        fault(broken)
        assert main(words) == 1
    (row,) = rows_of(tmp_path / "in").to_dict("records")
    assert (row["points"], row["of"]) == ("", "3")
    assert told in row["note"]
    assert not (tmp_path / "in/ann/feedback-1.txt").exists()
    out, err = capsys.readouterr()
    assert "ann 1_tiny: not graded" in out
    assert "1 notebook could not be graded" in err and err.count("\n") == 1
    assert main(words) == 0
    (row,) = rows_of(tmp_path / "in").to_dict("records")
    assert (row["points"], row["note"]) == ("3", "")


def _instructors(setup):
    """Return the tiny assignment behind a cell that is not graded."""
    first = cell(setup, "setup")
    return {**tiny(), "cells": [first, *tiny()["cells"]]}


#: cells of the instructor that fail for what the grader lacks
LACKING = ("import no_such_module", "raise MemoryError", "from repro.course import no_such_name")


@pytest.mark.parametrize("setup", LACKING)
def test_what_the_instructors_cells_lack_is_no_score(setup, graded, source):
    write(source / "1_tiny.ipynb", _instructors(setup))
    told = []
    write(graded.folder / "ann/1_tiny.ipynb", answered(tiny(), task_1=RIGHT))
    for _ in range(2):
        grade(graded.folder, LIMITS, source, tell=told.append)
    assert [row["fault"] for row in told] == [True, True]
    assert setup.split()[-1] in told[0]["note"]
    assert pd.isna(pd.read_csv(graded.folder / "grades.csv").loc[0, "points"])


@pytest.mark.parametrize("answer", LACKING)
def test_what_an_answer_lacks_is_a_score(answer, graded):
    assert graded(ann=answered(tiny(), task_1=answer)).loc["ann", "points"] == 1


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP"])
def test_killed_by_the_system_is_no_score(name, graded, source):
    answer = f"import signal\nsignal.raise_signal(signal.{name})"
    write(graded.folder / "ann/1_tiny.ipynb", answered(tiny(), task_1=answer))
    told = []
    grade(graded.folder, LIMITS, source, tell=told.append)
    (row,) = told
    assert row["fault"] and f"killed by the system ({name})" in row["note"]
    told.clear()
    write(graded.folder / "ann/1_tiny.ipynb", answered(tiny(), task_1=RIGHT))
    grade(graded.folder, LIMITS, source, tell=told.append)
    assert not told[0]["fault"] and told[0]["tasks"] == {"test-1": 2, "test-2": 1}


@pytest.mark.parametrize(
    ("error", "sent"),
    [(ValueError("odd"), ["internal error: ValueError: odd"]), (MemoryError(), [])],
)
def test_an_internal_error_is_a_fault_but_memory_is_the_answers_to_spare(error, sent, monkeypatch):
    messages = []
    monkeypatch.setattr(pytest_plugin, "_SEND", [messages.append])
    try:
        raise error
    except type(error):
        pytest_plugin.pytest_internalerror("", pytest.ExceptionInfo.from_current())
    assert [message["fault"] for message in messages] == sent


def test_a_name_that_is_no_text_is_shown(tmp_path, source):
    (tmp_path / "in/ann").mkdir(parents=True)
    (tmp_path / "in/ann" / os.fsdecode(b"notes\xff.pdf")).touch()
    (row,) = rows_of(grade(tmp_path / "in", LIMITS, source).parent).to_dict("records")
    assert "notes\\udcff.pdf" in row["note"]


def test_too_much_of_the_processor_is_a_score(graded):
    answer = "import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0)\nwhile True: pass\n"
    row = graded(Limits(cell=20, wall=30, cpu=2), ann=answered(tiny(), task_1=answer)).loc["ann"]
    assert row["points"] == 0 and "processor time" in row["note"]


def test_a_fault_keeps_what_is_remembered_of_others(graded, source, monkeypatch):
    graded(ann=answered(tiny(), task_1=RIGHT))
    write(graded.folder / "bob/1_tiny.ipynb", tiny())
    told = []
    with monkeypatch.context() as broken:
        _no_process(broken)
        grade(graded.folder, LIMITS, source, tell=told.append)
    assert [row["student"] for row in told] == ["bob"]
    assert rows_of(graded.folder)["points"].tolist() == ["3", ""]


@pytest.mark.nightly
def test_a_batch_of_many(graded, source):
    """Five endless loops, three crashes, two readers of hidden tests: a score for everyone."""
    reader = f"hidden = open({str(source / '1_tiny.ipynb')!r}).read()"
    odd = [LOOP] * 5 + ["import os; os.abort()"] * 3 + [reader] * 2
    handed = {
        f"student{number:03}": answered(tiny(), task_1=odd[number] if number < 10 else RIGHT)
        for number in range(100)
    }
    table = graded(Limits(cell=2, wall=4, cpu=4), **handed)
    assert len(table) == 100 and table["points"].notna().all()
    assert (table["points"][10:] == 3).all()
    notes = table["note"]
    assert notes[:5].str.contains("stopped after|processor time").all()
    assert notes[5:8].str.contains("SIGABRT").all()
    assert notes[8:10].str.contains("reading the instructor's files").all()
    assert (notes[10:] == "").all()
    assert TEST not in "".join(feedback(graded, name) for name in table.index)
    assert not os.path.exists("/tmp/mark-of-course")


def test_plain_pytest_grades_one_notebook(tmp_path):
    (name, path), *_ = sources().items()
    blank = {"cells": [one for one in read(path)["cells"] if one["cell_type"] == "markdown"]}
    write(tmp_path / f"{name}.ipynb", blank)
    words = [sys.executable, "-m", "pytest", "-p", "repro_course.pytest_plugin", "-c", os.devnull]
    done = subprocess.run(
        [*words, "-p", "no:cacheprovider", f"{name}.ipynb"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{PACKAGE.parent}{os.pathsep}{PLACE}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "test-1" in done.stdout and "is not defined yet" in done.stdout


def test_an_interrupted_run_is_taken_up(graded, source):
    """Ctrl-C writes the table of what is done, kills what runs, and the next run does the rest."""
    write(graded.folder / "ann" / "1_tiny.ipynb", answered(tiny(), task_1=RIGHT))
    write(graded.folder / "bob" / "1_tiny.ipynb", answered(tiny(), task_1=LOOP))

    def stop(row):
        raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        grade(graded.folder, LIMITS, source, jobs=2, tell=stop)
    assert time.monotonic() - begun < 30
    assert pd.read_csv(graded.folder / "grades.csv")["student"].tolist() == ["ann"]
    told = []
    write(graded.folder / "bob" / "1_tiny.ipynb", tiny())
    grade(graded.folder, LIMITS, source, tell=told.append)
    assert [row["student"] for row in told] == ["bob"]
