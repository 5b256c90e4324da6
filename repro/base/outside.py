"""Code from outside the package, such as a user's policy: its place, parameters and errors."""

import inspect
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from repro.base.errors import ReproError

_PACKAGE = __name__.partition(".")[0]
#: Modules whose classes any class may have among its bases.
_OF_PYTHON = ("builtins", "abc", "typing", "typing_extensions")


def is_of_package(module: str) -> bool:
    """Whether a module, by its dotted name, belongs to the package.

    >>> is_of_package("repro.base.outside"), is_of_package("repro_course.grader")
    (True, False)
    """
    return module.partition(".")[0] == _PACKAGE


def outside_classes(cls: type) -> list[type]:
    """Classes among the bases of a class, and the class itself, that the package does not define.

    >>> outside_classes(ReproError), outside_classes(Path)[0] is Path
    ([], True)
    """
    return [
        base
        for base in cls.__mro__
        if base.__module__ not in _OF_PYTHON and not is_of_package(base.__module__)
    ]


def place_of(definition: Any) -> str:
    """File and line of a function, or of the first method of a class; empty if unknown.

    >>> place_of(place_of).rpartition(":")[0]
    'outside.py'
    """
    code = _code_of(definition)
    if code is None and isinstance(definition, type):
        members = [_code_of(member) for member in vars(definition).values()]
        # a dataclass has generated methods, and a registered function those of the package
        codes = [
            code
            for code in members
            if code is not None
            and code.co_filename != "<string>"
            and (is_of_package(definition.__module__) or not _is_package_file(code.co_filename))
        ]
        code = min(codes, key=lambda code: code.co_firstlineno, default=None)
    return "" if code is None else f"{Path(code.co_filename).name}:{code.co_firstlineno}"


def place_note(definition: Any) -> str:
    """Place of a definition in parentheses, after a blank; empty if unknown."""
    place = place_of(definition)
    return f" ({place})" if place else ""


def _is_package_file(name: str) -> bool:
    """Whether a file belongs to the package."""
    return Path(name).is_relative_to(Path(__file__).parents[1])


def _code_of(member: Any) -> CodeType | None:
    """Code of a function, a method or a property; None: it has none."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
    if not callable(function) or isinstance(function, type):
        return None
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def takes(function: Callable[..., Any], count: int, keywords: Iterable[str] = ()) -> bool:
    """Whether a function can be called with ``count`` arguments and these keywords.

    True if Python does not know the parameters, for example of some C functions.

    >>> takes(lambda view, job: 0, 2), takes(lambda view: 0, 2)
    (True, False)
    """
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * count, **dict.fromkeys(keywords))
    except TypeError:
        return False
    return True


def shown_call(name: str, function: Callable[..., Any]) -> str:
    """Name and parameters of a function without annotations, for messages.

    >>> shown_call("place_of", place_of)
    'place_of(definition)'
    """
    signature = inspect.signature(function, follow_wrapped=False)
    bare = [
        parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()
    ]
    return f"{name}{signature.replace(parameters=bare, return_annotation=signature.empty)}"


def last_frame(error: BaseException, modules: Iterable[str]) -> tuple[FrameType, int] | None:
    """Innermost frame of an error in some modules, and its line; None if there is none."""
    names = set(modules)
    frames = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__") in names
    ]
    return frames[-1] if frames else None


def shown_frame(frame: FrameType, line: int) -> str:
    """File, line and function of a frame, for messages."""
    return f"{Path(frame.f_code.co_filename).name}:{line} in {frame.f_code.co_name}"


def refuse_failure(
    error: BaseException,
    owner: object,
    method: str,
    subject: str,
    kind: type[ReproError],
) -> None:
    """Raise an error of one line for an exception in a method of a class outside the package.

    Parameters
    ----------
    error : exception
        What a call of the method raised. A ReproError has a message already.
    owner : object
        Object with the method.
    method : str
        Name of the method.
    subject : str
        Beginning of the message, such as ``performance model Slow``.
    kind : class
        Class of the new error.
    """
    classes: Sequence[type] = outside_classes(type(owner))
    if not classes or isinstance(error, ReproError):
        return
    modules = [cls.__module__ for cls in classes]
    note = _failure_note(error, modules, getattr(owner, method, None))
    raise kind(f"{subject}: `{method}` fails: {note}") from error


def refuse_function_failure(
    error: BaseException, function: Callable[..., Any], subject: str, kind: type[ReproError]
) -> None:
    """Raise an error of one line for an exception in a function, such as a reader of traces.

    Parameters
    ----------
    error : exception
        What a call of the function raised. A ReproError has a message already.
    function : callable
        The function.
    subject : str
        Beginning of the message, such as ``format 'hours'``.
    kind : class
        Class of the new error.
    """
    if isinstance(error, ReproError):
        return
    note = _failure_note(error, [getattr(function, "__module__", "")], function)
    raise kind(f"{subject}: {name_of(function)} fails: {note}") from error


def name_of(function: Callable[..., Any]) -> str:
    """Name of a function between backticks; "the function" if it has none.

    >>> name_of(name_of)
    '`name_of`'
    """
    name = getattr(function, "__name__", "")
    return f"`{name}`" if name else "the function"


def _failure_note(error: BaseException, modules: Iterable[str], definition: Any) -> str:
    """Class and text of an error, and the place in some modules; else that of a definition."""
    found = last_frame(error, modules)
    place = f" ({shown_frame(*found)})" if found else place_note(definition)
    return f"{type(error).__name__}: {' '.join(str(error).split())}{place}"
