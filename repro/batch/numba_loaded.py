"""What Numba needs for the first compiled function of a process, loaded by this import.

The process that forks kernels imports this module, once for all kernels.
"""

from repro.base.compiled import load_numba

load_numba()
