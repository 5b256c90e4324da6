"""A million jobs on 100,000 GPUs, in a process of its own so that its memory can be told.

Prints one JSON object: U, CPU seconds of the simulation alone, peak memory (GiB), summary.
"""

from __future__ import annotations

import json
import resource
import sys

import numpy as np
from costs import busy
from unit import cpu_of, unit

from repro import simulate
from repro.trace import synth

JOBS, GPUS, LOAD = 1_000_000, 100_000, 0.9


def main(jobs: int) -> None:
    scale = jobs / JOBS
    gpus = max(64, round(GPUS * scale))
    trace = synth.make("philly-like", np.random.default_rng(0), jobs=jobs, load=LOAD, num_gpus=gpus)
    before = unit()
    cpu, result = cpu_of(simulate, trace, f"{gpus // 8}x8", "tiresias-l")
    after = unit()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    told = {"U": (before + after) / 2, "cpu_s": cpu, "peak_gib": peak}
    print(json.dumps(result.summary() | told | busy(result)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else JOBS)
