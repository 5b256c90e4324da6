"""Points: each published number of a figure with the value of this run."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import ValidationError, field_validator

from repro.base.errors import ClaimError
from repro.figures.tolerance import Strict, Text, is_number, plain

Certainty = Literal["paper", "artifact", "plot", "text"]
Data = Literal["author's", "public", "stand-in", "model"]
#: How a published number came to be: ``simulation`` of the authors, ``testbed``: measured on
#: hardware, ``example``: worked by hand, ``text``: stated in the paper or its files, e.g. a table
#: of inputs.
Origin = Literal["simulation", "testbed", "example", "text"]
ORIGINS: tuple[Origin, ...] = ("simulation", "testbed", "example", "text")
#: Columns of the points file; ``distance`` is signed and relative, ours / published - 1.
COLUMNS = (
    *("series", "x", "quantity", "published", "ours", "unit"),
    *("distance", "certainty", "data", "origin", "rules"),
)
#: Relative distances for which the headline gives the share of points.
SHARES = (0.01, 0.02, 0.1)


class Point(Strict):
    """A published number, our value of it, and the source of both."""

    series: Text
    x: float | str | None = None
    quantity: Text
    published: float
    ours: float | None
    unit: str = ""
    certainty: Certainty
    data: Data
    origin: Origin = "simulation"
    rules: Text
    #: computed and shown but not judged, e.g. under another rule set
    aside: bool = False

    @field_validator("published")
    @classmethod
    def _comparable(cls, published: float) -> float:
        if not math.isfinite(published):
            raise ValueError(f"is {published}; a published number is finite")
        return published

    def row(self) -> dict[str, Any]:
        """Row of ``result.json`` and of the points file."""
        row: dict[str, Any] = dict.fromkeys(COLUMNS) | dict(self)
        if not self.aside:
            # Few points have it, so it is left out where it is false.
            del row["aside"]
        if self.ours is not None and math.isfinite(self.ours) and self.published != 0:
            row["distance"] = self.ours / self.published - 1
        return row


def read_points(frame: pd.DataFrame, **default: str) -> list[Point]:
    """Read points, one per row of a frame; ``default`` replaces absent columns."""
    points = []
    rows = frame.drop(columns="distance", errors="ignore").to_dict("records")
    for number, row in enumerate(rows):
        values = {str(name): plain(value) for name, value in row.items()}
        for name in ("published", "ours", "x"):
            if is_number(values.get(name)):
                values[name] = float(values[name])
        if values.get("aside") is None:
            values.pop("aside", None)
        try:
            points.append(Point.model_validate({**default, **values}))
        except ValidationError as error:
            first = error.errors()[0]
            column = ".".join(map(str, first["loc"]))
            raise ClaimError(
                f"point {number}, {column}: {first['msg'].removeprefix('Value error, ')} "
                f"(columns: {', '.join(name for name in COLUMNS if name != 'distance')})"
            ) from None
    return points


def thinned(frame: pd.DataFrame, by: Sequence[str], most: int = 11) -> pd.DataFrame:
    """Keep at most ``most`` rows of each curve, evenly spaced, with its first and its last.

    The rows of a curve have equal values in columns ``by``.

    Examples
    --------
    >>> curve = pd.DataFrame({"series": "LAS", "x": range(21)})
    >>> thinned(curve, ["series"])["x"].tolist()
    [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20]
    """
    groups = frame.groupby(list(by), sort=False, dropna=False)
    number = groups.cumcount()
    size = groups[frame.columns[0]].transform("size")
    step = (size - 1).clip(lower=1) / (most - 1)
    # Of each multiple of the step, the nearest row.
    is_kept = (size <= most) | (number == (np.round(number / step) * step).round())
    kept: pd.DataFrame = frame[is_kept]
    return kept


def shares(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Count judged points; their shares within 1, 2 and 10 % of the published value."""
    judged = [row for row in rows if row["distance"] is not None and not row.get("aside")]
    distances = [abs(row["distance"]) for row in judged]
    within = {
        f"{100 * limit:g} %": sum(distance <= limit for distance in distances)
        / max(1, len(distances))
        for limit in SHARES
    }
    return {"judged": len(distances), "within": within}
