"""What Numba loads with the first compiled function of a process, loaded by this import.

It takes 0.4 s of CPU time. The process that forks kernels imports this module, once for all
kernels.
"""

import numba


@numba.njit()
def _nothing() -> None:
    """Do nothing; its compilation loads the parts of Numba."""


_nothing()
