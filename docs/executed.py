"""Notebooks of figures as pages of the site, with the outputs of the committed results.

The committed results are the outputs of these notebooks at the paper's size. A page has the cells
of its notebook, the committed picture and the committed verdicts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repro.figures.saved import (
    Verdicts,
    damaged,
    read_result,
    shown_values,
    verdict_counts,
    verdict_word,
)

ROOT = Path(__file__).resolve().parents[1]
_COLUMNS = ["verdict", "claim", "published", "ours", "tolerance", "source"]


def notebook(figure: str) -> dict[str, Any]:
    """Notebook of a figure, executed at the paper's size.

    Raises
    ------
    ValueError
        If the committed files are not those of the result, or if the notebook lacks a cell that
        shows the picture or the verdicts.
    """
    stem = figure.split("/")[1]
    folder = ROOT / "figures" / figure
    result, problem = read_result(folder)
    if problem or result["profile"] != "paper" or damaged(folder, stem, result):
        raise ValueError(f"figures/{figure}: no complete result at the paper's size; {problem}")
    document: dict[str, Any] = json.loads((ROOT / "notebooks" / f"{figure}.ipynb").read_text())
    picture = {"image/svg+xml": (folder / f"{stem}.svg").read_text()}
    cells = []
    shown = 0
    for cell in document["cells"]:
        cells.append(cell)
        code = "".join(cell["source"]) if cell["cell_type"] == "code" else ""
        if "parameters" in cell["metadata"].get("tags", []):
            cells.append(_code(f'profile = "{result["profile"]}"'))
        elif code.endswith("\nplot"):
            cell["outputs"] = [_output(picture)]
            shown += 1
        elif "\nfig.save(" in code:
            cell["outputs"] = [_output({"text/html": verdicts(result)._repr_html_()})]
            shown += 1
    if shown != 2:
        raise ValueError(
            f"notebooks/{figure}.ipynb: {shown} cells show picture and verdicts, not 2"
        )
    executed = [cell for cell in cells if cell["cell_type"] == "code"]
    for number, cell in enumerate(executed, start=1):
        cell["execution_count"] = number
    return {**document, "cells": [cells[0], _text(_origin(figure)), *cells[1:]]}


def verdicts(result: Mapping[str, Any]) -> Verdicts:
    """Verdicts of a result as its notebook shows them."""
    rows = []
    for claim in result["claims"]:
        published, ours, point = shown_values(claim)
        what = f"{claim['what']} ({point})" if point else claim["what"]
        values = {"published": published, "ours": ours, "tolerance": claim["tolerance"]}
        words = {"verdict": verdict_word(claim), "claim": what, "source": claim["source"]}
        rows.append({**words, **values})
    frame = Verdicts(rows, columns=_COLUMNS)
    frame.attrs["sentence"] = f"{'. '.join(verdict_counts(result['claims']))}."
    return frame


def _origin(figure: str) -> str:
    """Note on where the outputs come from."""
    return (
        "```{note}\n"
        f"Picture and verdicts are the committed result of `repro run {figure} --profile paper`. "
        f"The quick profile runs by `repro run {figure}`.\n"
        "```"
    )


def _code(source: str) -> dict[str, Any]:
    """Code cell without output."""
    return {"cell_type": "code", "id": "profile", "source": source, "metadata": {}, "outputs": []}


def _text(source: str) -> dict[str, Any]:
    """Markdown cell."""
    return {"cell_type": "markdown", "id": "origin", "source": source, "metadata": {}}


def _output(data: dict[str, str]) -> dict[str, Any]:
    """Output of a cell by MIME type."""
    return {"output_type": "display_data", "data": data, "metadata": {}}
