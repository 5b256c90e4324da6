"""One draw of the whole Philly profile: when jobs come, how wide they are, how long they last."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro.files.quantiles import inverse_cdf, table
from repro.trace.philly_profile import (
    HOUR_S,
    PROBE_PERIOD_S,
    RANK_UNIT,
    RATES,
    SINGLE_LEVELS,
    WIDE_LEVELS,
    rank_columns,
)

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]

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


@dataclass(frozen=True)
class Draw:
    """Jobs as parallel arrays: seconds, seconds, GPUs."""

    submit_time: _Floats
    duration: _Floats
    num_gpus: _Ints

    @property
    def size(self) -> int:
        """Number of jobs."""
        return self.submit_time.size

    def take(self, rows: _Ints) -> Draw:
        """Return some of the jobs."""
        return Draw(self.submit_time[rows], self.duration[rows], self.num_gpus[rows])


def draw_profile(rng: np.random.Generator) -> Draw:
    """Draw every job of the profile."""
    hours = table("philly_hours")
    jobs = hours["jobs"].to_numpy(np.int64)
    gpus = _widths(rng, jobs)
    duration = np.empty(gpus.size)
    for name, levels in (("philly_single_runs", SINGLE_LEVELS), ("philly_wide_runs", WIDE_LEVELS)):
        for width, runs in table(name).groupby("num_gpus"):
            order = _order(rng, runs, levels)
            duration[gpus == width] = _durations(rng, "job", int(str(width)), order)
    beats = _probe_times(rng, hours["probes"].to_numpy(np.int64))
    probe = _durations(rng, "probe", 1, rng.permutation(beats.size))
    submit = np.concatenate([_arrivals(rng, jobs), beats])
    width_of = np.concatenate([gpus, np.ones(beats.size, np.int64)])
    whole = Draw(submit, np.concatenate([duration, probe]), width_of)
    return whole.take(np.argsort(submit, kind="stable"))


def _arrivals(rng: np.random.Generator, jobs: _Ints) -> _Floats:
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


def _gaps(rng: np.random.Generator, count: _Ints) -> _Floats:
    """Return gaps (whole s) before fitting them into their hours, by the rate of the hour."""
    measured = table("philly_gaps")
    rate = np.repeat(np.asarray(RATES)[np.searchsorted(RATES, count)], count)
    gap = np.empty(rate.size)
    for value, quantiles in measured.groupby("jobs_per_hour"):
        rows = np.flatnonzero(rate == value)
        u = (rng.permutation(rows.size) + rng.random(rows.size)) / max(rows.size, 1)
        gap[rows] = np.round(np.interp(u, quantiles["level"], quantiles["gap_s"]))
    return gap


def _widths(rng: np.random.Generator, jobs: _Ints) -> _Ints:
    """Return GPU counts in order of submission: wide runs in their hours, single GPUs between."""
    before = np.concatenate([[0], np.cumsum(jobs)])
    total = int(before[-1])
    wide = table("philly_wide_runs")
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


def _order(rng: np.random.Generator, runs: pd.DataFrame, levels: tuple[float, ...]) -> _Ints:
    """Return the duration order of the jobs of one GPU count, in order of submission."""
    size = runs["jobs"].to_numpy(np.int64)
    run = np.repeat(np.arange(size.size), size)
    within = np.arange(run.size) - np.repeat(np.cumsum(size) - size, size)
    level = np.where(size[run] > 1, within / np.maximum(size[run] - 1, 1), 0.5)
    steps = np.asarray(levels)
    above = np.searchsorted(steps, level, side="right").clip(1, steps.size - 1)
    part = (level - steps[above - 1]) / (steps[above] - steps[above - 1])
    measured = runs[rank_columns(levels)].to_numpy(float) / RANK_UNIT
    ascending = measured[run, above - 1] * (1 - part) + measured[run, above] * part
    session = _SESSION[levels]
    noise = np.cumsum(rng.standard_normal(run.size + session))
    rank = np.empty(run.size)
    rank[np.lexsort((noise[session:] - noise[:-session], run))] = ascending
    order = np.empty(run.size, np.int64)
    order[np.argsort(rank, kind="stable")] = np.arange(run.size)
    return order


def _durations(rng: np.random.Generator, stream: str, gpus: int, order: _Ints) -> _Floats:
    """Return whole seconds, stratified: one duration near each of the quantiles measured."""
    measured = table("philly_durations")
    held = measured[(measured["stream"] == stream) & (measured["num_gpus"] == gpus)]
    u = np.clip((order + rng.random(order.size) - 0.5) / max(order.size - 1, 1), 0, 1)
    levels, values = held["level"].to_numpy(float), held["duration_s"].to_numpy(float)
    return np.maximum(np.round(inverse_cdf(u, levels, values)), 1.0)


def _probe_times(rng: np.random.Generator, probes: _Ints) -> _Floats:
    """Return the beats that were served: so many in each hour, some a second late."""
    slots = np.argsort(rng.random((probes.size, _PROBES_PER_HOUR)), axis=1)
    hour, slot = np.nonzero(slots < probes[:, None])
    late = rng.random(hour.size) < _LATE_PROBES
    return np.asarray(hour * HOUR_S + slot * float(PROBE_PERIOD_S) + _PROBE_PHASE_S + late)
