"""A notebook's parameters: what its file accepts, and what the kernel that runs it was given."""

from __future__ import annotations

import ast
import json
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from repro.base.errors import ParamError, refuse_unknown
from repro.figures.params import FigureEntry

#: How papermill begins the cell it adds below the parameters cell.
_INJECTED = "# Parameters\n"


def cells(notebook: Path) -> list[tuple[str, str, list[str]]]:
    """Return type, source and tags of each cell; outputs and counters do not matter."""
    try:
        found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        tags = [list(cell.get("metadata", {}).get("tags", [])) for cell in found]
        return [
            (str(cell["cell_type"]), "".join(cell["source"]), names)
            for cell, names in zip(found, tags, strict=True)
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ParamError(
            f"{notebook}: not a notebook ({type(error).__name__}: {error}); open it in JupyterLab"
        ) from None


def accepted(notebook: Path) -> dict[str, Any]:
    """Return the names in the parameters cell, each with its value; ``...`` if that is computed."""
    tagged = [source for kind, source, tags in cells(notebook) if "parameters" in tags]
    if not tagged:
        raise ParamError(f"{notebook}: no cell is tagged `parameters`; tag the first one")
    try:
        body = ast.parse(tagged[0]).body
    except SyntaxError as error:
        raise ParamError(
            f"{notebook}: the parameters cell is not Python (line {error.lineno})"
        ) from None
    found: dict[str, Any] = {}
    for statement in body:
        if isinstance(statement, ast.Assign):
            names = statement.targets
            value = statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            names = [statement.target]
            value = statement.value
        else:
            continue
        found |= {name.id: _plain(value) for name in names if isinstance(name, ast.Name)}
    return found


def _plain(value: ast.expr) -> Any:
    """Return the value of a literal, ``...`` for anything else."""
    try:
        return ast.literal_eval(value)
    except ValueError:
        return ...


@dataclass(frozen=True)
class Kernel:
    """The kernel that regenerates a figure, as far as it runs the figure's notebook.

    ``code`` are the file's code cells when the figure was opened, ``given`` what papermill gave.
    """

    code: list[str]
    given: dict[str, Any]

    @classmethod
    def running(cls, entry: FigureEntry) -> Kernel:
        """Return the kernel of this process; papermill only logs a parameter that is unknown."""
        found = [
            (source.rstrip(), tags)
            for kind, source, tags in cells(entry.notebook)
            if kind == "code" and source.strip()
        ]
        tagged = [source for source, tags in found if "parameters" in tags]
        given: dict[str, Any] = {}
        for before, cell in pairwise(_executed()):
            if before in tagged and cell.startswith(_INJECTED):
                # papermill's own assignments, which this kernel has run already
                exec(cell, {}, given)
        given = {name: given[name] for name in given if not name.startswith("PAPERMILL_")}
        refuse_unknown(f"{entry.id} has no parameter", given, accepted(entry.notebook))
        return cls([source for source, _ in found], given)

    def is_faithful(self) -> bool:
        """Tell whether this kernel has run the cells of the file, each once and in order."""
        ran = [cell for cell in _executed() if not cell.startswith(_INJECTED)]
        return bool(ran) and ran == self.code[: len(ran)]


def shell() -> Any:
    """Return the IPython of the kernel that is this process, or None outside of one."""
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def _executed() -> list[str]:
    """Return the cells that the kernel of this process has run; none outside of one."""
    history = getattr(shell(), "history_manager", None)
    return [] if history is None else [cell.rstrip() for cell in history.input_hist_raw[1:]]
