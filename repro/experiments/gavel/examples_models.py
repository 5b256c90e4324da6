"""Gavel's models: the list of configurations beside the throughput table of the simulations."""

from __future__ import annotations

import pandas as pd

from repro.perf.synthetic_throughputs import job_types
from repro.perf.throughput import ThroughputTable


def configurations(throughputs: ThroughputTable, gpu_type: str, unit: str) -> pd.DataFrame:
    """Return the models and batch sizes of the workload with their speeds on one GPU.

    Parameters
    ----------
    throughputs : ThroughputTable
        Steps/s.
    gpu_type, unit : str
        GPU type of the speeds, and the one they are compared with.

    Returns
    -------
    DataFrame
        model, batch_size (None where there is only one), distributed, job_type, rank (place of
        the batch size within the model, from 1), steps_per_s, speedup (over ``unit``), text.

    References
    ----------
    Gavel, OSDI 2020, Table 2.

    Examples
    --------
    >>> from repro.perf.synthetic_throughputs import gavel_like
    >>> table = configurations(gavel_like(), "v100", "k80")
    >>> table.groupby("model", sort=False).size().tolist()
    [5, 4, 5, 5, 5, 1, 1]
    """
    frame = pd.DataFrame(
        [(one.model, one.batch_size, one.distributed, one.name) for one in job_types()],
        columns=["model", "batch_size", "distributed", "job_type"],
    )
    speeds = [throughputs.steps_per_s(name, 1, gpu_type) for name in frame["job_type"]]
    units = [throughputs.steps_per_s(name, 1, unit) for name in frame["job_type"]]
    frame["batch_size"] = frame["batch_size"].astype("Int64")
    frame["rank"] = frame.groupby("model").cumcount() + 1
    frame["steps_per_s"] = speeds
    frame["speedup"] = frame["steps_per_s"] / pd.Series(units)
    sizes = ["one size" if one.batch_size is None else str(one.batch_size) for one in job_types()]
    frame["text"] = [f"{size}\n{speed:.3g}/s" for size, speed in zip(sizes, speeds, strict=True)]
    return frame


def measured_job_types(throughputs: ThroughputTable, *, distributed: bool = False) -> set[str]:
    """Return the job types of a throughput table.

    Parameters
    ----------
    throughputs : ThroughputTable
        Steps/s.
    distributed : bool
        Only those with speeds on several GPUs.

    Examples
    --------
    >>> speeds = ThroughputTable.of({"A3C": {"v100": 7.0}}, "v100")
    >>> measured_job_types(speeds), measured_job_types(speeds, distributed=True)
    ({'A3C'}, set())
    """
    return {model for model, gang in throughputs.rows if gang > 1 or not distributed}


def batch_sizes(table: pd.DataFrame) -> list[list[int]]:
    """Return the batch sizes of each model; an empty list where there is only one.

    Parameters
    ----------
    table : DataFrame
        From `configurations`.

    Examples
    --------
    >>> batch_sizes(pd.DataFrame({"model": ["a", "a", "b"], "batch_size": [1, 2, None]}))
    [[1, 2], []]
    """
    known = table.groupby("model", sort=False)["batch_size"]
    return [[int(size) for size in sizes.dropna()] for _, sizes in known]
