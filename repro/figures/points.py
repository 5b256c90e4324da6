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
#: Input of a published number that only its authors know. Its ``workload`` is not published, its
#: random ``sample`` has no seed, the ``configuration`` of its policy is in no file of the authors,
#: or the ``version`` of the code that made it is in no commit.
Unknown = Literal["workload", "sample", "configuration", "version"]
#: Columns of the points file; ``distance`` is signed and relative, ours / published - 1.
COLUMNS = (
    *("series", "x", "quantity", "published", "ours", "unit"),
    *("distance", "certainty", "data", "origin", "rules"),
)
#: True-or-false columns. The points file has such a column only if it is true for some point.
FLAGS = ("aside", "uncounted", "fitted")
#: Text columns. The points file has such a column only if some point has a text in it.
NOTES = ("fitted_on", "unknown")
#: Limits of the relative distance. `within_distances` gives the part of the points within each.
DISTANCES = (0.01, 0.02, 0.1)


class Point(Strict):
    """A published number, our value for it, and the sources of both."""

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
    #: judged by claims but not counted among published numbers: it follows from other points, or
    #: lies between the counted points of a curve
    uncounted: bool = False
    #: computed and shown but not judged: a model of ours was fitted to this published number
    fitted: bool = False
    #: the published numbers that a model of ours was fitted to
    fitted_on: Text | None = None
    unknown: Unknown | None = None

    @field_validator("published")
    @classmethod
    def _comparable(cls, published: float) -> float:
        if not math.isfinite(published):
            raise ValueError(f"is {published}; a published number is finite")
        return published

    def row(self) -> dict[str, Any]:
        """Row of ``result.json`` and of the points file."""
        row: dict[str, Any] = dict.fromkeys(COLUMNS) | dict(self)
        for name in (*FLAGS, *NOTES):
            # Few points have a flag or a note, so a row has no empty ones.
            if not row[name]:
                del row[name]
        if self.ours is not None and math.isfinite(self.ours) and self.published != 0:
            row["distance"] = self.ours / self.published - 1
        return row


def read_points(frame: pd.DataFrame, **default: str | None) -> list[Point]:
    """Read points, one per row of a frame.

    ``default`` has the values of fields without a column. It also replaces empty cells of the
    columns in `FLAGS` and `NOTES`.
    """
    points = []
    rows = frame.drop(columns="distance", errors="ignore").to_dict("records")
    for number, row in enumerate(rows):
        values = {str(name): plain(value) for name, value in row.items()}
        for name in ("published", "ours", "x"):
            if is_number(values.get(name)):
                values[name] = float(values[name])
        for name in (*FLAGS, *NOTES):
            if values.get(name) is None:
                values.pop(name, None)
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


def as_points(table: pd.DataFrame, **fields: Any) -> pd.DataFrame:
    """Points of the rows of a table that have a published value, as `FigureRun.save` takes them.

    Parameters
    ----------
    table : DataFrame
        Published values next to ours, a row per point.
    **fields
        For each field of a point the name of its column, or one value for all rows. ``published``
        and ``ours`` are columns of these names by default.

    Examples
    --------
    >>> table = pd.DataFrame({"policy": ["srtf"], "published": [9.0], "value": [9.5]})
    >>> facts = {"series": "policy", "ours": "value", "quantity": "average JCT", "unit": "s"}
    >>> float(as_points(table, **facts, certainty="artifact")["ours"].iloc[0])
    9.5
    """
    named = {"published": "published", "ours": "ours", **fields}
    columns = {
        name: table[source] if isinstance(source, str) and source in table else source
        for name, source in named.items()
    }
    rows = pd.DataFrame(columns, index=table.index)
    return rows[rows["published"].notna()]


def point_table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Table of rows of points, with the columns of the points file."""
    rows = list(rows)
    present = [name for name in (*FLAGS, *NOTES) if any(row.get(name) for row in rows)]
    return pd.DataFrame(rows, columns=[*COLUMNS, *present])


def mark_uncounted(frame: pd.DataFrame, by: Sequence[str], max_counted: int = 11) -> pd.DataFrame:
    """Add column ``uncounted``, true for all but ``max_counted`` rows of each curve.

    Then no curve outweighs the others.

    The rows of a curve have equal values in columns ``by``. The counted rows are evenly spaced, the
    first and the last among them.

    Examples
    --------
    >>> curve = pd.DataFrame({"series": "LAS", "x": range(21)})
    >>> curve[~mark_uncounted(curve, ["series"])["uncounted"]]["x"].tolist()
    [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20]
    """
    groups = frame.groupby(list(by), sort=False, dropna=False)
    number = groups.cumcount()
    size = groups[frame.columns[0]].transform("size")
    step = (size - 1).clip(lower=1) / (max_counted - 1)
    # The counted rows are nearest to the multiples of the step.
    is_counted = (size <= max_counted) | (number == (np.round(number / step) * step).round())
    return frame.assign(uncounted=~is_counted)


def thinned(frame: pd.DataFrame, by: Sequence[str], max_counted: int = 11) -> pd.DataFrame:
    """Rows that `mark_uncounted` counts, for curves of hundreds of points.

    Examples
    --------
    >>> curve = pd.DataFrame({"series": "LAS", "x": range(201)})
    >>> len(thinned(curve, ["series"]))
    11
    """
    marked = mark_uncounted(frame, by, max_counted)
    kept: pd.DataFrame = marked[~marked["uncounted"]].drop(columns="uncounted")
    return kept


def is_counted(row: Mapping[str, Any]) -> bool:
    """Whether a row of a point has a distance and none of the `FLAGS`."""
    return row["distance"] is not None and not any(row.get(name) for name in FLAGS)


def within_distances(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Number of counted points (key ``judged``), and their part within each of `DISTANCES`."""
    distances = [abs(row["distance"]) for row in rows if is_counted(row)]
    within = {
        f"{100 * limit:g} %": sum(distance <= limit for distance in distances)
        / max(1, len(distances))
        for limit in DISTANCES
    }
    return {"judged": len(distances), "within": within}
