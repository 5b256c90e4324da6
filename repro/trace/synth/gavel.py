"""Gavel's workloads, drawn from the same random streams as its simulator draws them."""

import math
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.perf.synthetic_throughputs import REFERENCE, JobType, job_types
from repro.perf.throughput_files import PUBLIC, load_throughputs, provenance
from repro.trace.synth import generators

Source = str | Path
_COLUMNS = [
    "job_id",
    "submit_time",
    "duration",
    "num_gpus",
    "model",
    "iterations",
    "priority_weight",
    "slo",
]


@generators.register("gavel-single")
def gavel_single(
    seed: int,
    jobs: int = 5000,
    rate: float = 4.0,
    priorities: bool = False,
    slos: bool = False,
    fixed_duration: float | None = None,
    job_table: str = "public",
    throughputs: Source = PUBLIC,
) -> pd.DataFrame:
    """Draw Gavel's continuous-single trace: one-GPU jobs that arrive at random.

    The same seed gives the same jobs as the public simulator, and job k is the same whatever
    ``jobs`` is; another rate stretches the arrivals and leaves the jobs. Durations do not depend on
    the throughput table; training steps do.

    Options: ``rate`` in jobs per hour; ``priorities`` gives one job in five the weight 5 instead of
    1; ``slos`` gives each a deadline of 1.2, 2 or 10 times its duration; ``fixed_duration`` (s)
    holds for all jobs. ``job_table`` is the order of the job types that jobs are drawn from:
    ``public``, that of the public simulator, or ``published``, that of the runs behind its stored
    results, where A3C comes before LM (single-GPU jobs have other types then; with gangs durations
    differ too, as types without gangs are drawn again). ``throughputs`` is a source of
    :func:`repro.perf.throughput_files.load_throughputs`.

    Gavel, OSDI 2020, section 7.1; artifact ``scheduler.py``.
    """
    times = _arrivals(seed, jobs, rate)
    drawn = _drawn(seed, False, times, priorities, slos, fixed_duration, job_table)
    return _as_trace(drawn, throughputs)


@generators.register("gavel-multiple")
def gavel_multiple(
    seed: int,
    jobs: int = 5000,
    rate: float = 2.0,
    priorities: bool = False,
    slos: bool = False,
    fixed_duration: float | None = None,
    job_table: str = "public",
    throughputs: Source = PUBLIC,
) -> pd.DataFrame:
    """Draw Gavel's continuous-multiple trace: ``gavel-single``'s durations on 1, 2, 4 or 8 GPUs."""
    times = _arrivals(seed, jobs, rate)
    drawn = _drawn(seed, True, times, priorities, slos, fixed_duration, job_table)
    return _as_trace(drawn, throughputs)


@generators.register("gavel-static")
def gavel_static(
    seed: int,
    jobs: int = 100,
    priorities: bool = False,
    slos: bool = False,
    fixed_duration: float | None = None,
    job_table: str = "public",
    throughputs: Source = PUBLIC,
) -> pd.DataFrame:
    """Draw Gavel's static-multiple trace: the jobs of ``gavel-multiple``, all submitted at 0."""
    times = _arrivals(seed, jobs, None)
    drawn = _drawn(seed, True, times, priorities, slos, fixed_duration, job_table)
    return _as_trace(drawn, throughputs)


@generators.register("gavel-physical")
def gavel_physical(
    seed: int,
    jobs: int = 96,
    rate: float | None = 4.6,
    at_start: int = 1,
    multiple: bool = True,
    min_hours: float = 1.0,
    max_hours: float = 4.0,
    durations: int = 4,
    large_batches: bool = False,
    throughputs: Source = PUBLIC,
) -> pd.DataFrame:
    """Draw a trace as Gavel's generator for its physical cluster does.

    Options: ``rate`` in jobs per hour, None if all are submitted at 0; ``at_start`` jobs are
    submitted at 0 before others arrive; with ``multiple``, distributed job types take 1, 2 or 4
    GPUs (70, 10 and 20 %); ``durations`` different lengths on V100s, evenly spaced from
    ``min_hours`` to ``max_hours``; with ``large_batches``, only the two largest batch sizes of the
    distributed models. Submissions are whole seconds, steps whole.

    Gavel, OSDI 2020, Table 3; artifact ``scripts/utils/generate_trace.py``.
    """
    if min_hours > max_hours:
        raise ParamError(f"max_hours={max_hours!r}: give {min_hours:g} (min_hours) or more")
    kinds = job_types()
    if large_batches:
        kinds = tuple(kind for kind in kinds if kind.distributed)
        held = [kind.model for kind in kinds]
        kinds = tuple(k for n, k in enumerate(kinds) if held[n:].count(k.model) <= 2)
    lengths = np.linspace(min_hours, max_hours, durations).tolist()
    # the seed is that of the job types; arrivals, durations and gangs have the next three
    types, gaps, hours, gangs = (Random(seed + offset) for offset in range(4))
    now = 0.0
    drawn = []
    for number in range(jobs):
        kind = types.choice(kinds)
        gpus = _gang_size(gangs.random(), wide=False) if multiple and kind.distributed else 1
        drawn.append(Job(float(int(now)), kind.name, gpus, 3600.0 * hours.choice(lengths)))
        if rate is not None and number + 1 >= at_start:
            now += _gap(gaps, rate)
    return _as_trace(drawn, throughputs, whole=True)


