"""Gavel's workloads, generated from the random streams of its simulator."""

import math
from collections.abc import Callable
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
#: Samples job type, GPUs and duration (s) of the next job.
Sampler = Callable[[Random, tuple[JobType, ...], bool, float | None], tuple[JobType, int, float]]
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
    sampler: str = "2020",
    throughputs: Source = PUBLIC,
) -> pd.DataFrame:
    """Generate Gavel's continuous-single trace: one-GPU jobs with Poisson arrivals.

    The same seed gives the same jobs as the public simulator, and job k is the same for any number
    of ``jobs``. Another rate stretches the arrivals and does not change the jobs. Training steps
    depend on the throughput table; durations do not.

    Options: ``rate`` is in jobs per hour. ``priorities`` gives one job in five the weight 5 instead
    of 1. ``slos`` gives each job a deadline of 1.2, 2 or 10 times its duration. ``fixed_duration``
    (s) is the duration of all jobs. ``throughputs`` is a source of
    :func:`repro.perf.throughput_files.load_throughputs`.

    ``job_table`` is the order of the job types to sample from. ``public`` is the order of the
    public simulator. ``published`` is the order of the runs behind its stored results, where A3C
    comes before LM. It changes the types of single-GPU jobs. With gangs it changes durations too:
    a gang rejects types that run on one GPU only, and samples another type.

    ``sampler`` is the year of the simulator. ``2020`` samples gang size, duration, then job type,
    as the public simulator. ``2019`` samples the job type first, then the duration, whose
    logarithm is uniform between 100 and 10,000 minutes; so did the simulator in September 2019,
    with ``job_table`` published and ``throughputs`` gavel-throughputs-2019.

    Gavel, OSDI 2020, section 7.1; artifact ``scheduler.py``.
    """
    times = _arrivals(seed, jobs, rate)
    if sampler not in _SAMPLERS:
        raise ParamError(f"sampler={sampler!r}: give 2020 or 2019, as text")
    settings = (priorities, slos, fixed_duration, job_table, sampler)
    sampled = _sampled_jobs(seed, False, times, *settings)
    return _as_trace(sampled, throughputs)


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
    """Generate Gavel's continuous-multiple trace: as ``gavel-single``, on 1, 2, 4 or 8 GPUs."""
    times = _arrivals(seed, jobs, rate)
    sampled = _sampled_jobs(seed, True, times, priorities, slos, fixed_duration, job_table)
    return _as_trace(sampled, throughputs)


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
    """Generate Gavel's static-multiple trace: jobs of ``gavel-multiple``, all submitted at 0."""
    times = _arrivals(seed, jobs, None)
    sampled = _sampled_jobs(seed, True, times, priorities, slos, fixed_duration, job_table)
    return _as_trace(sampled, throughputs)


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
    """Generate a trace as Gavel's script for its physical cluster does.

    Submit times are whole seconds, and numbers of steps are whole.

    Options: ``rate`` is in jobs per hour, None if all are submitted at 0. ``at_start`` jobs are
    submitted at 0 before others arrive. With ``multiple``, distributed job types take 1, 2 or 4
    GPUs (70, 10 and 20 %). ``durations`` is the number of different durations on V100s, evenly
    spaced from ``min_hours`` to ``max_hours``. ``large_batches`` keeps only the two largest batch
    sizes of the distributed models.

    Gavel, OSDI 2020, Table 3; artifact ``scripts/utils/generate_trace.py``.
    """
    if min_hours > max_hours:
        raise ParamError(f"max_hours={max_hours!r}: give {min_hours:g} (min_hours) or more")
    candidates = job_types()
    if large_batches:
        candidates = tuple(job_type for job_type in candidates if job_type.distributed)
        models = [job_type.model for job_type in candidates]
        # batch sizes ascend within a model
        candidates = tuple(
            job_type
            for number, job_type in enumerate(candidates)
            if models[number:].count(job_type.model) <= 2
        )
    lengths = np.linspace(min_hours, max_hours, durations).tolist()
    # job types have the seed itself; arrivals, durations and gangs have the next three seeds
    type_stream, gap_stream, duration_stream, gang_stream = (
        Random(seed + offset) for offset in range(4)
    )
    now = 0.0
    sampled = []
    for number in range(jobs):
        job_type = type_stream.choice(candidates)
        gpus = 1
        if multiple and job_type.distributed:
            gpus = _gang_size(gang_stream.random(), wide=False)
        duration = 3600.0 * duration_stream.choice(lengths)
        sampled.append(GeneratedJob(float(int(now)), job_type.name, gpus, duration))
        if rate is not None and number + 1 >= at_start:
            now += _gap(gap_stream, rate)
    return _as_trace(sampled, throughputs, whole_steps=True)


class GeneratedJob(NamedTuple):
    """A generated job; times in seconds, ``model`` is the name of its job type."""

    submit_time: float
    model: str
    num_gpus: int
    duration: float
    priority_weight: float = 1.0
    slo: float = math.nan


