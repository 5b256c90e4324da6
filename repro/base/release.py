"""Version of the package, and whether its sources changed since this process began."""

import functools
import time
from collections.abc import Iterable
from pathlib import Path

VERSION = "0.3.0"
#: Time (s since 1970) at which this process imported the package.
STARTED = time.time()
#: The same instant by a clock that is never set (s).
_STARTED_MONOTONIC = time.monotonic()
#: The clock of a file server may be ahead of this machine's clock, by at most this many seconds.
_AHEAD_S = 60.0


def edited_since_start(files: Iterable[Path]) -> Path | None:
    """First file whose content may differ from the code that this process runs; None without one.

    The clock may have been set back, before or after this process began.
    """
    for file in files:
        changed_s = file.stat().st_ctime
        first_changed_s, looked_s, elapsed_s = _first_look(file)
        # If the clock was set back since the start, an edit may have a time before `STARTED`.
        started_s = min(STARTED, looked_s - elapsed_s)
        # A time of change far after the first look is from before the clock was set back. Such a
        # change counts as made before this process began.
        if changed_s != first_changed_s or started_s < changed_s <= looked_s + _AHEAD_S:
            return file
    return None


@functools.cache
def _first_look(file: Path) -> tuple[float, float, float]:
    """Last change of a file at its first look (s), time of this look (s), and s since the start."""
    elapsed_s = time.monotonic() - _STARTED_MONOTONIC
    return file.stat().st_ctime, time.time(), elapsed_s
