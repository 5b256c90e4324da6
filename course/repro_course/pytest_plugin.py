"""A notebook's graded cells as tests of pytest: ``pytest -p repro_course.pytest_plugin NOTEBOOK``.

Under ``repro course grade`` the cells and limits come through standard input and the results go out
through standard output; what students print goes nowhere.
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

GRADED = "REPRO_COURSE_GRADED"
#: Nothing that an answer needs.
_NEVER = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn"}
    | {"os.spawn", "pty.spawn", "socket.connect", "socket.bind", "os.kill", "os.killpg"}
)
_READS = frozenset({"open", "os.listdir", "os.scandir", "os.chdir", "os.link", "os.symlink"})
_CHANGES = frozenset({"os.remove", "os.rename", "os.rmdir", "os.truncate", "os.chmod", "os.mkdir"})
#: What would lead from an answer to the frames and the memory of the grader.
_FRAMES = ("ctypes.", "sys._getframe", "sys._current_frames", "gc.get_")
_VIA = ("ctypes", "inspect.py", "traceback.py", "contextlib.py")
_CELL = "<cell "
_LONGEST = 5000
_KEPT = dict(vars(checks))


class _TooLong(BaseException):
    """A cell ran too long; no check and no answer takes this for an error of its own."""


class _Run:
    """One notebook while it is graded."""

    def __init__(self, cells: list[Cell], seconds: float, send: Any = None) -> None:
        self.cells = cells
        self.seconds = seconds
        self.send = send
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.stopped: list[str] = []
        self.done = 0

    def grade(self, number: int) -> None:
        """Run what stands before a graded cell and then the cell; raise `Wrong` if it fails."""
        begun = time.monotonic()
        error: BaseException | None = None
        if self.send is not None and self.done == 0:
            self.send({"begins": True})
        for place in range(self.done, number + 1):
            vars(checks).update(_KEPT)
            error = self._execute(place)
            if self.send is not None and error is not None and self._is_lacking(place, error):
                self.send({"fault": f"cell {self.cells[place].id}: {_told(error)}"})
            if error is not None and place < number:
                cell = self.cells[place]
                self.stopped.append(f"Cell {cell.id or 'of your own'} stopped: {_told(error)}.")
        self.done = number + 1
        text = "" if error is None else "\n".join([_told(error), *self.stopped])[:_LONGEST]
        if self.send is not None:
            spent = time.monotonic() - begun
            self.send({"id": self.cells[number].id, "text": text, "seconds": spent})
        if error is not None:
            raise checks.Wrong(text)
        self.stopped = []

    def _execute(self, place: int) -> BaseException | None:
        """Run one cell within its time; return what stopped it."""
        try:
            held: list[checks.Wrong] = []
            checks.collected = held if self.cells[place].points else None
            # again every second, should an answer swallow the first
            signal.setitimer(signal.ITIMER_REAL, self.seconds, 1.0)
            code = compile(self.cells[place].source, f"{_CELL}{self.cells[place].id}>", "exec")
            exec(code, self.names)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return next(iter(held), error)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        # of all that is wrong, what names a mistake says most
        return next((one for one in held if checks.MISTAKE in str(one)), next(iter(held), None))

    def _is_lacking(self, place: int, error: BaseException) -> bool:
        """Whether an instructor's cell failed for what the grader's Python or machine lacks."""
        if isinstance(error, ImportError):
            # an answer may import what it likes, and may spoil a module that is there
            at_fault = _cells_in(error)[-1:] == [f"{_CELL}{self.cells[place].id}>"]
            spoiled = sys.modules.get(error.name or "", self) is None
            return self.cells[place].is_instructors and at_fault and not spoiled
        before = self.cells[: place + 1]
        no_answer_yet = all(cell.is_instructors and not cell.points for cell in before)
        return isinstance(error, MemoryError | OSError) and no_answer_yet


def _cells_in(error: BaseException) -> list[str]:
    """List the cells that an error went through, the one it arose in last."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return [name for name in files if name.startswith(_CELL)]


def _told(error: BaseException) -> str:
    """Return an error of a cell in one line, what a check says in its own."""
    if isinstance(error, checks.Wrong | _TooLong):
        return str(error)
    if isinstance(error, NotImplementedError):
        return "it is still empty"
    lines = [
        one.lineno
        for one in traceback.extract_tb(error.__traceback__)
        if one.filename.startswith(_CELL)
    ]
    line = lines[-1] if lines else None
    if isinstance(error, SyntaxError):
        line = error.lineno
    place = f" (line {line})" if line else ""
    return f"{type(error).__name__}: {str(error)[:300]}{place}"


