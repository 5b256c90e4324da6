"""Tiresias on its testbed, run by run: makespan, preemptions, their cost, allocated share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from repro.core.records import Result, makespan
from repro.experiments.tiresias.testbed import RUN, Run
from repro.metrics import busy_gpus


def run_table(results: Mapping[Run, Result]) -> pd.DataFrame:
    """Return one row per run: makespan (s), preemptions, seconds they cost, mean JCT (s).

    Parameters
    ----------
    results : mapping
        (rules, policy, seed) to records.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> run_table({("paper", "sf", 3): simulate(small_trace(), "1x4", "sf")})["seed"].tolist()
    [3]
    """
    rows = [
        (
            *run,
            makespan(result),
            int(result.jobs["preemptions"].sum()),
            float(result.meta["overhead_s"]),
            float(result.jobs["jct"].mean()),
        )
        for run, result in results.items()
    ]
    return pd.DataFrame(rows, columns=[*RUN, "makespan", "preemptions", "overhead", "avg_jct"])


def over_tiresias(table: pd.DataFrame, column: str, reference: str = "tiresias-l") -> pd.DataFrame:
    """Return a column of a table divided by the reference policy's on the same rules and seed.

    Parameters
    ----------
    table : DataFrame
        From :func:`run_table`.
    column : str
        What is divided.
    reference : str
        Policy of the divisor.

    Returns
    -------
    DataFrame
        One row per (rules, seed), one column per policy.

    Examples
    --------
    >>> rows = [("paper", "tiresias-l", 0, 2.0), ("paper", "yarn-cs", 0, 3.0)]
    >>> table = pd.DataFrame(rows, columns=["rules", "policy", "seed", "makespan"])
    >>> over_tiresias(table, "makespan").loc[("paper", 0), "yarn-cs"]
    np.float64(1.5)
    """
    wide = table.pivot_table(index=["rules", "seed"], columns="policy", values=column, sort=False)
    return wide.div(wide[reference], axis=0)


def allocated_cdf(
    results: Mapping[Run, Result], shares: Sequence[float], *, window_s: float = 10.0
) -> pd.DataFrame:
    """Return the fraction of time during which at most a share of the GPUs was allocated.

    Parameters
    ----------
    results : mapping
        (rules, policy, seed) to records.
    shares : sequence of float
        Shares of the cluster, 0 to 1, at which the distribution is read.
    window_s : float
        Length of the windows (s) over which the allocation is averaged.

    Returns
    -------
    DataFrame
        share, fraction, rules, policy, seed; from the first submission to the last completion.

    References
    ----------
    Tiresias, NSDI 2019, section 5.2.2, Figure 11.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> run = simulate(small_trace(), "1x4", "sf")
    >>> allocated_cdf({("paper", "sf", 0): run}, [0.75, 1.0], window_s=23)["fraction"].tolist()
    [0.5, 1.0]
    """
    frames = []
    for run, result in results.items():
        share = np.sort(busy_gpus(result, window_s).to_numpy() / result.meta["num_gpus"])
        # windows are averages of sums: a full one may miss its share by a rounding
        below = np.searchsorted(share, np.asarray(shares) + 1e-9, side="right") / len(share)
        frame = pd.DataFrame({"share": list(shares), "fraction": below})
        frames.append(frame.assign(rules=run[0], policy=run[1], seed=run[2]))
    return pd.concat(frames, ignore_index=True)
