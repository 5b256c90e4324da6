"""Philly-like traces: the real one's marginals and ups and downs, none of its rows."""

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Floats, Ints
from repro.files.tables import measured
from repro.trace.synth import generators
from repro.trace.synth.draws import inverse_cdf, spread, strata
from repro.trace.synth.gpu_time import at_load

HOUR_S = 3600
#: A service of one virtual cluster submits a short single-GPU job every ten minutes: one job in
#: eight of the trace, and the reason why one gap in twenty is 599 to 601 s.
PROBE_PERIOD_S = 600
#: Levels of the ranks of a run: single-GPU jobs, wider ones.
SINGLE_LEVELS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 1.0)
WIDE_LEVELS = (0.0, 0.35, 0.65, 1.0)
RANK_UNIT = 100_000
#: Upper ends of the classes of jobs per hour whose gaps are summarised together.
RATES = (1, 3, 6, 10, 16, 24, 40, 64, 100, 160, 256, 400, 640, 1_000_000)
#: Gaps up to here (s) lie inside a burst and are kept; longer ones stretch so that an hour is full.
_BURST_GAP_S = 25.0
_PROBES_PER_HOUR = HOUR_S // PROBE_PERIOD_S
#: Share of probes that come a second late; gaps of 599, 600 and 601 s come out as measured.
_LATE_PROBES = 0.25
#: Seconds after the full ten minutes at which the probe usually comes.
_PROBE_PHASE_S = 90.0
#: Successive jobs of one GPU count that tend to last alike (single, wider): how far the noise
#: that orders durations inside a run is smoothed. Without it jobs of a node end at scattered times
#: and strict consolidation waits longer than it should.
_SESSION = {SINGLE_LEVELS: 32, WIDE_LEVELS: 8}


@generators.register("philly-like")
def philly_like(
    rng: np.random.Generator,
    jobs: int | None = None,
    load: float | None = None,
    num_gpus: int | None = None,
    min_duration: float | None = None,
) -> pd.DataFrame:
    """Draw a trace like the Philly trace of 2017: 82,247 jobs over 109 days.

    The profile of the whole trace is drawn (arrivals hour by hour with bursts and ten-minute
    probes, GPU counts, and durations whose heavy tail is stratified, so that total work hardly
    differs between draws). Fewer jobs are a stratified sample of it, more are several draws on top
    of each other: the span stays 109 days and the demand grows with ``jobs``, unless ``load``
    scales the time axis.

    Options: ``load`` is total work / (GPUs x time from first to last submission), met by scaling
    all gaps alike; jobs wider than ``num_gpus`` (needed with ``load``) are left out, and those
    shorter than ``min_duration`` (s; the Tiresias paper keeps jobs of at least 60 s).

    Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads",
    ATC 2019; measured tables ``traces/philly_*.csv``, written by ``tools.calibrate``.
    """
    if load is not None and num_gpus is None:
        raise ParamError(f"load={load}: give num_gpus too, the GPUs the load refers to")

    def draw() -> pd.DataFrame:
        whole = _profile(rng)
        kept = (whole["num_gpus"] <= (num_gpus or np.inf)) & (
            whole["duration"] >= (min_duration or 0)
        )
        if not kept.any():
            raise ParamError(f"min_duration={min_duration}: no Philly job lasts as long")
        return whole[kept]

    parts = [draw()]
    wanted = len(parts[0]) if jobs is None else jobs
    while (missing := wanted - sum(map(len, parts))) > 0:
        parts.append(draw())
    if missing < 0:
        parts[-1] = _sample(rng, parts[-1], len(parts[-1]) + missing)
    drawn = pd.concat(parts).sort_values("submit_time", kind="stable", ignore_index=True)
    drawn["submit_time"] -= drawn["submit_time"].iloc[0]
    drawn.insert(0, "job_id", np.arange(wanted))
    return drawn if load is None or num_gpus is None else at_load(drawn, num_gpus, load)


def _sample(rng: np.random.Generator, drawn: pd.DataFrame, size: int) -> pd.DataFrame:
    """Return ``size`` rows spread evenly over GPU counts and, inside each, over durations."""
    order = np.lexsort((drawn["duration"], drawn["num_gpus"]))
    picked = (np.arange(size) + rng.random()) * (len(drawn) / size)
    return drawn.iloc[np.sort(order[picked.astype(np.int64)])]


def _profile(rng: np.random.Generator) -> pd.DataFrame:
    """Draw every job of the profile, in order of submission from the real trace's first one on."""
    hours = measured("philly_hours")
    jobs = hours["jobs"].to_numpy(np.int64)
    gpus = _widths(rng, jobs)
    duration = np.empty(gpus.size)
    for name, levels in zip(("philly_single_runs", "philly_wide_runs"), _SESSION, strict=True):
        for width, runs in measured(name).groupby("num_gpus"):
            order = _order(rng, runs, levels)
            duration[gpus == width] = _durations(rng, "job", int(str(width)), order)
    beats = _probe_times(rng, hours["probes"].to_numpy(np.int64))
    probe = _durations(rng, "probe", 1, rng.permutation(beats.size))
    columns = {
        "submit_time": np.concatenate([_arrivals(rng, jobs), beats]),
        "duration": np.concatenate([duration, probe]),
        "num_gpus": np.concatenate([gpus, np.ones(beats.size, np.int64)]),
    }
    return pd.DataFrame(columns).sort_values("submit_time", kind="stable")


