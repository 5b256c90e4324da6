"""Parameters of a notebook: names and defaults of its file, and values that papermill passed."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from repro.base.errors import ParamError, refuse_unknown
from repro.base.ipython import shell
from repro.figures.params import FigureEntry

#: Parameter with the id of the figure, in a notebook of several figures.
FIGURE_ID = "figure_id"
#: Parameters that say which figure is plotted, at which size, and where its results go.
RUN_PARAMETERS = frozenset({FIGURE_ID, "profile", "out"})
#: First line of the cell that papermill adds below the parameters cell.
_INJECTED = "# Parameters\n"


def cells(notebook: Path) -> list[tuple[str, str, list[str]]]:
    """Type, source and tags of each cell, without outputs and counters."""
    try:
        json_cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        tags = [list(cell.get("metadata", {}).get("tags", [])) for cell in json_cells]
        return [
            (str(cell["cell_type"]), "".join(cell["source"]), cell_tags)
            for cell, cell_tags in zip(json_cells, tags, strict=True)
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ParamError(
            f"{notebook}: not a notebook ({type(error).__name__}: {error}); open it in JupyterLab"
        ) from None


def notebook_defaults(notebook: Path) -> dict[str, Any]:
    """Default value of each name in the parameters cell; ``...`` if it is no literal."""
    tagged = [source for kind, source, tags in cells(notebook) if "parameters" in tags]
    if not tagged:
        raise ParamError(f"{notebook}: no cell is tagged `parameters`; tag the first one")
    try:
        body = ast.parse(tagged[0]).body
    except SyntaxError as error:
        raise ParamError(
            f"{notebook}: the parameters cell is not Python (line {error.lineno})"
        ) from None
    values: dict[str, Any] = {}
    for statement in body:
        if isinstance(statement, ast.Assign):
            names = statement.targets
            value = statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            names = [statement.target]
            value = statement.value
        else:
            continue
        values |= {name.id: _literal(value) for name in names if isinstance(name, ast.Name)}
    return values


def parameter_defaults(entry: FigureEntry) -> dict[str, Any]:
    """Names and values of the parameters of a figure's notebook, as `notebook_defaults`.

    If the figure uses a notebook with another stem than its own, that notebook must have the
    parameter ``figure_id``. A parameter ``seed`` must be a whole number, because a run with another
    seed is a variation.
    """
    values = notebook_defaults(entry.notebook)
    if entry.names_notebook and FIGURE_ID not in values:
        raise ParamError(
            f"{entry.notebook}: the parameters cell has no {FIGURE_ID}, but {entry.id} names this "
            f'notebook; add `{FIGURE_ID} = "{entry.id}"`'
        )
    if type(values.get("seed", 0)) is not int:
        raise ParamError(
            f"{entry.notebook}: the seed in the parameters cell is not written as a whole number; "
            f"write one, such as `seed = 0`"
        )
    return values


def default_seed(parameters: Mapping[str, Any]) -> int:
    """Seed of a notebook with these parameters, as `parameter_defaults`; 0 without one."""
    return int(parameters.get("seed", 0))


def check_seed_parameter(seed: Any) -> None:
    """Refuse a notebook's seed that is no ``int`` of 0 or more, as in its file of parameters."""
    if type(seed) is not int or seed < 0:
        raise ParamError(f"seed is {seed!r:.60}; give a whole number of 0 or more")


def _literal(value: ast.expr) -> Any:
    """Value of a literal; ``...`` for any other expression."""
    try:
        return ast.literal_eval(value)
    except ValueError:
        return ...


@dataclass(frozen=True)
class Kernel:
    """The running kernel: the code cells of the figure's notebook, and papermill's parameters.

    ``code`` are the cells in the file when the figure was opened.
    """

    code: list[str]
    parameters: dict[str, Any]

    @classmethod
    def running(cls, entry: FigureEntry) -> Kernel:
        """Describe the kernel of this process; refuse parameters that the notebook does not have.

        papermill itself would only log them.
        """
        code = [
            (source.rstrip(), tags)
            for kind, source, tags in cells(entry.notebook)
            if kind == "code" and source.strip()
        ]
        tagged = [source for source, tags in code if "parameters" in tags]
        assigned: dict[str, Any] = {}
        for previous, cell in pairwise(_executed()):
            if previous in tagged and cell.startswith(_INJECTED):
                # The cell has only papermill's assignments, and this kernel has run it already.
                exec(cell, {}, assigned)
        parameters = {
            name: value for name, value in assigned.items() if not name.startswith("PAPERMILL_")
        }
        refuse_unknown(f"{entry.id} has no parameter", parameters, parameter_defaults(entry))
        return cls([source for source, _ in code], parameters)

    def is_faithful(self) -> bool:
        """Whether this kernel has run the first cells of the file, each once and in order."""
        ran = [cell for cell in _executed() if not cell.startswith(_INJECTED)]
        return bool(ran) and ran == self.code[: len(ran)]


def _executed() -> list[str]:
    """Cells that the kernel of this process has run; none outside of a kernel."""
    history = getattr(shell(), "history_manager", None)
    return [] if history is None else [cell.rstrip() for cell in history.input_hist_raw[1:]]
