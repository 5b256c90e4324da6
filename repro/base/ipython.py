"""IPython in this process: the shell of a notebook, and errors of this package in one line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from repro.base.errors import ReproError

_RED = "\x1b[31m"
_PLAIN = "\x1b[0m"


def shell() -> Any:
    """IPython of this process; None outside of a notebook and of IPython."""
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def shorten_errors() -> None:
    """Let this process's notebook show errors of this package in one line.

    The cell still fails. ``%tb`` shows the traceback, and ``%debug`` starts the debugger.
    """
    ipython = shell()
    # Keep a handler that the user has set.
    if ipython is not None and not ipython.custom_exceptions:
        ipython.set_custom_exc((ReproError,), _show_error)


def after_failed_cell(action: Callable[[], object]) -> None:
    """Call ``action`` after each cell of this process's notebook that raises."""

    def act(result: Any) -> None:
        if not result.success:
            action()

    shell().events.register("post_run_cell", act)


def _show_error(
    ipython: Any,
    error_type: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> list[str]:
    """Show an error of this package as the error of the running cell; return the lines shown."""
    # `_get_exc_info` keeps the error for %tb, and `InteractiveTB.tb` its traceback for %debug.
    ipython._get_exc_info((error_type, error, trace))
    ipython.InteractiveTB.tb = trace
    lines = [f"{_RED}{error_type.__name__}: {error}{_PLAIN}"]
    ipython._showtraceback(error_type, error, lines)
    return lines
