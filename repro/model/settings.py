"""Checks of parameters, which are the fields of dataclasses, against their annotations.

The annotation of a field declares its values, such as ``Annotated[float, Between(0, 1)]`` or
``Literal["best", "worst"] | None``. Policies, rounds and placements check their parameters when
they are constructed.
"""

import dataclasses
import functools
import math
import numbers
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Union

import numpy as np

from repro.base.errors import ParamError


@dataclass(frozen=True)
class Bound:
    """Range of numbers that a parameter accepts, without NaN.

    `Above`, `AtLeast`, `Between` and `InUnit` make bounds for annotations.
    """

    low: float
    high: float = math.inf
    unit: str = ""
    #: whether ``low`` itself and ``high`` itself are accepted
    with_low: bool = True
    with_high: bool = True

    def holds(self, value: Any) -> bool:
        """Whether a value is a number within the bounds."""
        try:
            above = value >= self.low if self.with_low else value > self.low
            below = value <= self.high if self.with_high else value < self.high
            return bool(above and below)
        except (TypeError, ValueError):
            return False

    def words(self, noun: str) -> str:
        """Words for the range, such as "a number of seconds above 0"."""
        if self.high == math.inf and not self.with_high:
            noun = noun.replace("a ", "a finite ", 1)
        if self.unit:
            noun = f"{noun} of {self.unit}"
        if self.low == -math.inf and self.high == math.inf:
            return noun
        if self.high < math.inf:
            start = "from" if self.with_low else "above"
            end = "to" if self.with_high else "to below"
            return f"{noun} {start} {self.low:g} {end} {self.high:g}"
        if not self.with_low:
            return f"{noun} above {self.low:g}"
        joint = "," if self.unit else " of"
        return f"{noun}{joint} {self.low:g} or more"


def Above(low: float, unit: str = "", *, finite: bool = False) -> Bound:
    """Numbers above ``low``; ``finite`` excludes infinity."""
    return Bound(low, unit=unit, with_low=False, with_high=not finite)


def AtLeast(low: float, unit: str = "", *, finite: bool = False) -> Bound:
    """Numbers of ``low`` or more; ``finite`` excludes infinity."""
    return Bound(low, unit=unit, with_high=not finite)


def InUnit(unit: str) -> Bound:
    """Numbers of a unit, without bounds."""
    return Bound(-math.inf, unit=unit)


def Between(low: float, high: float, unit: str = "", *, below: bool = False) -> Bound:
    """Numbers from ``low`` to ``high``; ``below`` excludes ``high`` itself."""
    return Bound(low, high, unit, with_high=not below)


_NOUNS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    type(None): "none",
}
_LISTS = (tuple, Sequence)


def check_settings(owner: str, instance: Any) -> None:
    """Raise ParamError for a parameter of a dataclass instance whose value is not accepted.

    Default values are not checked. ``owner`` begins the message, such as "policy 'pcs':".
    """
    values = {
        field.name: value
        for field in dataclasses.fields(instance)
        if field.init and (value := getattr(instance, field.name)) is not field.default
    }
    check_values(owner, type(instance), values)


def check_values(owner: str, cls: type, values: Mapping[str, Any]) -> None:
    """Raise ParamError for a parameter whose annotation does not accept the value.

    A single element is accepted in place of a list.
    """
    if not values:
        return
    types_by_field = _annotations(cls)
    for name, value in values.items():
        members = types_by_field.get(name, ())
        if members and not any(_fits(value, member) for member in members):
            words = " or ".join(dict.fromkeys(map(_words, members)))
            # users write lambda, a keyword of Python, without the underscore of its field
            raise ParamError(f"{owner} {name.rstrip('_')} is {_shown(value)}; give {words}")


class Accepted(NamedTuple):
    """Values that a parameter accepts, in words, and their unit.

    The unit is empty if the values have none.
    """

    words: str
    unit: str


