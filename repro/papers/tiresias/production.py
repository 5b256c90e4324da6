"""Tiresias on a production trace: Figures 13 to 19, Tables 1 and 5.

The paper's trace is not published. The public part of the log of the same cluster and months
(Philly) takes its place. It has two forms: a flat file (``philly``), and a file for each of twelve
virtual clusters (``pcs-...``). The twelve files together have more of the jobs. Joined on one clock
they are the trace ``philly-vcs``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from repro.base.errors import ParamError, refuse_unknown
from repro.base.units import DAY_S
from repro.files import public
from repro.files.tables import ModelTable, measured
from repro.model.metrics import statistics
from repro.model.records import Result
from repro.papers.tiresias.testbed import STATISTICS

if TYPE_CHECKING:
    from repro.figures.figure import FigureRun

#: Name of the trace of the twelve virtual clusters.
VIRTUAL_CLUSTERS_TRACE = "philly-vcs"
#: Number of jobs of the stand-in for this trace. With it, the stand-in demands as many GPUs in
#: total as the jobs of the twelve files.
_STAND_IN_JOBS = 191_000
#: Name of the series of all jobs.
ALL = "all jobs"
_PERCENTS = (1, 5, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 95, 99)


def open_trace(fig: FigureRun, name: str) -> pd.DataFrame:
    """Trace of a figure: a named one, a user's file, or `VIRTUAL_CLUSTERS_TRACE`.

    If a file of a virtual cluster is missing, one stand-in that is like the flat file replaces all
    twelve. Twelve stand-ins, one for each file, would have no bursts of arrivals in common.
    """
    if name != VIRTUAL_CLUSTERS_TRACE:
        return fig.trace(name)
    files = {vc: fig.trace(f"pcs-{vc}") for vc in measured("philly_clocks")["vc"]}
    if any(jobs.attrs["synthetic"] for jobs in files.values()):
        return fig.trace("philly-like", jobs=_STAND_IN_JOBS)
    return on_one_clock(files)


def on_one_clock(files: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Jobs of the files of virtual clusters, submitted on the clock of the earliest file."""
    starts = measured("philly_clocks").set_index("vc")["start_s"]
    columns = ["submit_time", "duration", "num_gpus"]
    frames = []
    for vc, jobs in files.items():
        submit = jobs["submit_time"] + starts[vc]
        frames.append(jobs[columns].assign(submit_time=submit, vc=vc))
    trace = pd.concat(frames).sort_values("submit_time", kind="stable", ignore_index=True)
    trace.insert(0, "job_id", np.arange(len(trace)))
    trace.attrs = {"name": VIRTUAL_CLUSTERS_TRACE, "synthetic": False}
    return trace


def pick_jobs(
    trace: pd.DataFrame, *, min_duration_s: float, days: Sequence[float] | None = None
) -> pd.DataFrame:
    """Jobs of at least ``min_duration_s`` that are submitted on ``days``, [first, last).

    Submission times are shifted so that the first of these jobs is submitted at 0. A user's own
    trace keeps all its jobs.
    """
    is_own = "sha256" in trace.attrs and not public.is_known(str(trace.attrs["name"]))
    kept = trace if is_own else trace[trace["duration"] >= min_duration_s]
    if days is not None and not is_own:
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


def falls(values: Sequence[float], least: float = -math.inf) -> bool:
    """Whether every value is below the one before it, and the last above ``least``."""
    return all(left > right for left, right in pairwise([*values, least]))


def sweep_table(sweep: Mapping[str, Any], results: Mapping[str, Result]) -> pd.DataFrame:
    """JCT statistic (s) of the simulated variants of a parameter; results are by label.

    Column ``is_base`` marks the variant by which a figure divides.
    """
    variants = {variant["label"]: variant for variant in sweep["variants"]}
    rows = []
    for label, result in results.items():
        jobs = result.jobs
        rows.append(
            {
                "panel": sweep["panel"],
                "variant": label,
                "is_base": label == sweep["base"],
                "statistic": sweep["statistic"],
                "jct": _statistic(jobs["jct"], sweep["statistic"]),
                "published": variants[label].get("published", math.nan),
                "promotions": int(jobs["promotions"].sum()),
            }
        )
    return pd.DataFrame(rows)


def _statistic(jct: pd.Series[float], name: str) -> float:
    values = {STATISTICS[key]: value for key, value in statistics(jct).items()}
    values["max"] = float(jct.max())
    refuse_unknown("there is no statistic", [name], values)
    return values[name]


def with_iteration_time(jobs: pd.DataFrame) -> pd.DataFrame:
    """Jobs with the public simulator's iteration time (iteration_s) by model and GPUs, or NaN."""
    columns = ("model", "num_gpus", "iteration_s")
    times = ModelTable("tiresias_iterations.csv", columns).frame
    iteration_s = times.set_index(["model", "num_gpus"])["iteration_s"]
    keys = pd.MultiIndex.from_arrays([jobs["model"].str.lower(), jobs["num_gpus"]])
    return jobs.assign(iteration_s=iteration_s.reindex(keys).to_numpy())


def all_and_large(jobs: pd.DataFrame, column: str, least_gpus: int, label: str) -> pd.DataFrame:
    """Column of all jobs and, as group ``label``, of the jobs of at least ``least_gpus``."""
    columns = ["num_gpus", column]
    large = jobs.loc[jobs["num_gpus"] >= least_gpus, columns]
    frames = [jobs[columns].assign(jobs=ALL), large.assign(jobs=label)]
    return pd.concat(frames, ignore_index=True)


def percentiles(values: pd.Series[float]) -> pd.DataFrame:
    """Fifteen percentiles (interpolated) of the values: percent, value."""
    return pd.DataFrame({"percent": _PERCENTS, "value": np.percentile(values, _PERCENTS)})
