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
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from repro.base import paths
from repro.base.errors import ParamError, ReproError
from repro.base.release import VERSION
from repro.files.spreadsheet import safe_cells
from repro.files.whole import write_whole
from repro_course.assignments import PLACE, Cell, merge, points_of, read, sources
from repro_course.handed import Submission, submissions

_MEMORY = ".graded.json"
#: Changes with what the memory holds and with the meaning of its notes.
_FORM = "2"
_PLUGIN = "repro_course.pytest_plugin"
#: What the plugin sends before the first cell.
_BEGINS = {"begins": True}
#: Signals that no answer runs into by itself.
_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT})
_GRACE_S = 5


@dataclass(frozen=True)
class Limits:
    """What one submission may use: seconds of a cell and in all, of the processor, memory (MB)."""

    cell: float = 60.0
    wall: float = 300.0
    cpu: float = 300.0
    memory_mb: int = 4096


class GraderError(ReproError):
    """A notebook was not graded for a reason outside the student's answer."""


def grade(
    folder: Path,
    limits: Limits,
    source: Path | None = None,
    jobs: int = 1,
    tell: Callable[[dict[str, Any]], None] = lambda row: None,
) -> Path:
    """Grade the submissions below a folder that are new or have changed since they were graded.

    Parameters
    ----------
    folder : Path
        A folder, or a zip archive, for each student.
    limits : Limits
        What one submission may use.
    source : Path, optional
        The instructors' notebooks; None: the course's own.
    jobs : int
        Processes at a time.
    tell : callable, optional
        Called with each new row of the table as soon as it is there. ``fault`` is true of one that
        failed for the grader's own reasons; it is tried again the next time.

    Returns
    -------
    Path
        The table, ``grades.csv``; what failed is told in ``STUDENT/feedback-N.txt``.

    Raises
    ------
    ParamError
        pytest is not installed, or there are no submissions.
    """
    if find_spec("pytest") is None:
        raise ParamError("pytest is not installed; `pip install pytest` brings it")
    found, ungraded = submissions(folder, source)
    known_sources = sources(source)
    memory = folder / _MEMORY
    known: dict[str, dict[str, Any]] = {}
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(memory.read_text())
    rows: dict[str, dict[str, Any]] = {}
    for left in ungraded:
        original = known_sources.get(left.assignment)
        row = _blank_row(left.student, left.assignment, original, left.note)
        rows[f"{left.student}/{left.assignment}"] = row
        tell(row)
    running: set[int] = set()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            waiting = {}
            for one in found:
                name = f"{one.student}/{one.assignment}"
                digest = _digest(one, limits)
                if known.get(name, {}).get("digest") == digest:
                    rows[name] = known[name]
                else:
                    waiting[pool.submit(_row, one, limits, _closed(found), running)] = name, digest
            for done in as_completed(waiting):
                name, digest = waiting[done]
                rows[name] = done.result()
                if not rows[name]["fault"]:
                    known[name] = {**rows[name], "digest": digest}
                    write_whole(memory, json.dumps(known).encode())
                tell(rows[name])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for group in list(running):
                _kill(group)
            table = folder / "grades.csv"
            write_whole(table, _table([rows[name] for name in sorted(rows)]))
    return table


def _closed(found: list[Submission]) -> list[str]:
    """List the files and folders that no answer may read: instructors' and students'."""
    places = {place for one in found for place in (one.folder, one.handed.path, one.source.parent)}
    return sorted(os.path.realpath(place) for place in places)


def _digest(one: Submission, limits: Limits) -> str:
    """Return what a score depends on, as one word."""
    parts = [_FORM, VERSION, repr(limits), one.source.read_text(encoding="utf-8"), one.note]
    with contextlib.suppress(OSError, ParamError):
        parts.append(hashlib.sha256(one.handed.data()).hexdigest())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _table(rows: list[dict[str, Any]]) -> bytes:
    """Return the scores as CSV, a column for each task; what was not graded has no number."""
    tasks = sorted({name for row in rows for name in row["tasks"]})
    flat = [
        {
            "student": row["student"],
            "assignment": row["assignment"],
            # an empty cell, not None, so that the numbers beside it stay whole
            **{name: row["tasks"].get(name, "") for name in tasks},
            "points": sum(row["tasks"].values()) if row["tasks"] else "",
            "of": row["of"],
            "seconds": round(row["seconds"], 1),
            "note": row["note"],
        }
        for row in rows
    ]
    return (
        safe_cells(pd.DataFrame(flat))
        .to_csv(index=False, lineterminator="\n")
        .encode(errors="backslashreplace")
    )


