"""Gavel's models: unequal GPU types (Fig 1), shared GPUs (Fig 4), batch sizes (Table 2)."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.files.tables import ModelTable
from repro.perf.synthetic_throughputs import job_types
from repro.perf.throughput import ThroughputTable

_FILE = "gavel_motivation.csv"
#: Prefix of the columns of throughput on a P100 shared with the model named after the prefix.
_BESIDE = "p100_beside_"
#: Column of the throughput of the second job if two jobs of the same model share a P100.
_SECOND = "p100_second_of_two"
GPU_TYPES = ("k80", "p100", "v100")


def motivation() -> pd.DataFrame:
    """Throughputs (steps/s) of Figures 1 and 4 by model and batch size; 0: out of memory."""
    return ModelTable(_FILE, ("model", "batch_size", *GPU_TYPES, _SECOND)).frame


def select_models(table: pd.DataFrame, models: Mapping[str, int | None]) -> pd.DataFrame:
    """Rows of models with the given batch sizes (None: the model has only one)."""
    rows = []
    for model, batch in models.items():
        has_batch = table["batch_size"].isna() if batch is None else table["batch_size"] == batch
        matches = table[(table["model"] == model) & has_batch]
        if len(matches) != 1:
            raise ParamError(
                f"{_FILE}: {len(matches)} rows of {model} with batch size {batch}, not 1"
            )
        rows.append(matches)
    return pd.concat(rows, ignore_index=True)


def relative_speed(table: pd.DataFrame, prices: Mapping[str, float]) -> pd.DataFrame:
    """Throughput of each model relative to the first GPU type of ``prices``, and per dollar."""
    unit = next(iter(prices))
    frames = []
    for gpu_type, price in prices.items():
        speed = table[gpu_type] / table[unit]
        frame = table[["model"]].assign(gpu_type=gpu_type.upper(), speed=speed)
        frames.append(frame.assign(per_dollar=speed * prices[unit] / price))
    return pd.concat(frames).sort_index(kind="stable").reset_index(drop=True)


def labels(relative: pd.DataFrame, column: str) -> list[list[float]]:
    """Column of `relative_speed` rounded to one decimal, a list per model."""
    rounded = relative[column].round(1)
    return [rows.tolist() for _, rows in rounded.groupby(relative["model"], sort=False)]


def shared_speeds(table: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Throughput of two models that share a P100 over their throughput alone; upper triangle."""
    by_model = table.set_index("model")
    alone = by_model["p100"]
    records = []
    for number, model in enumerate(models):
        for partner in models[number:]:
            first = by_model.loc[model, _BESIDE + partner] / alone[model]
            column = _BESIDE + model if partner != model else _SECOND
            second = by_model.loc[partner, column] / alone[partner]
            records.append((model, partner, first, second))
    frame = pd.DataFrame(records, columns=["row", "column", "first", "second"])
    texts = [f"{a:.2f}\n{b:.2f}" for a, b in zip(frame["first"], frame["second"], strict=True)]
    return frame.assign(total=frame["first"] + frame["second"], text=texts)


def configurations(throughputs: ThroughputTable, gpu_type: str, unit: str) -> pd.DataFrame:
    """Models and batch sizes of the workload with their throughput on one GPU (Table 2).

    ``speedup`` is the throughput over the throughput on the GPU type ``unit``.
    """
    frame = pd.DataFrame(
        [(job.model, job.batch_size, job.distributed, job.name) for job in job_types()],
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
