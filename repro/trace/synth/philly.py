"""Philly-like traces: marginals and hourly profile of the real trace, none of its rows."""

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Floats, Ints
from repro.files.tables import measured
from repro.trace.synth import generators
from repro.trace.synth.draws import inverse_cdf, ranked_probabilities, strata
from repro.trace.synth.gpu_time import at_load

HOUR_S = 3600
#: Period (s) of the probe, a short single-GPU job that a service of one virtual cluster submits.
#: One job in eight is a probe, and one gap in twenty is 599 to 601 s.
PROBE_PERIOD_S = 600
#: A run is a stretch of successive jobs of one GPU count. ``philly_*_runs.csv`` gives quantiles of
#: the duration ranks of its jobs at these levels, for single-GPU jobs and for wider jobs.
SINGLE_LEVELS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 1.0)
WIDE_LEVELS = (0.0, 0.35, 0.65, 1.0)
#: Duration ranks are fractions from 0 to 1. The tables have them times this number, rounded.
RANK_UNIT = 100_000
#: Hours with similar numbers of jobs share a table of gaps. These are the upper ends of the ranges
#: (jobs per hour).
RATES = (1, 3, 6, 10, 16, 24, 40, 64, 100, 160, 256, 400, 640, 1_000_000)
#: Longest gap (s) inside a burst. These gaps are kept; longer gaps stretch until an hour is full.
_BURST_GAP_S = 25.0
_PROBES_PER_HOUR = HOUR_S // PROBE_PERIOD_S
#: Share of probes that come a second late, which gives the measured gaps of 599, 600 and 601 s.
_LATE_PROBES = 0.25
#: A probe is usually submitted this long (s) after a full ten minutes.
_PROBE_PHASE_S = 90.0
#: Inside a run, noise orders the durations. It is smoothed over this number of successive jobs, so
#: that about so many have similar durations. Without smoothing, jobs of a node end at
#: scattered times and strict consolidation waits too long.
_SINGLE_SESSION = 32
_WIDE_SESSION = 8


@generators.register("philly-like")
def philly_like(
    rng: np.random.Generator,
    jobs: int | None = None,
    load: float | None = None,
    num_gpus: int | None = None,
    min_duration: float | None = None,
) -> pd.DataFrame:
    """Generate a trace like the Philly trace of 2017: 82,247 jobs over 109 days.

    Arrivals follow the hours of the real trace, with bursts and ten-minute probes. Durations have a
    heavy tail and are stratified, so that total work hardly differs between traces. Fewer ``jobs``
    are a stratified sample of a trace; more are several traces on top of each other. The span stays
    109 days and the total work grows with ``jobs``, unless ``load`` scales the time axis.

    Options: ``load`` is total work / (GPUs x time from first to last submission), reached by
    multiplying all gaps by one factor. Jobs that demand more than ``num_gpus`` GPUs (needed with
    ``load``) are left out. So are jobs shorter than ``min_duration`` (s; the Tiresias paper keeps
    jobs of at least 60 s).

    Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads",
    ATC 2019; measured tables ``traces/philly_*.csv``, written by ``tools.calibrate``.
    """
    if load is not None and num_gpus is None:
        raise ParamError(f"load={load}: give num_gpus too, the GPUs the load refers to")

    def generate() -> pd.DataFrame:
        trace = _full_trace(rng)
        fits = trace["num_gpus"] <= (num_gpus or np.inf)
        kept = fits & (trace["duration"] >= (min_duration or 0))
        if not kept.any():
            raise ParamError(f"min_duration={min_duration}: no Philly job lasts as long")
        return trace[kept]

    layers = [generate()]
    total = len(layers[0]) if jobs is None else jobs
    while sum(map(len, layers)) < total:
        layers.append(generate())
    surplus = sum(map(len, layers)) - total
    if surplus > 0:
        layers[-1] = _sample(rng, layers[-1], len(layers[-1]) - surplus)
    trace = pd.concat(layers).sort_values("submit_time", kind="stable", ignore_index=True)
    trace["submit_time"] -= trace["submit_time"].iloc[0]
    trace.insert(0, "job_id", np.arange(total))
    return trace if load is None or num_gpus is None else at_load(trace, num_gpus, load)


