"""SIGINT and SIGTERM end long work in the same way: by a KeyboardInterrupt."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def raising_keyboard_interrupt() -> Iterator[None]:
    """Let SIGINT and SIGTERM raise KeyboardInterrupt within the block.

    SIGINT is set too because shells let their background processes ignore it. Works in the main
    thread of a process only.

    >>> with raising_keyboard_interrupt():
    ...     signal.getsignal(signal.SIGTERM).__name__
    'default_int_handler'
    """
    numbers = (signal.SIGINT, signal.SIGTERM)
    earlier = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
