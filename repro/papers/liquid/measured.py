"""Tables measured on one H100: jobs in sequence, pairs on one GPU, launch and save times."""

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from pathlib import Path
from statistics import fmean

import pandas as pd

from repro.files.table import Document, Table
from repro.perf.overhead import Phases
from repro.perf.throughput import ThroughputTable

_SAVE = ("save_d2h_s", "save_write_s", "save_fsync_s", "exit_s")
#: Columns of each table: text, and numbers of 0 or more.
TABLES: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "isolated": (("mode", "job", "when"), ("iters_per_s", "gpu_util_mean", "reserved_mb")),
    "colocated": (
        ("mode", "job_a", "job_b"),
        ("norm_a", "norm_b", "rate_a", "rate_b", "gpu_util_mean"),
    ),
    "interleave": (
        ("group", "mode", "jobs", "job"),
        ("iso_rate", "rate", "norm", "n", "storage_s", "cpu_s", "gpu_s", "network_s"),
    ),
    "pause": (("job",), ("launch_total_s", *_SAVE, "resume_total_s")),
    "sequence": (
        ("scenario", "model"),
        ("job", "iters", "t0_unix", "train_start_at", "train_end_at", "gone_at", "makespan_s"),
    ),
    "sequence_gpu": ((), ("t", "gpu_util")),
}


def rows(name: str, path: str | Path, more: Sequence[str] = ()) -> pd.DataFrame:
    """Read a table of `TABLES`; a bad row is a TraceError with file, line and column.

    ``more`` names further columns with numbers of 0 or more.
    """
    text, numbers = TABLES[name]
    numbers = (*numbers, *more)
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


def pair_speeds(alone: pd.DataFrame, pairs: pd.DataFrame) -> ThroughputTable:
    """Throughputs of jobs alone and in measured pairs; other pairs run at half speed each.

    Repeated measurements of a pair count by their mean. No job is faster in a pair than alone: that
    is scatter of the measurement.
    """
    rate = {str(job): float(value) for job, value in alone["iters_per_s"].items()}
    both = {
        (a, b, 1): {"h100": (rate[a] / 2, rate[b] / 2)}
        for a, b in combinations_with_replacement(rate, 2)
    }
    columns = ["job_a", "job_b", "norm_a", "norm_b"]
    norms: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for a, b, norm_a, norm_b in pairs[columns].itertuples(index=False):
        if (b, a) in norms:
            norms[b, a].append((norm_b, norm_a))
        else:
            norms.setdefault((a, b), []).append((norm_a, norm_b))
    for (a, b), repeats in norms.items():
        norm_a, norm_b = map(fmean, zip(*repeats, strict=True))
        both.pop((b, a, 1), None)
        both[a, b, 1] = {"h100": (rate[a] * min(norm_a, 1), rate[b] * min(norm_b, 1))}
    return ThroughputTable.of({job: {"h100": value} for job, value in rate.items()}, "h100", both)