def _arrivals(rng: np.random.Generator, jobs: Ints) -> Floats:
    """Return submission times (whole s, ascending) of so many jobs in each hour, probes apart."""
    busy = np.flatnonzero(jobs)
    count = jobs[busy]
    start = np.cumsum(count) - count
    gap = _gaps(rng, count)
    burst = gap <= _BURST_GAP_S
    in_bursts = np.add.reduceat(gap * burst, start)
    between = np.add.reduceat(gap * ~burst, start)
    room = np.maximum(HOUR_S - in_bursts, 0)
    stretch = np.divide(room, between, out=np.zeros(busy.size), where=between > 0)
    squeeze = np.minimum(1, HOUR_S / np.maximum(in_bursts, HOUR_S))
    gap *= np.where(burst, np.repeat(squeeze, count), np.repeat(stretch, count))
    ends = np.cumsum(gap)
    since_hour = ends - np.repeat(ends[start] - gap[start], count)
    # the first gap began in the hour before; an hour of one burst may lie anywhere in the hour
    idle = np.maximum(HOUR_S - np.add.reduceat(gap, start), 0)
    shift = rng.random(busy.size) * idle - rng.random(busy.size) * gap[start]
    shift[0] = -gap[0]  # the profile starts with a submission
    times = np.repeat(busy * HOUR_S + shift, count) + since_hour
    return np.sort(np.floor(times))


def _gaps(rng: np.random.Generator, count: Ints) -> Floats:
    """Return gaps (whole s) before fitting them into their hours, by the rate of the hour."""
    rate = np.repeat(np.asarray(RATES)[np.searchsorted(RATES, count)], count)
    gap = np.empty(rate.size)
    for value, quantiles in measured("philly_gaps").groupby("jobs_per_hour"):
        rows = np.flatnonzero(rate == value)
        u = strata(rng, rows.size)
        gap[rows] = np.round(np.interp(u, quantiles["level"], quantiles["gap_s"]))
    return gap


def _widths(rng: np.random.Generator, jobs: Ints) -> Ints:
    """Return GPU counts in order of submission: wide runs in their hours, single GPUs between."""
    before = np.concatenate([[0], np.cumsum(jobs)])
    total = int(before[-1])
    wide = measured("philly_wide_runs")
    size = wide["jobs"].to_numpy(np.int64)
    low = np.repeat(before[wide["first_hour"]], size)
    high = np.repeat(before[wide["last_hour"] + 1], size)
    place = low + rng.random(low.size) * (high - low)
    order = np.argsort(place)
    # one place each: move on to the next free one, and back from the end
    rank = np.arange(place.size)
    taken = np.maximum.accumulate(place[order].astype(np.int64) - rank) + rank
    taken = np.minimum(taken, total - place.size + rank)
    gpus = np.ones(total, np.int64)
    gpus[taken] = np.repeat(wide["num_gpus"].to_numpy(np.int64), size)[order]
    return gpus


def _order(rng: np.random.Generator, runs: pd.DataFrame, levels: tuple[float, ...]) -> Ints:
    """Return the duration order of the jobs of one GPU count, in order of submission."""
    size = runs["jobs"].to_numpy(np.int64)
    run = np.repeat(np.arange(size.size), size)
    within = np.arange(run.size) - np.repeat(np.cumsum(size) - size, size)
    level = np.where(size[run] > 1, within / np.maximum(size[run] - 1, 1), 0.5)
    steps = np.asarray(levels)
    above = np.searchsorted(steps, level, side="right").clip(1, steps.size - 1)
    part = (level - steps[above - 1]) / (steps[above] - steps[above - 1])
    ranks = runs[rank_columns(levels)].to_numpy(float) / RANK_UNIT
    ascending = ranks[run, above - 1] * (1 - part) + ranks[run, above] * part
    session = _SESSION[levels]
    noise = np.cumsum(rng.standard_normal(run.size + session))
    rank = np.empty(run.size)
    rank[np.lexsort((noise[session:] - noise[:-session], run))] = ascending
    order = np.empty(run.size, np.int64)
    order[np.argsort(rank, kind="stable")] = np.arange(run.size)
    return order


def _durations(rng: np.random.Generator, stream: str, gpus: int, order: Ints) -> Floats:
    """Return whole seconds, stratified: one duration near each of the quantiles measured."""
    every = measured("philly_durations")
    held = every[(every["stream"] == stream) & (every["num_gpus"] == gpus)]
    levels = held["level"].to_numpy(float)
    values = held["duration_s"].to_numpy(float)
    return np.maximum(np.round(inverse_cdf(spread(rng, order), levels, values)), 1.0)


def _probe_times(rng: np.random.Generator, probes: Ints) -> Floats:
    """Return the beats that were served: so many in each hour, some a second late."""
    slots = np.argsort(rng.random((probes.size, _PROBES_PER_HOUR)), axis=1)
    hour, slot = np.nonzero(slots < probes[:, None])
    late = rng.random(hour.size) < _LATE_PROBES
    return np.asarray(hour * HOUR_S + slot * float(PROBE_PERIOD_S) + _PROBE_PHASE_S + late)


def rank_columns(levels: tuple[float, ...]) -> list[str]:
    """Return the names of the columns with ranks at these levels."""
    return [f"r{round(100 * level)}" for level in levels]
