"""Traces in whole seconds for the Tiresias simulator's rules (no tests of its own)."""

from __future__ import annotations

import numpy as np
import pandas as pd

#: GPU-seconds of jobs that the Gittins index learns from
HISTORY = np.unique(np.random.default_rng(5).lognormal(7.0, 1.8, 160).astype(int) + 1).tolist()


def rows_of(seed, n=110):
    """Width, submit, duration: whole seconds, bursts, many equal durations, heavy tail."""
    rng = np.random.default_rng(seed)
    gaps = rng.choice([0, 0, 10, 20, 30, 60, 90], n)
    gaps[rng.integers(1, n, n // 10)] = rng.integers(1, 400, n // 10)
    widths = rng.choice([1, 2, 3, 4, 8, 12, 16], n, p=[0.45, 0.12, 0.05, 0.15, 0.13, 0.05, 0.05])
    short = rng.choice([60, 120, 121, 180, 300], n)
    long = rng.lognormal(7.0, 0.9, n).astype(int)
    durations = np.where(rng.random(n) < 0.6, short, long + 1)
    return list(zip(widths.tolist(), np.cumsum(gaps).tolist(), durations.tolist(), strict=True))


def trace_of(rows, shift=0.0):
    widths, submits, durations = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            # ids in no order: under these rules equal submissions keep the order of the file
            "job_id": np.random.default_rng(0).permutation(len(rows)),
            "submit_time": np.array(submits) + shift,
            "duration": np.array(durations) + shift,
            "num_gpus": widths,
        }
    )
