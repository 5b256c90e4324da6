"""Runs of PCS's testbed and drawn workloads, and what they come to."""

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
from repro.papers.pcs import published

if TYPE_CHECKING:
    from repro.figures.figure import FigureRun

_SHARES = (50, 80, 90, 95, 99)


def rows(result: Result) -> pd.DataFrame:
    """Return JCT (s), prediction error and unfairness (%) of every job."""
    jobs = result.jobs
    parts = {"jct_s": jobs["jct"], "pred_err_pct": prediction_errors(jobs)}
    return pd.DataFrame({**parts, "unfairness_pct": finish_time_unfairness(jobs)})


def spread(values: pd.Series[float], name: str) -> dict[str, float]:
    """Return average, percentiles and maximum of a quantity, and the percentage of values 0."""
    found: dict[str, Any] = {f"p{share}": values.quantile(share / 100) for share in _SHARES}
    # a job that is on time is so up to rounding
    found |= {"avg": values.mean(), "max": values.max(), "zero": 100 * (values < 1e-6).mean()}
    return {f"{how}_{name}": float(one) for how, one in found.items()}


def measured(case: Case) -> dict[str, Any]:
    """Return `spread` of the quantities of `rows`: the measure of a sweep."""
    found: dict[str, Any] = {}
    for name, values in rows(whole(case)).items():
        found |= spread(values, str(name))
    return found


def testbed(fig: FigureRun) -> tuple[pd.DataFrame, bool]:
    """Return `rows` by series and ``pause_s``, and whether the trace is the authors' own.

    ``pause_s`` is 0 and, of those on trial, the time without progress after a change of GPUs whose
    average JCTs come nearest to the published ones of Fig 5a (squared logarithms of ratios).
    """
    trace = fig.trace(fig.inputs.trace)
    how = {"cluster": fig.inputs.cluster, "rules": "pcs"}

    def jobs(name: str, pause: float) -> pd.DataFrame:
        settings = {"resize_s": float(pause), **fig.inputs.series[name]}
        policy = published.policy(name, "themis1-scaled", **settings)
        return rows(fig.simulate(trace, policy=policy, **how)).assign(series=name, pause_s=pause)

    known = published.points("5a").query("quantity == 'avg_jct_s'")
    wanted = dict(zip(known["series"], known["published"], strict=True))

    def off(pause: float) -> float:
        means = [jobs(name, pause)["jct_s"].mean() / wanted[name] for name in wanted]
        return sum(math.log(ratio) ** 2 for ratio in means)

    both = (0, min(fig.inputs.pauses, key=off))
    parts = [jobs(name, pause) for pause in both for name in fig.inputs.series]
    return pd.concat(parts, ignore_index=True), not trace.attrs.get("synthetic", False)


def drawn(fig: FigureRun, changes: Mapping[Any, Mapping[str, Any]] | None = None) -> pd.DataFrame:
    """Run every series on every seed of the figure's workloads: `spread` of each quantity.

    The index is workload, seed, x (a key of ``changes``, settings for all policies) and series.
    """
    inputs = fig.inputs
    cases = {}
    seeds = [(name, seed) for name, seeds in inputs.workloads.items() for seed in seeds]
    for (x, change), (workload, seed) in itertools.product((changes or {0: {}}).items(), seeds):
        for name, given in inputs.series.items():
            settings = {**given, **change}
            options = {"workload": workload, "jobs": settings.pop("jobs", inputs.jobs)}
            options |= {"load": inputs.load, "num_gpus": Cluster.parse(inputs.cluster).num_gpus}
            policy = published.policy(name, inputs.configurations, **settings)
            case = Case("pcs-workload", inputs.cluster, policy, "pcs", seed, options, {}, measured)
            cases[workload, seed, x, name] = case
    # the costliest first
    order = sorted(cases, key=lambda at: at[-1] != "themis")
    found = fig.sweep({at: cases[at] for at in order}, inputs.workers)
    table = pd.DataFrame({at: found[at] for at in cases}).T.drop(columns="wall_s")
    return table.rename_axis(["workload", "seed", "x", "series"])


def summary(jobs: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Return `spread` of a quantity by ``pause_s`` and series."""
    parts = jobs.groupby(["pause_s", "series"], sort=False)[quantity]
    found = {at: spread(values, quantity) for at, values in parts}
    return pd.DataFrame(found).T.rename_axis(["pause_s", "series"])


def beside(
    ours: pd.DataFrame, theirs: pd.DataFrame, unit: str | Mapping[str, str], comparable: bool = True
) -> pd.DataFrame:
    """Return what two tables by series have in common as points, quantity by quantity."""
    found = theirs[[name for name in ours if name in theirs]].melt(
        ignore_index=False, var_name="quantity", value_name="published"
    )
    table = found.dropna().rename_axis("series").reset_index().assign(x=None, certainty="artifact")
    keys = zip(table["series"], table["quantity"], strict=True)
    table["ours"] = [ours.loc[key] if comparable else None for key in keys]
    return table.assign(unit=unit if isinstance(unit, str) else table["quantity"].map(unit))


def at_pauses(
    table: pd.DataFrame, theirs: pd.DataFrame, unit: str | Mapping[str, str], comparable: bool
) -> pd.DataFrame:
    """Points of `beside` for each ``pause_s`` of a `summary`, with a pause shown and not judged."""
    parts = []
    pauses: list[float] = table.index.unique("pause_s").tolist()
    for pause in pauses:
        part = beside(table.loc[[pause]].droplevel("pause_s"), theirs, unit, comparable)
        rules = f"pcs, {pause:g} s of pause" if pause else "pcs"
        parts.append(part.assign(aside=bool(pause), rules=rules))
    return pd.concat(parts, ignore_index=True)


def contention(jobs: pd.DataFrame) -> Floats:
    """Return how many jobs each job sees on average over the events of its life (N in PCS).

    The first is its own arrival, itself included; of an event the number just before it counts.
    """
    start, end = (jobs[name].to_numpy(float) for name in ("submit_time", "end_time"))
    change = np.append(np.ones(len(start)), -np.ones(len(end)))
    order = np.lexsort((change, np.append(start, end)))
    times = np.append(start, end)[order]
    before = np.cumsum(change[order]) - change[order]
    first, last = np.argsort(order)[: len(start)], np.searchsorted(times, end)
    total = np.cumsum(before)
    return np.asarray((before[first] + 1 + total[last] - total[first]) / (1 + last - first))