class Job(NamedTuple):
    """A drawn job; times in seconds, ``model`` the name of its job type."""

    submit_time: float
    model: str
    num_gpus: int
    duration: float
    priority_weight: float = 1.0
    slo: float = math.nan


def _arrivals(seed: int, jobs: int, rate: float | None) -> list[float]:
    """Return when so many jobs arrive at so many per hour (None: all at once)."""
    if rate is None:
        return [0.0] * jobs
    stream = Random(seed + 3)
    return list(accumulate((_gap(stream, rate) for _ in range(jobs - 1)), initial=0.0))


def _drawn(
    seed: int,
    multiple: bool,
    times: list[float],
    priorities: bool,
    slos: bool,
    fixed_duration: float | None,
    job_table: str,
) -> list[Job]:
    """Return the jobs that arrive at some times."""
    kinds = job_types() if job_table == "public" else _published_order(job_table)
    # jobs, arrivals and deadlines are drawn apart
    stream = Random(seed + 2)
    deadlines = Random(seed + 6)
    drawn = []
    for time in times:
        gpus = _gang_size(stream.random(), wide=True)
        if fixed_duration is None:
            low, high = (3.0, 4.0) if stream.random() >= 0.8 else (1.5, 3.0)
            duration = 60.0 * 10 ** stream.uniform(low, high)
        else:
            duration = float(fixed_duration)
        gpus = gpus if multiple else 1
        kind = stream.choice(kinds)
        while gpus > 1 and not kind.distributed:
            kind = stream.choice(kinds)
        weight = 5.0 if priorities and stream.random() <= 0.2 else 1.0
        slo = _slo(deadlines.random()) if slos else math.nan
        drawn.append(Job(time, kind.name, gpus, duration, weight, slo))
    return drawn


def _published_order(job_table: str) -> tuple[JobType, ...]:
    """Return the job types with A3C before LM, the first to differ in the stored results.

    Of all orders of the models, only this one gives the mean durations of jobs 4000 to 4999 of
    three seeds that the stored curves have at light load, and the longest durations among the first
    100 to 300 jobs that the stored makespans have.
    """
    if job_table != "published":
        raise ParamError(f"job_table={job_table!r}: give public or published")
    every = job_types()
    moved = [kind for kind in every if kind.model == "A3C"]
    others = [kind for kind in every if kind.model != "A3C"]
    place = [kind.model for kind in others].index("LM")
    return (*others[:place], *moved, *others[place:])


def _gang_size(drawn: float, *, wide: bool) -> int:
    """Return 1, 2, 4 or (if ``wide``) 8 GPUs for a number drawn from [0, 1)."""
    if drawn < 0.7:
        return 1
    if drawn <= 0.8:
        return 2
    return 8 if wide and drawn > 0.95 else 4


def _slo(drawn: float) -> float:
    """Return a deadline, in durations, for a number drawn from [0, 1)."""
    if drawn < 0.33:
        return 1.2
    return 2.0 if drawn < 0.67 else 10.0


def _gap(stream: Random, rate: float) -> float:
    """Return the seconds to the next of ``rate`` arrivals per hour."""
    # divided twice, as the artifact does
    return -math.log(1.0 - stream.random()) / (1.0 / (3600.0 / rate))


def _as_trace(drawn: list[Job], throughputs: Source, *, whole: bool = False) -> pd.DataFrame:
    """Return the jobs as a trace; with whole steps, durations are what these take."""
    table = load_throughputs(throughputs, REFERENCE)
    frame = pd.DataFrame(drawn).astype({"model": "str"})
    speeds = [table.steps_per_s(job.model, job.num_gpus, REFERENCE) for job in drawn]
    steps = frame["duration"] * speeds
    if whole:
        steps = steps.astype(int).clip(lower=1).astype(float)
        frame["duration"] = steps / speeds
    frame = frame.assign(job_id=range(len(drawn)), iterations=steps)[_COLUMNS]
    frame.attrs |= provenance(throughputs, REFERENCE)
    return frame
