"""Kernels that are forked from one warm process."""

import pytest

from repro.batch import warm

pytestmark = [
    pytest.mark.skipif(not warm.available(), reason="kernels are forked on Linux only"),
    # left out by `make check`
    pytest.mark.slow,
]

LOOK = """
import gc, os, sys
assert "pandas" in sys.modules and "matplotlib" in sys.modules
assert "debugpy" in sys.modules and "pandas.io.formats.style" in sys.modules
assert "numba.np.arrayobj" in sys.modules
assert os.environ["MPLBACKEND"] == "Agg" and os.environ["OMP_NUM_THREADS"] == "1"
assert os.getcwd().endswith("notebooks/tiresias") and os.getsid(0) == os.getpid()
assert "LEFT" not in os.environ and not hasattr(sys, "left")
assert gc.get_freeze_count() > 100_000
os.environ["LEFT"] = sys.left = "by another notebook"
"""


def test_a_kernel_has_what_it_needs_and_nothing_of_the_others(project):
    for number in range(3):
        project.add(f"tiresias/fig0{number}_x", before=LOOK)
    done = project.cli("run", "--all", "-j", "2", MPLBACKEND="pdf")
    assert done.stdout.count(": 2 of 2 claims reproduced (") == 3


def test_an_interrupt_reaches_the_cell(project):
    project.add("tiresias/fig01_x", before="import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    assert "KeyboardInterrupt" in project.cli("run", "--all", code=1).stdout
