"""What the cells with tests call: a student's answer against what is right, in plain words."""

import copy
import math
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

_LONGEST = 300
#: Where the grader keeps what is wrong until a cell has ended; None: the first ends it.
held: list["Wrong"] | None = None


MISTAKE = "Likely mistake: "
_NOTES = ("Why:", "See")


class Wrong(AssertionError):
    """An answer is not right; the text tells a student why."""

    def _render_traceback_(self) -> list[str]:
        """Return what Jupyter shows: the text alone."""
        return [str(self)]


def expect(
    function: str | Callable[..., Any],
    *arguments: Any,
    gives: Any,
    cases: Iterable[Sequence[Any]] | None = None,
    mistakes: Mapping[str, Any] | None = None,
    because: str = "",
    see: str = "",
    tolerance: float = 1e-6,
) -> None:
    """Call a student's function and explain what is wrong with its answer, if anything is.

    Parameters
    ----------
    function : str or callable
        The name of the function in the notebook, so that a missing one can be told, or a function
        of the test that calls what students wrote.
    *arguments
        What it is called with; the function gets copies.
    gives : Any
        The right answer, or a function that computes it from the arguments.
    cases : iterable of sequences, optional
        Arguments of many calls, instead of ``arguments``; the shortest that fails is shown.
    mistakes : mapping, optional
        What a mistake is called -> what it gives, or a function that computes it. Named is the
        first that explains all cases, or else the first that explains the case shown.
    because : str
        Why the right answer is right.
    see : str
        Where the paper says so.
    tolerance : float
        Relative difference of numbers that is let pass.

    Raises
    ------
    Wrong
        The answer is not right, or there is none.

    Examples
    --------
    >>> def service(seconds, gpus):
    ...     return seconds
    >>> expect(service, 3.0, 2, gives=6.0, mistakes={"GPUs are ignored": lambda s, g: s},
    ...        because="two GPUs for 3 s are 6 GPU-seconds")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    repro.course.checks.Wrong: Not yet right: service(3.0, 2) gives 3.0, expected is 6.0.
      Likely mistake: GPUs are ignored.
      Why: two GPUs for 3 s are 6 GPU-seconds.
    """
    calls = [tuple(case) for case in cases] if cases is not None else [arguments]
    called = function if callable(function) else sys._getframe(1).f_globals.get(function)
    try:
        _check(function, called, calls, gives, tolerance, dict(mistakes or {}), (because, see))
    except Wrong as wrong:
        if held is None:
            raise wrong from None
        held.append(wrong)


def _check(
    function: str | Callable[..., Any],
    called: Any,
    calls: list[tuple[Any, ...]],
    gives: Any,
    tolerance: float,
    named: Mapping[str, Any],
    notes: tuple[str, str],
) -> None:
    """Raise what `expect` says."""
    name = function if isinstance(function, str) else function.__name__.strip("_")
    if called is None:
        raise Wrong(f"`{name}` is not defined yet: write it above and run its cell first.")
    if not callable(called):
        raise Wrong(f"`{name}` must be a function, and is {_kind(called)}.")
    answers = [_answer(called, case, name) for case in calls]
    wanted = [_of(gives, case) for case in calls]
    failed = [
        number
        for number, (answer, right) in enumerate(zip(answers, wanted, strict=True))
        if not same(answer, right, tolerance)
    ]
    if not failed:
        return
    shown = min(failed, key=lambda number: len(repr(calls[number])))
    said = ", ".join(map(_short, calls[shown]))
    lines = [_difference(f"{name}({said})", answers[shown], wanted[shown])]

    def explains(mistake: Any, numbers: Iterable[int]) -> bool:
        return all(_fits(mistake, calls[one], answers[one], tolerance) for one in numbers)

    found = [text for text, one in named.items() if explains(one, range(len(calls)))] or [
        text for text, one in named.items() if explains(one, [shown])
    ]
    if found:
        lines.append(f"{MISTAKE}{found[0]}.")
    lines += [
        f"{word} {text.rstrip('.')}." for word, text in zip(_NOTES, notes, strict=True) if text
    ]
    raise Wrong("\n  ".join(lines))


