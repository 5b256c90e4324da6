"""``--extra FILE.py``: policies that a Python file registers for one command."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from repro.base.errors import ParamError
from repro.files.checks import shown
from repro.files.whole import read_small
from repro.model.policy import policies

ENDING = ".py"
#: Largest file (bytes).
_LARGEST_FILE = 1_000_000

ExtraFileOption = Annotated[
    list[str] | None,
    typer.Option("--extra", metavar="FILE.py", help="A file that registers policies; repeatable."),
]


def register_files(files: Iterable[str]) -> list[str]:
    """Run Python files that register policies; names of their policies, each once."""
    names: dict[str, None] = {}
    for text in files:
        if not text.endswith(ENDING):
            raise ParamError(f"--extra {shown(text)}: give a file FILE.py that registers policies")
        names |= dict.fromkeys(_registered_by(Path(text)))
    return list(names)


def _add_to_search_path(folder: Path) -> None:
    """Let the files of a folder import each other, in worker processes too.

    The folder comes last, so that its files replace no module of another place.
    """
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _line_in(path: Path, error: BaseException) -> int | None:
    """Line of a file at which running it failed; None: the file as a whole is at fault."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == str(path)
    ]
    return lines[-1] if lines else None


def _registered_by(path: Path) -> list[str]:
    """Names of the policies that a Python file registers."""
    before = {name: policies[name] for name in policies}
    source = read_small(path, _LARGEST_FILE, ParamError)
    _add_to_search_path(path.resolve().parent)
    try:
        # What `__main__` defines is sent to worker processes by value. The workers need not import
        # the file.
        exec(compile(source, str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})
    except (Exception, SystemExit) as error:
        line = _line_in(path, error)
        place = f"{path}:{line}" if line else str(path)
        # a syntax error of another file names that file in its text
        is_own = isinstance(error, SyntaxError) and error.filename == str(path)
        message = getattr(error, "msg", error) if is_own else error
        raise ParamError(f"--extra {place}: {type(error).__name__}: {message}") from error
    # a file that is given twice registers its policies again
    names = [name for name in policies if policies[name] is not before.get(name)]
    if not names:
        raise ParamError(f"--extra {path}: registers no policy; see @repro.register")
    return names
