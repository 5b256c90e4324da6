"""Solutions have the same bits whatever instructions the CPU has."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

#: Prints a hash of solutions of both interior-point methods.
PROGRAM = """
import hashlib
import numpy as np
from repro.solve.max_min import JobKinds, central_level
from repro.solve.pairs.programme import PairableKinds, programme, solve

digest = hashlib.sha256()
for seed in range(30):
    rng = np.random.default_rng(seed)
    kinds, types = rng.integers(2, 12), rng.integers(1, 5)
    counts, widths = rng.integers(1, 4, kinds), rng.choice([1, 2, 4], kinds)
    gpus = np.full(types, 6.0)
    values = 10 ** rng.uniform(-1, 2.5, (kinds, types))
    alone = central_level(JobKinds(values, counts, widths, gpus), rng.uniform(0.2, 5, kinds))
    digest.update(alone.shares.tobytes())
    paired = values[:, None] * rng.uniform(0.3, 1.0, (kinds, kinds, types))
    pairable = PairableKinds(values, paired, np.ones(kinds), gpus)
    digest.update(solve(programme(pairable, counts.astype(float)))[0].tobytes())
print(digest.hexdigest())
"""


def solutions(**variables):
    """Hash that a new process prints."""
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.nightly
def test_solutions_do_not_depend_on_the_instructions_of_the_cpu(tmp_path):
    folder = str(tmp_path)
    names = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": folder}
    assert solutions() == solutions(**names)
