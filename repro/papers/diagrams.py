"""Diagrams of the papers: which parts they have, and what of this package does each one's work."""

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any

import pandas as pd


def parts(inputs: Mapping[str, Any]) -> pd.DataFrame:
    """Return the boxes of a diagram for `repro.plot.diagram`, and whether their names are found.

    ``rows`` of the inputs are lists of keys of ``boxes``, None for an empty place, by name if they
    are layers; a box is ``{is: its words, by: a name or several}``, names without ``repro.``.
    """
    rows = inputs["rows"]
    boxes = inputs["boxes"]
    lines = list(rows.items() if isinstance(rows, Mapping) else [("", row) for row in rows])
    most = max(len(row) for _, row in lines)
    records = []
    for number, (layer, row) in enumerate(lines):
        for place, box in enumerate(row):
            if box is not None:
                by = boxes[box].get("by", [])
                names = [by] if isinstance(by, str) else by
                at = {"row": number, "layer": layer, "place": (place + 0.5) / len(row)}
                says = {"words": boxes[box]["is"], "names": " ".join(names)}
                records.append(
                    {"box": box, **at, "room": 1 / most, **says, "found": all(map(is_here, names))}
                )
    return pd.DataFrame(records)


def is_here(name: str) -> bool:
    """Tell whether the package has a module, class or function of this name."""
    try:
        resolve_name(f"repro.{name}")
    except (ImportError, AttributeError, ValueError):
        return False
    return True
