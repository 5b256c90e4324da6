"""Processes of a measurement: each ends with the measurement, whatever happens."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from types import FrameType

#: Seconds for a process to end by itself; a busy machine needs many for the exit of PyTorch.
_EXIT_S = 20.0


def ended(process: BaseProcess, wait_s: float = _EXIT_S) -> None:
    """Wait for the end of a process; end it if it goes on."""
    process.join(wait_s)
    if process.is_alive():
        process.terminate()
        process.join(wait_s)
    if process.is_alive():
        process.kill()
        process.join()


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Turn SIGTERM into KeyboardInterrupt, so that open measurements end their processes.

    >>> with ending_on_signals():
    ...     signal.getsignal(signal.SIGTERM).__name__
    '_interrupt'
    """
    earlier = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
