"""What a finished figure says about itself: title line, table, result record, verdict frame."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from repro import __version__
from repro.claims import Verdict, worst
from repro.params import FigureSpec
from repro.tolerance import show

#: Libraries whose version can move a number or a line of a picture.
RECORDED = ("matplotlib", "networkx", "numpy", "pandas", "scipy", "simpy")


def versions() -> dict[str, str]:
    """Return the versions of Python, this package and the libraries results depend on."""
    found = {"python": platform.python_version(), "repro": __version__}
    return found | {name: importlib.metadata.version(name) for name in RECORDED}


def title_line(spec: FigureSpec, run: Mapping[str, Any], verdicts: Sequence[Verdict]) -> str:
    """Return the line under a figure: paper, number, profile, seed, worst verdict, stand-in."""
    parts = [
        spec.paper.capitalize(),
        spec.reference,
        f"profile {run['profile']}",
        f"seed {run['seed']}",
        worst(verdict.outcome for verdict in verdicts) or "no claims",
    ]
    return " · ".join([*parts, run["stand_in"]] if run["stand_in"] else parts)


def table_bytes(table: pd.DataFrame, stand_in: str | None) -> bytes:
    """Return a table as CSV, ten digits a number, with a column that names a stand-in."""
    shown = table if stand_in is None else table.assign(stand_in=stand_in)
    text = shown.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    return str(text).encode()


def result(
    figure_id: str,
    spec: FigureSpec,
    run: Mapping[str, Any],
    verdicts: Sequence[Verdict],
    inputs: Mapping[str, Any],
    used: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the content of ``result.json``, all but the wall time.

    Parameters
    ----------
    figure_id : str
        ``<paper>/<stem>``.
    spec : FigureSpec
        The parameter file.
    run : mapping
        profile, seed, stand_in.
    verdicts : sequence of Verdict
        One per claim.
    inputs : mapping
        Inputs after profile and overrides.
    used : sequence of mapping
        Rows of provenance.
    """
    return {
        "id": figure_id,
        "paper": spec.paper,
        "title": spec.title,
        "reference": spec.reference,
        "shows": spec.shows,
        **run,
        "params": inputs,
        "data": used,
        "versions": versions(),
        "verdict": worst(verdict.outcome for verdict in verdicts),
        "claims": [verdict.row() for verdict in verdicts],
    }


def verdict_frame(verdicts: Sequence[Verdict], stand_in: str | None) -> pd.DataFrame:
    """Return one row per claim for display at the end of a notebook."""
    columns = ["claim", "published", "ours", "tolerance", "certainty", "source", "verdict"]
    rows = [
        (
            verdict.claim.what,
            show(verdict.claim.published),
            show(verdict.ours),
            verdict.claim.tolerance(),
            verdict.claim.certainty,
            verdict.claim.source,
            verdict.outcome,
        )
        for verdict in verdicts
    ]
    frame = pd.DataFrame(rows, columns=columns)
    return frame if stand_in is None else frame.assign(data=stand_in)
