"""A notebook's graded cells as tests of pytest: ``pytest -p repro_course.pytest_plugin NOTEBOOK``.

Under ``repro course grade`` the cells and limits come through standard input. The results go out
through standard output, and the output of students' code is discarded.
"""

import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from repro.course import checks
from repro_course.assignments import Cell, merge, read, sources

#: Environment variable by which the grader says that it started this process.
GRADED = "REPRO_COURSE_GRADED"
#: Audit events of programs, connections and signals, which no answer needs.
_FORBIDDEN_EVENTS = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn"}
    | {"os.spawn", "pty.spawn", "socket.connect", "socket.bind", "os.kill", "os.killpg"}
)
#: Audit events that give access to a file or folder.
_ACCESS_EVENTS = frozenset(
    {"open", "os.listdir", "os.scandir", "os.chdir", "os.link", "os.symlink"}
)
#: Audit events that change a file or folder.
_CHANGE_EVENTS = frozenset(
    {"os.remove", "os.rename", "os.rmdir", "os.truncate", "os.chmod", "os.mkdir"}
)
#: First letters of audit events by which an answer could reach frames and memory of the grader.
_INSPECTION_EVENTS = ("ctypes.", "sys._getframe", "sys._current_frames", "gc.get_")
#: Files of Python through which an answer may cause such an event.
_LIBRARIES = ("ctypes", "inspect.py", "traceback.py", "contextlib.py")
#: Start of the file name of a cell's code.
_CELL_FILE = "<cell "
#: Longest text (letters) for a student.
_MAX_LETTERS = 5000
#: The checks as they are imported. An answer may replace them.
_ORIGINAL_CHECKS = dict(vars(checks))


class _TooLong(BaseException):
    """A cell exceeds its time. Checks and answers do not catch it as an `Exception`."""


class _Run:
    """A notebook while it is graded."""

    def __init__(self, cells: list[Cell], seconds: float, send: Any = None) -> None:
        self.cells = cells
        #: time limit of a cell (s)
        self.seconds = seconds
        #: function that sends a message to the grader; None without a grader
        self.send = send
        #: global names of the cells
        self.names: dict[str, Any] = {"__name__": "__main__"}
        #: texts about cells that stopped since the last graded cell that passed
        self.stopped: list[str] = []
        #: number of cells that have run
        self.done = 0

    def grade(self, number: int) -> None:
        """Run the cells up to a graded cell; raise `Wrong` if the graded cell fails."""
        started = time.monotonic()
        error: BaseException | None = None
        if self.send is not None and self.done == 0:
            self.send({"begins": True})
        for position in range(self.done, number + 1):
            cell = self.cells[position]
            vars(checks).update(_ORIGINAL_CHECKS)
            error = self._execute(cell)
            if error is None:
                continue
            if self.send is not None and self._is_graders_fault(position, error):
                self.send({"fault": f"cell {cell.id}: {_error_text(error)}"})
            if position < number:
                self.stopped.append(
                    f"Cell {cell.id or 'of your own'} stopped: {_error_text(error)}."
                )
        self.done = number + 1
        text = ""
        if error is not None:
            text = "\n".join([_error_text(error), *self.stopped])[:_MAX_LETTERS]
        if self.send is not None:
            spent_s = time.monotonic() - started
            self.send({"id": self.cells[number].id, "text": text, "seconds": spent_s})
        if error is not None:
            raise checks.Wrong(text)
        self.stopped = []

    def _execute(self, cell: Cell) -> BaseException | None:
        """Run a cell within its time; its error or wrong answer, None if it passes."""
        wrong_answers: list[checks.Wrong] = []
        try:
            checks.collected = wrong_answers if cell.points else None
            # The alarm repeats every second, because an answer may catch the first one.
            signal.setitimer(signal.ITIMER_REAL, self.seconds, 1.0)
            code = compile(cell.source, f"{_CELL_FILE}{cell.id}>", "exec")
            exec(code, self.names)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return next(iter(wrong_answers), error)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        # The first message that names a mistake helps most.
        with_mistake = (wrong for wrong in wrong_answers if checks.MISTAKE in str(wrong))
        return next(with_mistake, next(iter(wrong_answers), None))

    def _is_graders_fault(self, position: int, error: BaseException) -> bool:
        """Whether a cell failed because the grader's Python or machine lacks something."""
        cell = self.cells[position]
        if isinstance(error, ImportError):
            # Faults of students are the imports of answers, and modules that answers set to None.
            arose_here = _cells_in(error)[-1:] == [f"{_CELL_FILE}{cell.id}>"]
            was_spoiled = sys.modules.get(error.name or "", self) is None
            return cell.is_instructors and arose_here and not was_spoiled
        cells_so_far = self.cells[: position + 1]
        no_answer_yet = all(cell.is_instructors and not cell.points for cell in cells_so_far)
        return isinstance(error, MemoryError | OSError) and no_answer_yet


