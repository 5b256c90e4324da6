"""Offered load of a trace over time and by GPU type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from repro.base.counts import quantity
from repro.base.typing import Floats
from repro.base.units import DAY_S
from repro.model.cluster.spec import Cluster
from repro.trace.doctor.demands import fits
from repro.trace.doctor.findings import Finding, first_ids
from repro.trace.doctor.queue import waiting_share
from repro.trace.load import ANY_TYPE, gpu_seconds

#: Least number of periods. A longer trace has a period per day.
_LEAST_PERIODS = 10
#: Part of the span in which jobs wait in an overload.
_MOSTLY = 0.5
#: Name of the load on the whole cluster.
ALL = "all GPUs"


def loads_over_time(frame: pd.DataFrame, cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Offered load of each GPU type that jobs ask for, and of the cluster, over equal periods.

    The result maps a GPU type, a choice of types, or `ALL` to these keys: mean, highest,
    highest_from_s (begin of the period of the highest load), period_s, gpus, and loads (one per
    period). A period is about a day, or a tenth of the span if that is shorter. A job counts in the
    period of its submission. Without a span there are no loads.
    """
    submit = frame["submit_time"].to_numpy(float)
    first, span = float(submit.min()), float(submit.max() - submit.min())
    if span <= 0:
        return {}
    number = max(_LEAST_PERIODS, round(span / DAY_S))
    period_s = span / number
    period = np.minimum((submit - first) // period_s, number - 1).astype(np.int64)
    seconds = gpu_seconds(frame)
    loads = {}
    for name, (rows, gpus) in _parts(frame, cluster).items():
        by_period: Floats = np.bincount(period[rows], seconds[rows], number) / (gpus * period_s)
        highest = int(np.argmax(by_period))
        loads[name] = {
            "mean": float(seconds[rows].sum() / (gpus * span)),
            "highest": float(by_period[highest]),
            "highest_from_s": first + highest * period_s,
            "period_s": period_s,
            "gpus": gpus,
            "loads": by_period.tolist(),
        }
    return loads


def _parts(frame: pd.DataFrame, cluster: Cluster) -> dict[str, tuple[Any, int]]:
    """Rows that ask for a GPU type, or a choice of types, and the GPUs of these types, by name."""
    parts: dict[str, tuple[Any, int]] = {ALL: (np.ones(len(frame), np.bool_), cluster.num_gpus)}
    if not cluster.gpu_types or "gpu_type" not in frame:
        return parts
    wishes = frame["gpu_type"].astype(object).where(frame["gpu_type"].notna(), ANY_TYPE)
    for wish in sorted(wishes.unique()):
        types = dict.fromkeys(wish.split("|"))
        gpus = sum(cluster.gpu_types.get(name, 0) for name in types)
        if wish != ANY_TYPE and gpus:
            parts[wish] = ((wishes == wish).to_numpy(bool), gpus)
    return parts


def check_loads(frame: pd.DataFrame, cluster: Cluster) -> list[Finding]:
    """Findings on offered loads above 1, where jobs wait for most of the span.

    A few long jobs that arrive within a short time have a high load and need no queue.
    """
    fitting = frame[fits(frame, cluster)]
    if fitting.empty:
        return []
    findings = []
    parts = _parts(fitting, cluster)
    for name, load in loads_over_time(fitting, cluster).items():
        rows = parts[name][0]
        if load["mean"] <= 1 or waiting_share(fitting[rows], load["gpus"]) < _MOSTLY:
            continue
        is_all = name == ALL
        where = "the cluster" if is_all else f"GPU type {name}"
        number = int(rows.sum())
        findings.append(
            Finding(
                "warning",
                "overload" if is_all else "overload-of-type",
                f"{quantity(number, 'job', 'demands', 'demand')} {load['mean']:.0%} of the GPU "
                f"time of the {load['gpus']:,} GPUs of {where} over the span of the submissions",
                number,
                first_ids(fitting, rows),
                "the queue grows up to the last submission and averages depend on the length of "
                "the trace: take a larger cluster, or repro compare --loads 0.8"
                if is_all
                else "runs without --types wished spread these jobs over all types",
            )
        )
    return findings
