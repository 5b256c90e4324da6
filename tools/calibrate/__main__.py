"""Measure every table of ``traces/`` from the public files. A table begins with its source."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro.base import paths
from repro.files import public
from repro.files.tables import MEASURED
from repro.files.whole import write_whole
from repro.perf.throughput_files import load_throughputs
from repro.trace.load import load
from repro.trace.synth.elasticflow import CLUSTERS
from repro.trace.synth.marginals import LEVELS, QUANTILES
from repro.trace.synth.muri import TRACES
from tools.calibrate import gavel, philly

#: Levels of the quantiles of the GPU-times of past jobs.
HISTORY_LEVELS = (
    0,
    0.01,
    0.05,
    *np.arange(10, 70, 5) / 100,
    0.68,
    0.7,
    0.72,
    0.75,
    0.78,
    0.8,
    0.82,
    0.85,
    0.88,
    0.9,
    0.925,
    0.95,
    0.965,
    0.975,
    0.985,
    0.99,
    0.995,
    0.998,
    0.999,
    0.9995,
    0.9999,
    1.0,
)
#: Shortest jobs (s) that count for the share of each GPU count.
_SHORTEST_S = 120.0
#: Start of the paths of PCS's traces.
_PCS_TRACES = "simulation/traces/trace_"
#: Quantity that PCS's simulator samples -> start of the names of its files.
_SAMPLED = {
    "service": "cdf-app-service-times-",
    "trials": "cdf-num-jobs-per-app-",
    "gpus": "cdf-max-gpus-per-job-",
    "interarrival": "cdf-app-interarrival-times-",
}
_RUNS = (
    "Runs of successive jobs of one GPU count: hours spanned, jobs, and duration ranks among that "
    "GPU count in 1/100000, at quantile levels in per cent"
)
#: Description in the first line of each table.
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
    "elasticflow_gaps": "Span of submissions and seconds to the next one at quantile levels in per "
    "cent, by cluster",
    "elasticflow_durations": "Jobs, total duration and seconds at quantile levels in per cent, by "
    "cluster and GPU count",
    "philly_single_runs": f"{_RUNS} (single-GPU jobs)",
    "philly_wide_runs": f"{_RUNS} (wider jobs)",
    "tiresias_gpu_time_quantiles": "GPU-time of past jobs (GPU-seconds) at quantile levels",
    "pcs_workloads": "What PCS's simulator draws, by workload: the share of values up to this one, "
    "of service (seconds on one GPU), trials of a job, GPUs of a trial, seconds to the next job; "
    "trials and GPUs of gavel-contmultiple are those of gavel",
    "philly_gpu_mix": "Share of jobs of at least 120 s by GPU count",
    "philly_clocks": "Start (s) of the file of each virtual cluster on the clock of the earliest, "
    "from the jobs that the dated file philly has as well; jobs of the file, and jobs matched",
}


def history_table(gpu_time_s: npt.ArrayLike, source: str) -> pd.DataFrame:
    """Quantiles of the GPU-times (GPU-seconds) of past jobs."""
    values = np.quantile(np.asarray(gpu_time_s, float), HISTORY_LEVELS).round()
    levels = np.round(HISTORY_LEVELS, 4)
    return pd.DataFrame({"level": levels, "gpu_time_s": values, "source": source})


def gpu_mix(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Share of each GPU count among the jobs of at least two minutes."""
    jobs = pd.concat(list(frames), ignore_index=True)
    gpu_counts = jobs.loc[jobs["duration"] >= _SHORTEST_S, "num_gpus"]
    share = gpu_counts.value_counts(normalize=True).sort_index().round(6)
    return share.rename_axis("num_gpus").rename("share").reset_index()


