"""Tests of a student's answers, called by the test cells, with messages in plain words."""

import copy
import dis
import functools
import math
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

#: Start of the line about the likely mistake; the grader looks for it in messages.
MISTAKE = "Likely mistake: "
#: Wrong answers of the running cell, which the grader reads at the end of the cell. None outside of
#: grading: then the first wrong answer is raised.
collected: list["Wrong"] | None = None
#: Longest text (letters) of a value in a message.
_MAX_LETTERS = 300
_NOTE_WORDS = ("Why:", "See")


class Wrong(AssertionError):
    """Error about a wrong answer; its text is for the student.

    Examples
    --------
    >>> raise Wrong("Not yet right: share() is 2; shares are at most 1.")
    Traceback (most recent call last):
    repro.course.checks.Wrong: Not yet right: share() is 2; shares are at most 1.
    """

    def _render_traceback_(self) -> list[str]:
        """Lines that Jupyter shows: the text without a traceback."""
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
    """Call a student's function and explain a wrong answer.

    Parameters
    ----------
    function : str or callable
        Name of the student's function, or a function of the test cell that calls the student's
        function. With a name, the message can say that the function is not defined.
    *arguments
        Arguments of the call, passed as copies. The function must not change them.
    gives : Any
        The right answer, or a function that computes it from the arguments.
    cases : iterable of sequences, optional
        Arguments of several calls, in place of ``arguments``. The message shows the failed call
        with the shortest arguments.
    mistakes : mapping, optional
        Name of a mistake -> its answer, or a function that computes it from the arguments. The
        message names at most one mistake. A mistake is a candidate if it gives the student's answer
        in every failed call. A call with a right answer contradicts a candidate that gives another
        answer there. The candidate that the fewest calls contradict is the likely mistake, or the
        first of several such candidates. The message names it if the calls that contradict it are
        fewer than the failed calls.
    because : str
        Reason for the right answer.
    see : str
        Section of the paper.
    tolerance : float
        Relative or absolute difference up to which two numbers count as equal.

    Raises
    ------
    Wrong
        The answer is wrong, or the function gives none.

    Examples
    --------
    >>> def service(seconds, gpus):
    ...     return seconds
    >>> expect(service, 3.0, 2, gives=6.0, mistakes={"GPUs are ignored": lambda s, g: s},
    ...        because="two GPUs for 3 s are 6 GPU-seconds")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    repro.course.checks.Wrong: Not yet right: service(3.0, 2) gives 3.0 instead of 6.0.
      Likely mistake: GPUs are ignored.
      Why: two GPUs for 3 s are 6 GPU-seconds.
    """
    calls = [tuple(case) for case in cases] if cases is not None else [arguments]
    called = function if callable(function) else sys._getframe(1).f_globals.get(function)
    name = function if isinstance(function, str) else _name_of(function)
    try:
        _check(name, called, calls, gives, tolerance, dict(mistakes or {}), (because, see))
    except Wrong as wrong:
        if collected is None:
            raise wrong from None
        collected.append(wrong)


def _name_of(function: Callable[..., Any]) -> str:
    """Name of a function in messages; of a callable without a name, that of its class."""
    named = function.func if isinstance(function, functools.partial) else function
    name: str = getattr(named, "__name__", type(named).__name__)
    return name.strip("_")


