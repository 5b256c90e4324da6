"""Colour, line, marker and hatch of each policy, the same in every figure of every paper."""

import functools
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from repro.base import paths
from repro.plot.names import names_in

Dash = str | tuple[float, tuple[float, ...]]
#: Looks and rows of the series of a chart.
SeriesRows = list[tuple["Look", pd.DataFrame]]

_LINES: dict[str, Dash] = {
    "solid": "-",
    "dash": (0, (4, 1.5)),
    "dot": (0, (1, 1.2)),
    "dashdot": (0, (5, 1.2, 1, 1.2)),
    "long": (0, (8, 2)),
    "dashdotdot": (0, (4, 1.2, 1, 1.2, 1, 1.2)),
}


@dataclass(frozen=True)
class Look:
    """Colour, line, marker and hatch of a series, in matplotlib's notation."""

    #: name in the legend
    label: str
    #: hexadecimal; colours of one figure differ in luminance, too
    color: str
    line: Dash
    marker: str
    hatch: str

    @property
    def bar(self) -> dict[str, Any]:
        """Keywords of matplotlib's bars."""
        return {
            "color": self.color,
            "hatch": self.hatch,
            "edgecolor": "white",
            "linewidth": 0.4,
            "label": self.label,
        }

    @property
    def luminance(self) -> float:
        """Relative luminance, 0 (black) to 1 (white): the colour in greyscale."""
        red, green, blue = (int(self.color[i : i + 2], 16) / 255 for i in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue


#: Looks of series without a row in looks.csv. A test measures their distance from all other looks.
_COLORS = (
    "#514b8a",
    "#989401",
    "#bb47ac",
    "#b3b6fd",
    "#671045",
    "#627127",
    "#6398fd",
    "#081879",
    "#d9d36a",
    "#ec8fd6",
    "#846edb",
    "#354e03",
)
_MARKERS = ("o", "^", "s", "v", "D", "P", "X", "<", ">", "h", "*", "d")
_HATCHES = ("", "//", "\\\\", "xx", "..", "++", "", "--", "///", "", "\\\\\\", "||")
#: Look of a chart's only series.
_SOLE = Look("", _COLORS[0], "-", "o", "")


def look(name: object) -> Look:
    """Look of a series: its row of ``looks.csv``, or a look chosen by a hash of its name.

    >>> look("tiresias-l").label, look("K=2") == look("K=2")
    ('Tiresias-L', True)
    """
    return looks([name])[str(name)]


def looks(names: Iterable[object]) -> dict[str, Look]:
    """Looks of the series of one chart; two series share a look only if no other look is free."""
    unique = list(dict.fromkeys(map(str, names)))
    chosen = {name: _listed_looks()[name] for name in unique if name in _listed_looks()}
    used_slots = {_COLORS.index(row.color) for row in chosen.values() if row.color in _COLORS}
    lines = list(_LINES.values())
    for name in unique:
        if name in chosen:
            continue
        slot = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % len(_COLORS)
        while slot in used_slots and len(used_slots) < len(_COLORS):
            slot = (slot + 1) % len(_COLORS)
        used_slots.add(slot)
        line = lines[slot % len(lines)]
        chosen[name] = Look(name, _COLORS[slot], line, _MARKERS[slot], _HATCHES[slot])
    return {name: chosen[name] for name in unique}


@functools.cache
def _listed_looks() -> dict[str, Look]:
    """Looks of ``looks.csv`` by name of series."""
    table = pd.read_csv(paths.PACKAGE / "plot" / "looks.csv", dtype=str, keep_default_na=False)
    table["line"] = table["line"].map(_LINES)
    return {name: Look(*row) for name, *row in table.itertuples(index=False)}


def by_series(series: str | None, *frames: pd.DataFrame | None) -> list[SeriesRows]:
    """Looks and rows of the series of each frame of a chart, a list per frame.

    ``series`` is the column of names. Series keep their order of appearance. Rows without a name
    are a series of their own. Without the column a frame is one series; a frame that is None has no
    series.
    """
    if series is None:
        return [[] if frame is None else [(_SOLE, frame)] for frame in frames]
    names = [() if frame is None else names_in(frame, series) for frame in frames]
    chosen = looks(name for column in names for name in column)
    return [
        []
        if frame is None
        else [(chosen[str(name)], rows) for name, rows in frame.groupby(column, sort=False)]
        for frame, column in zip(frames, names, strict=True)
    ]
