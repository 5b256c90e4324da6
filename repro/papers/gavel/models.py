"""Gavel's models: unequal GPU types (Fig 1), shared GPUs (Fig 4), batch sizes (Table 2)."""

from collections.abc import Mapping, Sequence

import pandas as pd

from repro.base.errors import ParamError
from repro.files.tables import ModelTable
from repro.perf.synthetic_throughputs import JobType, job_types
from repro.perf.throughput import ThroughputTable

_FILE = "gavel_motivation.csv"
#: Prefix of columns. The name of a model follows, and the column has the throughput on a P100 that
#: is shared with this model.
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


def simulated_speeds(
    throughputs: ThroughputTable, models: Mapping[str, int | None], gpu_types: Sequence[str]
) -> pd.DataFrame:
    """Steps/s of models with the given batch sizes in the table of the simulations, by GPU type."""
    names = {model: JobType(model, batch, False).name for model, batch in models.items()}
    rows = [
        [throughputs.steps_per_s(name, 1, gpu_type) for gpu_type in gpu_types]
        for name in names.values()
    ]
    return pd.DataFrame(rows, list(names), list(gpu_types))


def pair_speeds(table: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Throughputs (steps/s) of two models that share a P100, and of each alone; upper triangle.

    Columns: row and column (the models), first_in_pair, second_in_pair, first_alone, second_alone.
    """
    by_model = table.set_index("model")
    alone = by_model["p100"]
    records = []
    for number, model in enumerate(models):
        for partner in models[number:]:
            first = by_model.loc[model, _BESIDE + partner]
            second = by_model.loc[partner, _BESIDE + model if partner != model else _SECOND]
            records.append((model, partner, first, second, alone[model], alone[partner]))
    speeds = ["first_in_pair", "second_in_pair", "first_alone", "second_alone"]
    return pd.DataFrame(records, columns=["row", "column", *speeds])


def configurations(throughputs: ThroughputTable, gpu_type: str, unit: str) -> pd.DataFrame:
    """Models and batch sizes of the workload with their throughput on one GPU (Table 2).

    ``unit_steps_per_s`` is the throughput on one GPU of the type ``unit``.
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
    frame["unit_steps_per_s"] = units
    facts = ModelTable("gavel_models.csv", ("model", "task", "dataset")).frame
    return frame.merge(facts[["model", "task", "dataset"]], on="model")
