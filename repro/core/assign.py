"""Assignment of arrays in compiled loops."""

from typing import Any

from repro.compiled import njit


@njit()
def assign(target: Any, source: Any) -> None:
    """Copy numbers to all places of a target, the first first; both may overlap.

    For ``target[:] = source`` Numba compiles two seconds of texts of errors.
    """
    for place in range(len(target)):
        target[place] = source[place]
