"""Memory and disk traffic of this process, where the system says."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_PROCESS = Path("/proc/self")
_KB = 1024


def rss_mb() -> float:
    """Largest resident set so far (MB)."""
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts kibibytes, macOS bytes
    return largest * (1 if sys.platform == "darwin" else _KB) / 1e6


def pss_mb() -> float | None:
    """Proportional set size (MB); None where the system does not say."""
    kilobytes = _field(_PROCESS / "smaps_rollup", "Pss:")
    return None if kilobytes is None else kilobytes * _KB / 1e6


def disk_bytes() -> float | None:
    """Bytes that the process has read from the disk; None where the system does not say."""
    return _field(_PROCESS / "io", "read_bytes:")


def _field(path: Path, name: str) -> float | None:
    """Number after a name in a file of lines; None without such a file or name."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        words = line.split()
        if words[:1] == [name]:
            return float(words[1])
    return None