def _check(
    name: str,
    called: Any,
    calls: list[tuple[Any, ...]],
    gives: Any,
    tolerance: float,
    mistakes: Mapping[str, Any],
    notes: tuple[str, str],
) -> None:
    """Check all calls of a function; raise `Wrong` about the failed call to show."""
    if called is None:
        raise Wrong(f"`{name}` is not defined yet: write it above and run its cell first.")
    if not callable(called):
        raise Wrong(f"`{name}` must be a function, and is {_type_in_words(called)}.")
    results = [_answer(called, arguments, gives, name, notes) for arguments in calls]
    answers = [answer for answer, _ in results]
    expected = [_value_for(gives, arguments) for arguments in calls]
    failed = [
        number
        for number, (answer, right) in enumerate(zip(answers, expected, strict=True))
        if not same(answer, right, tolerance)
    ]
    changed = [number for number, (_, change) in enumerate(results) if change]
    if not failed and not changed:
        return
    shown_call = min(failed or changed, key=lambda number: len(repr(calls[number])))
    call = _call_text(name, calls[shown_call])
    if not failed:
        raise Wrong(
            f"Not yet right: {call} gives the right answer but changes an argument: "
            f"{results[shown_call][1]}. Work on a copy."
        )
    line = _difference(call, answers[shown_call], expected[shown_call])
    mistake = _mistake_line(mistakes, calls, answers, failed, tolerance)
    raise Wrong(_with_notes(line + mistake, notes))


def _mistake_line(
    mistakes: Mapping[str, Any],
    calls: Sequence[Sequence[Any]],
    answers: Sequence[Any],
    failed: Sequence[int],
    tolerance: float,
) -> str:
    """Line that names the likely mistake, empty if no mistake is likely."""

    def fits(mistake: Any, number: int) -> bool:
        return _fits(mistake, calls[number], answers[number], tolerance)

    contradictions = {
        name: sum(not fits(mistake, number) for number in range(len(calls)))
        for name, mistake in mistakes.items()
        if all(fits(mistake, number) for number in failed)
    }
    best = min(contradictions, key=lambda name: contradictions[name], default="")
    # A single failed call may fit a mistake by chance. The mistake is then likely only if no right
    # call contradicts it.
    is_likely = bool(best) and contradictions[best] < len(failed)
    return f"\n  {MISTAKE}{best}." if is_likely else ""


def same(answer: Any, right: Any, tolerance: float = 1e-6) -> bool:
    """Whether two values are equal, numbers up to a relative or absolute difference.

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
    """Value in Python's types: arrays, series and tuples as lists, tables as columns."""
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return value.to_dict("list")
    if isinstance(value, np.generic) or hasattr(value, "tolist"):
        return value.tolist()
    return list(value) if isinstance(value, tuple | range) else value


def _value_for(value: Any, arguments: Sequence[Any]) -> Any:
    """Value itself, or the result of a function for copies of the arguments."""
    return value(*copy.deepcopy(arguments)) if callable(value) else value


def _fits(mistake: Any, arguments: Sequence[Any], answer: Any, tolerance: float) -> bool:
    """Whether a mistake gives this answer; a mistake that raises does not."""
    try:
        return same(answer, _value_for(mistake, arguments), tolerance)
    except Exception:
        return False


def _answer(
    called: Callable[..., Any],
    arguments: Sequence[Any],
    gives: Any,
    name: str,
    notes: Sequence[str],
) -> tuple[Any, str]:
    """Answer of a student's function, and a text on the argument that it changed.

    Raises
    ------
    Wrong
        The function is empty, or raises.
    """
    passed = copy.deepcopy(arguments)
    try:
        return called(*passed), _change(arguments, passed)
    except Wrong:
        raise
    except Exception as error:
        # the empty function may be another function that the student's function calls
        if empty_name := _empty_function(error):
            raise Wrong(
                f"`{empty_name}` is still empty: write it above, then run both cells."
            ) from None
        cause = f"{type(error).__name__}: {_cut(str(error))}{_cell_line(error)}"
        right = _short(_value_for(gives, arguments))
        line = f"{_call_text(name, arguments)} stopped with {cause}; the right answer is {right}."
        raise Wrong(_with_notes(line, notes)) from None


def _change(before: Sequence[Any], after: Sequence[Any]) -> str:
    """Text on the first changed argument, empty if none was changed."""
    for old, new in zip(before, after, strict=True):
        # some values, such as a generator of random numbers, do not equal their copy
        if not same(new, old, 0.0) and same(copy.deepcopy(old), old, 0.0):
            return f"{_short(old)} becomes {_short(new)}"
    return ""


