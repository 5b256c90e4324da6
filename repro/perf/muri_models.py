"""Muri's eight deep-learning models: iteration time, stage times and start overhead by GPUs."""

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import pandas as pd

from repro.base.errors import ParamError, near
from repro.base.typing import Floats
from repro.files.tables import ModelTable
from repro.perf.model_names import name_in

#: GPU counts. A cell of a column of `_LISTS` has a number for each of them, in this order.
GPU_COUNTS = (1, 2, 4, 8, 16, 32)
#: Column of the file -> column of the frame, and number of the file's units in a second.
_LISTS = {
    "iteration_ms": ("iteration_time", 1000.0),
    "data_ms": ("stage_data", 1000.0),
    "gpu_ms": ("stage_gpu", 1000.0),
    "network_ms": ("stage_network", 1000.0),
    "overhead_s": ("start_overhead", 1.0),
}
_DESCRIPTIONS = (
    "model",
    "label",
    "domain",
    "dataset",
    "batch_size",
    "bottleneck",
    "bottleneck_source",
)
_TABLE = ModelTable("muri_profiles.csv", (*_DESCRIPTIONS, *_LISTS))


def nearest_count(counts: Iterable[int], gpus: int) -> int:
    """Number of GPUs in ``counts`` nearest to ``gpus`` (ties: the larger number)."""
    return min(counts, key=lambda count: (abs(count - gpus), -count))


def muri_profiles() -> pd.DataFrame:
    """Table 3 of Muri and the times (s) of its simulator, by model and number of GPUs."""
    return _read().copy()


def start_overhead(model: str, num_gpus: int) -> float:
    """Start overhead (s) of a model, measured at the nearest GPU count (ties: the larger count).

    The table may have the model under another name. `repro.perf.model_names` then maps the names.
    """
    seconds = _overheads()
    name = model.lower()
    if (name, 1) not in seconds:
        name = name_in("muri", name) or name
    if (name, 1) not in seconds:
        names = [label for label, gpus in seconds if gpus == 1]
        hint = f"{near(name, names)} (known: {', '.join(names)})"
        raise ParamError(f"unknown model {model!r}{hint}")
    if num_gpus < 1:
        raise ParamError(f"a job of {model!r} on {num_gpus} GPUs; give 1 or more")
    return seconds[name, nearest_count(GPU_COUNTS, num_gpus)]


@lru_cache(maxsize=1)
def _overheads() -> dict[tuple[str, int], float]:
    """Start overheads (s) by model and GPU count."""
    table = _read()
    keys = zip(table["model"], table["num_gpus"], strict=True)
    return dict(zip(keys, table["start_overhead"], strict=True))


@lru_cache(maxsize=1)
def _read() -> pd.DataFrame:
    """Read the table, one row per model and GPU count."""
    table = _TABLE.frame
    counts = " ".join(map(str, GPU_COUNTS))
    accepted = f"one time of 0 or more for each of {counts}"

    def fits(times: Floats) -> bool:
        return len(times) == len(GPU_COUNTS) and bool((times >= 0).all())

    columns = {
        column: np.concatenate(_TABLE.lists(name, fits, accepted)) / per_second
        for name, (column, per_second) in _LISTS.items()
    }
    descriptions = table[list(_DESCRIPTIONS)]
    frame = descriptions.loc[descriptions.index.repeat(len(GPU_COUNTS))].reset_index(drop=True)
    return frame.assign(num_gpus=list(GPU_COUNTS) * len(table), **columns)
