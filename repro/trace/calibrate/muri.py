"""What is measured of Muri's traces for their synthetic doubles: gaps, GPU counts, durations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from repro.files.tables import MEASURED
from repro.typing import Floats

#: Traces as the generator names them.
TRACES = ("1", "2", "3", "4", "testbed")
LEVELS = (
    0.0, 0.01, 0.02, 0.035, *np.arange(1, 19) / 20, 0.925, 0.95, 0.965, 0.975, 0.985, 0.99, 0.995,
    1.0,
)  # fmt: skip


def quantile_columns() -> list[str]:
    """Return the names of the columns with quantiles, one per level."""
    return [f"q{round(100 * level, 1):g}" for level in LEVELS]


def calibrate(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Measure the tables of the ``muri-like`` generator."""
    gaps, durations = [], []
    for name, frame in frames.items():
        submit = frame["submit_time"].to_numpy(float)
        gaps.append((name, np.ptp(submit), *_quantiles(np.diff(submit))))
        for gpus, seconds in frame.groupby("num_gpus")["duration"]:
            head = (name, gpus, len(seconds), seconds.sum())
            durations.append((*head, *_quantiles(seconds.to_numpy(float))))
    names = quantile_columns()
    return {
        "muri_gaps": pd.DataFrame(gaps, columns=[*MEASURED["muri_gaps"], *names]),
        "muri_durations": pd.DataFrame(durations, columns=[*MEASURED["muri_durations"], *names]),
    }


def _quantiles(values: Floats) -> list[float]:
    return np.quantile(values, LEVELS).round(1).tolist()  # type: ignore[no-any-return]
