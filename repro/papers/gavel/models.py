"""Gavel's models: unequal GPU types (Fig 1), shared GPUs (Fig 4), batch sizes (Table 2)."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.files.tables import ModelTable
from repro.perf.synthetic_throughputs import job_types
from repro.perf.throughput import ThroughputTable

_FILE = "gavel_motivation.csv"
_BESIDE = "p100_beside_"
_SECOND = "p100_second_of_two"
GPU_TYPES = ("k80", "p100", "v100")


def motivation() -> pd.DataFrame:
    """Return the steps/s behind Figures 1 and 4, by model and batch size; 0 is out of memory."""
    return ModelTable(_FILE, ("model", "batch_size", *GPU_TYPES, _SECOND)).frame


def picked(table: pd.DataFrame, models: Mapping[str, int | None]) -> pd.DataFrame:
    """Return the rows of some models and their batch sizes (None where there is only one)."""
    rows = []
    for model, batch in models.items():
        same = table["batch_size"].isna() if batch is None else table["batch_size"] == batch
        found = table[(table["model"] == model) & same]
        if len(found) != 1:
            raise ParamError(
                f"{_FILE}: {len(found)} rows of {model} with batch size {batch}, not 1"
            )
        rows.append(found)
    return pd.concat(rows, ignore_index=True)


def relative_speed(table: pd.DataFrame, prices: Mapping[str, float]) -> pd.DataFrame:
    """Return each model's speed by GPU type over the first of ``prices``, and per dollar."""
    unit = next(iter(prices))
    frames = []
    for gpu_type, price in prices.items():
        speed = table[gpu_type] / table[unit]
        frame = table[["model"]].assign(gpu_type=gpu_type.upper(), speed=speed)
        frames.append(frame.assign(per_dollar=speed * prices[unit] / price))
    return pd.concat(frames).sort_index(kind="stable").reset_index(drop=True)


def labels(relative: pd.DataFrame, column: str) -> list[list[float]]:
    """Return one column of `relative_speed` as printed: one decimal, a list per model."""
    rounded = relative[column].round(1)
    return [rows.tolist() for _, rows in rounded.groupby(relative["model"], sort=False)]


def shared_speeds(table: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Return what two models keep of their speeds when they share a P100, the upper triangle."""
    by_model = table.set_index("model")
    alone = by_model["p100"]
    records = []
    for at, one in enumerate(models):
        for other in models[at:]:
            back = by_model.loc[other, _BESIDE + one if other != one else _SECOND]
            first = by_model.loc[one, _BESIDE + other] / alone[one]
            records.append((one, other, first, back / alone[other]))
    frame = pd.DataFrame(records, columns=["row", "column", "first", "second"])
    texts = [f"{a:.2f}\n{b:.2f}" for a, b in zip(frame["first"], frame["second"], strict=True)]
    return frame.assign(total=frame["first"] + frame["second"], text=texts)


def configurations(throughputs: ThroughputTable, gpu_type: str, unit: str) -> pd.DataFrame:
    """Return the models and batch sizes of the workload, their speeds on one GPU (Table 2)."""
    frame = pd.DataFrame(
        [(one.model, one.batch_size, one.distributed, one.name) for one in job_types()],
        columns=["model", "batch_size", "distributed", "job_type"],
    )
    speeds = [throughputs.steps_per_s(name, 1, gpu_type) for name in frame["job_type"]]
    units = [throughputs.steps_per_s(name, 1, unit) for name in frame["job_type"]]
    frame["batch_size"] = frame["batch_size"].astype("Int64")
    frame["rank"] = frame.groupby("model").cumcount() + 1
    frame["steps_per_s"] = speeds
    frame["speedup"] = np.divide(speeds, units)
    facts = ModelTable("gavel_models.csv", ("model", "task", "dataset")).frame
    return frame.merge(facts[["model", "task", "dataset"]], on="model")
