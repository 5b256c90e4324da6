"""Points: every published number of a figure beside the value of this run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import pandas as pd
from pydantic import ValidationError, field_validator

from repro.errors import ClaimError
from repro.figures.tolerance import Strict, is_number, plain

Certainty = Literal["paper", "artifact", "plot", "text"]
Data = Literal["author's", "public", "stand-in", "model"]
#: What a row holds; ``distance`` is signed and relative, ours / published - 1.
COLUMNS = (
    *("series", "x", "quantity", "published", "ours", "unit"),
    *("distance", "certainty", "data", "rules"),
)
#: Distances whose share of points the headline tells.
SHARES = (0.01, 0.02, 0.1)


class Point(Strict):
    """One published number, what this run found for it, and where both come from."""

    series: str
    x: float | str | None = None
    quantity: str
    published: float
    ours: float | None
    unit: str = ""
    certainty: Certainty
    data: Data
    rules: str

    @field_validator("series", "quantity", "rules")
    @classmethod
    def _not_blank(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("must not be blank")
        return text

    @field_validator("published")
    @classmethod
    def _comparable(cls, published: float) -> float:
        if not math.isfinite(published):
            raise ValueError(f"is {published}; a published number is finite")
        return published

    @property
    def distance(self) -> float | None:
        """Signed relative distance of ours from the published value; None where there is none."""
        if self.ours is None or not math.isfinite(self.ours) or self.published == 0:
            return None
        return self.ours / self.published - 1

    def row(self) -> dict[str, Any]:
        """Return the point as ``result.json`` and the points file hold it."""
        return {name: getattr(self, name) for name in COLUMNS}


def read_points(frame: pd.DataFrame, **default: str) -> list[Point]:
    """Return the points of a frame, one per row.

    Parameters
    ----------
    frame : DataFrame
        Columns of `Point`; ``distance`` is computed, never read.
    **default : str
        Values of columns that the frame does not have, such as ``certainty`` or ``rules``.

    Raises
    ------
    ClaimError
        Naming the row and the column that is missing, unknown or of the wrong kind.

    Examples
    --------
    >>> frame = pd.DataFrame({"series": ["LAS"], "x": [2.0], "published": [10.0], "ours": [9.0]})
    >>> facts = {"certainty": "paper", "data": "public", "rules": "gavel"}
    >>> [round(one.distance, 3) for one in read_points(frame, quantity="JCT", **facts)]
    [-0.1]
    """
    points = []
    for number, row in enumerate(
        frame.drop(columns="distance", errors="ignore").to_dict("records")
    ):
        values = {str(name): plain(value) for name, value in row.items()}
        for name in ("published", "ours", "x"):
            if is_number(values.get(name)):
                values[name] = float(values[name])
        try:
            points.append(Point.model_validate({**default, **values}))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise ClaimError(
                f"point {number}, {place}: {first['msg'].removeprefix('Value error, ')} "
                f"(columns: {', '.join(name for name in COLUMNS if name != 'distance')})"
            ) from None
    return points


def series_values(points: Sequence[Point], series: str) -> tuple[list[float], list[float | None]]:
    """Return the published values of a series and ours, in order."""
    chosen = [point for point in points if point.series == series]
    return [point.published for point in chosen], [point.ours for point in chosen]


def shares(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many points were judged and which share lies within 1, 2 and 10 %.

    Examples
    --------
    >>> shares([{"distance": 0.015}, {"distance": -0.2}, {"distance": None}])
    {'judged': 2, 'within': {'1 %': 0.0, '2 %': 0.5, '10 %': 0.5}}
    """
    found = [abs(row["distance"]) for row in rows if row["distance"] is not None]
    within = {
        f"{100 * limit:g} %": sum(one <= limit for one in found) / len(found) if found else 0.0
        for limit in SHARES
    }
    return {"judged": len(found), "within": within}
