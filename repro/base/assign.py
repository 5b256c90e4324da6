"""Assignment of arrays in compiled functions."""

from typing import Any

from repro.base.compiled import njit


@njit()
def assign(target: Any, source: Any) -> None:
    """Copy ``source`` into ``target``.

    Numba takes two seconds longer to compile ``target[:] = source``, because it also compiles the
    error messages of this statement.
    """
    for index in range(len(target)):
        target[index] = source[index]
