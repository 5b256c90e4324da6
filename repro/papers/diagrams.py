"""Boxes of the papers' diagrams and the modules of this package that implement them."""

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any

import pandas as pd


def diagram_boxes(inputs: Mapping[str, Any]) -> pd.DataFrame:
    """Boxes of a diagram for `repro.plot.diagram`; ``found``: whether all names of a box exist.

    The input ``rows`` is a list of rows, or a mapping from names of layers to rows. A row is a list
    of keys of ``boxes``, with None for an empty cell. A box is ``{is: label, by: a name or
    several}``; names omit ``repro.``.
    """
    rows = inputs["rows"]
    content = inputs["boxes"]
    lines = list(rows.items() if isinstance(rows, Mapping) else [("", row) for row in rows])
    widest = max(len(row) for _, row in lines)
    records = []
    for number, (layer, row) in enumerate(lines):
        for column, box in enumerate(row):
            if box is not None:
                by = content[box].get("by", [])
                names = [by] if isinstance(by, str) else by
                records.append(
                    {
                        "box": box,
                        "row": number,
                        "layer": layer,
                        "place": (column + 0.5) / len(row),
                        "room": 1 / widest,
                        "words": content[box]["is"],
                        "names": " ".join(names),
                        "found": all(map(exists, names)),
                    }
                )
    return pd.DataFrame(records)


def exists(name: str) -> bool:
    """Whether the package has a module, class or function of this name."""
    try:
        resolve_name(f"repro.{name}")
    except (ImportError, AttributeError, ValueError):
        return False
    return True
