"""Tiresias on a production trace: Figures 13 to 19, Tables 1 and 5."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from repro.base.errors import ParamError, refuse_unknown
from repro.files.tables import ModelTable
from repro.model.metrics import statistics
from repro.model.records import Result
from repro.papers.tiresias.testbed import STATISTICS

DAY_S = 86_400.0
#: Rules and policy of a run.
Run = tuple[str, str]
#: Name of the series of all jobs.
ALL = "all jobs"
_PERCENTS = (1, 5, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 95, 99)


def pick_jobs(
    trace: pd.DataFrame, *, min_duration_s: float, days: Sequence[float] | None = None
) -> pd.DataFrame:
    """Jobs of at least ``min_duration_s`` on days [first, last); the first is submitted at 0."""
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


def ratio_table(
    results: Mapping[Run, Result], reference: str, published: Sequence[Mapping[str, Any]] = ()
) -> pd.DataFrame:
    """JCT statistics, their ratio to the reference, and published ratios (Tables 1 and 5)."""
    published_rows = {row["policy"]: row for row in published}
    rows = []
    for (rules, policy), result in results.items():
        base = statistics(results[rules, reference].jobs["jct"])
        for name, value in statistics(result.jobs["jct"]).items():
            label = STATISTICS[name]
            printed = float(published_rows.get(policy, {}).get(label, math.nan))
            rows.append((rules, policy, label, value, value / base[name], printed))
    columns = ["rules", "policy", "statistic", "jct", "ratio", "published"]
    return pd.DataFrame(rows, columns=columns)


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """Ratios under one rule set in the paper's layout: policies by average, median, 95th."""
    pivot = table.pivot_table(index="policy", columns="statistic", values="ratio", sort=False)
    return pivot[[label for label in STATISTICS.values() if label in pivot]]


def falls(values: Sequence[float], least: float = -math.inf) -> bool:
    """Whether every value is below the one before it, and the last above ``least``."""
    return all(left > right for left, right in pairwise([*values, least]))


def sweep_table(
    sweeps: Sequence[Mapping[str, Any]], results: Mapping[tuple[str, str], Result]
) -> pd.DataFrame:
    """Statistic of every variant of a parameter, and its ratio to the base setting."""
    rows = []
    for sweep in sweeps:
        panel = sweep["panel"]
        name = sweep["statistic"]
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
    values = {STATISTICS[key]: value for key, value in statistics(jct).items()}
    values["max"] = float(jct.max())
    refuse_unknown("there is no statistic", [name], values)
    return values[name]


def with_iteration_time(jobs: pd.DataFrame) -> pd.DataFrame:
    """Jobs with the public simulator's iteration time (iteration_s) by model and GPUs, or NaN."""
    columns = ("model", "num_gpus", "iteration_s")
    times = ModelTable("tiresias_iterations.csv", columns).frame
    iteration_s = times.set_index(["model", "num_gpus"])["iteration_s"]
    keys = pd.MultiIndex.from_arrays([jobs["model"].str.lower(), jobs["num_gpus"]])
    return jobs.assign(iteration_s=iteration_s.reindex(keys).to_numpy())


def all_and_large(jobs: pd.DataFrame, column: str, least_gpus: int, label: str) -> pd.DataFrame:
    """Column of all jobs and, as group ``label``, of the jobs of at least ``least_gpus``."""
    columns = ["num_gpus", column]
    large = jobs.loc[jobs["num_gpus"] >= least_gpus, columns]
    frames = [jobs[columns].assign(jobs=ALL), large.assign(jobs=label)]
    return pd.concat(frames, ignore_index=True)


def percentiles(values: pd.Series[float]) -> pd.DataFrame:
    """Fifteen percentiles (interpolated) of the values: percent, value."""
    return pd.DataFrame({"percent": _PERCENTS, "value": np.percentile(values, _PERCENTS)})
