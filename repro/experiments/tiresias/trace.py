"""Tiresias on a production trace: which jobs, at which load, ratios and parameter sweeps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro.core.records import Result
from repro.errors import ParamError
from repro.metrics import statistics

DAY_S = 86_400.0
#: Rules and policy of a run.
Run = tuple[str, str]
RUN = ["rules", "policy"]
#: Names the paper's tables use.
STATISTICS = {"avg": "average", "median": "median", "p95": "95th"}


def pick_jobs(
    trace: pd.DataFrame, *, min_duration_s: float, days: Sequence[float] | None = None
) -> pd.DataFrame:
    """Return the jobs long enough to be simulated, of a window of days if one is given.

    Parameters
    ----------
    trace : DataFrame
        A trace.
    min_duration_s : float
        Shorter jobs (s) are left out.
    days : sequence of two floats, optional
        First day and day after the last, counted from the trace's first submission.

    Returns
    -------
    DataFrame
        A trace whose first job is submitted at 0.

    Raises
    ------
    ParamError
        If no job is left.

    References
    ----------
    Tiresias, NSDI 2019, section 5.3 and appendix A; the GPU-times its simulator ships begin at
    121 s.

    Examples
    --------
    >>> from repro.testing import small_trace
    >>> pick_jobs(small_trace(), min_duration_s=10)["duration"].tolist()
    [10.0, 25.0]
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
    """Return the completion times of all runs under each other.

    Parameters
    ----------
    results : mapping
        (rules, policy) to records.

    Returns
    -------
    DataFrame
        rules, policy, jct (s).

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> run = simulate(small_trace(), "1x4", "srtf")
    >>> completion_times({("paper", "srtf"): run})["jct"].tolist()[:2]
    [10.0, 4.0]
    """
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

    Parameters
    ----------
    results : mapping
        (rules, policy) to records, with the reference among the policies of all rules.
    reference : str
        Policy of the divisor.
    published : sequence of mapping
        Each a policy and its published average, median and 95th.

    Returns
    -------
    DataFrame
        rules, policy, statistic, jct (s), ratio, published (NaN where nothing is).

    References
    ----------
    Tiresias, NSDI 2019, Tables 1 and 5.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> runs = {("paper", n): simulate(small_trace(), "1x4", n) for n in ("yarn-cs", "srtf")}
    >>> ratio_table(runs, "srtf")["ratio"].round(3).tolist()[:3]
    [1.784, 4.167, 0.938]
    """
    known = {row["policy"]: row for row in published}
    rows = []
    for (rules, policy), result in results.items():
        base = statistics(results[rules, reference].jobs["jct"])
        for name, value in statistics(result.jobs["jct"]).items():
            label = STATISTICS[name]
            printed = float(known.get(policy, {}).get(label, math.nan))
            rows.append((rules, policy, label, value, value / base[name], printed))
    return pd.DataFrame(rows, columns=[*RUN, "statistic", "jct", "ratio", "published"])


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """Return the ratios of :func:`ratio_table` as the paper prints them.

    Parameters
    ----------
    table : DataFrame
        Rows of one set of rules.

    Returns
    -------
    DataFrame
        One row per policy, columns average, median and 95th.

    Examples
    --------
    >>> rows = pd.DataFrame({"policy": ["a"], "statistic": ["median"], "ratio": [2.0]})
    >>> float(wide(rows).loc["a", "median"])
    2.0
    """
    pivot = table.pivot_table(index="policy", columns="statistic", values="ratio", sort=False)
    return pivot[[label for label in STATISTICS.values() if label in pivot]]


def falls(values: Sequence[float], least: float = -math.inf) -> bool:
    """Tell whether every value is below the one before it, and the last above ``least``.

    Parameters
    ----------
    values : sequence of float
        For example one statistic of several policies, the worst expected first.
    least : float
        A bound for the last one.

    Examples
    --------
    >>> falls([3.0, 2.0, 1.5], 1.0), falls([3.0, 2.0, 2.0])
    (True, False)
    """
    chain = [*values, least]
    return all(left > right for left, right in pairwise(chain))


def decile_ratios(
    jobs: pd.DataFrame, policy: str, reference: str, percents: Sequence[float]
) -> npt.NDArray[np.float64]:
    """Return percentiles of a policy's completion times over those of the reference.

    Parameters
    ----------
    jobs : DataFrame
        policy and jct (s), from :func:`completion_times`, of one set of rules.
    policy, reference : str
        The two policies.
    percents : sequence of float
        0 to 100; interpolated linearly.

    References
    ----------
    Tiresias, NSDI 2019, Figure 13.

    Examples
    --------
    >>> rows = pd.DataFrame({"policy": ["a", "a", "b", "b"], "jct": [2.0, 6.0, 1.0, 2.0]})
    >>> decile_ratios(rows, "a", "b", [0, 100]).tolist()
    [2.0, 3.0]
    """
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
        panel, variant, statistic, jct (s), normalised, published, promotions.

    References
    ----------
    Tiresias, NSDI 2019, section 5.4, Figures 14 and 15.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> sweep = {"panel": "p", "statistic": "max", "base": "SRTF",
    ...          "variants": [{"label": "SRTF"}, {"label": "SF", "published": 1.5}]}
    >>> runs = {("p", n.upper()): simulate(small_trace(), "1x4", n) for n in ("srtf", "sf")}
    >>> sweep_table([sweep], runs)["normalised"].round(2).tolist()
    [1.0, 0.89]
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
