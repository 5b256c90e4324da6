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
#: Largest size of a notebook (bytes).
LARGEST = 20_000_000
#: Commands of Jupyter, which are not Python.
_MAGIC = re.compile(r"^(\s*)[%!].*$", re.MULTILINE)


class Cell(NamedTuple):
    """A cell of code to run. ``id`` is None if a student added the cell."""

    id: str | None
    source: str
    #: 0 unless the cell is graded
    points: float = 0
    is_answer: bool = False

    @property
    def is_instructors(self) -> bool:
        """Whether an instructor wrote the cell."""
        return self.id is not None and not self.is_answer


def own_folder() -> Path:
    """Folder of the course's own notebooks: in an installed package, else in the checkout."""
    installed = PLACE / "repro_course" / "notebooks"
    return installed if installed.is_dir() else PLACE.parent / "notebooks" / "course"


def sources(folder: Path | None = None, *, ungraded: bool = False) -> dict[str, Path]:
    """Paths of the instructors' notebooks by name, such as ``1_queues``.

    A notebook without a graded cell is a page to read, not an assignment.

    Parameters
    ----------
    folder : Path, optional
        Folder of the notebooks; None: the course's own.
    ungraded : bool
        Include the pages to read. Students get them but do not submit them.

    Examples
    --------
    >>> next(iter(sources()))
    '1_queues'
    """
    folder = own_folder() if folder is None else folder
    notebooks = {
        path.stem: path
        for path in sorted(folder.glob("[0-9]*_*.ipynb"))
        if ungraded or any(grade_mark(cell).get("grade") for cell in read(path)["cells"])
    }
    if not notebooks:
        raise ParamError(
            f"{folder}: no assignments; they are called 1_queues.ipynb and so on, with graded cells"
        )
    return notebooks


def read(path: Path) -> dict[str, Any]:
    """Read a notebook; ParamError if the file is not a notebook."""
    return parse(read_small(path, LARGEST, ParamError), str(path))


def parse(content: str | bytes, name: str) -> dict[str, Any]:
    """Parse a notebook. A ParamError that begins with ``name`` says that it is not a notebook."""
    try:
        notebook = json.loads(content)
        # Each cell must have what `merge` reads.
        for cell in notebook["cells"]:
            _ = cell["cell_type"], text_of(cell), grade_mark(cell)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ParamError(f"{name}: is no notebook; open it with Jupyter and save it") from None
    return dict(notebook)


def merge(student: Mapping[str, Any], instructor: Mapping[str, Any]) -> list[Cell]:
    """Cells to run: the instructor's cells, with the student's answers in their places.

    A cell that a student added stays behind the cell that it followed. Test cells that the student
    changed, moved or deleted have no effect. Cells whose ids begin with ``figure`` are left out,
    and so are all cells behind the last graded cell.
    """
    instructor_ids = {grade_mark(cell).get("grade_id") for cell in instructor["cells"]} - {None}
    answers: dict[str, str] = {}
    added_after: dict[str | None, list[str]] = {}
    last_id = None
    for cell in student["cells"]:
        cell_id = grade_mark(cell).get("grade_id")
        if isinstance(cell_id, str) and cell_id in instructor_ids and cell_id not in answers:
            last_id = cell_id
            answers[cell_id] = text_of(cell)
        elif cell["cell_type"] == "code":
            added_after.setdefault(last_id, []).append(text_of(cell))
    merged = [Cell(None, _without_magic(text)) for text in added_after.get(None, [])]
    for cell in instructor["cells"]:
        mark = grade_mark(cell)
        cell_id = mark.get("grade_id")
        if cell["cell_type"] == "code":
            if not mark.get("solution") and not str(cell_id).startswith("figure"):
                points = mark.get("points", 0) if mark.get("grade") else 0
                merged.append(Cell(cell_id, text_of(cell), points))
            elif mark.get("solution") and cell_id in answers:
                merged.append(Cell(cell_id, _without_magic(answers[cell_id]), 0, True))
        if cell_id is not None:
            merged += [Cell(None, _without_magic(text)) for text in added_after.get(cell_id, [])]
    last_graded = max((number for number, cell in enumerate(merged) if cell.points), default=-1)
    return merged[: last_graded + 1]


def _without_magic(source: str) -> str:
    """Source of a cell with ``pass`` in place of Jupyter's commands."""
    return _MAGIC.sub(r"\1pass", source)


def points_of(notebook: Mapping[str, Any]) -> dict[str, float]:
    """Points of the graded cells of an instructor's notebook, by id."""
    return {str(cell.id): cell.points for cell in merge(notebook, notebook) if cell.points}


def text_of(cell: Mapping[str, Any]) -> str:
    """Source of a cell, which a notebook stores as one text or as a list of lines."""
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def grade_mark(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    """Marks of nbgrader on a cell; empty if the cell has none."""
    mark = cell.get("metadata", {}).get("nbgrader", {})
    return mark if isinstance(mark, Mapping) else {}
