"""Tiresias on a production trace: Figures 13 to 19, Tables 1 and 5."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from repro import paths
from repro.core.records import Result
from repro.errors import ParamError
from repro.experiments.tiresias.testbed import STATISTICS
from repro.metrics import statistics
from repro.perf.tiresias_models import tiresias_models
from repro.trace.synth.history import gpu_time_at
from repro.typing import Floats

DAY_S = 86_400.0
#: Rules and policy of a run.
Run = tuple[str, str]
#: Name of the series of all jobs.
ALL = "all jobs"
_ITERATIONS = "tiresias_iterations.csv"
_PERCENTS = (1, 5, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 95, 99)


def pick_jobs(
    trace: pd.DataFrame, *, min_duration_s: float, days: Sequence[float] | None = None
) -> pd.DataFrame:
    """Return the jobs long enough to be simulated, the first submitted at 0 (section 5.3).

    Parameters
    ----------
    trace : DataFrame
        A trace.
    min_duration_s : float
        Shorter jobs (s) are left out; the GPU-times the paper's simulator ships begin at 121 s.
    days : sequence of two floats, optional
        First day and day after the last, counted from the trace's first submission.

    Raises
    ------
    ParamError
        If no job is left.
    """
    kept = trace[trace["duration"] >= min_duration_s]
    if days is not None:
        first, last = (day * DAY_S for day in days)
        kept = kept[kept["submit_time"].between(first, last, inclusive="left")]
    if kept.empty:
        span = trace["submit_time"].max() / DAY_S
        raise ParamError(
            f"no job of at least {min_duration_s:g} s on days {days}; "
            f"the trace has {len(trace)} jobs over {span:.1f} days"
        )
    kept = kept.assign(submit_time=kept["submit_time"] - kept["submit_time"].min())
    return kept.reset_index(drop=True)


def completion_times(results: Mapping[Run, Result]) -> pd.DataFrame:
    """Return the completion times of all runs under each other: rules, policy, jct (s)."""
    frames = [
        pd.DataFrame({"rules": rules, "policy": policy, "jct": result.jobs["jct"]})
        for (rules, policy), result in results.items()
    ]
    return pd.concat(frames, ignore_index=True)


def ratio_table(
    results: Mapping[Run, Result],
    reference: str,
    published: Sequence[Mapping[str, Any]] = (),
) -> pd.DataFrame:
    """Return average, median and 95th percentile of completion times over the reference's.

    ``published`` holds policies with their average, median and 95th as printed (Tables 1 and 5).
    The columns are rules, policy, statistic, jct (s), ratio, published (NaN where nothing is).
    """
    known = {row["policy"]: row for row in published}
    rows = []
    for (rules, policy), result in results.items():
        base = statistics(results[rules, reference].jobs["jct"])
        for name, value in statistics(result.jobs["jct"]).items():
            label = STATISTICS[name]
            printed = float(known.get(policy, {}).get(label, math.nan))
            rows.append((rules, policy, label, value, value / base[name], printed))
    columns = ["rules", "policy", "statistic", "jct", "ratio", "published"]
    return pd.DataFrame(rows, columns=columns)


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """Return the ratios of one set of rules as printed: by policy, average, median and 95th."""
    pivot = table.pivot_table(index="policy", columns="statistic", values="ratio", sort=False)
    return pivot[[label for label in STATISTICS.values() if label in pivot]]


def falls(values: Sequence[float], least: float = -math.inf) -> bool:
    """Tell whether every value is below the one before it, and the last above ``least``."""
    return all(left > right for left, right in pairwise([*values, least]))


def decile_ratios(
    jobs: pd.DataFrame, policy: str, reference: str, percents: Sequence[float]
) -> Floats:
    """Return percentiles of a policy's completion times over those of the reference (Figure 13)."""
    ours, base = (
        np.percentile(jobs.loc[jobs["policy"] == name, "jct"], percents)
        for name in (policy, reference)
    )
    return np.asarray(ours / base, dtype=float)


