"""Power of one GPU without a job, with one job and with two, and the energy of runs.

The tables are those of ``traces/measured``, as `repro.papers.liquid.measured.rows` reads them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import numpy as np
import pandas as pd

from repro.figures.sweep import Case, simulated, trace_of

#: Columns that this module reads besides those of `repro.papers.liquid.measured.TABLES`.
COLUMNS: Mapping[str, Sequence[str]] = {
    "isolated": ("power_w",),
    "colocated": ("power_w",),
    "sequence_gpu": ("power_w", "sm_mhz", "mem_used_mb", "energy_mj"),
}


def limits(table: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Limits of the axes (x: average JCT, y: energy), widened so that all intervals are inside."""
    jct, energy = (
        table[[name, f"{name}_low", f"{name}_high"]].to_numpy(float) for name in ("jct", "energy")
    )
    return {
        "xlim": (0.0, max(1.15, 1.02 * float(np.nanmax(jct)))),
        "ylim": (
            min(0.96, float(np.nanmin(energy)) - 0.002),
            max(1.005, float(np.nanmax(energy)) + 0.001),
        ),
    }


@dataclass(frozen=True)
class Power:
    """Power (W) of a GPU by the jobs on it.

    Parameters
    ----------
    idle : float
        Without a process.
    alone : mapping of str to float
        With one job, by job type.
    pairs : mapping of (str, str) to float
        With two jobs, by their types in alphabetical order. The two types of a pair that is not
        listed take turns, each for half of the time.

    Examples
    --------
    >>> power = Power(75.0, {"a": 100.0, "b": 300.0}, {("a", "b"): 350.0})
    >>> power.of([]), power.of(["a"]), power.of(["b", "a"]), power.of(["b", "b"])
    (75.0, 100.0, 350.0, 300.0)
    """

    idle: float
    alone: Mapping[str, float]
    pairs: Mapping[tuple[str, str], float]

    def of(self, jobs: Sequence[str]) -> float:
        """Power (W) of a GPU with no job, one job or two; ``jobs`` has their types."""
        if not jobs:
            return self.idle
        if len(jobs) == 1:
            return self.alone[jobs[0]]
        first, second = sorted(jobs)
        in_turn = (self.alone[first] + self.alone[second]) / 2
        return self.pairs.get((first, second), in_turn)


def power_alone(isolated: pd.DataFrame) -> pd.Series:
    """Mean power (W) of each job type alone, over all its measurements."""
    return isolated.groupby("job")["power_w"].mean()


def measured_power(
    isolated: pd.DataFrame, colocated: pd.DataFrame, mode: str, idle_w: float
) -> Power:
    """Power of a GPU whose jobs share it by time slicing or MPS.

    Repeated measurements of a job or pair count by their mean.

    Parameters
    ----------
    isolated, colocated : DataFrame
        Tables of jobs alone and in pairs, with `COLUMNS`.
    mode : {"timeslice", "mps"}
        How two jobs share the GPU.
    idle_w : float
        Power without a process (W).
    """
    of_mode = colocated[colocated["mode"] == mode]
    columns = of_mode[["job_a", "job_b", "power_w"]]
    watts_of_pair: dict[tuple[str, str], list[float]] = {}
    for first, second, watts in columns.itertuples(index=False):
        pair = (min(first, second), max(first, second))
        watts_of_pair.setdefault(pair, []).append(watts)
    pairs = {pair: fmean(repeats) for pair, repeats in watts_of_pair.items()}
    alone = {str(job): float(watts) for job, watts in power_alone(isolated).items()}
    return Power(idle_w, alone, pairs)


def pair_energy(isolated: pd.DataFrame, colocated: pd.DataFrame, base_w: float) -> pd.DataFrame:
    """Energy of the work of each measured pair, next to the same work one job after the other.

    The rate of job i in the pair, relative to its rate alone, is n_i (``norm_a``, ``norm_b``). The
    work that a pair does in one second takes n_a + n_b seconds if the jobs run one after the other.
    It then needs the energy n_a P_a + n_b P_b, where P is the power of a job alone.

    Parameters
    ----------
    isolated, colocated : DataFrame
        Tables of jobs alone and in pairs, with `COLUMNS`.
    base_w : float
        Power of a GPU on which a process waits (W).

    Returns
    -------
    DataFrame
        A row per pair. Columns ``mode``, ``job_a``, ``job_b``; ``power_w`` as measured; ``work``,
        n_a + n_b, where 1 is the work of one job alone in the same time; ``energy``, the energy of
        the pair relative to the energy one after the other; ``predicted_w``, B + sum over i of
        n_i (P_i - B), where B is ``base_w``. This is the power of the pair if each job adds what it
        needs above B, in proportion to its rate.

    Examples
    --------
    >>> alone = pd.DataFrame({"job": ["a", "b"], "power_w": [100.0, 300.0]})
    >>> pair = {"mode": "mps", "job_a": "a", "job_b": "b", "norm_a": 0.5, "norm_b": 1.0}
    >>> table = pair_energy(alone, pd.DataFrame([{**pair, "power_w": 280.0}]), 80.0)
    >>> table[["work", "energy", "predicted_w"]].to_numpy().tolist()
    [[1.5, 0.8, 310.0]]
    """
    alone = power_alone(isolated)
    speeds = colocated[["norm_a", "norm_b"]].to_numpy()
    watts = np.column_stack([colocated["job_a"].map(alone), colocated["job_b"].map(alone)])
    table = colocated[["mode", "job_a", "job_b", "power_w"]].reset_index(drop=True)
    return table.assign(
        work=speeds.sum(axis=1),
        energy=table["power_w"].to_numpy() / (speeds * watts).sum(axis=1),
        predicted_w=base_w + (speeds * (watts - base_w)).sum(axis=1),
    )


