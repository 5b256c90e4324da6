"""Hostile inputs: a table of cases for each door of the package, and what every case must keep.

A case is malformed input and the words of the line that refuses it. Input that only looks strange
(a byte-order mark, line ends of Windows) is accepted, and the case has words of the right result.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from repro.base.errors import ReproError
from repro.cli.app import main

#: Limits of a refusal: characters of its line, and CPU time (s).
MAX_LINE = 300
MAX_CPU_S = 2.0
BAD_INPUT = 2
#: Control characters, marks that reverse or hide text, and line ends other than a line feed.
HIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
#: Names of exceptions and of objects of Python, which a line for users does not have.
_INTERNAL = re.compile(
    r"Traceback|\b[A-Z][A-Za-z]*(?:Error|Exception|Iteration)\b|object at 0x|pydantic|\bNoneType\b"
)

Content = str | bytes | Callable[[Path], object]


@dataclass(frozen=True)
class Case:
    """Malformed input, the call that reads it, and what the answer must contain.

    ``files`` are contents by name, or functions that make what is at a path. ``call`` is a command
    line, or a function of Python. ``code`` is the exit code: 2 for refused, 0 for accepted.
    """

    id: str
    call: tuple[str, ...] | Callable[[], object]
    words: tuple[str, ...]
    files: Mapping[str, Content] = field(default_factory=dict)
    code: int = BAD_INPUT
    longest: int = MAX_LINE


def refused(id: str, call: object, *words: str, **files: Content) -> Case:
    """Case whose input is refused with a line that has all ``words``."""
    return Case(id, call, words, files)  # type: ignore[arg-type]


def parameters(cases: Iterable[Case]) -> list[object]:
    """Parameters of a test, one for each case under its id; no two ids are equal."""
    cases = list(cases)
    ids = [case.id for case in cases]
    assert len(set(ids)) == len(ids), sorted(name for name in set(ids) if ids.count(name) > 1)
    return [pytest.param(case, id=plain_id(case.id)) for case in cases]


def plain_id(text: str) -> str:
    """Text as an id of a test, in printable ASCII."""
    return text.encode("unicode_escape").decode("ascii")


def put(case: Case, folder: Path) -> None:
    """Write the files of a case into a folder."""
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())


def snapshot(folder: Path) -> dict[str, str]:
    """Files, links and folders below a folder, each with its kind and content."""
    state = {}
    for place, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            path = Path(place, name)
            if path.is_symlink():
                text = f"link to {os.readlink(path)}"
            elif path.is_file():
                text = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                text = "folder" if path.is_dir() else "pipe"
            state[str(path.relative_to(folder))] = text
    return state


def run(case: Case) -> tuple[int, str, str, float]:
    """Exit code, output, errors and CPU time (s) of the call of a case."""
    out, err = io.StringIO(), io.StringIO()
    start = time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = call(case)
        except ReproError as error:
            code = BAD_INPUT
            print(f"repro: {error.args[0]}", file=err)
        except Exception:
            code = 1
            traceback.print_exc()
    return code, out.getvalue(), err.getvalue(), time.process_time() - start


def call(case: Case) -> int:
    """Exit code of a command line; 0 for a function of Python that returns."""
    if isinstance(case.call, tuple):
        return main(list(case.call))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.call()
    return 0


def check(case: Case, folder: Path) -> None:
    """Run a case in a folder and require its answer."""
    put(case, folder)
    before = snapshot(folder)
    code, out, err, cpu_s = run(case)
    said = f"exit code {code} after {cpu_s:.2f} s\n{out[:500]}\n{err[-3000:]}"
    assert code == case.code, said
    assert cpu_s <= MAX_CPU_S, said
    assert snapshot(folder) == before, said
    if code == BAD_INPUT:
        lines = err.splitlines()
        assert len(lines) == 1, said
        assert lines[0].startswith("repro: "), said
        assert len(lines[0]) <= case.longest, f"{len(lines[0])} characters\n{said}"
        assert not _INTERNAL.search(lines[0]), said
        assert not out, said
    assert not HIDDEN.search(out + err), said
    missing = [word for word in case.words if word not in (err if code else out + err)]
    assert not missing, f"no {missing} in\n{said}"


def folder_there(path: Path) -> None:
    """Make a folder where a file is expected."""
    path.mkdir()


def dangling_link(path: Path) -> None:
    """Make a link to nothing."""
    path.symlink_to("nowhere")


def link_to_itself(path: Path) -> None:
    """Make a link that points to itself."""
    path.symlink_to(path.name)


def endless_file(path: Path) -> None:
    """Make a link to a device that never ends."""
    path.symlink_to("/dev/zero")


def pipe(path: Path) -> None:
    """Make a pipe that nobody writes to."""
    os.mkfifo(path)


#: What may be at the path of a file -> words of the line, for all readers.
NO_FILES: dict[str, Content] = {
    "folder": folder_there,
    "dangling link": dangling_link,
    "link to itself": link_to_itself,
    "endless device": endless_file,
    "pipe": pipe,
}
