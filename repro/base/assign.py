"""Assignment of arrays in compiled loops."""

from typing import Any

from repro.base.compiled import njit


@njit()
def assign(target: Any, source: Any) -> None:
    """Copy in order; for ``target[:] = source`` Numba compiles two seconds of error texts."""
    for place in range(len(target)):
        target[place] = source[place]