def _arrivals(seed: int, jobs: int, rate: float | None) -> list[float]:
    """Arrival times (s) at ``rate`` jobs per hour (None: all at 0), (jobs,)."""
    if rate is None:
        return [0.0] * jobs
    stream = Random(seed + 3)
    return list(accumulate((_gap(stream, rate) for _ in range(jobs - 1)), initial=0.0))


def _sampled_jobs(
    seed: int,
    multiple: bool,
    times: list[float],
    priorities: bool,
    slos: bool,
    fixed_duration: float | None,
    job_table: str,
    sampler: str = "2020",
) -> list[GeneratedJob]:
    """Jobs that arrive at the given times (s), sampled as the simulator of a year does."""
    sample = _SAMPLERS[sampler]
    candidates = _candidates(job_table)
    # jobs, arrivals and deadlines have separate streams
    stream = Random(seed + 2)
    deadlines = Random(seed + 6)
    sampled = []
    for time in times:
        job_type, gpus, duration = sample(stream, candidates, multiple, fixed_duration)
        weight = 5.0 if priorities and stream.random() <= 0.2 else 1.0
        slo = _slo(deadlines.random()) if slos else math.nan
        sampled.append(GeneratedJob(time, job_type.name, gpus, duration, weight, slo))
    return sampled


def _sample_of_2020(
    stream: Random, candidates: tuple[JobType, ...], multiple: bool, fixed_duration: float | None
) -> tuple[JobType, int, float]:
    """Job type, GPUs and duration (s) in the order of the public simulator: gang size first."""
    # One-GPU traces sample the gang size too, as the simulator does.
    gpus = _gang_size(stream.random(), wide=True)
    if fixed_duration is None:
        low, high = (3.0, 4.0) if stream.random() >= 0.8 else (1.5, 3.0)
        duration = 60.0 * 10 ** stream.uniform(low, high)
    else:
        duration = float(fixed_duration)
    gpus = gpus if multiple else 1
    job_type = stream.choice(candidates)
    while gpus > 1 and not job_type.distributed:
        job_type = stream.choice(candidates)
    return job_type, gpus, duration


def _sample_of_2019(
    stream: Random, candidates: tuple[JobType, ...], multiple: bool, fixed_duration: float | None
) -> tuple[JobType, int, float]:
    """Job type and duration (s) of a one-GPU job as in September 2019: no gang size, type first."""
    job_type = stream.choice(candidates)
    if fixed_duration is None:
        return job_type, 1, 60.0 * 10 ** stream.uniform(2.0, 4.0)
    return job_type, 1, float(fixed_duration)


#: By year of the simulator.
_SAMPLERS: dict[str, Sampler] = {"2020": _sample_of_2020, "2019": _sample_of_2019}


def _candidates(job_table: str) -> tuple[JobType, ...]:
    """Job types in the order of a job table, from which jobs are sampled."""
    return job_types() if job_table == "public" else _published_order(job_table)


def _published_order(job_table: str) -> tuple[JobType, ...]:
    """Job types in the order of the runs behind the stored results: A3C before LM.

    Of all orders of the models, only this order fits two stored results. The stored curves at
    light load give the mean durations of jobs 4000 to 4999 for three seeds. The stored makespans
    give the longest durations among the first 100 to 300 jobs.
    """
    if job_table != "published":
        raise ParamError(f"job_table={job_table!r}: give public or published")
    moved = [job_type for job_type in job_types() if job_type.model == "A3C"]
    others = [job_type for job_type in job_types() if job_type.model != "A3C"]
    index = [job_type.model for job_type in others].index("LM")
    return (*others[:index], *moved, *others[index:])


def _gang_size(u: float, *, wide: bool) -> int:
    """1, 2, 4 or (if ``wide``) 8 GPUs for a uniform number from [0, 1)."""
    if u < 0.7:
        return 1
    if u <= 0.8:
        return 2
    return 8 if wide and u > 0.95 else 4


def _slo(u: float) -> float:
    """Deadline as a multiple of the duration, for a uniform number from [0, 1)."""
    if u < 0.33:
        return 1.2
    return 2.0 if u < 0.67 else 10.0


def _gap(stream: Random, rate: float) -> float:
    """Seconds to the next of ``rate`` arrivals per hour."""
    # the artifact divides twice, which rounds differently
    return -math.log(1.0 - stream.random()) / (1.0 / (3600.0 / rate))


def _as_trace(
    jobs: list[GeneratedJob], throughputs: Source, *, whole_steps: bool = False
) -> pd.DataFrame:
    """Jobs as a trace; with ``whole_steps``, durations are the time of whole training steps."""
    table = load_throughputs(throughputs, REFERENCE)
    frame = pd.DataFrame(jobs).astype({"model": "str"})
    speeds = [table.steps_per_s(job.model, job.num_gpus, REFERENCE) for job in jobs]
    steps = frame["duration"] * speeds
    if whole_steps:
        steps = steps.astype(int).clip(lower=1).astype(float)
        frame["duration"] = steps / speeds
    frame = frame.assign(job_id=range(len(jobs)), iterations=steps)[_COLUMNS]
    frame.attrs |= provenance(throughputs, REFERENCE)
    return frame
