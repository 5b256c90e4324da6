"""How many problems of each sort the optimisers solve; who solves one counts it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

#: Problems solved so far, by sort (``LP``, ``convex``).
SOLVED: Counter[str] = Counter()


@contextmanager
def counted_solves() -> Iterator[Counter[str]]:
    """Count the problems solved inside the block; the count is there at its end."""
    before = SOLVED.copy()
    counts = Counter[str]()
    try:
        yield counts
    finally:
        counts.update(SOLVED - before)
