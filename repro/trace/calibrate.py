"""Measure the generator's tables in ``traces/`` from the public traces, and write them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro import paths
from repro.files.whole import write_whole
from repro.perf.gavel_profile import calibrate as calibrate_gavel
from repro.perf.throughput_files import load_throughputs
from repro.trace.muri_profile import TRACES as _MURI
from repro.trace.muri_profile import calibrate as calibrate_muri
from repro.trace.philly_profile import calibrate

__all__ = ["calibrate", "gpu_mix", "history_table", "main", "write"]

HISTORY_LEVELS = (
    0, 0.01, 0.05, *np.arange(10, 70, 5) / 100, 0.68, 0.7, 0.72, 0.75, 0.78, 0.8, 0.82, 0.85, 0.88,
    0.9, 0.925, 0.95, 0.965, 0.975, 0.985, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999, 1.0,
)  # fmt: skip


def history_table(gpu_time_s: npt.ArrayLike, source: str) -> pd.DataFrame:
    """Return quantiles of the GPU-times of past jobs."""
    values = np.quantile(np.asarray(gpu_time_s, float), HISTORY_LEVELS).round()
    levels = np.round(HISTORY_LEVELS, 4)
    return pd.DataFrame({"level": levels, "gpu_time_s": values, "source": source})


def gpu_mix(frames: Iterable[pd.DataFrame], min_duration: float = 120.0) -> pd.DataFrame:
    """Return the share of each GPU count among the jobs of at least ``min_duration`` seconds."""
    every = pd.concat(list(frames), ignore_index=True)
    kept = every.loc[every["duration"] >= min_duration, "num_gpus"]
    share = kept.value_counts(normalize=True).sort_index().round(6)
    return share.rename_axis("num_gpus").rename("share").reset_index()


def write(table: pd.DataFrame, path: Path, header: str) -> None:
    """Write a table as CSV below one comment line, atomically."""
    text = f"# {header}\n" + table.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    write_whole(path, text.encode())


def main(folder: Path | None = None) -> None:
    """Measure every table from the public files and write it."""
    from repro.files import public
    from repro.trace import load

    def origin(name: str) -> str:
        entry = public.entry(name)
        return f"{entry.repository}, commit {entry.commit}, {entry.path}, licence: {entry.licence}"

    folder = folder or paths.traces_dir()
    for name, table in calibrate(load.load("philly")).items():
        write(table, folder / f"{name}.csv", f"{_ABOUT[name]}; measured from {origin('philly')}")
    history = "tiresias-history-10000"
    past = history_table(np.loadtxt(public.fetch(history), skiprows=1), "yarn-gput10000.csv")
    about = (
        f"GPU-time of past jobs (GPU-seconds) at quantile levels; measured from {origin(history)}"
    )
    write(past, folder / "tiresias_gpu_time_quantiles.csv", about)
    muri = {name: f"muri-trace{name}" if name.isdigit() else f"muri-{name}" for name in _MURI}
    frames = {name: load.load(public) for name, public in muri.items()}
    for name, table in calibrate_muri(frames).items():
        about = f"{_ABOUT[name]}; measured from the traces beside {origin('muri-trace1')}"
        write(table, folder / f"{name}.csv", about)
    pcs = [name for name, entry in public.entries().items() if _PCS in entry.path]
    about = "Share of jobs of at least 120 s by GPU count; measured from the twelve traces beside "
    mix = gpu_mix(load.load(name) for name in pcs)
    write(mix, folder / "philly_gpu_mix.csv", about + origin(pcs[0]))
    speeds = "gavel-throughputs"
    about = f"{_ABOUT['gavel_speeds']}; fitted to {origin(speeds)}"
    write(
        calibrate_gavel(load_throughputs(public.fetch(speeds))), folder / "gavel_speeds.csv", about
    )


_PCS = "simulation/traces/trace_"
_RUNS = (
    "Runs of successive jobs of one GPU count: hours spanned, jobs, and duration ranks among that "
    "GPU count in 1/100000, at quantile levels in per cent"
)
_ABOUT = {
    "philly_hours": "Jobs and ten-minute probes submitted in each hour from the first submission "
    "(Monday 10:30:41) on",
    "philly_gaps": "Seconds to the next job at quantile levels, by jobs submitted in the hour (at "
    "most jobs_per_hour), probes apart",
    "philly_durations": "Seconds at quantile levels by GPU count; stream probe is the ten-minute "
    "probe; jobs counts them",
    "gavel_speeds": "Trends of Gavel's throughputs by model and GPU type, in log2 of the batch "
    "size (memory: in thousands of samples)",
    "muri_gaps": "Span of submissions and seconds to the next one at quantile levels in per cent, "
    "by trace",
    "muri_durations": "Jobs, total duration and seconds at quantile levels in per cent, by trace "
    "and GPU count",
    "philly_single_runs": f"{_RUNS} (single-GPU jobs)",
    "philly_wide_runs": f"{_RUNS} (wider jobs)",
}


if __name__ == "__main__":
    main()
