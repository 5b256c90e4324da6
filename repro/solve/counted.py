"""Counts of the solved problems by sort; each solver adds to them."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

#: Problems solved so far, by sort (``LP``, ``convex``).
SOLVED: Counter[str] = Counter()


@contextmanager
def counted_solves() -> Iterator[Counter[str]]:
    """Count the problems solved inside the block; the counts are filled at its end."""
    before = SOLVED.copy()
    counts = Counter[str]()
    try:
        yield counts
    finally:
        counts.update(SOLVED - before)
