"""Tolerances and relations of claims, and the comparison of plain values with them."""

from __future__ import annotations

import math
from collections.abc import Iterator
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
#: Largest accepted number. A larger upper bound would test nothing: almost every number meets it.
LARGEST = 1e300


def check_number(value: Any) -> Any:
    """Refuse NaN and numbers beyond ±`LARGEST`; other values pass."""
    if is_number(value) and not -LARGEST <= value <= LARGEST:
        raise ValueError(f"{value} is no number to compare with; at most ±{LARGEST:g} is accepted")
    return value


def not_blank(text: str) -> str:
    """Refuse a blank text; other texts pass."""
    if not text.strip():
        raise ValueError("must not be blank")
    return text


_Number = Annotated[float, BeforeValidator(check_number)]
#: A text that is not blank.
Text = Annotated[str, AfterValidator(not_blank)]


class Strict(BaseModel):
    """A model that refuses unknown keys and converts no types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Accept(Strict):
    """Tolerance of a claim, exactly one of low/high, rel (below 1), abs and exact."""

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
        # With a tolerance of 100 % a value of 0 would be accepted.
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
        if len(lists) == 2 and len(lists[0]) != len(lists[1]):
            raise ValueError("low and high must be lists of one length")
        size = max(map(len, lists), default=1)
        for low, high in zip(
            bound_per_value(self.low, size), bound_per_value(self.high, size), strict=True
        ):
            if low is not None and high is not None and low > high:
                raise ValueError(f"low {low:g} is above high {high:g}")
        return self

    def bound_count(self) -> int | None:
        """Number of listed bounds; None if one bound is for all values."""
        listed = (bound for bound in (self.low, self.high) if isinstance(bound, list))
        return next(map(len, listed), None)

    def text(self) -> str:
        """Tolerance as a text (``4.2 … 5.8``, ``±5 %``, ``exact``)."""
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
    """A bound that our value must meet even outside of the tolerance: one of gt, ge, lt, le."""

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
        """Whether ``value`` meets the bound."""
        return all(_ORDERS[name][1](value, bound) for name, bound in self._bounds())

    def shortfall(self, value: float) -> float:
        """Distance of a value from the bound; negative if it meets the bound."""
        ((name, bound),) = self._bounds()
        return bound - value if name in ("gt", "ge") else value - bound

    def text(self) -> str:
        """Relation as a text (``> 1``)."""
        return "".join(f"{_ORDERS[name][0]} {bound:g}" for name, bound in self._bounds())

    def _bounds(self) -> list[tuple[str, float]]:
        """Bounds that are not None, with their names."""
        return [(name, bound) for name, bound in self if bound is not None]


def show(value: Any) -> str:
    """Value as a text: four significant digits, lists joined by commas."""
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
    """Whether a plain value lies within the tolerance of the published value.

    Lists are compared element by element. A None in a published list accepts any value. For a
    published text, ``exact`` accepts True alone, and low and high judge our number.
    """
    if isinstance(published, str):
        if accept.exact:
            return all(item is True for item in flat(value))
        published = None
    if not isinstance(published, list):
        return all(
            _is_within(accept, published, item, accept.low, accept.high) for item in flat(value)
        )
    published_values = list(flat(published))
    ours = list(flat(value))
    size = len(published_values)
    if not isinstance(value, list) or size != len(ours):
        our_count = f"{len(ours)}" if isinstance(value, list) else "a single value"
        raise ClaimError(
            f"{size} published values but {our_count} from the notebook; "
            "give a value for each published value, in the same order"
        )
    lows = bound_per_value(accept.low, size)
    highs = bound_per_value(accept.high, size)
    rows = zip(published_values, ours, lows, highs, strict=True)
    return all(_is_within(accept, *row) for row in rows if row[0] is not None)


def excess(
    accept: Accept | None, relation: Relation | None, published: list[float], ours: list[float]
) -> list[float]:
    """Distance of each of our values from its published value or bound, (points,).

    The distance is relative for ``rel`` and ``exact``, and absolute for ``abs``. For low and high
    it is the distance from the nearer bound, negative inside. For a relation alone it is the
    distance from the bound, negative if the value meets it.
    """
    if accept is None:
        assert relation is not None
        return [relation.shortfall(value) for value in ours]
    pairs = list(zip(published, ours, strict=True))
    if accept.abs is not None:
        return [abs(value - target) for target, value in pairs]
    if accept.rel is not None or accept.exact:
        return [abs(value - target) / (abs(target) or 1.0) for target, value in pairs]
    lows = [-math.inf if low is None else low for low in bound_per_value(accept.low, len(ours))]
    highs = [math.inf if high is None else high for high in bound_per_value(accept.high, len(ours))]
    rows = zip(ours, lows, highs, strict=True)
    return [max(low - value, value - high) for value, low, high in rows]


def bound_per_value(bound: float | list[float] | None, size: int) -> list[Any]:
    """Bound of each of ``size`` values, (size,)."""
    return bound if isinstance(bound, list) else [bound] * size


def _is_within(accept: Accept, published: Any, ours: Any, low: Any, high: Any) -> bool:
    """Whether our single value is within the tolerance of the published value."""
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
    """Whether an item is a number; a bool is not."""
    return isinstance(item, int | float) and not isinstance(item, bool)


def flat(value: Any) -> Iterator[Any]:
    """Yield the leaves of nested lists."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from flat(item)
    else:
        yield value


def is_nan(item: Any) -> bool:
    """Whether an item is the number NaN, of Python or NumPy."""
    return isinstance(item, float) and math.isnan(item)


def plain(value: Any) -> Any:
    """Value in Python's types: lists for arrays and series, None for NaN."""
    value = in_python_types(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if is_nan(value) else value


def in_python_types(value: Any) -> Any:
    """Value in Python's types: lists for arrays and series."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [in_python_types(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ClaimError(f"a value is a {type(value).__name__}; give a number, a bool, a list or None")
