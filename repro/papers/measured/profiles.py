"""Jobs of a trace with profiles measured on one GPU in place of those of the papers.

The tables are those of ``traces/measured``. Submit time, duration and GPUs of a job stay as they
are, so a job does more iterations in its duration if they are shorter.
"""

from collections.abc import Mapping
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd

from repro.base.typing import Floats
from repro.perf.stages import (
    MEASURED_STAGES,
    MERGED_COLUMNS,
    STAGE_COLUMNS,
    interleaving_time,
)
from repro.perf.throughput import ThroughputTable


def nearest_batches(
    stages: pd.DataFrame, batch_sizes: Mapping[str, int], job_types: Mapping[str, str]
) -> pd.DataFrame:
    """Measured stage times of models, each at the measured batch size nearest to its own.

    Parameters
    ----------
    stages : DataFrame
        Table of stage times (``stages.csv``).
    batch_sizes : mapping of str to int
        Batch size of each model.
    job_types : mapping of str to str
        Job type of the table for each model.

    Returns
    -------
    DataFrame
        A row per model, its index. Columns ``batch_size`` and `STAGE_COLUMNS` (s per iteration).

    Examples
    --------
    >>> times = {"storage_s": 0.0, "cpu_s": [1.0, 2.0], "gpu_s": 1.0, "network_s": 3.0}
    >>> table = pd.DataFrame({"job": "resnet18", "batch_size": [16, 128], **times})
    >>> nearest_batches(table, {"a": 100}, {"a": "resnet18"})
       batch_size  stage_storage  stage_cpu  stage_gpu  stage_network
    a         128            0.0        2.0        1.0            3.0
    """
    columns = ["batch_size", *MEASURED_STAGES]
    rows = {}
    for model, job_type in job_types.items():
        of_type = stages.loc[stages["job"] == job_type, columns]
        distance = (of_type["batch_size"] - batch_sizes[model]).abs()
        rows[model] = of_type.iloc[int(distance.to_numpy().argmin())]
    table = pd.DataFrame(rows).T.astype({"batch_size": int})
    names = dict(zip(MEASURED_STAGES, STAGE_COLUMNS, strict=True))
    return table.rename(columns=names).astype(dict.fromkeys(STAGE_COLUMNS, float))


def with_stages(trace: pd.DataFrame, stages: pd.DataFrame, *, network: bool) -> pd.DataFrame:
    """Trace whose jobs have measured stage times.

    Parameters
    ----------
    trace : DataFrame
        Jobs with a model each.
    stages : DataFrame
        Result of `nearest_batches`. The times hold for any number of GPUs.
    network : bool
        Whether gangs of two or more GPUs have the measured network stage. A job on one GPU has
        none, as in the profiles of Muri.

    Examples
    --------
    >>> row = {"batch_size": 64, "stage_storage": 0.0, "stage_cpu": 1.0, "stage_gpu": 2.0}
    >>> stages = pd.DataFrame([{**row, "stage_network": 1.0}], ["a"])
    >>> jobs = pd.DataFrame({"model": "a", "num_gpus": [1, 2], "duration": 12.0})
    >>> with_stages(jobs, stages, network=True)[["iteration_time", "iterations"]]
       iteration_time  iterations
    0             3.0         4.0
    1             4.0         3.0
    """
    of_jobs = stages.loc[trace["model"]].set_index(trace.index)
    if network:
        synchronises = trace["num_gpus"] > 1
        of_jobs["stage_network"] = of_jobs["stage_network"].where(synchronises, 0.0)
    else:
        of_jobs["stage_network"] = 0.0
    iteration_s = of_jobs[list(STAGE_COLUMNS)].sum(axis=1)
    of_jobs["iteration_time"] = iteration_s
    of_jobs["iterations"] = np.maximum(1.0, np.floor(trace["duration"] / iteration_s))
    kept = [name for name in trace.columns if name not in of_jobs]
    dressed = pd.concat([trace[kept], of_jobs], axis=1)
    dressed.attrs = dict(trace.attrs)
    return dressed


def speeds_in_turn(stages: pd.DataFrame) -> Floats:
    """Speed of each pair of models that takes turns, by Eq 3 of Muri, (pairs,).

    It is the sum of the two iteration times alone, divided by the period T.

    Parameters
    ----------
    stages : DataFrame
        Stage times (s), a row per model: `STAGE_COLUMNS`, or the three columns of Muri's profiles,
        in which the storage stage has the CPU's part.

    Examples
    --------
    >>> times = {"stage_storage": 0.0, "stage_cpu": [2.0, 0.0], "stage_gpu": [0.0, 2.0]}
    >>> speeds_in_turn(pd.DataFrame({**times, "stage_network": 0.0})).tolist()
    [1.0, 2.0, 1.0]
    """
    columns = STAGE_COLUMNS if "stage_cpu" in stages else MERGED_COLUMNS
    models = [tuple(row) for row in stages[list(columns)].to_numpy(float).tolist()]
    merged = columns == MERGED_COLUMNS
    pairs = combinations_with_replacement(models, 2)
    return np.array(
        [
            (sum(first) + sum(second)) / interleaving_time((first, second), merged=merged)
            for first, second in pairs
        ]
    )


def with_measured_type(
    table: ThroughputTable, rates: Mapping[str, float], gpu_type: str
) -> ThroughputTable:
    """Throughputs of a table, and those on one more GPU type, which is the new reference.

    The result has no throughputs of pairs.

    Parameters
    ----------
    table : ThroughputTable
        Throughputs by GPU type.
    rates : mapping of str to float
        Steps/s of models on one GPU of the new type. Other models are left out. The speed of a
        model on the new type, relative to the reference of ``table``, is that on one GPU. Gangs of
        any size have the same relative speed.
    gpu_type : str
        Name of the new type.

    Examples
    --------
    >>> table = ThroughputTable({("a", 1): {"v100": 2.0}, ("a", 4): {"v100": 6.0}}, "v100")
    >>> with_measured_type(table, {"a": 5.0}, "h100").rows["a", 4]
    {'v100': 6.0, 'h100': 15.0}
    """
    rows = {}
    for (model, gpus), row in table.rows.items():
        if model in rates:
            factor = rates[model] / table.rows[model, 1][table.reference]
            rows[model, gpus] = {**row, gpu_type: row[table.reference] * factor}
    return ThroughputTable(rows, gpu_type)


def mean_speed(table: ThroughputTable, gpu_types: Mapping[str, int]) -> float:
    """Mean speed of the GPUs of a cluster relative to the reference type.

    The speed of a GPU type is the mean over all models, each on one GPU.

    Parameters
    ----------
    table : ThroughputTable
        Throughputs by GPU type.
    gpu_types : mapping of str to int
        GPUs of the cluster by type.

    Examples
    --------
    >>> table = ThroughputTable.of({"a": {"v100": 4.0, "k80": 1.0}}, "v100")
    >>> mean_speed(table, {"v100": 1, "k80": 1})
    0.625
    """
    alone = [row for (_, gpus), row in table.rows.items() if gpus == 1]
    relative = {
        gpu_type: np.mean([row[gpu_type] / row[table.reference] for row in alone])
        for gpu_type in gpu_types
    }
    total = sum(gpus * relative[gpu_type] for gpu_type, gpus in gpu_types.items())
    return float(total / sum(gpu_types.values()))
