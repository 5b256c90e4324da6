"""What students may hand in: each file that cannot be graded has one line with its reason."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path

import pytest
from doors import NO_FILES, Case, check, parameters, refused

from repro.base.errors import ParamError
from repro_course.assignments import merge
from repro_course.handed import submissions

ANSI = "\x1b[31mred"


def cell(source, name, points=None, solution=False):
    """Cell of code as nbgrader marks it."""
    mark = {"grade": points is not None, "grade_id": name, "locked": not solution}
    mark |= {"schema_version": 3, "solution": solution, "task": False}
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
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


SHEET = notebook(
    cell("def half(n):\n    return n / 2", "task-1", solution=True),
    cell("assert half(4) == 2", "test-1", points=1),
)
SOURCE = {"source/1_tiny.ipynb": json.dumps(SHEET)}


def grade():
    """Read what a student handed in; the notes of files that cannot be graded are an error."""
    graded, ungraded = submissions(Path("in"), Path("source"))
    for one in ungraded:
        raise ParamError(one.note)
    for one in graded:
        cells = merge(one.handed.notebook(), SHEET)
        assert [part.points for part in cells if part.points] == [1]


def handed(id, content, *words, name="1_tiny.ipynb"):
    return refused(id, grade, *words, **{**SOURCE, f"in/ann/{name}": content})


def changed(keys, value):
    """Sheet with another value below ``keys``; the name of the key alone is removed for None."""
    content = json.loads(json.dumps(SHEET))
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    return json.dumps(content)


WRONG = {
    "null": None,
    "number": 4,
    "true": True,
    "text": "qqqq",
    "list of numbers": [1],
    "mapping": {"a": 1},
}
PLACES = {
    ("cells",): {"null", "number", "true", "text", "list of numbers", "mapping"},
    ("cells", 0): {"null", "number", "true", "text", "list of numbers", "mapping"},
    ("cells", 0, "source"): {"null", "number", "true", "list of numbers"},
    ("cells", 0, "metadata"): {"null", "number", "true", "text", "list of numbers"},
    ("cells", 1, "source"): {"null", "number", "true", "list of numbers"},
    ("cells", 1, "metadata"): {"null", "number", "true", "text", "list of numbers"},
}


def zipped(*names, content="{}", **settings):
    """Bytes of a zip archive with entries."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, **settings) as archive:
        for name in names:
            archive.writestr(name, content)
    return stream.getvalue()


def contents():
    """Files called as the notebook that are none, by fault."""
    good = json.dumps(SHEET)
    return {
        "empty": b"",
        "blanks": b" \n",
        "a word": b"notebook",
        "null": b"null",
        "a number": b"4",
        "a list": b"[]",
        "empty object": b"{}",
        "cut short": good[: len(good) // 2],
        "two notebooks": good + good,
        "trailing comma": good[:-1] + ",}",
        "single quotes": good.replace('"', "'"),
        "merge conflict": f"<<<<<<< HEAD\n{good}\n=======\n{good}\n>>>>>>> b\n",
        "Python": b"def half(n): return n / 2",
        "HTML page": b"<!DOCTYPE html><html></html>",
        "pickle": pickle.dumps(SHEET),
        "PNG": b"\x89PNG\r\n\x1a\n" + bytes(40),
        "PDF": b"%PDF-1.7\n",
        "UTF-16 cut short": good.encode("utf-16")[:99],
        "Latin-1 byte": good.encode()[:-1] + b'"\xe9": 1}',
        "NUL": good + "\0",
        "20,000 levels": b"[" * 20_000,
        "number of 5,000 digits": good.replace('"nbformat": 4', f'"nbformat": {"9" * 5000}'),
        "too large": b" " * (65 << 20),
        "notebook of version 3": json.dumps({"worksheets": [{"cells": []}], "nbformat": 3}),
        "sheet of R": json.dumps({"cells": [{"kind": 1}]}),
        "zip called a notebook": zipped("1_tiny.ipynb"),
    }


def all_cases():
    for fault, content in contents().items():
        yield handed(f"file: {fault}", content, "1_tiny.ipynb")
    for fault, content in NO_FILES.items():
        # an empty folder is no notebook
        words = [] if fault == "folder" else ["1_tiny.ipynb"]
        yield handed(f"file: {fault}", content, *words)
    for keys, faults in PLACES.items():
        for fault, value in WRONG.items():
            if fault in faults:
                name = ".".join(map(str, keys))
                yield handed(
                    f"{name}: {fault}", changed(keys, value), "1_tiny.ipynb", "no notebook"
                )
    for fault, name in {
        "terminal escape": f"{ANSI}.txt",
        "line end": "a\nb.txt",
        "reversed text": "a\u202egnp.txt",
        "formula": "=cmd|' -C calc'!A0.txt",
        "markup": "<script>.txt",
        "document": "answer.docx",
        "program": "answer.py",
    }.items():
        yield handed(f"other file, {fault}", "x", name=name)
    archives = {
        "no archive": b"hello",
        "empty": b"",
        "cut short": zipped("1_tiny.ipynb", content=json.dumps(SHEET))[:-30],
        "only other files": zipped("a.txt"),
        "path out of the folder": zipped("../../harmed.txt"),
        "absolute path": zipped("/etc/harmed.txt"),
        "no notebook in it": zipped("1_tiny.ipynb", content="hello"),
        "zip bomb": zipped("1_tiny.ipynb", content=" " * (66 << 20)),
        "5,000 entries": zipped(*(f"{number}.txt" for number in range(5000))),
        "terminal escape": zipped(f"{ANSI}.txt"),
    }
    for fault, content in archives.items():
        yield handed(f"archive: {fault}", content, name="all.zip")
    other = {"number": "4", "null": "null", "word": "hello", "no cells": '{"cells": []}'}
    for fault, content in other.items():
        files = {"source/1_tiny.ipynb": content, "in/ann/1_tiny.ipynb": json.dumps(SHEET)}
        yield refused(f"instructor's notebook: {fault}", grade, "source", **files)
    yield refused("no folder", grade, "in: no such folder", **SOURCE)
    yield refused("no students", grade, "in: no submissions", **SOURCE, **{"in/.hidden": ""})
    good = json.dumps(SHEET, indent=1)
    strange = {
        "plain": good,
        "byte-order mark": b"\xef\xbb\xbf" + good.encode(),
        "line ends of Windows": good.replace("\n", "\r\n"),
        "UTF-16": good.encode("utf-16"),
        "lines of source": changed(("cells", 0, "source"), ["def half(n):\n", "    return n / 2"]),
        "without marks": changed(("cells", 0, "metadata"), {}),
        "unknown keys": changed(("metadata",), {"a": [1]}),
        "answer of escapes": changed(("cells", 0, "source"), ANSI),
    }
    for fault, content in strange.items():
        files = {**SOURCE, "in/ann/1_tiny.ipynb": content}
        yield Case(f"accepted: {fault}", grade, (), files, code=0)


CASES = list(all_cases())


@pytest.mark.parametrize("case", parameters(CASES))
def test_a_hostile_submission(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(case, tmp_path)