def _sample(rng: np.random.Generator, jobs: pd.DataFrame, size: int) -> pd.DataFrame:
    """Sample ``size`` rows, evenly over GPU counts and over the durations of each."""
    order = np.lexsort((jobs["duration"], jobs["num_gpus"]))
    picked = (np.arange(size) + rng.random()) * (len(jobs) / size)
    return jobs.iloc[np.sort(order[picked.astype(np.int64)])]


def _full_trace(rng: np.random.Generator) -> pd.DataFrame:
    """Generate a job for each job of the real trace, in order of submission."""
    hours = measured("philly_hours")
    jobs_per_hour = hours["jobs"].to_numpy(np.int64)
    gpus = _gpu_counts(rng, jobs_per_hour)
    duration = np.empty(gpus.size)
    for name, levels, session in (
        ("philly_single_runs", SINGLE_LEVELS, _SINGLE_SESSION),
        ("philly_wide_runs", WIDE_LEVELS, _WIDE_SESSION),
    ):
        for gpu_count, runs in measured(name).groupby("num_gpus"):
            ranks = _duration_ranks(rng, runs, levels, session)
            duration[gpus == gpu_count] = _durations(rng, "job", int(str(gpu_count)), ranks)
    probe_times = _probe_times(rng, hours["probes"].to_numpy(np.int64))
    probe_durations = _durations(rng, "probe", 1, rng.permutation(probe_times.size))
    columns = {
        "submit_time": np.concatenate([_arrivals(rng, jobs_per_hour), probe_times]),
        "duration": np.concatenate([duration, probe_durations]),
        "num_gpus": np.concatenate([gpus, np.ones(probe_times.size, np.int64)]),
    }
    return pd.DataFrame(columns).sort_values("submit_time", kind="stable")


def _arrivals(rng: np.random.Generator, jobs_per_hour: Ints) -> Floats:
    """Submit times (whole s, ascending) of all jobs but probes, (jobs,)."""
    busy_hours = np.flatnonzero(jobs_per_hour)
    count = jobs_per_hour[busy_hours]
    first_job = np.cumsum(count) - count
    gap = _gaps(rng, count)
    burst = gap <= _BURST_GAP_S
    in_bursts = np.add.reduceat(gap * burst, first_job)
    between = np.add.reduceat(gap * ~burst, first_job)
    remaining = np.maximum(HOUR_S - in_bursts, 0)
    stretch = np.divide(remaining, between, out=np.zeros(busy_hours.size), where=between > 0)
    squeeze = HOUR_S / np.maximum(in_bursts, HOUR_S)
    gap *= np.where(burst, np.repeat(squeeze, count), np.repeat(stretch, count))
    ends = np.cumsum(gap)
    since_hour = ends - np.repeat(ends[first_job] - gap[first_job], count)
    # Jobs of an hour move earlier by part of the first gap, which began in the previous hour. Jobs
    # that do not fill the hour, such as a single burst, also move later by part of the idle time.
    idle = np.maximum(HOUR_S - np.add.reduceat(gap, first_job), 0)
    shift = rng.random(busy_hours.size) * idle - rng.random(busy_hours.size) * gap[first_job]
    shift[0] = -gap[0]  # the trace starts with a submission
    times = np.repeat(busy_hours * HOUR_S + shift, count) + since_hour
    return np.sort(np.floor(times))


def _gaps(rng: np.random.Generator, count: Ints) -> Floats:
    """Gaps (whole s) by the rate of the hour, before they are fitted into the hour, (jobs,)."""
    rate = np.repeat(np.asarray(RATES)[np.searchsorted(RATES, count)], count)
    gap = np.empty(rate.size)
    for value, quantiles in measured("philly_gaps").groupby("jobs_per_hour"):
        rows = np.flatnonzero(rate == value)
        u = strata(rng, rows.size)
        gap[rows] = np.round(np.interp(u, quantiles["level"], quantiles["gap_s"]))
    return gap


