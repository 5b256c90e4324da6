"""Parts of Numba that a process loads with its first compiled function, loaded by an import.

They take 0.4 s of CPU time. The process that forks kernels imports this module, so that each kernel
has them.
"""

import numba


@numba.njit()
def _nothing() -> None:
    """Do nothing."""


_nothing()
