"""The student's folder: notebooks without solutions and hidden tests, and a page to begin with."""

import json
from pathlib import Path
from typing import Any

import nbformat

from repro.base.errors import ParamError
from repro.files.whole import write_whole
from repro_course.assignments import sources

_PAGE = "README.md"


def release(folder: Path, source: Path | None = None) -> list[Path]:
    """Write what students get, as nbgrader would release it.

    Parameters
    ----------
    folder : Path
        A new or empty folder.
    source : Path, optional
        The instructors' notebooks; None: the course's own.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    ParamError
        The folder is not empty, or nbgrader is not installed.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ParamError(f"{folder}: is not empty; give a new folder")
    found = sources(source, ungraded=True)
    steps = _steps()
    made: dict[str, str] = {}
    for path in found.values():
        notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        resources: dict[str, Any] = {}
        for step in steps:
            notebook, resources = step.preprocess(notebook, resources)
        made[path.name] = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    page = next(iter(found.values())).parent / _PAGE
    if page.is_file():
        made[_PAGE] = page.read_text(encoding="utf-8")
    for name, text in made.items():
        write_whole(folder / name, text.encode())
    return [folder / name for name in made]


def _steps() -> list[Any]:
    """Return what nbgrader does to release a notebook."""
    try:
        from nbgrader import preprocessors as steps
    except ImportError:
        raise ParamError("nbgrader is not installed; `pip install nbgrader` brings it") from None
    return [
        steps.CheckCellMetadata(),
        steps.LockCells(),
        steps.ClearSolutions(),
        steps.ClearOutput(),
        steps.ClearHiddenTests(),
    ]
