"""Points: every published number of a figure beside the value of this run."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import pandas as pd
from pydantic import ValidationError, field_validator

from repro.errors import ClaimError
from repro.figures.tolerance import Strict, Text, is_number, plain

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

    series: Text
    x: float | str | None = None
    quantity: Text
    published: float
    ours: float | None
    unit: str = ""
    certainty: Certainty
    data: Data
    rules: Text

    @field_validator("published")
    @classmethod
    def _comparable(cls, published: float) -> float:
        if not math.isfinite(published):
            raise ValueError(f"is {published}; a published number is finite")
        return published

    def row(self) -> dict[str, Any]:
        """Return the point as ``result.json`` and the points file hold it."""
        row: dict[str, Any] = dict.fromkeys(COLUMNS) | dict(self)
        if self.ours is not None and math.isfinite(self.ours) and self.published != 0:
            row["distance"] = self.ours / self.published - 1
        return row


def read_points(frame: pd.DataFrame, **default: str) -> list[Point]:
    """Return the points of a frame, one per row; ``default`` gives columns it does not have."""
    points = []
    rows = frame.drop(columns="distance", errors="ignore").to_dict("records")
    for number, row in enumerate(rows):
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


def shares(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many points were judged and which share lies within 1, 2 and 10 %."""
    found = [abs(row["distance"]) for row in rows if row["distance"] is not None]
    within = {
        f"{100 * limit:g} %": sum(one <= limit for one in found) / len(found) if found else 0.0
        for limit in SHARES
    }
    return {"judged": len(found), "within": within}
