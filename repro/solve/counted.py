"""Numbers of problems that the solvers solved, by class of problem."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

#: Problems solved so far: linear programmes (``LP``) and other convex problems (``convex``).
SOLVED: Counter[str] = Counter()


@contextmanager
def counted_solves() -> Iterator[Counter[str]]:
    """Count the problems solved inside the block. The counts are filled at its end."""
    before = SOLVED.copy()
    counts = Counter[str]()
    try:
        yield counts
    finally:
        counts.update(SOLVED - before)