def _too_long(_: int, frame: FrameType | None) -> None:
    raise _TooLong("this cell ran longer than it may; is there an endless loop?")


def _guard(closed: list[str], open_: list[str], tell: Any) -> None:
    """Refuse, for ever, to read below some folders, to write outside others, to start programs."""

    def below(path: Any, folders: list[str]) -> bool:
        name = os.path.realpath(os.fsdecode(path))
        return any(name == one or name.startswith(one + os.sep) for one in folders)

    def of_student() -> bool:
        frame: FrameType | None = sys._getframe(3)
        while frame is not None and any(via in frame.f_code.co_filename for via in _VIA):
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename.startswith((_CELL, "<string>"))

    def refuse(what: str) -> None:
        # a library that looks around while it is imported is refused too, and not told
        frame: FrameType | None = sys._getframe(3)
        while frame is not None and "importlib" not in frame.f_code.co_filename:
            if frame.f_code.co_filename.startswith(_CELL):
                tell(what)
                break
            frame = frame.f_back
        raise PermissionError(f"not allowed while graded: {what}")

    def look(event: str, given: tuple[Any, ...]) -> None:
        if event in _NEVER or (event.startswith(_FRAMES) and of_student()):
            refuse(event)
        if event not in _READS and event not in _CHANGES:
            return
        first = given[:1] if event == "open" else given[:2]
        named = [one for one in first if isinstance(one, str | bytes | os.PathLike)]
        own = all(below(one, open_) for one in named)
        if not own and any(below(one, closed) for one in named):
            refuse("reading the instructor's files or another's")
        writes = event == "open" and isinstance(given[2], int) and given[2] & (3 | os.O_CREAT)
        if (writes or event in _CHANGES) and not own:
            refuse("writing outside the working folder")

    inside = False

    def hook(event: str, given: tuple[Any, ...]) -> None:
        nonlocal inside
        if inside:
            return
        inside = True
        try:
            look(event, given)
        finally:
            inside = False

    sys.addaudithook(hook)


def pytest_configure(config: pytest.Config) -> None:
    """Take the cells, the limits and the key from standard input, where there is a grader."""
    config.stash[_TASK] = None
    signal.signal(signal.SIGALRM, _too_long)
    if os.environ.pop(GRADED, None) is None:
        return
    task = json.loads(sys.stdin.buffer.read())
    results = os.fdopen(os.dup(1), "w", buffering=1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    key = task.pop("key")

    def send(message: dict[str, Any]) -> None:
        results.write(f"{key}{json.dumps(message)}\n")

    for limit, (soft, hard) in task["limits"].items():
        resource.setrlimit(getattr(resource, limit), (soft, hard))
    _SEND.append(send)
    closed = task["closed"]
    open_ = [*task["open"], os.path.realpath(os.getcwd()), os.devnull]
    _guard(closed, open_, lambda what: send({"refused": what}))
    config.stash[_TASK] = _Run([Cell(*one) for one in task["cells"]], task["seconds"], send)


_TASK: pytest.StashKey[_Run | None] = pytest.StashKey()
#: What sends to the grader, if there is one; this hook of pytest knows no session.
_SEND: list[Any] = []


def pytest_internalerror(excrepr: Any, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Tell the grader of an error of pytest or of this plugin; memory is the answer's to spare."""
    if _SEND and not isinstance(excinfo.value, MemoryError):
        _SEND[0]({"fault": f"internal error: {_told(excinfo.value)}"})


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "NotebookFile | None":
    """Collect the notebooks of assignments."""
    if file_path.suffix != ".ipynb":
        return None
    return NotebookFile.from_parent(parent, path=file_path)


class NotebookFile(pytest.File):
    """A student's notebook."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield one item for each graded cell."""
        run = self.config.stash[_TASK]
        if run is None:
            known = sources()
            if self.path.stem not in known:
                return
            run = _Run(merge(read(self.path), read(known[self.path.stem])), 60.0)
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
        """Return the text for the student."""
        return str(excinfo.value)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the notebook and the cell."""
        return self.path, self.number, f"{self.path.stem}: {self.name}"
