"""Checks the types of policy parameters that come from a command line or a file."""

import numbers
import types
import typing
from collections.abc import Sequence
from typing import Any

from repro.base.errors import ParamError

_WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    type(None): "none",
}
_SEVERAL = (tuple, Sequence)


def check_settings(policy: str, cls: type, settings: dict[str, Any]) -> None:
    """Raise ParamError for parameters of a policy whose type is not the declared one.

    One value stands for a list of one.
    """
    hints = typing.get_type_hints(cls)
    for name, value in settings.items():
        union = typing.get_origin(hints[name]) in (typing.Union, types.UnionType)
        accepted = typing.get_args(hints[name]) if union else (hints[name],)
        if not any(_is(value, choice) for choice in accepted):
            words = " or ".join(dict.fromkeys(map(_word, accepted)))
            raise ParamError(f"policy {policy!r}: {name} is {value!r}; give {words}")


def _is(value: Any, choice: Any) -> bool:
    origin = typing.get_origin(choice)
    if origin is typing.Literal:
        return value in typing.get_args(choice)
    if origin in _SEVERAL:
        items = value if isinstance(value, (tuple, list)) else (value,)
        return all(_is(item, typing.get_args(choice)[0]) for item in items)
    if choice in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, numbers.Real if choice is float else origin or choice)


def _word(choice: Any) -> str:
    if typing.get_origin(choice) is typing.Literal:
        return " or ".join(map(str, typing.get_args(choice)))
    if typing.get_origin(choice) in _SEVERAL:
        return f"{_WORDS.get(typing.get_args(choice)[0], 'values')}, several by commas"
    return _WORDS.get(choice, f"a {getattr(choice, '__name__', choice)} (in Python only)")