def _blank_row(student: str, assignment: str, source: Path | None, note: str) -> dict[str, Any]:
    """Return the row of what was not graded."""
    most = "" if source is None else sum(points_of(read(source)).values())
    named = {"student": student, "assignment": assignment}
    return {**named, "tasks": {}, "of": most, "seconds": 0.0, "note": note, "fault": False}


def _row(one: Submission, limits: Limits, closed: list[str], running: set[int]) -> dict[str, Any]:
    """Return the row of one submission, without a score where the grader failed."""
    try:
        return _graded(one, limits, closed, running)
    # whatever it is, it is no answer of the student's
    except Exception as error:
        known = isinstance(error, ReproError | OSError)
        reason = f"{error}" if known else f"{type(error).__name__}: {error}".rstrip(": ")
        row = _blank_row(one.student, one.assignment, one.source, f"the grader failed: {reason}")
        return {**row, "fault": True}


def _graded(
    one: Submission, limits: Limits, closed: list[str], running: set[int]
) -> dict[str, Any]:
    """Return the row of one submission; write its feedback."""
    begun = time.monotonic()
    instructor = read(one.source)
    points = points_of(instructor)
    said: list[dict[str, Any]] = []
    notes = [one.note] if one.note else []
    try:
        cells = merge(one.handed.notebook(), instructor)
    except ParamError as error:
        notes.append(str(error))
    else:
        said, ended = _child(f"{one.assignment}.ipynb", cells, limits, closed, running)
        refused = sorted({message["refused"] for message in said if "refused" in message})
        notes += [f"tried: {what}" for what in refused] + ended
    texts = {message["id"]: message["text"] for message in said if "id" in message}
    for name in points.keys() - texts.keys():
        texts[name] = "was not run"
    lines = [f"{name}: {texts[name] or 'fine'}\n" for name in points]
    number = one.assignment.partition("_")[0]
    feedback = "\n".join(lines + notes).encode(errors="replace")
    write_whole(one.folder / f"feedback-{number}.txt", feedback)
    return {
        "student": one.student,
        "assignment": one.assignment,
        "tasks": {name: 0 if texts[name] else most for name, most in points.items()},
        "of": sum(points.values()),
        "seconds": time.monotonic() - begun,
        "note": "; ".join(notes),
        "fault": False,
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
    memory = limits.memory_mb * 2**20
    cpu = math.ceil(limits.cpu)
    # the second is for an answer that swallows the signal of the first
    processor = (cpu, cpu + _GRACE_S)
    task = {
        "key": key,
        "cells": cells,
        "seconds": limits.cell,
        "closed": closed,
        "open": [os.path.realpath(paths.cache_dir())],
        "limits": {
            "RLIMIT_CPU": processor,
            "RLIMIT_AS": (memory, memory),
            "RLIMIT_FSIZE": (2**26, 2**26),
            "RLIMIT_CORE": (0, 0),
        },
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
    if faults := [message["fault"] for message in said if "fault" in message]:
        raise GraderError(faults[0])
    graded = {cell.id for cell in cells if cell.points}
    if graded == {message.get("id") for message in said} - {None}:
        return said, []
    ended = _end(child.returncode, late, limits, lines)
    if _BEGINS not in said:
        raise GraderError(f"{ended}, before a cell was run")
    if not late and -child.returncode in _FROM_OUTSIDE:
        name = signal.Signals(-child.returncode).name
        raise GraderError(f"killed by the system ({name}), which may be short of memory")
    return said, [ended]


def _surroundings(place: str) -> dict[str, str]:
    """Return the environment of a graded process: its own folders, one thread, no screen."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST")}
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    packages = [str(paths.PACKAGE.parent), str(PLACE)]
    python = [*packages, *filter(None, [os.environ.get("PYTHONPATH")])]
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
