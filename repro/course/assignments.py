"""Assignments: the instructors' notebooks, and how a student's answers are put into them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from repro import paths
from repro.errors import ParamError
from repro.files.whole import read_small

_LARGEST = 20_000_000
#: Commands of Jupyter, which are no Python.
_MAGIC = re.compile(r"^(\s*)[%!].*$", re.MULTILINE)


class Cell(NamedTuple):
    """One cell of code to run: ``id`` is None for one that a student added."""

    id: str | None
    source: str
    #: 0 unless the cell is graded
    points: float = 0
    is_answer: bool = False


def sources(folder: Path | None = None, *, ungraded: bool = False) -> dict[str, Path]:
    """Return the instructors' notebooks by name, ``1_queues`` and so on.

    A notebook without a graded cell is a page to read, no assignment.

    Parameters
    ----------
    folder : Path, optional
        Where they are; None: the package's own.
    ungraded : bool
        With the pages to read, which students get but do not hand in.

    Examples
    --------
    >>> next(iter(sources()))
    '1_queues'
    """
    folder = paths.course_dir() if folder is None else folder
    found = {
        path.stem: path
        for path in sorted(folder.glob("[0-9]*_*.ipynb"))
        if ungraded or any(_grade(cell).get("grade") for cell in read(path)["cells"])
    }
    if not found:
        raise ParamError(
            f"{folder}: no assignments; they are called 1_queues.ipynb and so on, with graded cells"
        )
    return found


def read(path: Path) -> dict[str, Any]:
    """Read a notebook; ParamError if it is none."""
    text = read_small(path, _LARGEST, ParamError)
    try:
        notebook = json.loads(text)
        for one in notebook["cells"]:
            _ = one["cell_type"], _text(one), _grade(one)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ParamError(f"{path}: is no notebook; open it with Jupyter and save it") from None
    return dict(notebook)


def merge(student: Mapping[str, Any], instructor: Mapping[str, Any]) -> list[Cell]:
    """Return the cells to run: the instructor's, with the student's answers in their places.

    What students add stays behind the cell it followed. Cells of tests that they changed, moved or
    deleted do not matter. Figures, whose ids begin with ``figure``, are not drawn, and nothing
    behind the last graded cell is run.
    """
    known = {_grade(one).get("grade_id") for one in instructor["cells"]} - {None}
    answers: dict[str, str] = {}
    added: dict[str | None, list[str]] = {}
    seen: set[str] = set()
    last = None
    for one in student["cells"]:
        name = _grade(one).get("grade_id")
        if isinstance(name, str) and name in known and name not in seen:
            seen.add(name)
            last, answers[name] = name, _text(one)
        elif one["cell_type"] == "code":
            added.setdefault(last, []).append(_text(one))
    cells = [Cell(None, _MAGIC.sub(r"\1pass", text)) for text in added.get(None, [])]
    for one in instructor["cells"]:
        mark = _grade(one)
        name = mark.get("grade_id")
        if one["cell_type"] == "code":
            if not mark.get("solution") and not str(name).startswith("figure"):
                points = mark.get("points", 0) if mark.get("grade") else 0
                cells.append(Cell(name, _text(one), points))
            elif mark.get("solution") and name in answers:
                cells.append(Cell(name, _MAGIC.sub(r"\1pass", answers[name]), 0, True))
        if name is not None:
            cells += [Cell(None, _MAGIC.sub(r"\1pass", text)) for text in added.get(name, [])]
    end = max((number for number, cell in enumerate(cells) if cell.points), default=-1)
    return cells[: end + 1]


def _text(cell: Mapping[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _grade(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    mark = cell.get("metadata", {}).get("nbgrader", {})
    return mark if isinstance(mark, Mapping) else {}
