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
    """First file whose content may differ from the code that this process runs, or None.

    The answer holds even if the clock was set back, before or after this process began.
    """
    for file in files:
        changed_s = file.stat().st_ctime
        first_seen_change_s, first_check_s, elapsed_s = _first_check(file)
        # If the clock was set back since the start, an edit may have a time before `STARTED`. By
        # the clock of the first check, the process began ``elapsed_s`` before that check.
        started_s = min(STARTED, first_check_s - elapsed_s)
        # A time of change may be far in the future of the first check. Then the clock was set back
        # after the change, and the change counts as made before this process began.
        if changed_s != first_seen_change_s or started_s < changed_s <= first_check_s + _AHEAD_S:
            return file
    return None


@functools.cache
def _first_check(file: Path) -> tuple[float, float, float]:
    """Last change of a file, the time now, and the time since the start of the process (s).

    The cache keeps the values of the first call for each file.
    """
    elapsed_s = time.monotonic() - _STARTED_MONOTONIC
    return file.stat().st_ctime, time.time(), elapsed_s
