"""Colour, line, marker and hatch of each policy, the same in every figure of every paper."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

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
            "color": self.color, "hatch": self.hatch, "edgecolor": "white", "linewidth": 0.4,
            "label": self.label,
        }  # fmt: skip

    @property
    def luminance(self) -> float:
        """Relative luminance, 0 black to 1 white: what is left of the colour in greyscale."""
        red, green, blue = (int(self.color[i : i + 2], 16) / 255 for i in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# name: (label, colour, line, marker, hatch)
_KNOWN: dict[str, tuple[str, str, str, str, str]] = {
    "yarn-cs": ("YARN-CS", "#1c1c1c", "solid", "s", ""),
    "best-effort": ("Best-effort", "#9a9a9a", "dot", "D", "//"),
    "sf": ("SF", "#e3b23c", "long", "<", ".."),
    "srtf": ("SRTF", "#e8891c", "dashdot", "^", "\\\\"),
    "srsf": ("SRSF", "#b23a2e", "long", ">", "xx"),
    "las-2d": ("2D-LAS", "#3b7f8c", "dash", "h", "++"),
    "gittins-2d": ("2D-Gittins", "#93c9c4", "dot", "8", "--"),
    "tiresias-l": ("Tiresias-L", "#1f5fb4", "solid", "o", ""),
    "tiresias-g": ("Tiresias-G", "#6fb4e8", "dash", "v", "///"),
    "gandiva": ("Gandiva", "#4f9d5b", "dashdotdot", "P", "oo"),
    "muri-s": ("Muri-S", "#6a1b9a", "solid", "o", ""),
    "muri-l": ("Muri-L", "#b583d8", "dash", "v", "///"),
    "muri-l-2": ("Muri-L, 2 per group", "#3f2357", "long", "s", ""),
    "muri-l-3": ("Muri-L, 3 per group", "#7a4da0", "dashdot", "^", "\\\\"),
    "muri-l-worst": ("Muri-L, worst ordering", "#54306f", "long", ">", "xx"),
    "muri-l-unmatched": ("Muri-L, no Blossom", "#93809f", "dashdot", "<", ".."),
    "antman": ("AntMan", "#8a5a34", "dashdot", "X", "++"),
    "themis": ("Themis", "#c7a27c", "dot", "*", ".."),
    "afs": ("AFS", "#c25a2a", "dash", "s", "\\\\"),
    "srsf-elastic": ("Tiresias", "#1f5fb4", "long", ">", "xx"),
    "fifo-elastic": ("FIFO", "#b9b9b9", "dot", "D", ""),
    "max-min": ("Max-Min", "#1c1c1c", "dashdotdot", "P", "++"),
    "pcs": ("PCS", "#14532d", "solid", "o", ""),
    "pcs-jct": ("PCS-JCT", "#14532d", "solid", "o", ""),
    "pcs-bal": ("PCS-bal", "#33a866", "dashdot", "^", "//"),
    "pcs-pred": ("PCS-pred", "#a6dba0", "long", "v", "--"),
    "gavel-las": ("Gavel", "#00695c", "solid", "o", ""),
    "las-agnostic": ("LAS", "#8d8d8d", "dash", "s", "//"),
    "gavel-las-ss": ("Gavel w/ SS", "#58b8a8", "dashdot", "v", "///"),
    "gavel-fifo": ("Gavel FIFO", "#33691e", "solid", "o", ""),
    "fifo-agnostic": ("FIFO", "#7d7d7d", "dash", "s", "//"),
    "gavel-fifo-ss": ("Gavel FIFO w/ SS", "#8bb174", "dashdot", "v", "///"),
    "gavel-sjf": ("Gavel SJF", "#9bc26b", "dashdot", "^", "\\\\"),
    "gavel-makespan": ("Gavel makespan", "#ad1457", "solid", "o", ""),
    "makespan-agnostic": ("Makespan", "#e58fb1", "dash", "s", "//"),
    "gavel-makespan-ss": ("Gavel makespan w/ SS", "#f06292", "dashdot", "v", "///"),
    "gavel-ftf": ("Gavel FTF", "#4527a0", "solid", "o", ""),
    "ftf-agnostic": ("FTF", "#a391da", "dash", "s", "//"),
    "gavel-max-throughput": ("Max throughput", "#d84315", "long", "D", "xx"),
    "gavel-min-cost": ("Min cost", "#f0b429", "dot", "<", ".."),
    "gavel-min-cost-slo": ("Min cost w/ SLOs", "#8a6100", "dashdotdot", ">", "--"),
    "gavel-water-filling": ("Water filling", "#01579b", "dashdot", "P", "oo"),
    "gavel-hierarchical": ("Hierarchical", "#263238", "long", "h", "++"),
    "gavel-strategy-proof": ("Strategy-proof", "#78909c", "dashdotdot", "8", "--"),
    "allox": ("AlloX", "#c0392b", "dashdot", "^", "\\\\"),
    "gandiva-ss": ("Gandiva w/ SS", "#86c58e", "dot", "X", "oo"),
    "LAS (low)": ("LAS, low priority", "#a3a3a3", "dash", "s", "//"),
    "LAS (high)": ("LAS, high priority", "#4a4a4a", "dot", "D", "xx"),
    "Gavel (low)": ("Gavel, low priority", "#58b8a8", "solid", "o", ""),
    "Gavel (high)": ("Gavel, high priority", "#00695c", "dashdot", "^", "///"),
    "360 s": ("360 s", "#0b7a75", "solid", "o", ""),
    "720 s": ("720 s", "#c9971c", "dash", "s", "//"),
    "1440 s": ("1440 s", "#7a4a24", "dashdot", "^", "\\\\"),
    "2880 s": ("2880 s", "#1a1a1a", "dot", "v", "xx"),
    "ideal, artifact": ("Ideal, artifact", "#8f8f8f", "long", "X", ".."),
    "ideal, fluid": ("Ideal, fluid", "#4f9be0", "dashdotdot", "D", "--"),
    "liquid": ("Liquid", "#8e2440", "solid", "o", ""),
    "liquid-batch": ("Liquid, batch", "#d4667f", "dash", "v", "///"),
    "liquid-random": ("Random", "#a8a8a8", "dot", "D", "//"),
    "liquid-even": ("Even", "#4d4d4d", "dash", "s", "\\\\"),
    "liquid-pack": ("Pack", "#7c6a9a", "dashdot", "^", "xx"),
    "kubernetes": ("Kubernetes", "#2a6fd6", "long", "<", "++"),
    "kubeflow": ("Kubeflow", "#84b5ee", "dashdotdot", ">", ".."),
    "hived": ("HiveD", "#d9a441", "dashdot", "P", "oo"),
    "isolated": ("Isolated", "#bdbdbd", "dot", "d", "--"),
    "proportional": ("Proportional", "#5d6d7e", "dashdotdot", "p", "++"),
}

_COLORS = (
    "#1f5fb4", "#e8891c", "#4f9d5b", "#b23a2e", "#6fb4e8", "#6a1b9a",
    "#9a9a9a", "#00695c", "#e3b23c", "#1c1c1c", "#b583d8", "#8a5a34",
)  # fmt: skip
_MARKERS = ("o", "^", "s", "v", "D", "P", "X", "<", ">", "h", "*", "d")
_HATCHES = ("", "//", "\\\\", "xx", "..", "++", "", "--", "///", "", "\\\\\\", "||")
_SOLE = Look("", "#1f5fb4", "-", "o", "")


def look(name: object) -> Look:
    """Return the look of a series: bound to it if it is a known policy, else by a hash of its name.

    >>> look("tiresias-l").label, look("K=2") == look("K=2")
    ('Tiresias-L', True)
    """
    return looks([name])[str(name)]


def looks(names: Iterable[object]) -> dict[str, Look]:
    """Return the looks of the series of one chart; unknown names share one only where all are."""
    unique = list(dict.fromkeys(map(str, names)))
    known = {name: _KNOWN[name] for name in unique if name in _KNOWN}
    taken = {_COLORS.index(color) for _, color, *_ in known.values() if color in _COLORS}
    lines, chosen = list(_LINES.values()), {}
    for name in unique:
        if name in known:
            label, color, line, marker, hatch = known[name]
            chosen[name] = Look(label, color, _LINES[line], marker, hatch)
            continue
        slot = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % len(_COLORS)
        while slot in taken and len(taken) < len(_COLORS):
            slot = (slot + 1) % len(_COLORS)
        taken.add(slot)
        line_of_slot = lines[slot % len(lines)]
        chosen[name] = Look(name, _COLORS[slot], line_of_slot, _MARKERS[slot], _HATCHES[slot])
    return chosen


def by_series(series: str | None, *frames: pd.DataFrame | None) -> list[Parts]:
    """Split the frames of one chart by the names in a column, in order of appearance, with looks.

    Without a column each frame stays whole; None has no parts.
    """
    if series is None:
        return [[] if frame is None else [(_SOLE, frame)] for frame in frames]
    names = [() if frame is None else frame[series].astype(str) for frame in frames]
    chosen = looks(name for column in names for name in column)
    return [
        [] if frame is None
        else [(chosen[str(name)], rows) for name, rows in frame.groupby(column, sort=False)]
        for frame, column in zip(frames, names, strict=True)
    ]  # fmt: skip
