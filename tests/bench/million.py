"""Many jobs on many GPUs at load 0.9, in a process of its own so that its memory can be told.

Called with the number of jobs, of GPUs, and of runs whose mean counts. Prints one JSON object: U,
CPU seconds of the simulation alone, peak memory (GiB), summary.
"""

from __future__ import annotations

import json
import resource
import sys

import numpy as np
from costs import busy
from unit import cpu_of, unit

from repro import simulate
from repro.testing import small_trace
from repro.trace import synth

LOAD = 0.9


def main(jobs: int, gpus: int, runs: int) -> None:
    trace = synth.make("philly-like", np.random.default_rng(0), jobs=jobs, load=LOAD, num_gpus=gpus)
    simulate(small_trace(), "1x4", "tiresias-l")  # compiled or loaded before the clock starts
    before = unit()
    spent = [cpu_of(simulate, trace, f"{gpus // 8}x8", "tiresias-l") for _ in range(runs)]
    after = unit()
    cpu = sum(cpu for cpu, _ in spent) / runs
    result = spent[-1][1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    told = {"U": (before + after) / 2, "cpu_s": cpu, "peak_gib": peak}
    print(json.dumps(result.summary() | told | busy(result)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
