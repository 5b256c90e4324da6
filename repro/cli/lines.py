"""Output of the command line: one line per error and warning, control characters visible."""

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import typer

from repro.base.errors import InputWarning, ParamError
from repro.engine.ignored import ignored_lines

#: Control characters, marks that reverse text, and lone surrogates.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_MAX_LINE = 2000
_MAX_WORD = 200
_LONG_WORD = re.compile(rf"\S{{{_MAX_WORD + 1},}}")


def visible(text: str) -> str:
    """Text with control characters as escapes, which a terminal does not obey."""
    return _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def say(text: str) -> None:
    """Print lines for the user, control characters visible."""
    typer.echo(visible(text))


def complain(text: str, *items: str) -> None:
    """Print one line on stderr, and a list below it; a long line loses its middle."""
    typer.echo(f"repro: {_shortened(' '.join(text.split()))}", err=True)
    for item in items:
        # items are aligned by blanks, so blanks stay
        typer.echo(f"  {_shortened(' '.join(item.splitlines()))}", err=True)


def _shortened(line: str) -> str:
    """Line of at most about `_MAX_LINE` characters, control characters visible.

    A word of more than `_MAX_WORD` characters loses its middle.
    """
    line = _LONG_WORD.sub(lambda word: f"{word[0][:60]}…{word[0][-30:]}", line)
    if len(line) > _MAX_LINE:
        line = f"{line[: _MAX_LINE // 2]} … {line[-_MAX_LINE // 2 :]}"
    return visible(line)


def compiling_line() -> Callable[[str], None]:
    """Function that prints the name of the first loop to be compiled, on a terminal only."""
    is_silent = not sys.stderr.isatty()

    def print_first(name: str) -> None:
        nonlocal is_silent
        if not is_silent:
            is_silent = True
            complain(f"compiling {name} and other loops; later runs reuse them")

    return print_first


@contextlib.contextmanager
def warnings_in_lines() -> Iterator[None]:
    """Print each Python warning once, as a line without file and line number.

    Runtime warnings, such as those of NumPy about numbers, come last. They are left out if an error
    ends the command.
    """
    printed: set[str] = set()
    numerical: list[str] = []

    def show(message: Warning | str, category: type[Warning], *_: Any, **location: Any) -> None:
        if str(message) in printed:
            return
        printed.add(str(message))
        if issubclass(category, RuntimeWarning):
            numerical.append(str(message))
        else:
            complain(f"warning: {message}")

    with warnings.catch_warnings():
        # A note on the input is part of what a command says, whatever PYTHONWARNINGS is.
        warnings.simplefilter("always", InputWarning)
        warnings.showwarning = show
        yield
    for text in numerical:
        complain(f"warning: {text}")


def reader_lines(attrs: Mapping[Any, Any]) -> list[str]:
    """Lines on columns that the reader of a trace did not use, rows that it left out, its notes.

    ``attrs`` are those of the trace.
    """
    ignored = {"file_columns": attrs.get("unread"), "rows": attrs.get("dropped")}
    return [*ignored_lines(ignored), *(f"note: {note}" for note in attrs.get("notes", ()))]


def join_pairs(words: Sequence[str]) -> list[str]:
    """Join ``-p NAME VALUE`` to ``-p NAME=VALUE``, which the parser accepts repeatedly.

    >>> join_pairs(["run", "-p", "seed", "3", "-p", "knob=2"])
    ['run', '-p', 'seed=3', '-p', 'knob=2']
    """
    if not words or words[0] != "run":
        return list(words)
    joined: list[str] = []
    remaining = iter(words)
    for word in remaining:
        joined.append(word)
        if word == "-p":
            name = next(remaining, None)
            value = None if name is None or "=" in name else next(remaining, None)
            if name is None or ("=" not in name and value is None):
                raise ParamError("-p takes NAME VALUE, such as -p seed 3")
            joined.append(name if value is None else f"{name}={value}")
    return joined