def accepted(cls: type) -> dict[str, Accepted]:
    """Accepted values of each field of a dataclass.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Timer:
    ...     period_s: Annotated[float, Above(0, "seconds")] | None = None
    >>> accepted(Timer)["period_s"]
    Accepted(words='a number of seconds above 0, or none', unit='seconds')
    """
    values: dict[str, Accepted] = {}
    for field in dataclasses.fields(cls):
        members = _annotations(cls).get(field.name, ())
        words = " or ".join(dict.fromkeys(map(_words, members)))
        values[field.name] = Accepted(
            words.removesuffix(" or none") + ", or none" if words.endswith(" or none") else words,
            next((unit for member in members if (unit := _unit(member))), ""),
        )
    return values


def literals(cls: type, name: str) -> list[str]:
    """Words that a field accepts, without none.

    Empty if the field also accepts values that are not words, such as numbers, or true and false.
    """
    members = [member for member in _annotations(cls).get(name, ()) if member is not type(None)]
    if not members or any(typing.get_origin(member) is not Literal for member in members):
        return []
    return [str(word) for member in members for word in typing.get_args(member)]


def _unit(member: Any) -> str:
    """Unit of the bounds of a type, or of its elements; empty if there is none."""
    origin = typing.get_origin(member)
    if origin is Annotated:
        base, *bounds = typing.get_args(member)
        units = [bound.unit for bound in bounds if isinstance(bound, Bound) and bound.unit]
        return units[0] if units else _unit(base)
    if origin in _LISTS:
        return _unit(typing.get_args(member)[0])
    return ""


@functools.cache
def _annotations(cls: type) -> dict[str, tuple[Any, ...]]:
    """Types that each field of a class accepts: the members of its union, or its type."""
    for base in cls.__mro__:
        try:
            hints = typing.get_type_hints(base, include_extras=True)
        except (NameError, TypeError):
            # A class inside a function may use names of the function in its annotations. These
            # cannot be resolved, so only fields of its bases are checked.
            continue
        return {name: _members(hint) for name, hint in hints.items()}
    return {}


def _members(hint: Any) -> tuple[Any, ...]:
    """Members of a union and of the unions inside it; for any other type, the type alone."""
    if typing.get_origin(hint) in (Union, types.UnionType):
        return tuple(member for inner in typing.get_args(hint) for member in _members(inner))
    return (hint,)


def _fits(value: Any, member: Any) -> bool:
    """Whether a value fits ``member``: a type, bounds, a list of a type, or a choice of words."""
    origin = typing.get_origin(member)
    if origin is Annotated:
        base, *bounds = typing.get_args(member)
        limits = [bound for bound in bounds if isinstance(bound, Bound)]
        return _fits(value, base) and all(limit.holds(value) for limit in limits)
    if origin is Literal:
        return isinstance(value, str | int) and value in typing.get_args(member)
    if origin in _LISTS:
        is_list = isinstance(value, tuple | list | np.ndarray)
        element_type = typing.get_args(member)[0]
        return all(_fits(element, element_type) for element in (value if is_list else (value,)))
    return _is_of(value, origin or member)


def _is_of(value: Any, value_type: Any) -> bool:
    """Whether a value is of a type; types that `isinstance` cannot check accept every value."""
    if value_type is float:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and value == value
    if value_type is int:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if value_type is bool:
        return isinstance(value, bool | np.bool_)
    try:
        return isinstance(value, value_type)
    except TypeError:
        return True


def _words(member: Any) -> str:
    """Words for the values of a type."""
    origin = typing.get_origin(member)
    if origin is Annotated:
        base, *bounds = typing.get_args(member)
        ranges = [bound.words(_words(base)) for bound in bounds if isinstance(bound, Bound)]
        return ranges[0] if ranges else _words(base)
    if origin is Literal:
        return " or ".join(map(str, typing.get_args(member)))
    if origin in _LISTS:
        return f"{_words(typing.get_args(member)[0])}, or several separated by commas"
    return _NOUNS.get(member, f"a {getattr(member, '__name__', member)} (in Python only)")


def _shown(value: Any) -> str:
    """Value as a line of at most 60 characters, for messages."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:59]}…"