def sweep_table(
    sweeps: Sequence[Mapping[str, Any]], results: Mapping[tuple[str, str], Result]
) -> pd.DataFrame:
    """Return one statistic of every variant of a parameter over that of its base setting.

    Parameters
    ----------
    sweeps : sequence of mapping
        ``panel``; ``statistic``: average, median, 95th or max; ``base``: label of the variant
        divided by; ``variants``: each a ``label`` and, where known, a ``published`` value.
    results : mapping
        (panel, label) to records.

    Returns
    -------
    DataFrame
        panel, variant, statistic, jct (s), normalised, published, promotions (Figures 14, 15).
    """
    rows = []
    for sweep in sweeps:
        panel, name = sweep["panel"], sweep["statistic"]
        base = _statistic(results[panel, sweep["base"]], name)
        for variant in sweep["variants"]:
            result = results[panel, variant["label"]]
            value = _statistic(result, name)
            printed = variant.get("published", math.nan)
            promoted = int(result.jobs["promotions"].sum())
            rows.append((panel, variant["label"], name, value, value / base, printed, promoted))
    columns = ["panel", "variant", "statistic", "jct", "normalised", "published", "promotions"]
    return pd.DataFrame(rows, columns=columns)


def _statistic(result: Result, name: str) -> float:
    jct = result.jobs["jct"]
    if name == "max":
        return float(jct.max())
    keys = {label: key for key, label in STATISTICS.items()}
    if name not in keys:
        raise ParamError(f"statistic {name!r} is unknown; accepted: {', '.join(keys)}, max")
    return statistics(jct)[keys[name]]


def with_model_size(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs with size_mb of their model; NaN for a model that Table 6 does not have."""
    return jobs.assign(size_mb=jobs["model"].str.lower().map(tiresias_models()["size_mb"]))


def iteration_times() -> pd.DataFrame:
    """Return the seconds per iteration of the ten models: model, num_gpus (1 to 8), iteration_s.

    From 60_job.csv of the public simulator: duration over iterations, the same for all jobs of a
    model and a number of GPUs.

    Raises
    ------
    ParamError
        If the checkout's table is missing.
    """
    path = paths.params_dir() / _ITERATIONS
    if not path.is_file():
        raise ParamError(f"{path}: the table of iteration times is missing; restore it")
    return pd.read_csv(path, comment="#")


def with_iteration_time(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs with iteration_s of their model on their GPUs; NaN if none is published."""
    known = iteration_times().set_index(["model", "num_gpus"])["iteration_s"]
    wanted = pd.MultiIndex.from_arrays([jobs["model"].str.lower(), jobs["num_gpus"]])
    return jobs.assign(iteration_s=known.reindex(wanted).to_numpy())


def all_and_large(jobs: pd.DataFrame, column: str, least_gpus: int, label: str) -> pd.DataFrame:
    """Return a column of all jobs and, named ``label``, of those of ``least_gpus`` or more."""
    columns = ["num_gpus", column]
    large = jobs.loc[jobs["num_gpus"] >= least_gpus, columns]
    frames = [jobs[columns].assign(jobs=ALL), large.assign(jobs=label)]
    return pd.concat(frames, ignore_index=True)


def intervals(trace: pd.DataFrame) -> pd.DataFrame:
    """Return the time from each submission to the next: jobs (``all jobs``), interval_s."""
    gaps = np.diff(trace["submit_time"].to_numpy(float))
    return pd.DataFrame({"jobs": ALL, "interval_s": gaps})


def shares(values: pd.Series[float]) -> pd.DataFrame:
    """Return fifteen percentiles (interpolated) of the values: percent, value."""
    return pd.DataFrame({"percent": _PERCENTS, "value": np.percentile(values, _PERCENTS)})


def published_gpu_time(levels: Sequence[float]) -> pd.DataFrame:
    """Return the authors' GPU-times (yarn-gput10000.csv) at shares of the jobs, 0 to 1."""
    points = np.asarray(levels, dtype=float)
    return pd.DataFrame({"jobs": ALL, "fraction": points, "gpu_s": gpu_time_at(points)})
