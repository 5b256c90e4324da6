"""Tiresias on its 60-GPU testbed: Figures 10 to 12, Tables 3 and 4, sections 5.2.4 and 5.3.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from repro.figures.points import as_points
from repro.model.metrics import bins, statistics
from repro.model.records import Result, durations, makespan
from repro.papers.tiresias.prototype import FITTED_ON
from repro.papers.tiresias.prototype import NAME as PROTOTYPE

#: Rules, policy and seed of a simulation.
Run = tuple[str, str, int]
#: Columns that identify a simulation.
RUN = ["rules", "policy", "seed"]
#: Names in the paper's tables by names of `repro.model.metrics.statistics`.
STATISTICS = {"avg": "average", "median": "median", "p95": "95th"}
#: Bins of Table 3 -> their names in the figures.
BINS = {"SS": "Bin1", "SL": "Bin2", "LS": "Bin3", "LL": "Bin4"}


def job_table(
    results: Mapping[Run, Result], *, small_gpus: int = 4, short_s: float = 800.0
) -> pd.DataFrame:
    """Jobs of all runs in one table, with their bins (Table 3)."""
    frames = []
    for (rules, policy, seed), result in results.items():
        named = bins(result.jobs, small_gpus, short_s).map(BINS)
        frames.append(result.jobs.assign(rules=rules, policy=policy, seed=seed, bin=named))
    return pd.concat(frames, ignore_index=True)


def over_seeds(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation (``<name>_sd``) over seeds, grouped by the text columns."""
    names = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    numbers = [str(name) for name in frame if name not in names and name != "seed"]
    groups = frame.groupby(names, sort=False, dropna=False)[numbers]
    table = pd.concat([groups.mean(), groups.std().add_suffix("_sd")], axis=1)
    return table[[column for name in numbers for column in (name, f"{name}_sd")]].reset_index()


def statistics_table(jobs: pd.DataFrame, metric: str, by: Sequence[str] = RUN) -> pd.DataFrame:
    """Average, median and 95th percentile of a column in every group ``by``, one per row."""
    values = jobs.groupby(list(by), sort=False)[metric].apply(
        lambda values: pd.Series(statistics(values))
    )
    named = values.rename(STATISTICS, level=-1).rename_axis([*by, "statistic"])
    return named.reset_index(name=metric)


def percentile_table(jobs: pd.DataFrame, metric: str, percents: Sequence[float]) -> pd.DataFrame:
    """Percentiles (interpolated) of a column over the jobs of all seeds together."""
    runs = jobs.groupby(["rules", "policy"], sort=False)[metric]
    table = runs.apply(lambda values: pd.Series(np.percentile(values, percents), list(percents)))
    return table.rename_axis(["rules", "policy", "percent"]).reset_index(name=metric)


def points(table: pd.DataFrame, judged: str, **columns: Any) -> pd.DataFrame:
    """Points of the rows with a published value; only the rule set ``judged`` is judged.

    ``columns`` maps a point's field to a column of the table or to one value for all rows. Points
    of the prototype say what it is fitted on.
    """
    fields = {"certainty": "certainty", "unit": "", **columns, "rules": "rules"}
    texts = [FITTED_ON if rules == PROTOTYPE else None for rules in table["rules"]]
    fitted_on = pd.Series(texts, index=table.index, dtype=object)
    return as_points(table, **fields, aside=table["rules"] != judged, fitted_on=fitted_on)


def count_bins(traces: Mapping[int, pd.DataFrame], small_gpus: int, short_s: float) -> pd.DataFrame:
    """Number of jobs of each seed's workload by bin: seed, bin, jobs."""
    rows = []
    for (seed, trace), (name, label) in product(traces.items(), BINS.items()):
        rows.append((seed, label, int((bins(trace, small_gpus, short_s) == name).sum())))
    return pd.DataFrame(rows, columns=["seed", "bin", "jobs"])


def run_table(results: Mapping[Run, Result]) -> pd.DataFrame:
    """Makespan (s), preemptions, their overhead (s) and mean JCT (s) of each run."""
    rows = []
    for run, result in results.items():
        preemptions = int(result.jobs["preemptions"].sum())
        overhead_s = float(result.meta["overhead_s"])
        mean_jct = float(result.jobs["jct"].mean())
        rows.append((*run, makespan(result), preemptions, overhead_s, mean_jct))
    return pd.DataFrame(rows, columns=[*RUN, "makespan", "preemptions", "overhead", "avg_jct"])


def training_time(result: Result) -> pd.Series[float]:
    """Time on GPUs of each job in the order of ``result.jobs``, (jobs,) s."""
    seconds = durations(result).groupby(result.intervals["job_id"]).sum()
    return seconds.reindex(result.jobs["job_id"]).reset_index(drop=True)