def is_blank(error: BaseException) -> bool:
    """Whether an error is a NotImplementedError that a ``raise`` in the last frame raised.

    An error of C code has no frame of its own. Its last frame is the Python code that called it.

    >>> try:
    ...     raise NotImplementedError()
    ... except NotImplementedError as error:
    ...     is_blank(error)
    True
    """
    entry = error.__traceback__
    if not isinstance(error, NotImplementedError) or entry is None:
        return False
    while entry.tb_next is not None:
        entry = entry.tb_next
    instruction = entry.tb_frame.f_code.co_code[entry.tb_lasti]
    return instruction == dis.opmap["RAISE_VARARGS"]


def _empty_function(error: Exception) -> str:
    """Name of the student's function that raised NotImplementedError; empty if none did."""
    frames = traceback.extract_tb(error.__traceback__)
    if not is_blank(error) or len(frames) == 1:
        return ""
    # after the frame of `_answer` comes that of the student's function
    last = frames[-1]
    is_own = _is_cell(last.filename) or last.filename == frames[1].filename
    return last.name if is_own else ""


def _is_cell(filename: str) -> bool:
    """Whether a file name of a traceback is that of a notebook's cell."""
    return filename.startswith("<") or "ipykernel" in filename


def _cell_line(error: BaseException) -> str:
    """Line number of an error in the student's cell.

    It is the line of the test cell if the student's cell is not in the traceback.
    """
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if _is_cell(frame.filename)
    ]
    student_frames = [frame for frame in frames if frame.filename != frames[0].filename] or frames
    return f" (line {student_frames[-1].lineno} of its cell)" if student_frames else ""


def _call_text(name: str, arguments: Sequence[Any]) -> str:
    """Call as in Python: ``service(3.0, 2)``."""
    return f"{name}({', '.join(map(_short, arguments))})"


def _with_notes(line: str, notes: Sequence[str]) -> str:
    """Message with a line for each note that is not empty."""
    lines = [
        f"{word} {text.rstrip('.')}." for word, text in zip(_NOTE_WORDS, notes, strict=True) if text
    ]
    return "\n  ".join([line, *lines])


def _difference(call: str, answer: Any, right: Any) -> str:
    """Message with the answer and the right answer; it says if types or lengths differ."""
    answer = _plain(answer)
    right = _plain(right)
    start = f"Not yet right: {call} gives"
    shown = _short(answer)
    expected = _short(right)
    if answer is None:
        return f"{start} nothing (None) instead of {expected}; is a `return` missing?"
    if isinstance(answer, float) and math.isnan(answer):
        return f"{start} NaN (no number, such as 0/0) instead of {expected}."
    answer_type = _type_in_words(answer)
    right_type = _type_in_words(right)
    if answer_type != right_type:
        return f"{start} {answer_type}, {shown}, instead of {right_type}, {expected}."
    if isinstance(right, list) and len(answer) != len(right):
        return f"{start} {len(answer)} values, {shown}, instead of {len(right)}, {expected}."
    return f"{start} {shown} instead of {expected}."


def _type_in_words(value: Any) -> str:
    """Type of a value for students: ``a number``, ``text``."""
    value = _plain(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "a number"
    names = {bool: "True or False", str: "text", list: "a list", dict: "a dictionary"}
    return names.get(type(value), f"a {type(value).__name__}")


def _short(value: Any) -> str:
    """Value as text, numbers to six digits, long texts cut."""
    value = _plain(value)
    if isinstance(value, float):
        return repr(value) if value.is_integer() else f"{value:.6g}"
    if isinstance(value, list):
        return _cut(f"[{', '.join(map(_short, value))}]")
    if isinstance(value, dict):
        return _cut(f"{{{', '.join(f'{key!r}: {_short(item)}' for key, item in value.items())}}}")
    return _cut(repr(value))


def _cut(text: str) -> str:
    """Text, cut after ``_MAX_LETTERS`` letters."""
    return text if len(text) <= _MAX_LETTERS else f"{text[:_MAX_LETTERS]} …"
