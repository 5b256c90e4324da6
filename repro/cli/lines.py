"""What the command line prints: one line per mistake and warning, control characters visible."""

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import typer

from repro.base.errors import ParamError

#: Control characters, marks that turn the direction of text, bytes that were no text.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LONGEST = 2000


def visible(text: str) -> str:
    """Return text that a terminal shows and never obeys."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def say(text: str) -> None:
    """Print lines for the user, control characters visible."""
    typer.echo(visible(text))


def complain(text: str, *items: str) -> None:
    """Print one line on stderr, and a list below it; the middle of an endless line is left out."""
    typer.echo(f"repro: {_one_line(' '.join(text.split()))}", err=True)
    for item in items:
        # blanks align the items
        typer.echo(f"  {_one_line(' '.join(item.splitlines()))}", err=True)


def _one_line(line: str) -> str:
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST // 2]} … {line[-_LONGEST // 2 :]}"
    return visible(line)


def compiling_line() -> Callable[[str], None]:
    """Make a function that names the first loop that is compiled, on a terminal only."""
    is_silent = not sys.stderr.isatty()

    def tell(name: str) -> None:
        nonlocal is_silent
        if not is_silent:
            is_silent = True
            complain(f"compiling {name} and other loops; later runs reuse them")

    return tell


@contextlib.contextmanager
def warnings_in_lines() -> Iterator[None]:
    """Print each Python warning once, as a line without the place in the code.

    Warnings of NumPy about numbers come last, and not at all before an error: that says more.
    """
    said: set[str] = set()
    of_numbers: list[str] = []

    def show(message: Warning | str, category: type[Warning], *_: Any, **place: Any) -> None:
        if str(message) in said:
            return
        said.add(str(message))
        if issubclass(category, RuntimeWarning):
            of_numbers.append(str(message))
        else:
            complain(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
    for text in of_numbers:
        complain(f"warning: {text}")


def ignored_lines(ignored: dict[str, Any]) -> list[str]:
    """Return one line for each sort of thing a run did not use."""
    meant = {
        "gpu_share": "every job holds whole GPUs",
        "gpu_type": "a job runs on GPUs of any type",
        "GPU types of the cluster": "all GPUs are equally fast",
    }

    def listed(names: list[str]) -> str:
        notes = [meant[name] for name in names if name in meant]
        shown = f"{', '.join(names[:20])}{', …' if len(names) > 20 else ''}"
        return f"{shown} ({'; '.join(notes)})" if notes else shown

    sorts = (("columns", "trace columns"), ("file_columns", "columns of the file"))
    lines = [f"not used: {text} {listed(ignored[key])}" for key, text in sorts if ignored.get(key)]
    if ignored.get("rows"):
        counts = (f"{reason}: {rows:,}" for reason, rows in ignored["rows"].items())
        lines.append(f"left out: rows of the trace ({', '.join(counts)})")
    if ignored.get("options"):
        lines.append(f"not used: {listed(ignored['options'])}")
    return lines


def join_pairs(words: Sequence[str]) -> list[str]:
    """Turn ``-p NAME VALUE`` into one word after ``-p``, which the parser can take repeatedly.

    >>> join_pairs(["run", "-p", "seed", "3", "-p", "knob=2"])
    ['run', '-p', 'seed=3', '-p', 'knob=2']
    """
    if not words or words[0] != "run":
        return list(words)
    joined: list[str] = []
    rest = iter(words)
    for word in rest:
        joined.append(word)
        if word == "-p":
            name = next(rest, None)
            value = None if name is None or "=" in name else next(rest, None)
            if name is None or ("=" not in name and value is None):
                raise ParamError("-p takes NAME VALUE, such as -p seed 3")
            joined.append(name if value is None else f"{name}={value}")
    return joined
