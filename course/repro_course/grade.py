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

#: File with the rows graded so far, in the folder of submissions.
_MEMORY_FILE = ".graded.json"
#: Version of this file: changes with its columns and with the meaning of the notes.
_MEMORY_VERSION = "2"
_PLUGIN = "repro_course.pytest_plugin"
#: Message of the plugin before the first cell.
_BEGINS = {"begins": True}
#: Signals that come from the system, not from an answer.
_SYSTEM_SIGNALS = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT})
#: Seconds of the processor between the signal of its limit and the end of the process.
_GRACE_S = 5


@dataclass(frozen=True)
class Limits:
    """Limits of one submission.

    Parameters
    ----------
    cell : float
        Wall time of a cell (s).
    wall : float
        Wall time of the notebook (s).
    cpu : float
        CPU time of the notebook (s).
    memory_mb : int
        Memory of the process (MiB).

    Examples
    --------
    >>> Limits(cell=10, wall=60)
    Limits(cell=10, wall=60, cpu=300.0, memory_mb=4096)
    """

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
        Holds a folder, or a zip archive, for each student.
    limits : Limits
        Limits of one submission.
    source : Path, optional
        The instructors' notebooks; None: the course's own.
    jobs : int
        Processes at a time.
    tell : callable, optional
        Called with each new row of the table as soon as it is complete. ``fault`` is true if the
        grader failed. The next call grades such a notebook again.

    Returns
    -------
    Path
        The table, ``grades.csv``. ``STUDENT/feedback-N.txt`` has the messages of assignment N.

    Raises
    ------
    ParamError
        If pytest is not installed, or there are no submissions.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> with tempfile.TemporaryDirectory() as name:
    ...     (Path(name) / "ada").mkdir()
    ...     _ = (Path(name) / "ada" / "1_queues.ipynb").write_text("no notebook")
    ...     row = pd.read_csv(grade(Path(name), Limits())).iloc[0]
    >>> row["student"], int(row["points"]), row["note"].split(";")[0]
    ('ada', 0, '1_queues.ipynb: is no notebook')
    """
    if find_spec("pytest") is None:
        raise ParamError("pytest is not installed; `pip install pytest` brings it")
    gradable, ungraded = submissions(folder, source)
    instructor_paths = sources(source)
    memory_path = folder / _MEMORY_FILE
    remembered: dict[str, dict[str, Any]] = {}
    with contextlib.suppress(OSError, ValueError):
        remembered = json.loads(memory_path.read_text())
    rows: dict[str, dict[str, Any]] = {}
    for entry in ungraded:
        instructor_path = instructor_paths.get(entry.assignment)
        row = _blank_row(entry.student, entry.assignment, instructor_path, entry.note)
        rows[f"{entry.student}/{entry.assignment}"] = row
        tell(row)
    running: set[int] = set()
    closed = _closed(gradable)
    with ThreadPoolExecutor(jobs) as pool:
        try:
            pending = {}
            for submission in gradable:
                name = f"{submission.student}/{submission.assignment}"
                digest = _digest(submission, limits)
                if remembered.get(name, {}).get("digest") == digest:
                    rows[name] = remembered[name]
                else:
                    future = pool.submit(_row, submission, limits, closed, running)
                    pending[future] = name, digest
            for future in as_completed(pending):
                name, digest = pending[future]
                rows[name] = future.result()
                if not rows[name]["fault"]:
                    remembered[name] = {**rows[name], "digest": digest}
                    write_whole(memory_path, json.dumps(remembered).encode())
                tell(rows[name])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for group in list(running):
                _kill(group)
            table = folder / "grades.csv"
            write_whole(table, _table([rows[name] for name in sorted(rows)]))
    return table


def _closed(gradable: list[Submission]) -> list[str]:
    """Files and folders of instructors and students, which no answer may read."""
    places = {
        place
        for submission in gradable
        for place in (submission.folder, submission.handed.path, submission.source.parent)
    }
    return sorted(os.path.realpath(place) for place in places)


def _digest(submission: Submission, limits: Limits) -> str:
    """Hash of everything that a score depends on."""
    instructor = submission.source.read_text(encoding="utf-8")
    inputs = [_MEMORY_VERSION, VERSION, repr(limits), instructor, submission.note]
    with contextlib.suppress(OSError, ParamError):
        inputs.append(hashlib.sha256(submission.handed.data()).hexdigest())
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest()


def _table(rows: list[dict[str, Any]]) -> bytes:
    """Scores as CSV, with a column for each task; a notebook that was not graded has no numbers."""
    tasks = sorted({name for row in rows for name in row["tasks"]})
    flat = [
        {
            "student": row["student"],
            "assignment": row["assignment"],
            # None instead of an empty text would turn the whole numbers of a column into fractions.
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


def _blank_row(
    student: str, assignment: str, instructor_path: Path | None, note: str
) -> dict[str, Any]:
    """Row of a notebook that was not graded."""
    max_points: float | str = ""
    if instructor_path is not None:
        max_points = sum(points_of(read(instructor_path)).values())
    return {
        "student": student,
        "assignment": assignment,
        "tasks": {},
        "of": max_points,
        "seconds": 0.0,
        "note": note,
        "fault": False,
    }


def _row(
    submission: Submission, limits: Limits, closed: list[str], running: set[int]
) -> dict[str, Any]:
    """Row of a submission, without a score if the grader failed."""
    try:
        return _graded(submission, limits, closed, running)
    # An exception here is never an error of the student's answer.
    except Exception as error:
        is_expected = isinstance(error, ReproError | OSError)
        reason = f"{error}" if is_expected else f"{type(error).__name__}: {error}".rstrip(": ")
        note = f"the grader failed: {reason}"
        row = _blank_row(submission.student, submission.assignment, submission.source, note)
        return {**row, "fault": True}


def _graded(
    submission: Submission, limits: Limits, closed: list[str], running: set[int]
) -> dict[str, Any]:
    """Grade a submission and write its feedback; its row."""
    started = time.monotonic()
    instructor = read(submission.source)
    points = points_of(instructor)
    messages: list[dict[str, Any]] = []
    notes = [submission.note] if submission.note else []
    try:
        cells = merge(submission.handed.notebook(), instructor)
    except ParamError as error:
        notes.append(str(error))
    else:
        name = f"{submission.assignment}.ipynb"
        messages, end_notes = _run_cells(name, cells, limits, closed, running)
        refused = sorted({message["refused"] for message in messages if "refused" in message})
        notes += [f"tried: {attempt}" for attempt in refused] + end_notes
    texts = {message["id"]: message["text"] for message in messages if "id" in message}
    for name in points.keys() - texts.keys():
        texts[name] = "was not run"
    lines = [f"{name}: {texts[name] or 'fine'}\n" for name in points]
    number = submission.assignment.partition("_")[0]
    feedback = "\n".join(lines + notes).encode(errors="replace")
    write_whole(submission.folder / f"feedback-{number}.txt", feedback)
    return {
        "student": submission.student,
        "assignment": submission.assignment,
        "tasks": {name: 0 if texts[name] else max_points for name, max_points in points.items()},
        "of": sum(points.values()),
        "seconds": time.monotonic() - started,
        "note": "; ".join(notes),
        "fault": False,
    }


def _kill(group: int) -> None:
    """Kill a process and all processes that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _run_cells(
    name: str, cells: list[Cell], limits: Limits, closed: list[str], running: set[int]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Run cells in a process of their own; its messages, and a note if it ended early.

    ``running`` has the numbers of the running processes.
    """
    key = secrets.token_hex(16)
    memory = limits.memory_mb * 2**20
    cpu = math.ceil(limits.cpu)
    task = {
        "key": key,
        "cells": cells,
        "seconds": limits.cell,
        "closed": closed,
        "open": [os.path.realpath(paths.cache_dir())],
        "limits": {
            # An answer may catch the signal of the first limit. The second ends the process.
            "RLIMIT_CPU": (cpu, cpu + _GRACE_S),
            "RLIMIT_AS": (memory, memory),
            "RLIMIT_FSIZE": (2**26, 2**26),
            "RLIMIT_CORE": (0, 0),
        },
    }
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as working_folder:
        # pytest needs a file to collect. The cells come through standard input.
        notebook_file = Path(working_folder, name)
        notebook_file.write_text("{}")
        command = [sys.executable, "-m", "pytest", "-p", _PLUGIN, "-p", "no:cacheprovider"]
        command += ["-s", "-q", "-c", os.devnull, "--rootdir", working_folder, notebook_file.name]
        child = subprocess.Popen(
            command,
            cwd=working_folder,
            env=_environment(working_folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        running.add(child.pid)
        timed_out = False
        try:
            out, _ = child.communicate(json.dumps(task).encode(), timeout=limits.wall)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            _kill(child.pid)
            running.discard(child.pid)
        if timed_out:
            out, _ = child.communicate()
    lines = out.decode(errors="replace").splitlines()
    messages = [json.loads(line.removeprefix(key)) for line in lines if line.startswith(key)]
    if faults := [message["fault"] for message in messages if "fault" in message]:
        raise GraderError(faults[0])
    graded_ids = {cell.id for cell in cells if cell.points}
    if graded_ids == {message.get("id") for message in messages} - {None}:
        return messages, []
    own_lines = [line for line in lines if not line.startswith(key)]
    reason = _end_reason(child.returncode, timed_out, limits, own_lines)
    if _BEGINS not in messages:
        raise GraderError(f"{reason}, before a cell was run")
    if not timed_out and -child.returncode in _SYSTEM_SIGNALS:
        signal_name = signal.Signals(-child.returncode).name
        raise GraderError(f"killed by the system ({signal_name}), which may be short of memory")
    return messages, [reason]


def _environment(working_folder: str) -> dict[str, str]:
    """Environment of a graded process: its own folders, one thread, no screen."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST")}
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    packages = [str(paths.PACKAGE.parent), str(PLACE)]
    import_paths = [*packages, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **inherited,
        **dict.fromkeys(threads, "1"),
        "TMPDIR": working_folder,
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": str(paths.cache_dir() / "matplotlib"),
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(paths.cache_dir())),
        "PYTHONPATH": os.pathsep.join(import_paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "REPRO_CACHE_DIR": str(paths.cache_dir()),
        "REPRO_COURSE_GRADED": "1",
    }


def _end_reason(code: int, timed_out: bool, limits: Limits, lines: list[str]) -> str:
    """Reason why a process ended before its last cell."""
    if timed_out:
        return f"stopped after {limits.wall:g} s"
    if code < 0:
        signal_name = signal.Signals(-code).name
        if signal_name == "SIGXCPU":
            return "used too much processor time"
        return f"crashed ({signal_name})"
    return f"ended early (exit {code}) {' '.join(lines[-2:])[:200]}".strip()
