"""Declared parameters: what the annotation of a field accepts, checked in one place.

A field of a policy, of the rounds or of a placement says in its annotation what it accepts, such as
``Annotated[float, Between(0, 1)]`` or ``Literal["best", "worst"] | None``. The check is made when
the object is constructed.
"""

import dataclasses
import functools
import math
import numbers
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union

import numpy as np

from repro.base.errors import ParamError


@dataclass(frozen=True)
class Bound:
    """Numbers that a parameter accepts; NaN is never among them.

    `Above`, `AtLeast` and `Between` make bounds that read well in an annotation.
    """

    low: float
    high: float = math.inf
    unit: str = ""
    #: whether ``low`` and ``high`` themselves are accepted
    with_low: bool = True
    with_high: bool = True

    def holds(self, value: Any) -> bool:
        """Tell whether a number is within the bounds."""
        above = value >= self.low if self.with_low else value > self.low
        below = value <= self.high if self.with_high else value < self.high
        return bool(above and below)

    def words(self, noun: str) -> str:
        """Words for what is accepted, such as "a number of seconds above 0"."""
        if self.high == math.inf and not self.with_high:
            noun = noun.replace("a ", "a finite ", 1)
        lower = f"{self.low:g} or more"
        if self.unit:
            noun = f"{noun} of {self.unit}"
        if self.high < math.inf:
            start = "from" if self.with_low else "above"
            end = "to" if self.with_high else "to below"
            return f"{noun} {start} {self.low:g} {end} {self.high:g}"
        if self.with_low:
            return f"{noun}, {lower}" if self.unit else f"{noun} of {lower}"
        return f"{noun} above {self.low:g}"


def Above(low: float, unit: str = "", *, finite: bool = False) -> Bound:
    """Numbers above ``low``; ``finite`` leaves infinity out."""
    return Bound(low, unit=unit, with_low=False, with_high=not finite)


def AtLeast(low: float, unit: str = "", *, finite: bool = False) -> Bound:
    """Numbers of ``low`` or more; ``finite`` leaves infinity out."""
    return Bound(low, unit=unit, with_high=not finite)


def Between(low: float, high: float, unit: str = "", *, below: bool = False) -> Bound:
    """Numbers from ``low`` to ``high``; ``below`` leaves ``high`` out."""
    return Bound(low, high, unit, with_high=not below)


_NOUNS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    type(None): "none",
}
_LISTS = (tuple, Sequence)


def check_settings(owner: str, made: Any) -> None:
    """Raise ParamError for a field of a dataclass instance whose value is not accepted.

    A default is taken as it is. ``owner`` begins the message, such as "policy 'pcs':".
    """
    values = {
        field.name: value
        for field in dataclasses.fields(made)
        if field.init and (value := getattr(made, field.name)) is not field.default
    }
    check_given(owner, type(made), values)


def check_given(owner: str, cls: type, values: Mapping[str, Any]) -> None:
    """Raise ParamError for a value that the annotation of its field does not accept.

    One value stands for a list of one.
    """
    if not values:
        return
    accepted = _annotations(cls)
    for name, value in values.items():
        choices = accepted.get(name, ())
        if choices and not any(_is(value, choice) for choice in choices):
            words = " or ".join(dict.fromkeys(map(_words, choices)))
            # lambda is a word of Python: users write it without the underscore of its field
            raise ParamError(f"{owner} {name.rstrip('_')} is {_shown(value)}; give {words}")


@functools.cache
def _annotations(cls: type) -> dict[str, tuple[Any, ...]]:
    """List what each field of a class accepts: the members of its union, or its one type."""
    for base in cls.__mro__:
        try:
            hints = typing.get_type_hints(base, include_extras=True)
        except (NameError, TypeError):
            # the annotations of a class inside a function may name what only the function knows
            continue
        return {name: _members(hint) for name, hint in hints.items()}
    return {}


def _members(hint: Any) -> tuple[Any, ...]:
    """Members of a union, those of its nested unions and literals included."""
    if typing.get_origin(hint) in (Union, types.UnionType):
        return tuple(member for part in typing.get_args(hint) for member in _members(part))
    return (hint,)


def _is(value: Any, choice: Any) -> bool:
    """Tell whether a value is of a type, of a list of a type, or one of some words."""
    origin = typing.get_origin(choice)
    if origin is Annotated:
        base, *bounds = typing.get_args(choice)
        limits = [bound for bound in bounds if isinstance(bound, Bound)]
        return _is(value, base) and all(limit.holds(value) for limit in limits)
    if origin is Literal:
        return isinstance(value, str | int) and value in typing.get_args(choice)
    if origin in _LISTS:
        several = isinstance(value, tuple | list | np.ndarray)
        item = typing.get_args(choice)[0]
        return all(_is(part, item) for part in (value if several else (value,)))
    return _is_a(value, origin or choice)


def _is_a(value: Any, kind: Any) -> bool:
    """Tell whether a value is of a type; what `isinstance` cannot tell is accepted."""
    if kind is float:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and value == value
    if kind is int:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    try:
        return isinstance(value, kind)
    except TypeError:
        return True


def _words(choice: Any) -> str:
    """Words for what a type accepts."""
    origin = typing.get_origin(choice)
    if origin is Annotated:
        base, *bounds = typing.get_args(choice)
        found = [bound.words(_words(base)) for bound in bounds if isinstance(bound, Bound)]
        return found[0] if found else _words(base)
    if origin is Literal:
        return " or ".join(map(str, typing.get_args(choice)))
    if origin in _LISTS:
        return f"{_words(typing.get_args(choice)[0])}, several by commas"
    return _NOUNS.get(choice, f"a {getattr(choice, '__name__', choice)} (in Python only)")


def _shown(value: Any) -> str:
    """Show a value in a message, on one line and cut where it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:59]}…"
