"""Tables measured on one H100: jobs in sequence, pairs on one GPU, launch and save times."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from repro.files.table import Document, Table
from repro.perf.overhead import Phases

_SAVE = ("save_d2h_s", "save_write_s", "save_fsync_s", "exit_s")
#: Columns of each table: text, and numbers of 0 or more.
TABLES: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "isolated": (("mode", "job", "when"), ("iters_per_s", "gpu_util_mean", "reserved_mb")),
    "colocated": (("mode", "job_a", "job_b"), ("norm_a", "norm_b", "gpu_util_mean")),
    "pause": (("job",), ("launch_total_s", *_SAVE, "resume_total_s")),
    "sequence": (
        ("scenario", "model"),
        ("job", "iters", "t0_unix", "train_start_at", "train_end_at", "gone_at", "makespan_s"),
    ),
    "sequence_gpu": ((), ("t", "gpu_util")),
}


def rows(name: str, path: str | Path) -> pd.DataFrame:
    """Read a table of `TABLES`; a bad row is a TraceError with file, line and column."""
    text, numbers = TABLES[name]
    return Table(Document.read(path), (*text, *numbers), text=text).complete(text, numbers)


def launch_and_save(pause: pd.DataFrame, models: Sequence[str]) -> Phases:
    """Launch and save times (s) of each model; the mean of all for a model not measured."""
    measured = pause.assign(save=pause[list(_SAVE)].sum(axis=1)).set_index("job")
    seconds = measured[["launch_total_s", "save"]]
    return Phases(*seconds.reindex(list(models)).fillna(seconds.mean()).to_dict().values())


def alone(isolated: pd.DataFrame, mode: str = "timeslice") -> pd.DataFrame:
    """Means of each job alone on the GPU: iters_per_s, gpu_util (%), gpu_mem_mb.

    ``mode`` is how the GPU could be shared during the measurement: ``timeslice`` or ``mps``.
    """
    mean = isolated[isolated["mode"] == mode].groupby("job").mean(numeric_only=True)
    return mean.rename(columns={"gpu_util_mean": "gpu_util", "reserved_mb": "gpu_mem_mb"})
