"""How close is close enough: tolerances, relations and the comparison of plain values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from operator import ge, gt, le, lt
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationInfo,
    field_validator,
    model_validator,
)

from repro.base.errors import ClaimError

_CLOSE = 1e-9
#: A bound beyond this leaves hardly a number that could break it.
LARGEST = 1e300


def check_number(value: Any) -> Any:
    """Return a value; refuse a number too large to compare anything with, and NaN."""
    if is_number(value) and not -LARGEST <= value <= LARGEST:
        raise ValueError(f"{value} is no number to compare with; at most ±{LARGEST:g} is accepted")
    return value


def not_blank(text: str) -> str:
    """Return a text; one of spaces is a ValueError."""
    if not text.strip():
        raise ValueError("must not be blank")
    return text


_Number = Annotated[float, BeforeValidator(check_number)]
#: A text with something in it.
Text = Annotated[str, AfterValidator(not_blank)]


class Strict(BaseModel):
    """A model that takes no unknown key and converts no type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Accept(Strict):
    """How close the regenerated value must be: one of low/high, rel (below 1), abs, exact."""

    low: _Number | list[_Number] | None = None
    high: _Number | list[_Number] | None = None
    rel: _Number | None = None
    abs: _Number | None = None
    exact: bool | None = None

    @field_validator("rel", "abs")
    @classmethod
    def _width(cls, width: float | None, info: ValidationInfo) -> float | None:
        if width is not None and width < 0:
            raise ValueError(f"is {width:g}; must be 0 or more")
        # At 1, which is 100 %, a value of 0 would be as good as the published one.
        if width is not None and width >= 1 and info.field_name == "rel":
            raise ValueError(
                f"is {width:g}, which is {100 * width:g} %; must be 0 or more and below 1"
            )
        return width

    @model_validator(mode="after")
    def _one_rule(self) -> Accept:
        band = self.low is not None or self.high is not None
        rules = [band, self.rel is not None, self.abs is not None, self.exact is not None]
        if sum(rules) != 1:
            raise ValueError("give exactly one of low/high, rel, abs, exact: true")
        if self.exact is False:
            raise ValueError("exact is either true or left out")
        lists = [bound for bound in (self.low, self.high) if isinstance(bound, list)]
        if any(len(one) != len(other) for one, other in pairwise(lists)):
            raise ValueError("low and high must be lists of one length")
        size = max(map(len, lists), default=1)
        for low, high in zip(spread(self.low, size), spread(self.high, size), strict=True):
            if low is not None and high is not None and low > high:
                raise ValueError(f"low {low:g} is above high {high:g}")
        return self

    def bounds(self) -> int | None:
        """Return how many bounds are listed, None where one stands for all values."""
        return next((len(one) for one in (self.low, self.high) if isinstance(one, list)), None)

    def text(self) -> str:
        """Return the tolerance as a reader sees it (``4.2 … 5.8``, ``±5 %``, ``exact``)."""
        if self.exact:
            return "exact"
        if self.rel is not None:
            return f"±{100 * self.rel:g} %"
        if self.abs is not None:
            return f"±{self.abs:g}"
        if self.high is None:
            return f"≥ {show(self.low)}"
        if self.low is None:
            return f"≤ {show(self.high)}"
        return f"{show(self.low)} … {show(self.high)}"


_ORDERS = {"gt": (">", gt), "ge": ("≥", ge), "lt": ("<", lt), "le": ("≤", le)}


class Relation(Strict):
    """An order the value must keep even where its size is off: exactly one bound."""

    gt: _Number | None = None
    ge: _Number | None = None
    lt: _Number | None = None
    le: _Number | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> Relation:
        if len(self._bounds()) != 1:
            raise ValueError("give exactly one of gt, ge, lt, le")
        return self

    def holds(self, value: float) -> bool:
        """Tell whether ``value`` keeps the order."""
        return all(_ORDERS[name][1](value, bound) for name, bound in self._bounds())

    def text(self) -> str:
        """Return the relation as a reader sees it (``> 1``)."""
        return "".join(f"{_ORDERS[name][0]} {bound:g}" for name, bound in self._bounds())

    def _bounds(self) -> list[tuple[str, float]]:
        """Return the bounds that are given, by name."""
        return [(name, bound) for name, bound in self if bound is not None]


def show(value: Any) -> str:
    """Return a value as a table cell: four significant digits, lists joined by commas."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(show(item) for item in value)
    if not isinstance(value, float):
        return str(value)
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    places = 3 - math.floor(math.log10(abs(value)))
    if not -6 <= places <= 8:
        return f"{value:.3e}"
    text = f"{round(value, places):.{max(0, places)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def within(accept: Accept, published: Any, value: Any) -> bool:
    """Tell whether a plain value lies within the tolerance of the published one.

    Lists are compared element by element, None passed over; a text with ``exact`` asks for True.
    """
    if isinstance(published, str):
        if accept.exact:
            return all(item is True for item in flat(value))
        published = None
    if not isinstance(published, list):
        return all(_near(accept, published, ours, accept.low, accept.high) for ours in flat(value))
    wanted = list(flat(published))
    found = list(flat(value))
    if not isinstance(value, list) or len(wanted) != len(found):
        got = f"{len(found)}" if isinstance(value, list) else "a single value"
        raise ClaimError(
            f"{len(wanted)} published values but {got} from the notebook; "
            "give one value for each published one, in the same order"
        )
    lows = spread(accept.low, len(wanted))
    highs = spread(accept.high, len(wanted))
    rows = zip(wanted, found, lows, highs, strict=True)
    return all(_near(accept, *row) for row in rows if row[0] is not None)


def spread(bound: float | list[float] | None, size: int) -> list[Any]:
    """Return a bound for each of ``size`` values."""
    return bound if isinstance(bound, list) else [bound] * size


def _near(accept: Accept, published: Any, ours: Any, low: Any, high: Any) -> bool:
    if accept.exact and not (is_number(published) and is_number(ours)):
        return type(published) is type(ours) and bool(published == ours)
    if not is_number(ours):
        return False
    if accept.exact:
        return math.isclose(ours, published, rel_tol=_CLOSE, abs_tol=1e-12)
    if accept.rel is not None:
        return bool(abs(ours - published) <= accept.rel * abs(published) * (1 + _CLOSE))
    if accept.abs is not None:
        return bool(abs(ours - published) <= accept.abs * (1 + _CLOSE))
    return (low is None or ours >= low) and (high is None or ours <= high)


def is_number(item: Any) -> bool:
    """Tell a number from a bool, a text and None."""
    return isinstance(item, int | float) and not isinstance(item, bool)


def flat(value: Any) -> Iterator[Any]:
    """Iterate over the leaves of nested lists."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from flat(item)
    else:
        yield value


def plain(value: Any) -> Any:
    """Turn arrays, series and numpy scalars into plain Python values, NaN into None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ClaimError(f"a value is a {type(value).__name__}; give a number, a bool, a list or None")
