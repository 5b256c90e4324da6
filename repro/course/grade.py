"""Grade a folder of submissions: each in a process of its own, with limits, to one CSV."""

import contextlib
import hashlib
import json
import math
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from repro import paths
from repro.course.assignments import Cell, merge, read, sources
from repro.errors import ParamError, ReproError
from repro.files.spreadsheet import safe_cells
from repro.files.whole import write_whole
from repro.release import VERSION

_MEMORY = ".graded.json"
_PLUGIN = "repro.course.pytest_plugin"


@dataclass(frozen=True)
class Limits:
    """What one submission may use: seconds of a cell and in all, of the processor, memory (MB)."""

    cell: float = 60.0
    wall: float = 300.0
    cpu: float = 300.0
    memory_mb: int = 4096


class Submission(NamedTuple):
    """A student's notebook, and the instructor's."""

    student: str
    assignment: str
    path: Path
    source: Path


def submissions(folder: Path, source: Path | None = None) -> list[Submission]:
    """Return the notebooks below a folder: ``STUDENT/NAME.ipynb``, or as nbgrader keeps them."""
    if not folder.is_dir():
        raise ParamError(f"{folder}: no such folder; give the one with a folder for each student")
    known = sources(source)
    top = folder / "submitted" if (folder / "submitted").is_dir() else folder
    found = []
    for student in sorted(path for path in top.iterdir() if path.is_dir()):
        for name, original in known.items():
            places = (student / f"{name}.ipynb", student / name / f"{name}.ipynb")
            for path in places:
                if path.is_symlink() or path.exists():
                    found.append(Submission(student.name, name, path, original))
                    break
    if not found:
        raise ParamError(f"{folder}: no submissions; they are STUDENT/{next(iter(known))}.ipynb")
    return found


def grade(
    folder: Path,
    limits: Limits,
    source: Path | None = None,
    jobs: int = 1,
    tell: Callable[[dict[str, Any]], None] = lambda row: None,
) -> Path:
    """Grade all submissions below a folder, those that are as they were when graded left out.

    Parameters
    ----------
    folder : Path
        A folder for each student.
    limits : Limits
        What one submission may use.
    source : Path, optional
        The instructors' notebooks; None: the package's own.
    jobs : int
        Processes at a time.
    tell : callable, optional
        Called with each row of the table as soon as it is there.

    Returns
    -------
    Path
        The table, ``grades.csv``; what failed is told in ``STUDENT/feedback-N.txt``.
    """
    found = submissions(folder, source)
    memory = folder / _MEMORY
    known: dict[str, dict[str, Any]] = {}
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(memory.read_text())
    rows: dict[str, dict[str, Any]] = {}
    running: set[int] = set()
    closed = sorted({os.path.realpath(path.parent) for one in found for path in one[2:]})
    with ThreadPoolExecutor(jobs) as pool:
        try:
            waiting = {}
            for one in found:
                name = f"{one.student}/{one.assignment}"
                digest = _digest(one, limits)
                if known.get(name, {}).get("digest") == digest:
                    rows[name] = known[name]
                else:
                    waiting[pool.submit(_graded, one, limits, closed, running)] = name, digest
            for done in as_completed(waiting):
                name, digest = waiting[done]
                known[name] = rows[name] = {**done.result(), "digest": digest}
                write_whole(memory, json.dumps(known).encode())
                tell(rows[name])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for group in list(running):
                _kill(group)
            table = folder / "grades.csv"
            write_whole(table, _table([rows[name] for name in sorted(rows)]))
    return table


def _digest(one: Submission, limits: Limits) -> str:
    """Return what a score depends on, as one word."""
    parts = [VERSION, repr(limits), one.source.read_text(encoding="utf-8")]
    with contextlib.suppress(OSError):
        parts.append(hashlib.sha256(one.path.read_bytes()).hexdigest())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _table(rows: list[dict[str, Any]]) -> bytes:
    """Return the scores as CSV, a column for each task."""
    tasks = sorted({name for row in rows for name in row["tasks"]})
    flat = [
        {
            "student": row["student"],
            "assignment": row["assignment"],
            **{name: row["tasks"].get(name) for name in tasks},
            "points": sum(row["tasks"].values()),
            "of": row["of"],
            "seconds": round(row["seconds"], 1),
            "note": row["note"],
        }
        for row in rows
    ]
    return safe_cells(pd.DataFrame(flat)).to_csv(index=False, lineterminator="\n").encode()