def _gpu_counts(rng: np.random.Generator, jobs_per_hour: Ints) -> Ints:
    """GPU counts in order of submission, (jobs,): wide jobs in the hours of their runs, else 1."""
    before = np.concatenate([[0], np.cumsum(jobs_per_hour)])
    total = int(before[-1])
    wide = measured("philly_wide_runs")
    size = wide["jobs"].to_numpy(np.int64)
    low = np.repeat(before[wide["first_hour"]], size)
    high = np.repeat(before[wide["last_hour"] + 1], size)
    position = low + rng.random(low.size) * (high - low)
    order = np.argsort(position)
    # Positions must differ: a job takes the next free position. Jobs that would then lie beyond the
    # end of the trace take the last positions.
    rank = np.arange(position.size)
    occupied = np.maximum.accumulate(position[order].astype(np.int64) - rank) + rank
    occupied = np.minimum(occupied, total - position.size + rank)
    gpus = np.ones(total, np.int64)
    gpus[occupied] = np.repeat(wide["num_gpus"].to_numpy(np.int64), size)[order]
    return gpus


def _duration_ranks(
    rng: np.random.Generator, runs: pd.DataFrame, levels: tuple[float, ...], session: int
) -> Ints:
    """Rank by duration of each job of one GPU count, in order of submission, (jobs,).

    The ranks of a run follow its measured quantiles. Smoothed noise orders them inside the run.
    """
    size = runs["jobs"].to_numpy(np.int64)
    run = np.repeat(np.arange(size.size), size)
    within = np.arange(run.size) - np.repeat(np.cumsum(size) - size, size)
    level = np.where(size[run] > 1, within / np.maximum(size[run] - 1, 1), 0.5)
    table_levels = np.asarray(levels)
    above = np.searchsorted(table_levels, level, side="right").clip(1, table_levels.size - 1)
    low = table_levels[above - 1]
    weight = (level - low) / (table_levels[above] - low)
    # duration ranks as fractions from 0 to 1
    quantiles = runs[rank_columns(levels)].to_numpy(float) / RANK_UNIT
    ascending = quantiles[run, above - 1] * (1 - weight) + quantiles[run, above] * weight
    # sums of ``session`` successive random numbers: neighbours have similar ranks
    noise = np.cumsum(rng.standard_normal(run.size + session))
    fraction = np.empty(run.size)
    fraction[np.lexsort((noise[session:] - noise[:-session], run))] = ascending
    rank = np.empty(run.size, np.int64)
    rank[np.argsort(fraction, kind="stable")] = np.arange(run.size)
    return rank


def _durations(rng: np.random.Generator, stream: str, gpus: int, ranks: Ints) -> Floats:
    """Durations (whole s) with these ranks, stratified over the measured quantiles, (jobs,)."""
    table = measured("philly_durations")
    quantiles = table[(table["stream"] == stream) & (table["num_gpus"] == gpus)]
    levels = quantiles["level"].to_numpy(float)
    values = quantiles["duration_s"].to_numpy(float)
    return np.maximum(np.round(inverse_cdf(ranked_probabilities(rng, ranks), levels, values)), 1.0)


def _probe_times(rng: np.random.Generator, probes: Ints) -> Floats:
    """Submit times (s) of the probes, ``probes`` of them in each hour, some a second late."""
    random_order = np.argsort(rng.random((probes.size, _PROBES_PER_HOUR)), axis=1)
    hour, slot = np.nonzero(random_order < probes[:, None])
    late = rng.random(hour.size) < _LATE_PROBES
    return np.asarray(hour * HOUR_S + slot * float(PROBE_PERIOD_S) + _PROBE_PHASE_S + late)


def rank_columns(levels: tuple[float, ...]) -> list[str]:
    """Names of the columns with ranks at these levels."""
    return [f"r{round(100 * level)}" for level in levels]
