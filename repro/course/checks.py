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
        What it is called with; the function gets copies and must leave them as they are.
    gives : Any
        The right answer, or a function that computes it from the arguments.
    cases : iterable of sequences, optional
        Arguments of many calls, instead of ``arguments``; the shortest that fails is shown.
    mistakes : mapping, optional
        What a mistake is called -> what it gives, or a function that computes it. Named is what
        explains all calls that fail and would spoil the fewest that are right, fewer than fail;
        of equal ones the first.
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
    mistakes: Mapping[str, Any],
    notes: tuple[str, str],
) -> None:
    """Raise what `expect` says."""
    name = function if isinstance(function, str) else function.__name__.strip("_")
    if called is None:
        raise Wrong(f"`{name}` is not defined yet: write it above and run its cell first.")
    if not callable(called):
        raise Wrong(f"`{name}` must be a function, and is {_kind(called)}.")
    done = [_answer(called, case, gives, name, notes) for case in calls]
    answers = [answer for answer, _ in done]
    wanted = [_of(gives, case) for case in calls]
    failed = [
        number
        for number, (answer, right) in enumerate(zip(answers, wanted, strict=True))
        if not same(answer, right, tolerance)
    ]
    changed = [number for number, (_, change) in enumerate(done) if change]
    if not failed and not changed:
        return
    shown = min(failed or changed, key=lambda number: len(repr(calls[number])))
    said = _call(name, calls[shown])
    if not failed:
        raise Wrong(
            f"Not yet right: {said} gives what is expected, but changes what it was given: "
            f"{done[shown][1]}. Work on a copy."
        )
    line = _difference(said, answers[shown], wanted[shown])
    raise Wrong(_told(line + _named(mistakes, calls, answers, failed, tolerance), notes))


def _named(
    mistakes: Mapping[str, Any],
    calls: Sequence[Sequence[Any]],
    answers: Sequence[Any],
    failed: Sequence[int],
    tolerance: float,
) -> str:
    """Return a line that names the mistake that fits best, none if none fits well."""

    def fits(mistake: Any, number: int) -> bool:
        return _fits(mistake, calls[number], answers[number], tolerance)

    spoiled = {
        text: sum(not fits(one, number) for number in range(len(calls)))
        for text, one in mistakes.items()
        if all(fits(one, number) for number in failed)
    }
    # what explains one failure of many calls, and contradicts the others, may be chance
    best = min(spoiled, key=lambda text: spoiled[text], default="")
    return f"\n  {MISTAKE}{best}." if best and spoiled[best] < len(failed) else ""


def same(answer: Any, right: Any, tolerance: float = 1e-6) -> bool:
    """Tell whether two values are equal, numbers within a relative difference.

    >>> same(np.array([1.0, 2.0]), [1, 2]), same("a", ["a"]), same({"x": 0.1}, {"x": 0.2})
    (True, False, False)
    """
    answer = _plain(answer)
    right = _plain(right)
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


def _answer(
    called: Callable[..., Any],
    case: Sequence[Any],
    gives: Any,
    name: str,
    notes: Sequence[str],
) -> tuple[Any, str]:
    """Return what a student's function answers and what it changes; tell if it stops instead."""
    given = copy.deepcopy(case)
    try:
        return called(*given), _change(case, given)
    except NotImplementedError as error:
        name = traceback.extract_tb(error.__traceback__)[-1].name
        raise Wrong(f"`{name}` is still empty: write it above, then run both cells.") from None
    except Wrong:
        raise
    except Exception as error:
        stopped = f"{type(error).__name__}: {_cut(str(error))}{_place(error)}"
        line = (
            f"{_call(name, case)} stopped with {stopped}; expected is {_short(_of(gives, case))}."
        )
        raise Wrong(_told(line, notes)) from None


def _change(before: Sequence[Any], now: Sequence[Any]) -> str:
    """Tell which argument was changed, if any was."""
    for old, new in zip(before, now, strict=True):
        # some, such as a generator of random numbers, are not even equal to a copy
        if not same(new, old, 0.0) and same(copy.deepcopy(old), old, 0.0):
            return f"{_short(old)} becomes {_short(new)}"
    return ""


def _place(error: BaseException) -> str:
    """Return the line of a cell that an error comes from, a student's before that of a test."""
    frames = traceback.extract_tb(error.__traceback__)
    cells = [one for one in frames if one.filename.startswith("<") or "ipykernel" in one.filename]
    answers = [one for one in cells if one.filename != cells[0].filename] or cells
    return f" (line {answers[-1].lineno} of its cell)" if answers else ""


def _call(name: str, case: Sequence[Any]) -> str:
    return f"{name}({', '.join(map(_short, case))})"


def _told(line: str, notes: Sequence[str]) -> str:
    """Return a message with its notes."""
    why = [f"{word} {text.rstrip('.')}." for word, text in zip(_NOTES, notes, strict=True) if text]
    return "\n  ".join([line, *why])


def _difference(call: str, answer: Any, right: Any) -> str:
    """Return what came and what should have come, sorts of values first."""
    answer = _plain(answer)
    right = _plain(right)
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