def sequence_energy(sequence: pd.DataFrame, gpu: pd.DataFrame) -> pd.DataFrame:
    """Energy of each measured run of two jobs in a row, and the power while no job computes.

    Parameters
    ----------
    sequence, gpu : DataFrame
        Tables of the runs and of the GPU during the runs, with `COLUMNS`.

    Returns
    -------
    DataFrame
        A row per run. Columns ``model``, ``scenario``, ``makespan_s``; ``energy_kj`` from launch
        to the end of the second job; ``idle_w``, mean power without a process, at the lowest clock;
        ``base_w``, median power while a process has memory on the GPU and its utilisation is 0.
    """
    lowest_mb = gpu["mem_used_mb"].min()
    is_idle = (gpu["mem_used_mb"] == lowest_mb) & (gpu["sm_mhz"] == gpu["sm_mhz"].min())
    waits = (gpu["mem_used_mb"] > lowest_mb) & (gpu["gpu_util"] == 0)
    table = []
    for (model, scenario), jobs in sequence.groupby(["model", "scenario"], sort=False):
        begin = jobs["t0_unix"].iloc[0]
        makespan_s = jobs["makespan_s"].iloc[0]
        inside = (gpu["t"] >= begin) & (gpu["t"] <= begin + makespan_s)
        energy_mj = gpu.loc[inside, "energy_mj"]
        row = {"model": model, "scenario": scenario, "makespan_s": makespan_s}
        row["energy_kj"] = (energy_mj.iloc[-1] - energy_mj.iloc[0]) / 1e6
        row["idle_w"] = gpu.loc[inside & is_idle, "power_w"].mean()
        row["base_w"] = gpu.loc[inside & waits, "power_w"].median()
        table.append(row)
    return pd.DataFrame(table)


def busy_energy(
    intervals: pd.DataFrame, models: Mapping[object, str], power: Power
) -> tuple[float, float]:
    """Energy (J) of the GPUs of a run while they have jobs, and the GPU-seconds of that time.

    Parameters
    ----------
    intervals : DataFrame
        Intervals of a run of one-GPU jobs (`repro.Result.intervals`).
    models : mapping
        Type of each job, by job id.
    power : Power
        Power of a GPU by the types of its jobs.

    Examples
    --------
    >>> power = Power(75.0, {"a": 100.0, "b": 300.0}, {("a", "b"): 350.0})
    >>> rows = {"job_id": [0, 1], "group": 0, "start": [0.0, 10.0], "end": [30.0, 20.0]}
    >>> busy_energy(pd.DataFrame(rows), {0: "a", 1: "b"}, power)
    (5500.0, 30.0)
    """
    energy_j = 0.0
    busy_s = 0.0
    # jobs that share a GPU are a group
    for _, group in intervals.groupby("group", sort=False):
        types = group["job_id"].map(models).to_numpy()
        start = group["start"].to_numpy()
        end = group["end"].to_numpy()
        instants = np.unique(np.concatenate([start, end]))
        for begin, until in pairwise(instants):
            present = types[(start <= begin) & (end >= until)].tolist()
            if present:
                energy_j += power.of(present) * float(until - begin)
                busy_s += float(until - begin)
    return energy_j, busy_s


@dataclass(frozen=True)
class RunEnergy:
    """Measure of a sweep: JCT and energy of a run of one-GPU jobs.

    ``power`` is the power of a GPU by the types of its jobs. The column ``model`` of the trace has
    the type of each job.
    """

    power: Power

    def __call__(self, case: Case) -> dict[str, float]:
        """Simulate a case.

        The entries are avg_jct and makespan (s), busy_j and busy_s as of `busy_energy`, and the
        numbers of jobs n_jobs and n_finished.
        """
        trace = trace_of(case)
        result = simulated(case, trace)
        summary = result.summary()
        models = dict(zip(trace["job_id"], trace["model"], strict=True))
        busy_j, busy_s = busy_energy(result.intervals, models, self.power)
        kept = ("avg_jct", "makespan", "n_jobs", "n_finished")
        return {**{name: summary[name] for name in kept}, "busy_j": busy_j, "busy_s": busy_s}