def _graded(
    one: Submission, limits: Limits, closed: list[str], running: set[int]
) -> dict[str, Any]:
    """Return the row of one submission; write its feedback."""
    begun = time.monotonic()
    instructor = read(one.source)
    cells = merge(instructor, instructor)
    points = {str(cell.id): cell.points for cell in cells if cell.points}
    said: list[dict[str, Any]] = []
    notes: list[str] = []
    try:
        if one.path.is_symlink():
            raise ParamError("is a link and was not opened")
        cells = merge(read(one.path), instructor)
        said, notes = _child(one.path.name, cells, limits, closed, running)
    except ReproError as error:
        notes = [str(error).replace(str(one.path), one.path.name)]
    refused = sorted({message["refused"] for message in said if "refused" in message})
    notes = [f"tried: {what}" for what in refused] + notes
    texts = {message["id"]: message["text"] for message in said if "id" in message}
    for name in points.keys() - texts.keys():
        texts[name] = "was not run"
    lines = [f"{name}: {texts[name] or 'fine'}\n" for name in points]
    number = one.assignment.partition("_")[0]
    write_whole(
        one.path.parent / f"feedback-{number}.txt",
        "\n".join(lines + notes).encode(errors="replace"),
    )
    return {
        "student": one.student,
        "assignment": one.assignment,
        "tasks": {name: 0 if texts[name] else most for name, most in points.items()},
        "of": sum(points.values()),
        "seconds": time.monotonic() - begun,
        "note": "; ".join(notes),
    }


def _kill(group: int) -> None:
    """End a process and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _child(
    name: str, cells: list[Cell], limits: Limits, closed: list[str], running: set[int]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Run the cells in a process of their own; return its messages, and why it ended early."""
    key = secrets.token_hex(16)
    memory, cpu = limits.memory_mb * 2**20, math.ceil(limits.cpu)
    task = {
        "key": key,
        "cells": cells,
        "seconds": limits.cell,
        "closed": closed,
        "open": [os.path.realpath(paths.cache_dir())],
        "limits": {"RLIMIT_CPU": cpu, "RLIMIT_AS": memory, "RLIMIT_FSIZE": 2**26, "RLIMIT_CORE": 0},
    }
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        copy = Path(place, name)
        copy.write_text("{}")
        words = [sys.executable, "-m", "pytest", "-p", _PLUGIN, "-p", "no:cacheprovider"]
        words += ["-s", "-q", "-c", os.devnull, "--rootdir", place, copy.name]
        child = subprocess.Popen(
            words,
            cwd=place,
            env=_surroundings(place),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        running.add(child.pid)
        late = False
        try:
            out, _ = child.communicate(json.dumps(task).encode(), timeout=limits.wall)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            _kill(child.pid)
            running.discard(child.pid)
        if late:
            out, _ = child.communicate()
    lines = out.decode(errors="replace").splitlines()
    said = [json.loads(line.removeprefix(key)) for line in lines if line.startswith(key)]
    graded = {cell.id for cell in cells if cell.points}
    if graded == {message.get("id") for message in said} - {None}:
        return said, []
    return said, [_end(child.returncode, late, limits, lines)]


def _surroundings(place: str) -> dict[str, str]:
    """Return the environment of a graded process: its own folders, one thread, no screen."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST")}
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    python = [str(paths.PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **kept,
        **dict.fromkeys(threads, "1"),
        "TMPDIR": place,
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": str(paths.cache_dir() / "matplotlib"),
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(paths.cache_dir())),
        "PYTHONPATH": os.pathsep.join(python),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "REPRO_CACHE_DIR": str(paths.cache_dir()),
        "REPRO_COURSE_GRADED": "1",
    }


def _end(code: int, late: bool, limits: Limits, lines: list[str]) -> str:
    """Return why a process ended before its last cell."""
    if late:
        return f"stopped after {limits.wall:g} s"
    if code < 0:
        name = signal.Signals(-code).name
        return "used too much processor time" if name == "SIGXCPU" else f"crashed ({name})"
    return f"ended early (exit {code}) {' '.join(lines[-2:])[:200]}".strip()
