"""Forked processes that are killed, and what may be in their folders afterwards."""

from __future__ import annotations

import itertools
import os
import resource
import signal
import sys
import time
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

#: Audit events of Python before a change of a file or a folder.
_CHANGES = frozenset(
    f"os.{name}" for name in ("chmod", "link", "mkdir", "remove", "rename", "rmdir", "utime")
)
_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def generator(fault: str, seed: int = 0) -> np.random.Generator:
    """Random numbers of a fault."""
    return np.random.default_rng([seed, zlib.crc32(fault.encode())])


@dataclass(frozen=True)
class Child:
    """A forked process."""

    pid: int
    log: Path

    def kill_after(self, seconds: float) -> int:
        """Kill the process after a time, if it has not ended; its exit code as in `wait`."""
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                break
            time.sleep(0.002)
        os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def wait(self) -> int:
        """Exit code of the process; the negative number of the signal that ended it."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def finish(self) -> None:
        """Wait for the process, which must end with code 0."""
        code = self.wait()
        assert code == 0, f"exit code {code}\n{self.log.read_text(errors='replace')}"


def fork(work: Callable[[], int | None], log: Path) -> Child:
    """Start a process that does some work and ends with the code that the work returns.

    The process has all modules of this one, so it starts within milliseconds. What it prints goes
    to the file ``log``.
    """
    pid = os.fork()
    if pid:
        return Child(pid, log)
    code = 99
    try:
        with log.open("ab") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        # pytest has replaced these two
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        code = work() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def on_changes(folder: Path, act: Callable[[int], None]) -> None:
    """Let this process call ``act`` right before each change of files below a folder.

    A change is a file that is opened for writing, renamed or removed, or a new folder. ``act`` gets
    the number of changes before.
    """
    numbers = itertools.count()
    top = str(folder)

    def hook(event: str, arguments: tuple) -> None:
        is_change = event in _CHANGES
        if event == "open":
            is_change = bool(arguments[2] & _TO_WRITE)
        if is_change and str(arguments[0]).startswith(top):
            act(next(numbers))

    sys.addaudithook(hook)


def kill_before_change(number: int, folder: Path) -> None:
    """Let this process be killed right before change ``number`` of files below a folder."""
    on_changes(folder, lambda n: os.kill(os.getpid(), signal.SIGKILL) if n == number else None)


def count_changes(work: Callable[[], int | None], folder: Path, log: Path) -> int:
    """Number of changes of files below a folder that some work makes."""
    changes: list[int] = []

    def counted() -> int | None:
        on_changes(folder, changes.append)
        code = work()
        log.write_text(str(len(changes)))
        return code

    fork(counted, Path(os.devnull)).finish()
    return int(log.read_text())


def kill_in_write(size: int) -> None:
    """Let this process be killed in the write that makes a file larger than ``size`` bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def contents(folder: Path) -> dict[str, bytes]:
    """Content of all files below a folder by relative name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def unfinished(folder: Path) -> list[str]:
    """Hidden files and folders below a folder, such as temporary files of killed writes."""
    return [str(path) for path in sorted(folder.rglob(".*"))]
