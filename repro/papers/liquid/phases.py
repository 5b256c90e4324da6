"""Jobs in sequence or sharing one GPU: utilisation by second, and idle time saved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.engine.simulate import simulate
from repro.files.tables import ModelTable
from repro.model.policy import make
from repro.model.records import Result, makespan
from repro.papers.liquid import figure_data
from repro.perf.overhead import Phases
from repro.policies.liquid.gpu_sharing import ByUtilisation, slow_down

#: Interval of the agents' reports (s).
HEARTBEAT_S = 5.0
#: Utilisation (%) below which a GPU is idle between jobs.
BUSY_PCT = {"CNN-MNIST": 30.0, "NeuMF": 10.0}
MODELS = tuple(BUSY_PCT)
#: Samples per second of a utilisation curve.
_PER_SECOND = 10


@dataclass(frozen=True)
class JobModel:
    """Phases of the jobs of one panel; utilisation levels in %.

    ``minutes`` is the length of a job (min); all other times are in s. Training has a burst of
    ``burst_s`` at ``level`` in every period. Its last ``tail_s`` are at ``tail_level``.
    ``launch_s``, ``save_s`` and ``handover_s`` are times of `Phases`. ``late_s`` is the fitted
    overestimate of a run time. ``params/liquid_phases.csv`` says where each value comes from.
    """

    figure: str
    model: str
    gpu: str
    minutes: float
    burst_s: float
    period_s: float
    level: float
    tail_s: float
    tail_level: float
    launch_s: float
    save_s: float
    handover_s: float
    late_s: float

    @classmethod
    def of(cls, figure: str) -> "JobModel":
        """Model of the jobs of a panel such as ``11a``."""
        columns = tuple(field.name for field in fields(cls))
        table = ModelTable("liquid_phases.csv", columns).frame
        rows = table[table["figure"] == figure]
        if len(rows) != 1:
            raise ParamError(f"no panel {figure!r} of phases; there are {', '.join(table.figure)}")
        return cls(*rows.iloc[0][list(columns)])

    @property
    def train_s(self) -> float:
        """Training time (s): whole periods and a burst."""
        available = 60 * self.minutes - self.launch_s - self.save_s - self.burst_s
        return float(self.burst_s + self.period_s * round(available / self.period_s))

    @property
    def util(self) -> float:
        """Mean utilisation during training (%)."""
        return self.level * self.burst_s / self.period_s

    def level_at(self, remaining: Floats) -> Floats:
        """Utilisation (%) by remaining work (s of training alone)."""
        in_burst = np.mod(remaining - 1e-9, self.period_s) < self.burst_s
        level = np.where(in_burst, self.level, 0.0)
        return np.where(remaining < self.tail_s, self.tail_level, level)

    def jobs(self, lag_s: float = 2.5, late_s: float = 0.0) -> pd.DataFrame:
        """Trace of two jobs; the report of the first job's end comes ``lag_s`` late.

        Reports come at multiples of `HEARTBEAT_S`. The training of the first job is lengthened, by
        less than a heartbeat, so that the job ends ``lag_s`` before a report. Its estimated run
        time is ``late_s`` too long.
        """
        alone = self.launch_s + self.train_s + self.save_s
        to_heartbeat = (-lag_s - alone) % HEARTBEAT_S
        frame = {
            "job_id": [0, 1],
            "submit_time": 0.0,
            "duration": [self.train_s + to_heartbeat, self.train_s],
            "num_gpus": 1,
            "model": self.model,
            "total_s": [alone + to_heartbeat + late_s, alone],
            "pre_s": self.launch_s,
            "post_s": self.save_s,
        }
        return pd.DataFrame(frame)

    @property
    def phases(self) -> Phases:
        """Times to launch, save and hand over."""
        return Phases({self.model: self.launch_s}, {self.model: self.save_s}, self.handover_s)


@dataclass(frozen=True)
class JobPhases:
    """Instants of a job on one GPU (s): launch, leave, and (start, end, rate) of its training."""

    launch_at: float
    left_at: float
    steps: list[tuple[float, float, float]]

    @property
    def train_at(self) -> float:
        """Start of training."""
        return self.steps[0][0]

    @property
    def last_step_at(self) -> float:
        """End of the last training step."""
        return self.steps[-1][1]


def job_phases(result: Result, phases: Phases) -> list[JobPhases]:
    """Phases of every job of a run on one GPU, in order of start."""
    jobs: list[JobPhases] = []
    intervals = dict(list(result.intervals.sort_values("start").groupby("job_id")))
    records = result.jobs.sort_values(["start_time", "job_id"])
    columns = ["job_id", "model", "start_time", "duration"]
    for name, model, start, duration in records[columns].to_numpy():
        spans = intervals[name]
        begin = start + phases.launch.get(model, 0.0)
        if spans["gpus"].iloc[0] == 0:
            # a pre-launched job waits for the job before it
            host = jobs[-1]
            begin = max(begin, host.left_at, host.last_step_at + phases.handover)
        remaining = duration
        steps = []
        for at, until, rate in spans[["start", "end", "rate"]].to_numpy(float):
            first = max(begin, at)
            last = min(until, first + remaining / rate)
            if last > first:
                steps.append((first, last, rate))
                remaining -= (last - first) * rate
        left_at = steps[-1][1] + phases.save.get(model, 0.0)
        jobs.append(JobPhases(start, left_at, steps))
    return jobs


def utilisation(
    jobs: Sequence[JobPhases], model: JobModel, from_s: float, seconds: int
) -> pd.DataFrame:
    """GPU utilisation of each second after ``from_s``: t_s (1, 2, …) and value (%)."""
    at = from_s + (np.arange(seconds * _PER_SECOND) + 0.5) / _PER_SECOND
    total = np.zeros(len(at))
    for job in jobs:
        remaining = np.zeros(len(at))
        rate = np.zeros(len(at))
        for begin, end, step_rate in job.steps:
            remaining += step_rate * np.clip(end - np.maximum(at, begin), 0.0, None)
            rate += np.where((at >= begin) & (at < end), step_rate, 0.0)
        total += rate * model.level_at(remaining)
    value = np.minimum(total, 100.0).reshape(seconds, _PER_SECOND).mean(axis=1)
    return pd.DataFrame({"t_s": np.arange(1, seconds + 1), "value": value})


class IdleGap(NamedTuple):
    """An idle gap between two jobs: its start and length (s), and the part of it saved.

    ``shift`` is the time by which the next burst comes earlier, % of the gap. ``busy`` is the time
    of the gap that becomes busy, % of the gap.
    """

    from_s: float
    window_s: float
    shift: float
    busy: float


def longest_idle_gap(plain: Floats, optimised: Floats, threshold: float) -> IdleGap:
    """Longest gap between seconds of at least ``threshold`` % utilisation, and its part saved.

    >>> plain = np.array([80, 0, 0, 0, 0, 80])
    >>> longest_idle_gap(plain, np.array([80, 0, 0, 0, 80, 80]), 30.0)
    IdleGap(from_s=1.0, window_s=4.0, shift=25.0, busy=25.0)
    """
    busy_seconds = np.flatnonzero(np.asarray(plain) >= threshold)
    gaps = np.diff(busy_seconds)
    if gaps.max(initial=0) <= 1:
        raise ParamError(f"no idle gap between two bursts of {threshold:g} % or more")
    first = int(busy_seconds[gaps.argmax()]) + 1
    window = int(gaps.max()) - 1
    later = np.flatnonzero(np.asarray(optimised)[first:] >= threshold)
    shift = window - int(later[0]) if len(later) else 0
    busy = int((later < window).sum())
    return IdleGap(float(first), float(window), 100 * shift / window, 100 * busy / window)


def published_gap(model: JobModel, curves: pd.DataFrame, plain: str, optimised: str) -> IdleGap:
    """Longest idle gap of the published curve ``plain``, and its share saved in ``optimised``."""
    by_series = curves.groupby("series")["value"]
    before = by_series.get_group(plain).to_numpy()
    after = by_series.get_group(optimised).to_numpy()
    return longest_idle_gap(before, after, BUSY_PCT[model.model])


def two_in_sequence(
    model: JobModel, settings: Mapping[str, Any], lag_s: float = 2.5, late_s: float = 0.0
) -> list[JobPhases]:
    """Phases of two jobs in sequence under `liquid` with the given settings."""
    trace = model.jobs(lag_s, late_s)
    result = simulate(trace, "1x1", make("liquid", **settings), overhead=model.phases)
    return job_phases(result, model.phases)


def idle_time_saved(
    model: JobModel,
    plain: Mapping[str, Any],
    optimised: Mapping[str, Any],
    lags_s: Sequence[float],
    late_s: Sequence[float] = (0.0,),
) -> pd.DataFrame:
    """Idle time between two jobs and what of it is saved, exact and not by second.

    ``window_s`` is the idle gap, ``sooner_s`` the time by which the second job trains earlier, and
    ``busy_s`` the part of the gap in which it is busy. One row for each delay of a report (s) and
    each overestimate of the first job's run time (s).
    """
    rows = []
    for lag in lags_s:
        first, second = two_in_sequence(model, plain, lag)
        window = second.train_at - first.last_step_at
        for late in late_s:
            sooner = second.train_at - two_in_sequence(model, optimised, lag, late)[1].train_at
            periods, remainder = divmod(sooner, model.period_s)
            busy = periods * model.burst_s + min(remainder, model.burst_s)
            rows.append((lag, late, window, sooner, busy))
    return pd.DataFrame(rows, columns=["lag_s", "late_s", "window_s", "sooner_s", "busy_s"])


def utilisation_curves(
    model: JobModel, runs: Mapping[str, list[JobPhases]], seconds: int, starts: Mapping[str, float]
) -> pd.DataFrame:
    """`utilisation` of each run: series, t_s, value (%).

    ``starts`` has the instant of each run (s) after which its curve begins.
    """
    curves = {name: utilisation(jobs, model, starts[name], seconds) for name, jobs in runs.items()}
    return pd.concat(curves, names=["series"]).reset_index("series").reset_index(drop=True)


def _alone(gpu: str) -> list[JobModel]:
    """Models of CNN-MNIST and NeuMF alone on a GPU type (Figs 13 and 14)."""
    return [JobModel.of(figure) for figure in (("13a", "13b") if gpu == "K80" else ("14a", "14b"))]


def fitted_offset(gpu: str, models: Sequence[str] = MODELS) -> float:
    """Mean offset of `slow_down` in pairs of equal jobs of Fig 15.

    >>> round(fitted_offset("K80"), 3), round(fitted_offset("T4"), 3)
    (0.286, 0.191)
    """
    bars = figure_data.bars("15a" if gpu == "K80" else "15b").set_index(["series", "group"])
    time = bars["published"]
    offsets = []
    for job, group in zip(_alone(gpu), ("CNN-MNIST*8", "NeuMF*4"), strict=True):
        if job.model in models:
            slow = 2 * time["sharing", group] / time["exclusive", group]
            offsets.append(slow - slow_down(2 * job.util, offset=0.0))
    return float(np.mean(offsets))


def sequence_minutes(
    gpu: str, models: Sequence[str], share: float | None, fitted_to: Sequence[str] = MODELS
) -> float:
    """Makespan of a sequence of jobs (min).

    Jobs share the GPU while their utilisations sum to less than ``share`` (1 is 100 %). With None
    they do not share it.
    """
    alone = {job.model: job for job in _alone(gpu)}
    trace = pd.DataFrame(
        {
            "job_id": range(len(models)),
            "submit_time": 0.0,
            "num_gpus": 1,
            "model": list(models),
            "duration": [60.0 * alone[model].minutes for model in models],
            "gpu_util": [alone[model].util for model in models],
            "gpu_mem_mb": 4096.0,
        }
    )
    perf = ByUtilisation(fitted_offset(gpu, fitted_to))
    return makespan(simulate(trace, "1x1", make("liquid", share=share), perf=perf)) / 60


def sequences(
    gpu: str, lists: Mapping[str, Sequence[str]], share: Mapping[str, float | None]
) -> pd.DataFrame:
    """Time of each list of models under each limit of sharing: group, series, minutes.

    The offset of a list of equal jobs is fitted to the other model, that of a mix to both.
    """
    rows = []
    for group, models in lists.items():
        fitted_to = [model for model in MODELS if model not in models] or MODELS
        for series, limit in share.items():
            rows.append((group, series, sequence_minutes(gpu, models, limit, fitted_to)))
    return pd.DataFrame(rows, columns=["group", "series", "minutes"])
