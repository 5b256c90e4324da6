"""The student's folder: notebooks without solutions and hidden tests, and a page to begin with."""

import json
from pathlib import Path
from typing import Any

import nbformat

from repro.base.errors import ParamError
from repro.files.whole import write_whole
from repro_course.assignments import sources

#: Page to begin with.
_PAGE = "README.md"


def release(folder: Path, source: Path | None = None) -> list[Path]:
    """Write the student's folder, with notebooks as nbgrader releases them.

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
        If the folder is not empty, or nbgrader is not installed.

    Examples
    --------
    Nothing is written into a folder that has files:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     _ = (Path(name) / "notes.txt").write_text("mine")
    ...     release(Path(name))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    repro.base.errors.ParamError: ...: is not empty; give a new folder
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ParamError(f"{folder}: is not empty; give a new folder")
    notebook_paths = sources(source, ungraded=True)
    steps = _steps()
    contents: dict[str, str] = {}
    for path in notebook_paths.values():
        notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        resources: dict[str, Any] = {}
        for step in steps:
            notebook, resources = step.preprocess(notebook, resources)
        contents[path.name] = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    page = next(iter(notebook_paths.values())).parent / _PAGE
    if page.is_file():
        contents[_PAGE] = page.read_text(encoding="utf-8")
    for name, text in contents.items():
        write_whole(folder / name, text.encode())
    return [folder / name for name in contents]


def _steps() -> list[Any]:
    """Steps by which nbgrader releases a notebook."""
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
