"""Colour, line, marker and hatch of each policy, the same in every figure of every paper."""

import functools
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from repro.base import paths

Dash = str | tuple[float, tuple[float, ...]]
Parts = list[tuple["Look", pd.DataFrame]]

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
    """How one series is drawn; line, marker and hatch are matplotlib's."""

    #: name in the legend
    label: str
    #: hex; colours that meet in one figure differ in luminance too
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
        """Relative luminance, 0 black to 1 white: what is left of the colour in greyscale."""
        red, green, blue = (int(self.color[i : i + 2], 16) / 255 for i in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue


#: For what is no policy; far from every colour of a policy (a test measures it).
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
_SOLE = Look("", _COLORS[0], "-", "o", "")


def look(name: object) -> Look:
    """Return the look of a series: bound to it if it is a known policy, else by a hash of its name.

    >>> look("tiresias-l").label, look("K=2") == look("K=2")
    ('Tiresias-L', True)
    """
    return looks([name])[str(name)]


def looks(names: Iterable[object]) -> dict[str, Look]:
    """Return the looks of the series of one chart; unknown names share one only where all are."""
    unique = list(dict.fromkeys(map(str, names)))
    chosen = {name: _known()[name] for name in unique if name in _known()}
    taken = {_COLORS.index(one.color) for one in chosen.values() if one.color in _COLORS}
    lines = list(_LINES.values())
    for name in unique:
        if name in chosen:
            continue
        slot = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % len(_COLORS)
        while slot in taken and len(taken) < len(_COLORS):
            slot = (slot + 1) % len(_COLORS)
        taken.add(slot)
        line_of_slot = lines[slot % len(lines)]
        chosen[name] = Look(name, _COLORS[slot], line_of_slot, _MARKERS[slot], _HATCHES[slot])
    return {name: chosen[name] for name in unique}


@functools.cache
def _known() -> dict[str, Look]:
    """Return the looks of the series that have one of their own, rows of ``looks.csv``."""
    table = pd.read_csv(paths.PACKAGE / "plot" / "looks.csv", dtype=str, keep_default_na=False)
    table["line"] = table["line"].map(_LINES)
    return {name: Look(*row) for name, *row in table.itertuples(index=False)}


def by_series(series: str | None, *frames: pd.DataFrame | None) -> list[Parts]:
    """Split the frames of one chart by the names in a column, in order of appearance, with looks.

    Without a column each frame stays whole; None has no parts.
    """
    if series is None:
        return [[] if frame is None else [(_SOLE, frame)] for frame in frames]
    names = [() if frame is None else frame[series].astype(str) for frame in frames]
    chosen = looks(name for column in names for name in column)
    return [
        []
        if frame is None
        else [(chosen[str(name)], rows) for name, rows in frame.groupby(column, sort=False)]
        for frame, column in zip(frames, names, strict=True)
    ]
