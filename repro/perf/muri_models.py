"""Eight deep-learning models of Muri: iteration time, three stages, start overhead by GPU count."""

from functools import lru_cache

import numpy as np
import pandas as pd

from repro.base.errors import ParamError, near
from repro.base.typing import Floats
from repro.files.tables import ModelTable

#: GPU counts the lists of the table are for, in order.
GPU_COUNTS = (1, 2, 4, 8, 16, 32)
#: Column of the file: column of the frame and how many of its units make a second.
_LISTS = {
    "iteration_ms": ("iteration_time", 1000.0),
    "data_ms": ("stage_data", 1000.0),
    "gpu_ms": ("stage_gpu", 1000.0),
    "network_ms": ("stage_network", 1000.0),
    "overhead_s": ("start_overhead", 1.0),
}
_FACTS = ("model", "label", "domain", "dataset", "batch_size", "bottleneck", "bottleneck_source")
_TABLE = ModelTable("muri_profiles.csv", (*_FACTS, *_LISTS))


def muri_profiles() -> pd.DataFrame:
    """Return facts of the models (Table 3) and times (s) by model and GPUs (authors' simulator)."""
    return _read().copy()


def start_overhead(model: str, num_gpus: int) -> float:
    """Return the start time (s) of a model on the nearest measured GPU count, the larger of two."""
    seconds = _overheads()
    name = model.lower()
    if (name, 1) not in seconds:
        known = [held for held, gpus in seconds if gpus == 1]
        hint = f"{near(name, known)} (known: {', '.join(known)})"
        raise ParamError(f"unknown model {model!r}{hint}")
    if num_gpus < 1:
        raise ParamError(f"a job of {model!r} on {num_gpus} GPUs; give 1 or more")
    nearest = min(GPU_COUNTS, key=lambda count: (abs(count - num_gpus), -count))
    return seconds[name, nearest]


@lru_cache(maxsize=1)
def _overheads() -> dict[tuple[str, int], float]:
    """Return the start overheads (s) by model and GPU count."""
    every = _read()
    models = zip(every["model"], every["num_gpus"], strict=True)
    return dict(zip(models, every["start_overhead"], strict=True))


@lru_cache(maxsize=1)
def _read() -> pd.DataFrame:
    """Return the table, one row per model and GPU count."""
    table = _TABLE.frame
    counts = " ".join(map(str, GPU_COUNTS))
    accepted = f"one time of 0 or more for each of {counts}"

    def fits(times: Floats) -> bool:
        return len(times) == len(GPU_COUNTS) and bool((times >= 0).all())

    columns = {
        column: np.concatenate(_TABLE.lists(name, fits, accepted)) / per_second
        for name, (column, per_second) in _LISTS.items()
    }
    facts = table[list(_FACTS)]
    frame = facts.loc[facts.index.repeat(len(GPU_COUNTS))].reset_index(drop=True)
    return frame.assign(num_gpus=list(GPU_COUNTS) * len(table), **columns)
