"""Tiresias on its 60-GPU testbed, job by job: bins, factors of improvement, percentiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd

from repro.core.records import Result
from repro.metrics import bins, statistics

#: Rules, policy and seed of a run.
Run = tuple[str, str, int]
RUN = ["rules", "policy", "seed"]
ALL = "ALL"
_STATISTICS = ["avg", "median", "p95"]
#: Names the paper's figures use for the bins of Table 3.
BINS = {"SS": "Bin1", "SL": "Bin2", "LS": "Bin3", "LL": "Bin4"}


def job_table(
    results: Mapping[Run, Result], *, small_gpus: int = 4, short_s: float = 800.0
) -> pd.DataFrame:
    """Return the jobs of all runs under each other.

    Parameters
    ----------
    results : mapping
        (rules, policy, seed) to records.
    small_gpus : int
        Largest GPU count called small.
    short_s : float
        Durations (s) below are short.

    Returns
    -------
    DataFrame
        rules, policy, seed, bin (Bin1 to Bin4) and the columns of ``Result.jobs``.

    References
    ----------
    Tiresias, NSDI 2019, section 5.1 and Table 3.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> run = simulate(small_trace(), "1x4", "srtf")
    >>> job_table({("paper", "srtf", 0): run}, small_gpus=2, short_s=9)["bin"].tolist()
    ['Bin2', 'Bin1', 'Bin4', 'Bin1', 'Bin1', 'Bin3']
    """
    frames = []
    for run, result in results.items():
        jobs = result.jobs
        named = bins(jobs, small_gpus, short_s).map(BINS)
        rules, policy, seed = run
        frames.append(jobs.assign(rules=rules, policy=policy, seed=seed, bin=named))
    return pd.concat(frames, ignore_index=True)


def factors(
    jobs: pd.DataFrame, *, metric: str = "jct", reference: str = "tiresias-l"
) -> pd.DataFrame:
    """Return each policy's factor of improvement in every seed, bin by bin and over all jobs.

    Parameters
    ----------
    jobs : DataFrame
        From :func:`job_table`, with the reference among its policies.
    metric : str
        Column compared (s).
    reference : str
        Policy whose value is the divisor.

    Returns
    -------
    DataFrame
        rules, policy, seed, bin, then avg, median and p95 of the policy over those of the
        reference on the same workload; above 1 the reference is better.

    References
    ----------
    Tiresias, NSDI 2019, section 5.1.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> runs = {("paper", n, 0): simulate(small_trace(), "1x4", n) for n in ("yarn-cs", "srtf")}
    >>> table = factors(job_table(runs), reference="srtf").query("policy == 'yarn-cs'")
    >>> table[["bin", "avg"]].round(3).values.tolist()
    [['Bin1', 1.784], ['ALL', 1.784]]
    """
    keys = [*RUN, "bin"]
    whole = pd.concat([jobs, jobs.assign(bin=ALL)], ignore_index=True)
    groups = whole.groupby(keys, sort=False)[metric]
    rows = [dict(zip(keys, key, strict=True)) | statistics(values) for key, values in groups]
    table = pd.DataFrame(rows)
    shared = [key for key in keys if key != "policy"]
    base = table[table["policy"] == reference].set_index(shared)[_STATISTICS]
    wanted = pd.MultiIndex.from_frame(table[shared])
    table[_STATISTICS] = table[_STATISTICS].to_numpy() / base.reindex(wanted).to_numpy()
    return table


def over_seeds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard deviation over the seeds of every number in a table.

    Parameters
    ----------
    frame : DataFrame
        With a column ``seed``; its text columns tell the rows apart.

    Returns
    -------
    DataFrame
        One row per combination of text columns, each number with a column ``<name>_sd`` (NaN for
        a single seed) beside it.

    Examples
    --------
    >>> rows = pd.DataFrame({"policy": ["a", "a"], "seed": [0, 1], "avg": [1.0, 3.0]})
    >>> over_seeds(rows)[["policy", "avg"]].values.tolist()
    [['a', 2.0]]
    """
    names = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    numbers = [str(name) for name in frame if name not in names and name != "seed"]
    groups = frame.groupby(names, sort=False)[numbers]
    table = pd.concat([groups.mean(), groups.std().add_suffix("_sd")], axis=1)
    return table[[column for name in numbers for column in (name, f"{name}_sd")]].reset_index()


def statistics_table(jobs: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return average, median and 95th percentile of a column in every run, one per row.

    Parameters
    ----------
    jobs : DataFrame
        From :func:`job_table`.
    metric : str
        Column read (s).

    Returns
    -------
    DataFrame
        rules, policy, seed, statistic (average, median, 95th), and the column.

    Examples
    --------
    >>> rows = pd.DataFrame({"rules": "paper", "policy": "srtf", "seed": 0, "jct": [1.0, 2.0, 6.0]})
    >>> statistics_table(rows, "jct")["jct"].tolist()[:2]
    [3.0, 2.0]
    """
    names = dict(zip(_STATISTICS, ["average", "median", "95th"], strict=True))
    return pd.DataFrame(
        [
            {**dict(zip(RUN, run, strict=True)), "statistic": names[name], metric: value}
            for run, values in jobs.groupby(RUN, sort=False)[metric]
            for name, value in statistics(values).items()
        ]
    )


def percentile_table(jobs: pd.DataFrame, metric: str, percents: Sequence[float]) -> pd.DataFrame:
    """Return percentiles of a column over the jobs of all seeds together.

    Parameters
    ----------
    jobs : DataFrame
        From :func:`job_table`.
    metric : str
        Column read (s).
    percents : sequence of float
        0 to 100; interpolated linearly.

    Returns
    -------
    DataFrame
        rules, policy, percent, and the column.

    Examples
    --------
    >>> rows = pd.DataFrame({"rules": "paper", "policy": "srtf", "jct": [1.0, 2.0, 5.0]})
    >>> percentile_table(rows, "jct", [50])["jct"].tolist()
    [2.0]
    """
    return pd.DataFrame(
        [
            {"rules": rules, "policy": policy, "percent": percent, metric: value}
            for (rules, policy), values in jobs.groupby(["rules", "policy"], sort=False)[metric]
            for percent, value in zip(percents, np.percentile(values, percents), strict=True)
        ]
    )


def count_bins(traces: Mapping[int, pd.DataFrame], small_gpus: int, short_s: float) -> pd.DataFrame:
    """Return how many jobs of each drawn workload fall into each bin of Table 3.

    Parameters
    ----------
    traces : mapping
        Seed to trace.
    small_gpus : int
        Largest GPU count called small.
    short_s : float
        Durations (s) below are short.

    Returns
    -------
    DataFrame
        seed, bin, jobs, share (percent).

    Examples
    --------
    >>> from repro.testing import small_trace
    >>> count_bins({0: small_trace()}, 2, 9.0)["jobs"].tolist()
    [3, 1, 1, 1]
    """
    rows = []
    for (seed, trace), (name, label) in product(traces.items(), BINS.items()):
        found = int((bins(trace, small_gpus, short_s) == name).sum())
        rows.append((seed, label, found, 100 * found / len(trace)))
    return pd.DataFrame(rows, columns=["seed", "bin", "jobs", "share"])
