"""Simulations of PCS's testbed and of generated workloads, their statistics and points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from repro.base.typing import Floats
from repro.figures.sweep import Case, whole
from repro.model.cluster.spec import Cluster
from repro.model.records import Result, finish_time_unfairness, prediction_errors
from repro.papers.pcs import artifact

if TYPE_CHECKING:
    from repro.figures.figure import FigureRun

_PERCENTILES = (50, 80, 90, 95, 99)


def job_metrics(result: Result) -> pd.DataFrame:
    """JCT (s), prediction error and unfairness (%) of every job."""
    jobs = result.jobs
    return pd.DataFrame(
        {
            "jct_s": jobs["jct"],
            "pred_err_pct": prediction_errors(jobs),
            "unfairness_pct": finish_time_unfairness(jobs),
        }
    )


def statistics_of(values: pd.Series[float], name: str) -> dict[str, float]:
    """Average, percentiles and maximum of a quantity, and the percentage of zeros."""
    statistics: dict[str, Any] = {
        f"p{percent}": values.quantile(percent / 100) for percent in _PERCENTILES
    }
    # zero up to rounding
    statistics |= {"avg": values.mean(), "max": values.max(), "zero": 100 * (values < 1e-6).mean()}
    return {f"{statistic}_{name}": float(value) for statistic, value in statistics.items()}


def measured(case: Case) -> dict[str, Any]:
    """Measure of a sweep: `statistics_of` of each column of `job_metrics`."""
    statistics: dict[str, Any] = {}
    for name, values in job_metrics(whole(case)).items():
        statistics |= statistics_of(values, str(name))
    return statistics


def testbed(fig: FigureRun) -> tuple[pd.DataFrame, bool]:
    """`job_metrics` by series and ``pause_s``, and whether the trace is the authors'.

    ``pause_s`` is the time without progress after a change of GPUs: 0, and the candidate whose
    average JCTs are closest to Fig 5a (sum of squared logarithms of ratios).
    """
    trace = fig.trace(fig.inputs.trace)
    common = {"cluster": fig.inputs.cluster, "rules": "pcs"}

    def metrics_of_run(name: str, pause: float) -> pd.DataFrame:
        settings = {"resize_s": float(pause), **fig.inputs.series[name]}
        policy = artifact.policy(name, "themis1-scaled", **settings)
        result = fig.simulate(trace, policy=policy, **common)
        return job_metrics(result).assign(series=name, pause_s=pause)

    published = artifact.published("5a").query("quantity == 'avg_jct_s'")
    average_jct = dict(zip(published["series"], published["published"], strict=True))

    def misfit(pause: float) -> float:
        ratios = [
            metrics_of_run(name, pause)["jct_s"].mean() / value
            for name, value in average_jct.items()
        ]
        return sum(math.log(ratio) ** 2 for ratio in ratios)

    pauses = (0, min(fig.inputs.pauses, key=misfit))
    frames = [metrics_of_run(name, pause) for pause in pauses for name in fig.inputs.series]
    return pd.concat(frames, ignore_index=True), not trace.attrs.get("synthetic", False)


def generated(
    fig: FigureRun, changes: Mapping[Any, Mapping[str, Any]] | None = None
) -> pd.DataFrame:
    """Run every series on every seed of the figure's workloads: `statistics_of` of each quantity.

    The index is workload, seed, x and series. x is a key of ``changes``, whose values are settings
    for all policies.
    """
    inputs = fig.inputs
    cases = {}
    seeds = [(name, seed) for name, seeds in inputs.workloads.items() for seed in seeds]
    for (x, change), (workload, seed) in itertools.product((changes or {0: {}}).items(), seeds):
        for name, series_settings in inputs.series.items():
            settings = {**series_settings, **change}
            options = {"workload": workload, "jobs": settings.pop("jobs", inputs.jobs)}
            options |= {"load": inputs.load, "num_gpus": Cluster.parse(inputs.cluster).num_gpus}
            policy = artifact.policy(name, inputs.configurations, **settings)
            case = Case("pcs-workload", inputs.cluster, policy, "pcs", seed, options, {}, measured)
            cases[workload, seed, x, name] = case
    # Themis takes longest, so it starts first
    order = sorted(cases, key=lambda label: label[-1] != "themis")
    results = fig.sweep({label: cases[label] for label in order}, inputs.workers)
    table = pd.DataFrame({label: results[label] for label in cases}).T.drop(columns="wall_s")
    return table.rename_axis(["workload", "seed", "x", "series"])


def summary(jobs: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """`statistics_of` of a quantity by ``pause_s`` and series."""
    groups = jobs.groupby(["pause_s", "series"], sort=False)[quantity]
    statistics = {key: statistics_of(values, quantity) for key, values in groups}
    return pd.DataFrame(statistics).T.rename_axis(["pause_s", "series"])


def points(
    ours: pd.DataFrame,
    published: pd.DataFrame,
    unit: str | Mapping[str, str],
    comparable: bool = True,
) -> pd.DataFrame:
    """Points of the quantities (columns) that two tables by series have in common."""
    values = published[[name for name in ours if name in published]].melt(
        ignore_index=False, var_name="quantity", value_name="published"
    )
    table = values.dropna().rename_axis("series").reset_index().assign(x=None, certainty="artifact")
    keys = zip(table["series"], table["quantity"], strict=True)
    table["ours"] = [ours.loc[key] if comparable else None for key in keys]
    return table.assign(unit=unit if isinstance(unit, str) else table["quantity"].map(unit))


def points_by_pause(
    table: pd.DataFrame, published: pd.DataFrame, unit: str | Mapping[str, str], comparable: bool
) -> pd.DataFrame:
    """All `points` for each ``pause_s`` of a `summary`; only pause 0 is judged."""
    frames = []
    pauses: list[float] = table.index.unique("pause_s").tolist()
    for pause in pauses:
        frame = points(table.loc[[pause]].droplevel("pause_s"), published, unit, comparable)
        rules = f"pcs, {pause:g} s of pause" if pause else "pcs"
        frames.append(frame.assign(aside=bool(pause), rules=rules))
    return pd.concat(frames, ignore_index=True)


def contention(jobs: pd.DataFrame) -> Floats:
    """Mean number of jobs in the system from each job's arrival to its end, (jobs,) (N in PCS).

    The mean is over events. The first event is the arrival of the job, which counts itself. Every
    other event counts the jobs just before it.
    """
    start, end = (jobs[name].to_numpy(float) for name in ("submit_time", "end_time"))
    change = np.append(np.ones(len(start)), -np.ones(len(end)))
    order = np.lexsort((change, np.append(start, end)))
    times = np.append(start, end)[order]
    before = np.cumsum(change[order]) - change[order]
    # positions of each job's arrival and end among the events
    first = np.argsort(order)[: len(start)]
    last = np.searchsorted(times, end)
    total = np.cumsum(before)
    return np.asarray((before[first] + 1 + total[last] - total[first]) / (1 + last - first))
