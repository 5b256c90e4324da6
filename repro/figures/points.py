"""Points: every published number of a figure beside the value of this run."""

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
    #: shown beside the others and not counted: under rules that the paper is not judged by
    aside: bool = False

    @field_validator("published")
    @classmethod
    def _comparable(cls, published: float) -> float:
        if not math.isfinite(published):
            raise ValueError(f"is {published}; a published number is finite")
        return published

    def row(self) -> dict[str, Any]:
        """Return the point as ``result.json`` and the points file hold it."""
        row: dict[str, Any] = dict.fromkeys(COLUMNS) | dict(self)
        if not self.aside:
            # rare
            del row["aside"]
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
        if values.get("aside") is None:
            values.pop("aside", None)
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


def thinned(frame: pd.DataFrame, by: Sequence[str], most: int = 11) -> pd.DataFrame:
    """Return at most so many rows of each curve, evenly spaced, its first and last among them.

    A curve is the rows that agree in columns ``by``, in their order.

    Examples
    --------
    >>> curve = pd.DataFrame({"series": "LAS", "x": range(21)})
    >>> thinned(curve, ["series"])["x"].tolist()
    [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20]
    """
    groups = frame.groupby(list(by), sort=False, dropna=False)
    place = groups.cumcount()
    size = groups[frame.columns[0]].transform("size")
    step = (size - 1).clip(lower=1) / (most - 1)
    # the place that is nearest to a multiple of the step
    kept = (size <= most) | (place == (np.round(place / step) * step).round())
    chosen: pd.DataFrame = frame[kept]
    return chosen


def shares(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many points were judged and which share lies within 1, 2 and 10 %.

    Points that are shown and not judged do not count.
    """
    counted = [row for row in rows if row["distance"] is not None and not row.get("aside")]
    found = [abs(row["distance"]) for row in counted]
    within = {
        f"{100 * limit:g} %": sum(one <= limit for one in found) / len(found) if found else 0.0
        for limit in SHARES
    }
    return {"judged": len(found), "within": within}
