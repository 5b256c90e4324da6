"""Tables measured on one H100: two jobs in a row, pairs on one GPU, launch and save."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from repro.core.performance import Performance
from repro.core.policy import make
from repro.experiments.liquid.phases import Trained, trained
from repro.files.checks import refuse
from repro.files.table import Document, Table
from repro.perf.overhead import Phases
from repro.perf.side_by_side import MeasuredPairs
from repro.sim.simulate import simulate

_SAVE = ("save_d2h_s", "save_write_s", "save_fsync_s", "exit_s")
#: Columns of each table: text, and numbers of 0 or more.
TABLES: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "isolated": (("mode", "job", "when"), ("iters_per_s", "gpu_util_mean", "reserved_mb")),
    "colocated": (("mode", "job_a", "job_b"), ("norm_a", "norm_b", "gpu_util_mean")),
    "pause": (
        ("job",),
        ("launch_total_s", *_SAVE, "resume_total_s"),
    ),
    "sequence": (
        ("scenario", "model"),
        ("job", "iters", "t0_unix", "spawn_at", "ready_at", "train_start_at", "train_end_at",
         "gone_at", "makespan_s"),
    ),
    "sequence_gpu": ((), ("t", "gpu_util")),
}  # fmt: skip


def rows(name: str, path: str | Path) -> pd.DataFrame:
    """Read a measured table; a bad row is one line with file, line and column.

    Parameters
    ----------
    name : str
        A key of `TABLES`.
    path : str or Path
        Where it is.

    Raises
    ------
    TraceError
        A missing column, text where a number of 0 or more belongs, an empty cell.
    """
    text, numbers = TABLES[name]
    table = Table(Document.read(path), (*text, *numbers), text=text)
    frame = table.frame[list(text)].copy()
    for column in text:
        gone = frame[column].isna().to_numpy(bool)
        refuse(gone, frame[column], column, table.origin({}), "missing value", "every row has one")
    for column in numbers:
        frame[column] = table.numbers(column, f"{column} is a number, 0 or more", low=0)
    return frame


def launch_and_save(pause: pd.DataFrame, models: Sequence[str]) -> Phases:
    """Return the seconds each model launches and saves; of one not measured, the mean of all."""
    known = pause.assign(save=pause[list(_SAVE)].sum(axis=1)).set_index("job")
    launch, save = known["launch_total_s"], known["save"]
    return Phases(
        {model: float(launch.get(model, launch.mean())) for model in models},
        {model: float(save.get(model, save.mean())) for model in models},
    )


def pair_speeds(colocated: pd.DataFrame, mode: str) -> MeasuredPairs:
    """Return how fast the jobs of each measured pair ran, at most as fast as alone."""
    pairs = colocated[colocated["mode"] == mode].groupby(["job_a", "job_b"])[["norm_a", "norm_b"]]
    mean = pairs.mean().clip(upper=1.0)
    return MeasuredPairs({(str(a), str(b)): (x, y) for (a, b), x, y in mean.itertuples()})


def alone(isolated: pd.DataFrame, mode: str = "timeslice") -> pd.DataFrame:
    """Return each job alone: iters_per_s, gpu_util (%), gpu_mem_mb; means of its measurements."""
    mean = isolated[isolated["mode"] == mode].groupby("job").mean(numeric_only=True)
    return mean.rename(columns={"gpu_util_mean": "gpu_util", "reserved_mb": "gpu_mem_mb"})


def two_in_a_row(
    model: str, work_s: float, phases: Phases, way: str, perf: Performance, gpu_util: float
) -> list[Trained]:
    """Return two equal jobs on one GPU as `liquid` runs them.

    Parameters
    ----------
    model : str
        What they train.
    work_s, gpu_util : float
        Seconds of training alone, and utilisation meanwhile (%).
    phases : Phases
        Launch and save.
    way : {"event", "poll5", "ahead", "share"}
        The second starts at once when the first has left, when a report every 5 s shows it, is
        launched when the first begins to train, or shares the GPU from the beginning.
    perf : Performance
        How fast both are together.
    """
    launch, save = phases.launch[model], phases.save[model]
    settings: Mapping[str, Any] = {
        "event": {}, "poll5": {"heartbeat_s": 5.0}, "ahead": {"ahead_s": work_s - launch},
        "share": {"share": 2.0},
    }[way]  # fmt: skip
    trace = pd.DataFrame({"job_id": [0, 1], "submit_time": 0.0, "duration": work_s, "num_gpus": 1})
    trace = trace.assign(model=model, gpu_util=gpu_util, pre_s=launch, post_s=save)
    trace["total_s"] = launch + work_s + save
    policy = make("liquid", **settings)
    return trained(simulate(trace, "1x1", policy, perf=perf, overhead=phases), phases)


def by_second(gpu: pd.DataFrame, start: float, seconds: float, step_s: float = 0.5) -> pd.DataFrame:
    """Return the mean GPU utilisation of each step after an instant: t_s and value (%)."""
    inside = gpu[(gpu["t"] >= start) & (gpu["t"] < start + seconds)]
    step = np.floor((inside["t"] - start) / step_s) * step_s
    return inside.groupby(step.rename("t_s"))["gpu_util"].mean().rename("value").reset_index()