def marginal_tables(
    paper: str, frames: Mapping[str | int, pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    """Quantiles of the gaps of traces, and of their durations by GPU count."""
    gaps = []
    durations = []
    for name, frame in frames.items():
        submit = frame["submit_time"].to_numpy(float)
        gaps.append((name, np.ptp(submit), *np.quantile(np.diff(submit), LEVELS).round(1)))
        for gpus, seconds in frame.groupby("num_gpus")["duration"]:
            quantiles = np.quantile(seconds.to_numpy(float), LEVELS).round(1)
            durations.append((name, gpus, len(seconds), seconds.sum(), *quantiles))
    rows_of = {f"{paper}_gaps": gaps, f"{paper}_durations": durations}
    return {
        name: pd.DataFrame(rows, columns=[*MEASURED[name], *QUANTILES])
        for name, rows in rows_of.items()
    }


def pcs_workloads(files: Mapping[str, Path]) -> pd.DataFrame:
    """Distributions of PCS's workloads that have service, trials and GPUs, row by row.

    Rows keep their order, on which samples depend: in some files the shares go up and down.
    """
    workloads: dict[str, dict[str, pd.DataFrame]] = {}
    for stem, path in files.items():
        for quantity, start in _SAMPLED.items():
            if stem.startswith(start):
                rows = pd.read_csv(path, comment="#", names=["value", "share"])
                workloads.setdefault(stem.removeprefix(start), {})[quantity] = rows
    workloads["gavel-contmultiple"] = workloads["gavel"] | workloads["gavel-contmultiple"]
    distributions = [
        table[quantity].assign(workload=workload, quantity=quantity)
        for workload, table in workloads.items()
        for quantity in _SAMPLED
        if {"service", "trials", "gpus"} <= set(table) and quantity in table
    ]
    return pd.concat(distributions)[list(MEASURED["pcs_workloads"])]


def write(table: pd.DataFrame, path: Path, header: str) -> None:
    """Write a table as CSV below one comment line, all of it or nothing."""
    text = f"# {header}\n" + table.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    write_whole(path, text.encode())


def main(folder: Path | None = None) -> None:
    """Measure every table from the public files; write to ``folder``, by default ``traces/``."""
    folder = folder or paths.traces_dir()

    def write_all(tables: dict[str, pd.DataFrame], relation: str, source: str) -> None:
        entry = public.entry(source)
        place = f"{entry.path}, {entry.member}" if entry.member else entry.path
        origin = f"{entry.repository}, commit {entry.commit}, {place}"
        for name, table in tables.items():
            header = f"{_ABOUT[name]}; {relation} {origin}, licence: {entry.licence}"
            write(table, folder / f"{name}.csv", header)

    write_all(philly.calibrate(load("philly")), "measured from", "philly")
    history = "tiresias-history-10000"
    past = history_table(np.loadtxt(public.fetch(history), skiprows=1), "yarn-gput10000.csv")
    write_all({"tiresias_gpu_time_quantiles": past}, "measured from", history)
    # Public names are muri-trace1 and so on, and muri-testbed.
    public_names = {name: f"muri-{'trace' * name.isdigit()}{name}" for name in TRACES}
    muri = marginal_tables(
        "muri", {name: load(public_name) for name, public_name in public_names.items()}
    )
    write_all(muri, "measured from the traces beside", "muri-trace1")
    clusters = {cluster: load(f"elasticflow-{cluster:02}") for cluster in CLUSTERS}
    elasticflow = marginal_tables("elasticflow", clusters)
    write_all(elasticflow, "measured from the ten traces beside", "elasticflow-01")
    pcs = [name for name, entry in public.entries().items() if _PCS_TRACES in entry.path]
    # A job lasts its service divided by its GPUs: linear speed-up.
    mix = gpu_mix(
        load(name).assign(duration=lambda jobs: jobs["service"] / jobs["num_gpus"]) for name in pcs
    )
    write_all({"philly_gpu_mix": mix}, "measured from the twelve traces beside", pcs[0])
    by_cluster = {name.removeprefix("pcs-"): load(name) for name in pcs}
    starts = philly.clocks(load("philly"), by_cluster)
    write_all({"philly_clocks": starts}, "measured from the twelve traces beside", pcs[0])
    cdf_files = {
        Path(entry.path).stem: public.fetch(name)
        for name, entry in public.entries().items()
        if entry.format == "cdf"
    }
    write_all(
        {"pcs_workloads": pcs_workloads(cdf_files)}, "from the files beside", "pcs-service-gavel"
    )
    source = "gavel-throughputs"
    trends = gavel.calibrate(load_throughputs(public.fetch(source)))
    write_all({"gavel_speeds": trends}, "fitted to", source)


if __name__ == "__main__":
    main()
