"""Assignment of arrays in compiled functions."""

from typing import Any

from repro.base.compiled import njit


@njit()
def assign(target: Any, source: Any) -> None:
    """Copy ``source`` into ``target``.

    Numba takes two seconds longer to compile ``target[:] = source``, because of its error messages.
    """
    for index in range(len(target)):
        target[index] = source[index]
