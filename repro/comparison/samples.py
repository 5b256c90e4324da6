"""Samples of a comparison: seeds of a trace, or windows of it, each at every offered load."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from repro.base.counts import is_count
from repro.base.errors import ParamError, TraceError
from repro.base.units import DAY_S, HOUR_S
from repro.files.checks import shown
from repro.trace.dressing import dress
from repro.trace.load import describe

_WINDOWS = re.compile(r"(\d{1,6})x(?:(\d{1,6}(?:\.\d+)?)([dh])|(\d{1,9})j)")
_SECONDS = {"d": DAY_S, "h": HOUR_S}
_FORM = "give COUNTxLENGTH in days, hours or jobs, such as 20x7d, 10x12h or 10x400j"


@dataclass(frozen=True)
class Windows:
    """Number of windows, and their length: in seconds, or a number of successive jobs."""

    number: int
    #: 0: the length is `jobs`
    length_s: float = 0.0
    #: 0: the length is `length_s`
    jobs: int = 0

    @classmethod
    def parse(cls, text: str) -> Windows:
        """Windows from a text such as ``20x7d``, or ``10x400j`` for 400 jobs each.

        >>> Windows.parse("10x12h")
        Windows(number=10, length_s=43200.0, jobs=0)
        """
        match = _WINDOWS.fullmatch(str(text).strip())
        if match is None or not int(match[1]) or not float(match[2] or match[4]):
            raise ParamError(f"windows is {shown(repr(text))}; {_FORM}")
        if match[4]:
            return cls(int(match[1]), jobs=int(match[4]))
        return cls(int(match[1]), float(match[2]) * _SECONDS[match[3]])

    def overlap(self, num_jobs: int, span_s: float) -> bool:
        """Whether windows of a trace of so many jobs and such a span (s) share jobs."""
        if self.jobs:
            return self.number * self.jobs > num_jobs
        return self.number * self.length_s > span_s


def checked_options(options: Mapping[str, Any] | None, separate: Collection[str]) -> dict[str, Any]:
    """Options of a reader or generator; ``separate`` has names that are refused among them."""
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise ParamError(f"options is {shown(options)}; give a mapping of option to value")
    for name in options:
        if name in separate:
            raise ParamError(
                f"options: {name!r} is not an option of a reader or generator; leave it out, or "
                "pass it as an argument of its own"
            )
    return dict(options)


@dataclass(frozen=True)
class Sample:
    """Jobs that all policies run, at one load."""

    #: seed of the trace, or number of the window
    label: int
    #: offered load that was asked for; NaN: as the trace has it
    load: float
    trace: pd.DataFrame
    #: seed of random policies
    seed: int
    #: offered load of the trace; NaN if all jobs arrive at once
    offered_load: float
    #: factor by which the submit times were multiplied
    stretch: float


def cut(
    trace: pd.DataFrame, windows: Windows, *, stretched: bool = False
) -> list[tuple[int, pd.DataFrame]]:
    """Number and jobs of each window with jobs.

    The windows are spread evenly over the submissions (or over the jobs), from the first to the
    last. A window has the jobs submitted inside it, and its clock starts with it. A window of a
    number of jobs starts with its first job. Windows that are ``stretched`` to a load need two
    instants of submission.
    """
    least_instants = 2 if stretched else 1
    windows_of = _by_jobs if windows.jobs else _by_time
    parts = []
    for number, (start_s, jobs) in enumerate(windows_of(trace, windows)):
        if jobs["submit_time"].nunique() >= least_instants:
            parts.append((number, jobs.assign(submit_time=jobs["submit_time"] - start_s)))
    if not parts:
        raise ParamError("windows: none has enough jobs; give longer windows")
    return parts


def _by_jobs(trace: pd.DataFrame, windows: Windows) -> Iterator[tuple[float, pd.DataFrame]]:
    """Yield the start (s) and the jobs of each window of a number of jobs."""
    in_order = trace.sort_values("submit_time", kind="stable")
    last_start = len(trace) - windows.jobs
    if last_start < 0:
        raise ParamError(
            f"windows of {windows.jobs:,} jobs: the trace has {len(trace):,}; give shorter windows"
        )
    for start in np.linspace(0, last_start, windows.number).astype(int).tolist():
        jobs = in_order.iloc[start : start + windows.jobs].reset_index(drop=True)
        yield float(jobs["submit_time"].iloc[0]), jobs


def _by_time(trace: pd.DataFrame, windows: Windows) -> Iterator[tuple[float, pd.DataFrame]]:
    """Yield the start (s) and the jobs of each window of a length of time."""
    submit = trace["submit_time"].to_numpy(float)
    first = float(submit.min())
    last = float(submit.max())
    span_s = last - first
    if windows.length_s > span_s:
        raise ParamError(
            f"windows of {windows.length_s / DAY_S:g} days: the submissions of the trace span "
            f"{span_s / DAY_S:.3g} days; give shorter windows"
        )
    starts = first + np.linspace(0, span_s - windows.length_s, windows.number)
    for number, start_s in enumerate(starts.tolist()):
        # the last of several windows, and one window of the whole span, have the last submission
        is_last = 0 < number == windows.number - 1 or start_s + windows.length_s >= last
        end_s = math.inf if is_last else start_s + windows.length_s
        is_inside = (submit >= start_s) & (submit < end_s)
        yield start_s, trace.loc[is_inside].reset_index(drop=True)


def at_loads(
    label: int, trace: pd.DataFrame, seed: int, num_gpus: int, loads: Sequence[float]
) -> Iterator[Sample]:
    """Yield a sample at each load; without loads, one sample with the trace's own submit times.

    The offered load is that of `repro.trace.load.describe`: GPU-seconds of all jobs over GPUs times
    the span of the submissions. All submit times are multiplied by one factor, so gaps keep their
    proportions.
    """
    offered = describe(trace, num_gpus)["offered_load"]
    offered_load = math.nan if offered is None else float(offered)
    if not loads:
        yield Sample(label, math.nan, trace, seed, offered_load, 1.0)
        return
    if math.isnan(offered_load):
        raise TraceError(
            f"{trace.attrs.get('name', 'trace')}: all jobs arrive at once, so no stretch gives an "
            "offered load; leave loads out, or take longer windows"
        )
    for load in loads:
        if not load > 0:
            raise ParamError(f"load is {load}; give a number above 0")
        stretch = offered_load / load
        at_load = trace.assign(submit_time=trace["submit_time"] * stretch)
        yield Sample(label, load, at_load, seed, load, stretch)


def dressed_windows(
    trace: pd.DataFrame, number: int, jobs: int, num_gpus: int, load: float, models: str
) -> dict[int, pd.DataFrame]:
    """Windows of a trace at an offered load, by the number of the window. Each job has a model.

    Parameters
    ----------
    trace : DataFrame
        Jobs.
    number : int
        Largest number of windows. If so many would share jobs, there are fewer, but at least one.
    jobs : int
        Largest number of jobs of a window.
    num_gpus : int
        GPUs of the cluster.
    load : float
        Offered load of each window, as for `at_loads`.
    models : str
        Tables of the models (`repro.dress`). The seed of a window's models is its number.
    """
    if jobs < 2 or number < 1:
        raise ParamError(f"{number} windows of {jobs} jobs: give at least 1 window and 2 jobs")
    size = min(jobs, len(trace))
    windows = Windows(min(number, len(trace) // size), jobs=size)
    samples = {}
    for window, part in cut(trace, windows, stretched=True):
        dressed = dress(part, models, window, replace=True)
        samples[window] = next(at_loads(window, dressed, window, num_gpus, [load])).trace
    return samples


def checked_seeds(seeds: int | Sequence[int]) -> list[int]:
    """Seeds as a list; a number N means the seeds 0 to N - 1.

    >>> checked_seeds(3), checked_seeds([7, 9])
    ([0, 1, 2], [7, 9])
    """
    given = shown(repr(seeds))
    values = list(range(seeds)) if isinstance(seeds, int) else seeds
    is_list = isinstance(values, Sequence) and not isinstance(values, str)
    if not is_list or not values or isinstance(seeds, bool) or not all(map(is_count, values)):
        raise ParamError(
            f"seeds is {given}; give a number of seeds of 1 or more, or a list of them"
        )
    if len(set(values)) < len(values):
        raise ParamError(f"seeds is {given}; give each seed once")
    return [int(value) for value in values]
