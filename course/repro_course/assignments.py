"""Assignments: the instructors' notebooks, and how a student's answers are put into them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from repro.base.errors import ParamError
from repro.files.whole import read_small

#: Folder that holds the package.
PLACE = Path(__file__).resolve().parent.parent
#: Bytes of a notebook.
LARGEST = 20_000_000
#: Commands of Jupyter, which are no Python.
_MAGIC = re.compile(r"^(\s*)[%!].*$", re.MULTILINE)


class Cell(NamedTuple):
    """One cell of code to run: ``id`` is None for one that a student added."""

    id: str | None
    source: str
    #: 0 unless the cell is graded
    points: float = 0
    is_answer: bool = False

    @property
    def is_instructors(self) -> bool:
        """Whether no student wrote it."""
        return self.id is not None and not self.is_answer


def own_folder() -> Path:
    """Folder of the course's own notebooks: in an installed package, else in the checkout."""
    packed = PLACE / "repro_course" / "notebooks"
    return packed if packed.is_dir() else PLACE.parent / "notebooks" / "course"


def sources(folder: Path | None = None, *, ungraded: bool = False) -> dict[str, Path]:
    """Return the instructors' notebooks by name, ``1_queues`` and so on.

    A notebook without a graded cell is a page to read, no assignment.

    Parameters
    ----------
    folder : Path, optional
        Where they are; None: the course's own.
    ungraded : bool
        With the pages to read, which students get but do not hand in.

    Examples
    --------
    >>> next(iter(sources()))
    '1_queues'
    """
    folder = own_folder() if folder is None else folder
    found = {
        path.stem: path
        for path in sorted(folder.glob("[0-9]*_*.ipynb"))
        if ungraded or any(grade_mark(cell).get("grade") for cell in read(path)["cells"])
    }
    if not found:
        raise ParamError(
            f"{folder}: no assignments; they are called 1_queues.ipynb and so on, with graded cells"
        )
    return found


def read(path: Path) -> dict[str, Any]:
    """Read a notebook; ParamError if it is none."""
    return parse(read_small(path, LARGEST, ParamError), str(path))


def parse(content: str | bytes, name: str) -> dict[str, Any]:
    """Parse a notebook; ParamError, which calls it ``name``, if it is none."""
    try:
        notebook = json.loads(content)
        for one in notebook["cells"]:
            _ = one["cell_type"], text_of(one), grade_mark(one)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ParamError(f"{name}: is no notebook; open it with Jupyter and save it") from None
    return dict(notebook)


def merge(student: Mapping[str, Any], instructor: Mapping[str, Any]) -> list[Cell]:
    """Return the cells to run: the instructor's, with the student's answers in their places.

    What students add stays behind the cell it followed. Cells of tests that they changed, moved or
    deleted do not matter. Figures, whose ids begin with ``figure``, are not drawn, and nothing
    behind the last graded cell is run.
    """
    known = {grade_mark(one).get("grade_id") for one in instructor["cells"]} - {None}
    answers: dict[str, str] = {}
    added: dict[str | None, list[str]] = {}
    seen: set[str] = set()
    last = None
    for one in student["cells"]:
        name = grade_mark(one).get("grade_id")
        if isinstance(name, str) and name in known and name not in seen:
            seen.add(name)
            last = name
            answers[name] = text_of(one)
        elif one["cell_type"] == "code":
            added.setdefault(last, []).append(text_of(one))
    cells = [Cell(None, _MAGIC.sub(r"\1pass", text)) for text in added.get(None, [])]
    for one in instructor["cells"]:
        mark = grade_mark(one)
        name = mark.get("grade_id")
        if one["cell_type"] == "code":
            if not mark.get("solution") and not str(name).startswith("figure"):
                points = mark.get("points", 0) if mark.get("grade") else 0
                cells.append(Cell(name, text_of(one), points))
            elif mark.get("solution") and name in answers:
                cells.append(Cell(name, _MAGIC.sub(r"\1pass", answers[name]), 0, True))
        if name is not None:
            cells += [Cell(None, _MAGIC.sub(r"\1pass", text)) for text in added.get(name, [])]
    end = max((number for number, cell in enumerate(cells) if cell.points), default=-1)
    return cells[: end + 1]


def points_of(notebook: Mapping[str, Any]) -> dict[str, float]:
    """Points of the graded cells of an instructor's notebook, by id."""
    return {str(cell.id): cell.points for cell in merge(notebook, notebook) if cell.points}


def text_of(cell: Mapping[str, Any]) -> str:
    """Read the source of a cell, which notebooks hold as text or as lines."""
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def grade_mark(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read what nbgrader notes of a cell, empty where there is nothing."""
    mark = cell.get("metadata", {}).get("nbgrader", {})
    return mark if isinstance(mark, Mapping) else {}
