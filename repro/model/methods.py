"""Check of the methods that a class from outside the package overrides: their parameters."""

import inspect
from collections.abc import Callable
from typing import Any

from repro.base.errors import PolicyError
from repro.base.outside import is_of_package, outside_classes, place_note, shown_call, takes


def check_methods(cls: type, subject: str) -> None:
    """Check that the methods of a class take the arguments that the engine passes.

    Only public methods are checked that a class from outside the package overrides.

    Parameters
    ----------
    cls : type
        Class of a policy or ordering.
    subject : str
        Beginning of messages, such as ``policy 'srtf'``.

    Raises
    ------
    PolicyError
        If a method takes other arguments. The message has the file and line of the method.
    """
    for definer in outside_classes(cls):
        for name, member in vars(definer).items():
            base = None if name.startswith("_") else _method_of_package(definer, name)
            if base is not None:
                _check_method(subject, name, member, base)


def _method_of_package(cls: type, name: str) -> Callable[..., Any] | None:
    """Method of the package that a class overrides; None: it overrides none."""
    for base in cls.__mro__[1:]:
        if name in vars(base) and is_of_package(base.__module__):
            method = vars(base)[name]
            return method if inspect.isfunction(method) else None
    return None


def _check_method(subject: str, name: str, member: Any, base: Callable[..., Any]) -> None:
    """Raise PolicyError unless ``member`` takes the required arguments of a method."""
    parameters = list(inspect.signature(base).parameters.values())
    required = [each for each in parameters if each.default is each.empty]
    keywords = [each.name for each in required if each.kind is each.KEYWORD_ONLY]
    count = len(required) - len(keywords)
    function = member
    if isinstance(member, staticmethod | classmethod):
        function = member.__func__
    # only functions and class methods are passed an object in front
    if isinstance(member, staticmethod) or not inspect.isroutine(function):
        count -= 1
    if not callable(function) and not hasattr(member, "__get__"):
        raise PolicyError(
            f"{subject}: {name} is {member!r:.60}; define a method {shown_call(name, base)}"
        )
    if callable(function) and not takes(function, count, keywords):
        raise wrong_parameters(subject, name, function, shown_call(name, base))


def wrong_parameters(
    subject: str, name: str, function: Callable[..., Any], expected: str
) -> PolicyError:
    """Error of a function that takes other arguments than the engine passes."""
    return PolicyError(parameters_fault(subject, name, function, expected, "the engine"))


def parameters_fault(
    subject: str, name: str, function: Callable[..., Any], expected: str, caller: str
) -> str:
    """Message on a function that takes other arguments than its caller passes."""
    return (
        f"{subject}: {shown_call(name, function)}{place_note(function)} takes other arguments than "
        f"{caller} passes; define {expected}"
    )
