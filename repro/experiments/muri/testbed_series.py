"""Muri Figure 8: what the testbed does over time under several policies, and on average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.core.records import Result
from repro.experiments.muri.testbed import (
    HOUR_S,
    STAGES,
    blocking_index,
    busy_share,
    over_time,
    queue_summary,
)

#: Columns of Figure 8 and what they are called.
LABELS = {
    "queue_length": "jobs waiting",
    "blocking_index": "blocking index",
    "gpu_percent": "GPU busy (%)",
    "data_percent": "data stage busy (%)",
}


def series(
    results: Mapping[str, Result], trace: pd.DataFrame, step: float, drawn: float
) -> pd.DataFrame:
    """Return the state of the cluster over time under several policies.

    Parameters
    ----------
    results : mapping
        Policy to records.
    trace : DataFrame
        What was run.
    step, drawn : float
        Seconds between two instants looked at, and length of the spans they are averaged over.

    Returns
    -------
    DataFrame
        policy, hours (beginning of the span), queue_length, blocking_index, data_percent,
        gpu_percent, network_percent.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> trace = small_trace().assign(iterations=1.0, stage_storage=0.0, stage_gpu=1.0,
    ...                              stage_network=0.0)
    >>> series({"sf": simulate(trace, "1x4", "sf")}, trace, 10.0, 20.0)["hours"].round(4).tolist()
    [0.0, 0.0056, 0.0111]
    """
    parts = []
    for policy, result in results.items():
        table = over_time(result, trace, step)
        spans = (table["hours"] * HOUR_S // drawn * drawn / HOUR_S).rename("hours")
        mean = _percent(table.drop(columns="hours")).groupby(spans).mean().reset_index()
        mean.insert(0, "policy", policy)
        parts.append(mean)
    return pd.concat(parts, ignore_index=True)


def means(
    results: Mapping[str, Result],
    trace: pd.DataFrame,
    step: float,
    published: Sequence[Mapping[str, Any]] = (),
) -> pd.DataFrame:
    """Return means over each run, beside those of the testbed's logs.

    Parameters
    ----------
    results : mapping
        Policy to records.
    trace : DataFrame
        What was run.
    step : float
        Seconds between two instants at which the blocking index is looked at.
    published : sequence of mapping
        Rows ``{policy, queue_length, …}``.

    Returns
    -------
    DataFrame
        policy, queue_length and queue_max (exact), blocking_index, data_percent, gpu_percent,
        network_percent, and the published ones as ``<column>_log`` (NaN if none).

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> trace = small_trace().assign(iterations=1.0, stage_storage=0.0, stage_gpu=1.0,
    ...                              stage_network=0.0)
    >>> table = means({"sf": simulate(trace, "1x4", "sf")}, trace, 10.0)
    >>> table["queue_max"].tolist(), table["queue_length_log"].isna().tolist()
    ([1.0], [True])
    """
    rows = []
    for policy, result in results.items():
        mean, longest = queue_summary(result)
        busy = {f"{name}_busy": [float(busy_share(result, trace, name))] for name in STAGES}
        instants = np.arange(0.0, result.jobs["end_time"].max(), step)
        blocked = float(blocking_index(result, instants).mean())
        row = pd.DataFrame({"policy": [policy], "queue_length": mean, "queue_max": longest})
        rows.append(_percent(row.assign(blocking_index=blocked, **busy)))
    table = pd.concat(rows, ignore_index=True)
    logs = pd.DataFrame(list(published), columns=["policy", *LABELS])
    return table.merge(logs, on="policy", how="left", suffixes=("", "_log"))


def over_muri(values: pd.Series[float], parts: Mapping[str, Sequence[str]]) -> list[float]:
    """Return the value of each baseline over that of the Muri it is compared with.

    Parameters
    ----------
    values : Series
        By policy.
    parts : mapping
        Baselines of each part of the figure, its Muri last.

    Examples
    --------
    >>> over_muri(pd.Series({"srtf": 6.0, "srsf": 4.0, "muri-s": 2.0}),
    ...           {"a": ["srtf", "srsf", "muri-s"]})
    [3.0, 2.0]
    """
    pairs = [(name, part[-1]) for part in parts.values() for name in part[:-1]]
    return [float(values[name] / values[ours]) for name, ours in pairs]


def _percent(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with busy shares as per cent."""
    names = {f"{name}_busy": f"{name}_percent" for name in STAGES}
    return table.assign(**{name: 100 * table[name] for name in names}).rename(columns=names)
