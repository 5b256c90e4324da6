"""How many problems of each sort the optimisers solve; who solves one declares its sort."""

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_counts: ContextVar[Counter[str] | None] = ContextVar("counts", default=None)


@contextmanager
def counted_solves() -> Iterator[Counter[str]]:
    """Count the problems solved inside the block, by sort (``LP``, ``convex``)."""
    counts: Counter[str] = Counter()
    before = _counts.set(counts)
    try:
        yield counts
    finally:
        _counts.reset(before)


def solves(problem: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare that each call of a function solves one problem of this sort."""

    def declared(solve: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(solve)
        def solving(*args: P.args, **kwargs: P.kwargs) -> R:
            if (counts := _counts.get()) is not None:
                counts[problem] += 1
            return solve(*args, **kwargs)

        return solving

    return declared
