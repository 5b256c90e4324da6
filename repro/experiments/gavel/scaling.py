"""How long Gavel's policies take to find an allocation, against the number of jobs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.cluster.spec import Cluster, gpus_by_type
from repro.core.jobs import JobTable
from repro.core.policy import Policy
from repro.core.speeds import Speeds
from repro.core.view import View
from repro.perf.throughput import ThroughputTable
from repro.policies.gavel.las import las_shares


def all_waiting(
    trace: pd.DataFrame, cluster: Cluster, policy: Policy, perf: ThroughputTable
) -> View:
    """Return what a policy sees when all jobs of a trace wait and none has run.

    Parameters
    ----------
    trace : DataFrame
        The jobs.
    cluster : Cluster
        GPUs by type.
    policy : Policy
        Who looks.
    perf : ThroughputTable
        Steps per second.

    Returns
    -------
    View
        At time 0.
    """
    table = JobTable(trace)
    table.active, table.arrived = dict.fromkeys(range(table.count)), table.count
    speeds = Speeds(table, perf, gpus_by_type(cluster))
    return View(table, cluster, policy.needs, policy.name, speeds)


def allocation_s(
    trace: pd.DataFrame, cluster: Cluster, policy: Policy, perf: ThroughputTable, trials: int = 3
) -> float:
    """Return the time a policy takes for one allocation from nothing (s).

    Parameters
    ----------
    trace, cluster, policy, perf
        As for :func:`all_waiting`.
    trials : int
        The fastest of so many counts; the others are disturbed by the machine.
    """
    view = all_waiting(trace, cluster, policy, perf)
    return fastest(lambda: policy.session(view)(view), trials)


def uncollapsed_s(
    trace: pd.DataFrame, cluster: Cluster, policy: Policy, perf: ThroughputTable, trials: int = 3
) -> float:
    """Return the time of the max-min programme with a row per job instead of per job type (s).

    Parameters
    ----------
    trace, cluster, perf
        As for :func:`all_waiting`.
    policy : Policy
        ``gavel-las``, whose programme it is.
    trials : int
        As for :func:`allocation_s`.
    """
    view = all_waiting(trace, cluster, policy, perf)
    speeds = np.array([view.speeds(job) for job in view.jobs])
    ones, widths = np.ones(len(speeds)), [view.gpus(job) for job in view.jobs]
    gpus = view.gpu_counts
    return fastest(lambda: las_shares(speeds, ones, widths, ones, gpus, "highs"), trials)


def fastest(run: Callable[[], object], trials: int) -> float:
    """Return the least CPU time of several calls (s)."""
    times = []
    for _ in range(trials):
        # CPU time: what else the machine does must not show
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def sizes(
    traces: Mapping[int, pd.DataFrame],
    policies: Mapping[str, tuple[Policy, int]],
    perf: ThroughputTable,
    whole: Sequence[str] = (),
    trials: int = 3,
) -> pd.DataFrame:
    """Return the time of one allocation for every policy and number of jobs.

    Parameters
    ----------
    traces : mapping
        Number of jobs to the jobs; the cluster has a quarter as many GPUs of each of the types
        of ``perf``.
    policies : mapping
        Series to the policy and the largest number of jobs it is asked for.
    perf : ThroughputTable
        Steps per second.
    whole : sequence of str
        Series whose programme has a row per job.
    trials : int
        As for :func:`allocation_s`.

    Returns
    -------
    DataFrame
        series, x (jobs), seconds.

    References
    ----------
    Gavel, OSDI 2020, Figure 12.
    """
    rows: list[dict[str, Any]] = []
    for name, (policy, most) in policies.items():
        timed = uncollapsed_s if name in whole else allocation_s
        sized = [(jobs, trace) for jobs, trace in traces.items() if jobs <= most]
        for number, (jobs, trace) in enumerate(sized):
            parts = [f"{max(1, jobs // 4)}x{kind}" for kind in perf.gpu_types]
            cluster = Cluster.parse(",".join(parts))
            # The first call of all loads and compiles.
            seconds = timed(trace, cluster, policy, perf, trials + (number == 0))
            rows.append({"series": name, "x": jobs, "seconds": seconds})
    return pd.DataFrame(rows)


def growth_rate(table: pd.DataFrame, series: str, low: float, high: float = math.inf) -> float:
    """Return the exponent k of time = c * jobs**k between two numbers of jobs, by least squares.

    Parameters
    ----------
    table : DataFrame
        series, x, seconds.
    series : str
        Which series.
    low, high : float
        Range of x.

    Examples
    --------
    >>> rows = {"series": "a", "x": [1, 2, 4], "seconds": [3.0, 12.0, 48.0]}
    >>> round(growth_rate(pd.DataFrame(rows), "a", 1), 9)
    2.0
    """
    rows = table[(table["series"] == series) & table["x"].between(low, high)]
    return float(np.polyfit(np.log(rows["x"]), np.log(rows["seconds"]), 1)[0])
