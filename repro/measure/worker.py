"""A process that trains one job and answers the requests of the measurement."""

from __future__ import annotations

import importlib
import signal
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from repro.base.errors import ReproError
from repro.measure.configuration import Configuration
from repro.measure.processes import end_process

#: Context of all processes: CUDA does not survive a fork.
CONTEXT = get_context("spawn")
_LAUNCH_S = 600.0
_ANSWER_S = 600.0
#: Longest text of an error (characters).
_MAX_ERROR = 200


class WorkerError(ReproError):
    """A job could not run in its process, such as for lack of GPU memory."""


class Worker:
    """One job in a process of its own; a context manager that ends the process.

    Parameters
    ----------
    configuration : Configuration
        The job.
    checkpoint : Path, optional
        Checkpoint to restore before the first iteration.
    locks : mapping of str to lock, optional
        Lock of each resource, for iterations by stages.

    Raises
    ------
    WorkerError
        If the job fails to launch.
    """

    def __init__(
        self,
        configuration: Configuration,
        checkpoint: Path | None = None,
        locks: Mapping[str, AbstractContextManager[Any]] | None = None,
    ) -> None:
        self.configuration = configuration
        self._arguments = (configuration, checkpoint, locks)
        #: seconds of each part of the launch, and ``ready_at`` (monotonic clock, s)
        self.launch: dict[str, float] = {}

    def __enter__(self) -> Worker:
        self.start()
        try:
            self.wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self) -> None:
        """Start the process; `wait_until_ready` waits for its first iteration."""
        self._connection, child_end = CONTEXT.Pipe()
        self._process = CONTEXT.Process(
            target=_work, args=(child_end, time.monotonic(), *self._arguments)
        )
        self._process.start()
        # Only the child keeps this end open. If the child dies, a wait for its answer ends.
        child_end.close()

    def wait_until_ready(self) -> None:
        """Wait for the end of the launch."""
        self.launch = self.answer(_LAUNCH_S)

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> float:
        """End the process; seconds until it is gone."""
        begin = time.monotonic()
        # the process ends once the connection is closed
        self._connection.close()
        end_process(self._process)
        return time.monotonic() - begin

    def ask(self, request: str, **arguments: Any) -> Any:
        """Answer to a request."""
        self.send(request, **arguments)
        return self.answer()

    def send(self, request: str, **arguments: Any) -> None:
        """Send a request, whose answer comes later; WorkerError if the process has ended."""
        try:
            self._connection.send((request, arguments))
        except ConnectionError:
            raise self._ended() from None

    def answer(self, wait_s: float = _ANSWER_S) -> Any:
        """Answer to the request that was sent; WorkerError if it failed."""
        name = self.configuration.job.name
        try:
            if not self._connection.poll(wait_s):
                raise WorkerError(f"{name}: no answer within {wait_s:g} s")
            succeeded, result = self._connection.recv()
        except (EOFError, ConnectionError):
            raise self._ended() from None
        if not succeeded:
            raise WorkerError(f"{name}: {result}")
        return result

    def _ended(self) -> WorkerError:
        """Error of a process that has ended by itself."""
        self._process.join(1)
        name = self.configuration.job.name
        return WorkerError(f"{name}: its process ended (exit code {self._process.exitcode})")


def _work(
    connection: Connection,
    started_at: float,
    configuration: Configuration,
    checkpoint: Path | None,
    locks: Mapping[str, AbstractContextManager[Any]] | None,
) -> None:
    """Launch a job and answer requests until the connection is closed."""
    begin = time.monotonic()
    # Ctrl-C reaches all processes; the parent ends this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with ExitStack() as stack:
        try:
            # the import of PyTorch is a part of the launch that is measured
            module = importlib.import_module("repro.measure.worker_requests")
            imported = time.monotonic()
            requests = module.Requests(configuration, checkpoint, locks, stack)
        except Exception as error:
            connection.send((False, _line(error)))
            return
        times = {"spawn_s": begin - started_at, "import_s": imported - begin, **requests.launch}
        now = time.monotonic()
        connection.send((True, times | {"launch_total_s": now - started_at, "ready_at": now}))
        while True:
            try:
                request, arguments = connection.recv()
            except (EOFError, ConnectionError):
                return
            try:
                answer = True, getattr(requests, request)(**arguments)
            except Exception as error:
                answer = False, _line(error)
            connection.send(answer)


def _line(error: Exception) -> str:
    """One line of an error."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:_MAX_ERROR]
