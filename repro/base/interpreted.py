"""Interpretation of compiled functions that have no machine code yet.

Compiling an event loop takes 4 to 11 s. Interpreting it for a hundred jobs takes 0.1 s. So a
compiled function without machine code first runs as a Python function, for `seconds_allowed` in
total. If these seconds pass during a call, the call stops where it next calls a compiled function.
Its arrays are restored, the function is compiled, and the call runs again. Results are the same to
the last bit. Functions with ``exact=False`` are never interpreted, because their machine code adds
in another order.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from repro.base.errors import ParamError

ENV_SECONDS = "REPRO_PYTHON_S"
DEFAULT_S = 2.0
#: A function has a file with its total seconds of interpretation. The file is written again when
#: the total has grown by this many seconds.
_WRITTEN_EVERY_S = 0.1


class _ThreadState(threading.local):
    """State of a thread.

    Attributes
    ----------
    deadline : float or None
        Instant at which the running interpretation has to end (s); None if none is running.
    is_compiled_only : bool
        Whether nothing is interpreted, see `compiled_only`.
    """

    deadline: float | None = None
    is_compiled_only: bool = False


THREAD_STATE = _ThreadState()


class NotInterpreted(Exception):
    """Stop of an interpretation that took too long or would change the last bits."""


@contextlib.contextmanager
def compiled_only() -> Iterator[None]:
    """Interpret nothing inside the block, for measurements of time.

    Examples
    --------
    >>> with compiled_only():
    ...     THREAD_STATE.is_compiled_only
    True
    """
    before = THREAD_STATE.is_compiled_only
    THREAD_STATE.is_compiled_only = True
    try:
        yield
    finally:
        THREAD_STATE.is_compiled_only = before


def seconds_allowed() -> float:
    """Total seconds for which a function is interpreted, ``$REPRO_PYTHON_S``; 0: not at all."""
    text = os.environ.get(ENV_SECONDS)
    if not text:
        return DEFAULT_S
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0.0:
        raise ParamError(f"{ENV_SECONDS}={text[:60]}: give seconds of 0 or more, such as 2")
    return seconds


class Interpretation:
    """Interpretation of one function, and the seconds that it took so far in all processes.

    Parameters
    ----------
    function : callable
        The function in Python.
    seconds_file : Path or None
        File of the seconds so far, beside the machine code; None: this process alone counts.
    """

    def __init__(self, function: Callable[..., Any], seconds_file: Path | None) -> None:
        self._function = function
        self._seconds_file = seconds_file
        self._spent_s = _read_seconds(seconds_file)
        self._written_s = self._spent_s

    def try_once(self, values: Sequence[Any], named: Mapping[str, Any]) -> tuple[bool, Any]:
        """Interpret a call. The result is whether it was completed, and its value.

        If it was not, arrays keep their values from before the call, and the function has to be
        compiled.
        """
        if THREAD_STATE.is_compiled_only:
            return False, None
        left_s = seconds_allowed() - self._spent_s
        if left_s <= 0.0:
            if self._spent_s < math.inf:
                self._set_seconds(math.inf)
            return False, None
        arrays = list(_arrays((*values, *named.values())))
        if not all(isinstance(array, np.ndarray) for array in arrays):
            return False, None
        before = [array.copy() for array in arrays]
        is_done = False
        began = time.perf_counter()
        THREAD_STATE.deadline = began + left_s
        try:
            with np.errstate(all="ignore"):
                result = _as_compiled(self._function(*values, **named))
            is_done = True
        except Exception:
            # The call runs again in machine code, which raises errors of the call.
            return False, None
        finally:
            THREAD_STATE.deadline = None
            spent_s = self._spent_s + time.perf_counter() - began
            if not is_done:
                spent_s = math.inf
                for array, old in zip(arrays, before, strict=True):
                    if array.flags.writeable:
                        array[...] = old
            self._set_seconds(spent_s)
        return True, result

    def _set_seconds(self, spent_s: float) -> None:
        """Set the seconds so far, and write them for other processes from time to time.

        Infinity means that the function is compiled from now on.
        """
        self._spent_s = spent_s
        if self._seconds_file is not None and spent_s > self._written_s + _WRITTEN_EVERY_S:
            self._written_s = spent_s
            with contextlib.suppress(OSError):
                self._seconds_file.write_text(repr(spent_s))


def _read_seconds(seconds_file: Path | None) -> float:
    """Seconds in the file of a function; 0 if the file is missing or damaged."""
    if seconds_file is None:
        return 0.0
    try:
        return float(seconds_file.read_text())
    except (OSError, ValueError):
        return 0.0


def check_nested(is_exact: bool) -> None:
    """Stop the interpretation if it took too long, or if a function would change the last bits."""
    deadline = THREAD_STATE.deadline
    assert deadline is not None, "only called during an interpretation"
    if not is_exact or time.perf_counter() > deadline:
        raise NotInterpreted


def _arrays(values: Sequence[Any]) -> Iterator[Any]:
    """Yield the arrays of nested tuples. Yield None for a value that cannot be interpreted.

    Arrays, numbers and None can be interpreted.
    """
    for value in values:
        if isinstance(value, tuple):
            yield from _arrays(value)
        elif isinstance(value, np.ndarray):
            yield value
        elif not (value is None or isinstance(value, bool | int | float | np.generic)):
            yield None


def _as_compiled(value: Any) -> Any:
    """Result as a compiled function returns it: numbers of Python instead of NumPy."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        items = [_as_compiled(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value