def _cells_in(error: BaseException) -> list[str]:
    """File names of the cells in the traceback of an error. The error arose in the last cell."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return [name for name in files if name.startswith(_CELL_FILE)]


def _error_text(error: BaseException) -> str:
    """Error of a cell in one line; a message of a check as it is."""
    if isinstance(error, checks.Wrong | _TooLong):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    arose_in_cell = bool(frames) and frames[-1].filename.startswith(_CELL_FILE)
    if checks.is_blank(error) and arose_in_cell:
        return "it is still empty"
    lines = [frame.lineno for frame in frames if frame.filename.startswith(_CELL_FILE)]
    line = lines[-1] if lines else None
    if isinstance(error, SyntaxError):
        line = error.lineno
    place = f" (line {line})" if line else ""
    return f"{type(error).__name__}: {str(error)[:300]}{place}"


def _raise_too_long(_: int, frame: FrameType | None) -> None:
    raise _TooLong("this cell ran longer than it may; is there an endless loop?")


def _guard(closed: list[str], writable: list[str], report: Any) -> None:
    """Restrict this process from now on.

    Outside the folders ``writable`` it cannot change files, and it cannot read below the folders
    ``closed``. It cannot start programs. ``report`` is called with each refused attempt of a cell.
    """

    def is_below(path: Any, folders: list[str]) -> bool:
        name = os.path.realpath(os.fsdecode(path))
        return any(name == folder or name.startswith(folder + os.sep) for folder in folders)

    # In the next two functions, frame 3 is the code that caused the event: the frames before it are
    # the function itself, `check` and `hook`.
    def is_from_answer() -> bool:
        frame: FrameType | None = sys._getframe(3)
        while frame is not None and any(name in frame.f_code.co_filename for name in _LIBRARIES):
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename.startswith((_CELL_FILE, "<string>"))

    def refuse(attempt: str) -> None:
        # A library that reads files while it is imported is refused, too, but not reported.
        frame: FrameType | None = sys._getframe(3)
        while frame is not None and "importlib" not in frame.f_code.co_filename:
            if frame.f_code.co_filename.startswith(_CELL_FILE):
                report(attempt)
                break
            frame = frame.f_back
        raise PermissionError(f"not allowed while graded: {attempt}")

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _FORBIDDEN_EVENTS:
            refuse(event)
        if event.startswith(_INSPECTION_EVENTS) and is_from_answer():
            refuse(event)
        if event not in _ACCESS_EVENTS and event not in _CHANGE_EVENTS:
            return
        first_arguments = arguments[:1] if event == "open" else arguments[:2]
        named = [path for path in first_arguments if isinstance(path, str | bytes | os.PathLike)]
        is_own = all(is_below(path, writable) for path in named)
        if not is_own and any(is_below(path, closed) for path in named):
            refuse("reading the instructor's files or another's")
        opens_to_write = (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & write_flags
        )
        if (opens_to_write or event in _CHANGE_EVENTS) and not is_own:
            refuse("writing outside the working folder")

    write_flags = os.O_ACCMODE | os.O_CREAT
    is_checking = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        # `check` itself causes events.
        nonlocal is_checking
        if is_checking:
            return
        is_checking = True
        try:
            check(event, arguments)
        finally:
            is_checking = False

    sys.addaudithook(hook)


def pytest_configure(config: pytest.Config) -> None:
    """Take the cells, the limits and the key from standard input if there is a grader."""
    config.stash[_GRADED_RUN] = None
    signal.signal(signal.SIGALRM, _raise_too_long)
    if os.environ.pop(GRADED, None) is None:
        return
    task = json.loads(sys.stdin.buffer.read())
    # Results keep standard output. Cells get the null device in its place.
    results = os.fdopen(os.dup(1), "w", buffering=1)
    null_device = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null_device, descriptor)
    key = task.pop("key")

    def send(message: dict[str, Any]) -> None:
        results.write(f"{key}{json.dumps(message)}\n")

    for limit, (soft, hard) in task["limits"].items():
        resource.setrlimit(getattr(resource, limit), (soft, hard))
    _SEND.append(send)
    writable = [*task["open"], os.path.realpath(os.getcwd()), os.devnull]
    _guard(task["closed"], writable, lambda attempt: send({"refused": attempt}))
    cells = [Cell(*fields) for fields in task["cells"]]
    config.stash[_GRADED_RUN] = _Run(cells, task["seconds"], send)


#: Notebook that a grader sent; None without a grader.
_GRADED_RUN: pytest.StashKey[_Run | None] = pytest.StashKey()
#: Function that sends to the grader; empty without a grader. `pytest_internalerror` has no stash.
_SEND: list[Any] = []


def pytest_internalerror(excrepr: Any, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Tell the grader of an error of pytest or of this plugin, except a lack of memory.

    An answer may use up the memory, which is no fault of the grader.
    """
    if _SEND and not isinstance(excinfo.value, MemoryError):
        _SEND[0]({"fault": f"internal error: {_error_text(excinfo.value)}"})


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "NotebookFile | None":
    """Collect the notebooks of assignments."""
    if file_path.suffix != ".ipynb":
        return None
    return NotebookFile.from_parent(parent, path=file_path)


class NotebookFile(pytest.File):
    """A student's notebook."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each graded cell."""
        run = self.config.stash[_GRADED_RUN]
        if run is None:
            assignments = sources()
            if self.path.stem not in assignments:
                return
            run = _Run(merge(read(self.path), read(assignments[self.path.stem])), 60.0)
        for number, cell in enumerate(run.cells):
            if cell.points:
                item = GradedCell.from_parent(self, name=str(cell.id))
                item.run = run
                item.number = number
                yield item


class GradedCell(pytest.Item):
    """A cell with points."""

    run: _Run
    number: int

    def runtest(self) -> None:
        """Run the cells up to this one."""
        self.run.grade(self.number)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """Text for the student."""
        return str(excinfo.value)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Path of the notebook, number of the cell, and the name of both."""
        return self.path, self.number, f"{self.path.stem}: {self.name}"
