"""Eight deep-learning models of Muri: iteration time, three stages, start overhead by GPU count."""

from __future__ import annotations

import difflib
from functools import lru_cache

import numpy as np
import pandas as pd

from repro import paths
from repro.errors import ParamError

#: GPU counts the lists of the table are for, in order.
GPU_COUNTS = (1, 2, 4, 8, 16, 32)

_FILE = "muri_profiles.csv"
#: Column of the file: column of the frame and how many of its units make a second.
_LISTS = {
    "iteration_ms": ("iteration_time", 1000.0),
    "data_ms": ("stage_data", 1000.0),
    "gpu_ms": ("stage_gpu", 1000.0),
    "network_ms": ("stage_network", 1000.0),
    "overhead_s": ("start_overhead", 1.0),
}
_FACTS = ["model", "label", "domain", "dataset", "batch_size", "bottleneck"]


def muri_profiles() -> pd.DataFrame:
    """Return what was measured of the eight models, one row per model and number of GPUs.

    Returns
    -------
    DataFrame
        model and label (name in traces and in figures), domain, dataset, batch_size (per GPU),
        bottleneck (``storage``, ``cpu``, ``gpu`` or ``network``), bottleneck_source, num_gpus,
        iteration_time (s, alone), stage_data (storage and CPU), stage_gpu, stage_network (s per
        iteration), start_overhead (s).

    Raises
    ------
    ParamError
        If the checkout's ``params/muri_profiles.csv`` is missing, has lost a column, or a list in
        it is not six times of 0 or more.

    References
    ----------
    Muri, SIGCOMM 2022, Table 3; stage times of the authors' simulator.

    Examples
    --------
    >>> table = muri_profiles()
    >>> len(table), sorted(set(table["bottleneck"]))
    (48, ['cpu', 'gpu', 'network', 'storage'])
    """
    return _read().copy()


def start_overhead(model: str, num_gpus: int) -> float:
    """Return the seconds a job of the model needs to start.

    Parameters
    ----------
    model : str
        Name as in traces (``gpt2``); case does not matter.
    num_gpus : int
        Where it was not measured the nearest measured number counts, the larger of two as near.

    Returns
    -------
    float

    Raises
    ------
    ParamError
        If the model is not one of the eight, or the number of GPUs is not positive.

    References
    ----------
    Muri, SIGCOMM 2022; ``overhead_dict`` of the authors' simulator.

    Examples
    --------
    >>> start_overhead("a2c", 8), start_overhead("shufflenet_v2_x1_0", 24)
    (46.0, 8.0)
    """
    known = _overheads()
    name = model.lower()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ParamError(f"unknown model {model!r}{hint} (known: {', '.join(known)})")
    if num_gpus < 1:
        raise ParamError(f"a job of {model!r} on {num_gpus} GPUs; give 1 or more")
    nearest = min(GPU_COUNTS, key=lambda count: (abs(count - num_gpus), -count))
    return known[name][nearest]


@lru_cache(maxsize=1)
def _overheads() -> dict[str, dict[int, float]]:
    known: dict[str, dict[int, float]] = {}
    table = _read()
    for model, gpus, seconds in zip(
        table["model"], table["num_gpus"], table["start_overhead"], strict=True
    ):
        known.setdefault(str(model), {})[int(gpus)] = float(seconds)
    return known


@lru_cache(maxsize=1)
def _read() -> pd.DataFrame:
    path = paths.params_dir() / _FILE
    if not path.is_file():
        raise ParamError(f"{path}: the table of models is missing; restore it from the checkout")
    table = pd.read_csv(path, comment="#")
    wanted = [*_FACTS, "bottleneck_source", *_LISTS]
    if lost := [name for name in wanted if name not in table.columns]:
        raise ParamError(f"{path}:2: no column {', '.join(lost)}; restore the table")
    columns = {}
    for name, (column, per_second) in _LISTS.items():
        columns[column] = np.concatenate(
            [
                _times(text, f"{path}:{row}: {name}") / per_second
                for row, text in enumerate(table[name].astype(str), start=3)
            ]
        )
    facts = table[[*_FACTS, "bottleneck_source"]]
    frame = facts.loc[facts.index.repeat(len(GPU_COUNTS))].reset_index(drop=True)
    return frame.assign(num_gpus=list(GPU_COUNTS) * len(table), **columns)


def _times(text: str, where: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the six numbers of one cell."""
    try:
        times = np.array([float(part) for part in text.split()])
    except ValueError:
        times = np.array([])
    if len(times) != len(GPU_COUNTS) or not (np.isfinite(times) & (times >= 0)).all():
        counts = " ".join(map(str, GPU_COUNTS))
        raise ParamError(f"{where} is {text!r}; give one time of 0 or more for each of {counts}")
    return times