def same(answer: Any, right: Any, tolerance: float = 1e-6) -> bool:
    """Tell whether two values are equal, numbers within a relative difference.

    >>> same(np.array([1.0, 2.0]), [1, 2]), same("a", ["a"]), same({"x": 0.1}, {"x": 0.2})
    (True, False, False)
    """
    answer, right = _plain(answer), _plain(right)
    if isinstance(right, bool) or isinstance(answer, bool):
        return answer is right
    if isinstance(right, int | float) and isinstance(answer, int | float):
        close = math.isclose(answer, right, rel_tol=tolerance, abs_tol=tolerance)
        return close or (math.isnan(answer) and math.isnan(right))
    if isinstance(right, dict):
        alike = isinstance(answer, dict) and answer.keys() == right.keys()
        return alike and all(same(answer[key], right[key], tolerance) for key in right)
    if isinstance(right, list):
        alike = isinstance(answer, list) and len(answer) == len(right)
        return alike and all(same(a, b, tolerance) for a, b in zip(answer, right, strict=True))
    return type(answer) is type(right) and bool(answer == right)


def _plain(value: Any) -> Any:
    """Return a value as Python's own: arrays, series and tuples as lists, tables as columns."""
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return value.to_dict("list")
    if isinstance(value, np.generic) or hasattr(value, "tolist"):
        return value.tolist()
    return list(value) if isinstance(value, tuple | range) else value


def _of(value: Any, case: Sequence[Any]) -> Any:
    return value(*copy.deepcopy(case)) if callable(value) else value


def _fits(mistake: Any, case: Sequence[Any], answer: Any, tolerance: float) -> bool:
    """Tell whether a mistake gives this answer; one that cannot be computed does not."""
    try:
        return same(answer, _of(mistake, case), tolerance)
    except Exception:
        return False


def _answer(called: Callable[..., Any], case: Sequence[Any], name: str) -> Any:
    """Return what a student's function answers, and tell in one line if it stops instead."""
    try:
        return called(*copy.deepcopy(case))
    except NotImplementedError as error:
        name = traceback.extract_tb(error.__traceback__)[-1].name
        raise Wrong(f"`{name}` is still empty: write it above, then run both cells.") from None
    except Wrong:
        raise
    except Exception as error:
        said = ", ".join(map(_short, case))
        stopped = f"{name}({said}) stopped with {type(error).__name__}: {_cut(str(error))}"
        raise Wrong(stopped + _place(error)) from None


def _place(error: BaseException) -> str:
    """Return the line of a cell that an error comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    cells = [one for one in frames if one.filename.startswith("<") or "ipykernel" in one.filename]
    return f" (line {cells[-1].lineno} of its cell)" if cells else ""


def _difference(call: str, answer: Any, right: Any) -> str:
    """Return what came and what should have come, sorts of values first."""
    answer, right = _plain(answer), _plain(right)
    begin = f"Not yet right: {call} gives"
    if answer is None:
        return f"{begin} nothing (None), expected is {_short(right)}; is a `return` missing?"
    if isinstance(answer, float) and math.isnan(answer):
        return f"{begin} NaN (no number, such as 0/0), expected is {_short(right)}."
    if _kind(answer) != _kind(right):
        return f"{begin} {_kind(answer)}, {_short(answer)}; expected is {_kind(right)}: " + (
            f"{_short(right)}."
        )
    if isinstance(right, list) and len(answer) != len(right):
        return f"{begin} {len(answer)} values, {_short(answer)}; expected are {len(right)}: " + (
            f"{_short(right)}."
        )
    return f"{begin} {_short(answer)}, expected is {_short(right)}."


def _kind(value: Any) -> str:
    value = _plain(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "a number"
    names = {bool: "True or False", str: "text", list: "a list", dict: "a dictionary"}
    return names.get(type(value), f"a {type(value).__name__}")


def _short(value: Any) -> str:
    value = _plain(value)
    if isinstance(value, float):
        return repr(value) if value.is_integer() else f"{value:.6g}"
    if isinstance(value, list):
        return _cut(f"[{', '.join(map(_short, value))}]")
    if isinstance(value, dict):
        return _cut(f"{{{', '.join(f'{key!r}: {_short(one)}' for key, one in value.items())}}}")
    return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
