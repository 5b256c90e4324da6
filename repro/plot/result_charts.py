"""Charts of one run: distribution of JCT, GPUs in use over time, Gantt chart of a window."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from repro.base.errors import ParamError
from repro.base.units import HOUR_S
from repro.model.records import Result
from repro.plot.gantt import gantt_chart
from repro.plot.lines import cdf_chart, line_chart

ChartName = Literal["jct", "utilisation", "gantt"]
#: Largest number of jobs in a Gantt chart.
MOST_LANES = 40


def plot_result(
    result: Result, chart: ChartName = "jct", *, start: float = 0.0, end: float | None = None
) -> Figure:
    """Draw one chart of a run.

    Parameters
    ----------
    result : Result
        The run.
    chart : {"jct", "utilisation", "gantt"}
        Distribution of job completion times, GPUs in use over time, or a lane per job.
    start, end : float
        Window of ``utilisation`` and ``gantt`` (s); by default the whole run.

    Raises
    ------
    ParamError
        Unknown chart, a run without intervals, a window that ends before it starts, a window of the
        chart jct, or more than 40 jobs in the window of a Gantt chart.
    """
    if chart not in get_args(ChartName):
        raise ParamError(f"chart is {chart!r}; give {', '.join(get_args(ChartName))}")
    title = f"{result.meta['policy']} on {result.meta['cluster']}"
    if chart == "jct":
        if start or end is not None:
            raise ParamError(
                "chart jct has no window; leave out start and end, or give utilisation or gantt"
            )
        jobs = result.jobs.assign(policy=result.meta["policy"])
        label = "job completion time (s)"
        return cdf_chart(jobs, value="jct", series="policy", log=True, xlabel=label, title=title)
    if result.jobs["start_time"].isna().all():
        raise ParamError("no job held GPUs in this run; let it run longer (stop_time, until)")
    if result.intervals.empty:
        raise ParamError(
            "this run kept no intervals; simulate(..., keep_intervals=True) keeps them"
        )
    window = _window(result.intervals, start, end)
    draw = _utilisation if chart == "utilisation" else _gantt
    return draw(window, result.meta, title)


def _window(intervals: pd.DataFrame, start: float, end: float | None) -> pd.DataFrame:
    """Intervals that overlap a window, cut to it."""
    if end is not None and not start < end:
        raise ParamError(f"start is {start:g} s and end is {end:g} s; give an end after the start")
    last = float(intervals["end"].max()) if end is None else end
    inside = intervals[(intervals["end"] > start) & (intervals["start"] < last)]
    if inside.empty:
        raise ParamError(f"no job runs between {start:g} and {last:g} s")
    return inside.assign(
        start=inside["start"].clip(lower=start), end=inside["end"].clip(upper=last)
    )


def _utilisation(window: pd.DataFrame, meta: dict[str, Any], title: str) -> Figure:
    """GPUs in use over time."""
    changes = pd.concat(
        [
            pd.Series(window["gpus"].to_numpy(float), window["start"]),
            pd.Series(-window["gpus"].to_numpy(float), window["end"]),
        ]
    )
    in_use = changes.groupby(level=0).sum().cumsum()
    frame = pd.DataFrame(
        {
            "hours": in_use.index.to_numpy(float) / HOUR_S,
            "percent": 100 * np.clip(in_use.to_numpy(), 0, None) / meta["num_gpus"],
            "policy": meta["policy"],
        }
    )
    return line_chart(
        frame,
        x="hours",
        y="percent",
        series="policy",
        steps=True,
        markers=False,
        columns=2,
        xlabel="time (h)",
        ylabel="GPUs in use (%)",
        ylim=(0, 105),
        title=title,
    )


def _gantt(window: pd.DataFrame, meta: dict[str, Any], title: str) -> Figure:
    """A lane per job, in order of first start."""
    ordered = window.sort_values("start", kind="stable").assign(policy=meta["policy"])
    count = ordered["job_id"].nunique()
    if count > MOST_LANES:
        raise ParamError(
            f"{count} jobs run in this window, at most {MOST_LANES} are plotted; give start and end"
        )
    return gantt_chart(ordered, lane="job_id", series="policy", columns=2, title=title)
