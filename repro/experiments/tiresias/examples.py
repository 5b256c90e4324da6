"""Tiresias's worked examples: traces of a few jobs, unit slots, queue histories, brute force."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro.core.records import Result
from repro.errors import ParamError


def job_list(jobs: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Return a trace of named jobs.

    Parameters
    ----------
    jobs : mapping
        Job name to ``gpus``, ``submit`` (s, 0 if left out) and ``duration`` (s).

    Returns
    -------
    DataFrame
        One row per job in order of submission.

    Examples
    --------
    >>> job_list({"J1": {"gpus": 2, "duration": 2}})["num_gpus"].tolist()
    [2]
    """
    frame = pd.DataFrame(
        {
            "job_id": list(jobs),
            "submit_time": [float(job.get("submit", 0.0)) for job in jobs.values()],
            "duration": [float(job["duration"]) for job in jobs.values()],
            "num_gpus": [int(job["gpus"]) for job in jobs.values()],
        }
    )
    return frame.sort_values("submit_time", kind="stable", ignore_index=True)


def slots(result: Result, width: float = 1.0) -> list[str]:
    """Return which job ran in each slot of a schedule in which one job runs at a time.

    Parameters
    ----------
    result : Result
        Records.
    width : float
        Length of a slot (s).

    Raises
    ------
    ParamError
        If a slot holds no job, several, or a part of one.

    References
    ----------
    Tiresias, NSDI 2019, Figure 7.

    Examples
    --------
    >>> from repro import simulate
    >>> trace = job_list({"J1": {"gpus": 2, "duration": 2}, "J2": {"gpus": 1, "duration": 1}})
    >>> slots(simulate(trace, "1x2", "sf"))
    ['J2', 'J1', 'J1']
    """
    spans = result.intervals
    drawn = []
    for number in range(math.ceil(float(result.jobs["end_time"].max()) / width)):
        low, high = number * width, (number + 1) * width
        here = spans[(spans["start"] < high) & (spans["end"] > low)]
        whole = (here["start"] <= low) & (here["end"] >= high)
        if len(here) != 1 or not whole.all():
            raise ParamError(
                f"slot {low:g} to {high:g} s: {len(here)} intervals; a row of slots needs one job "
                f"that fills it"
            )
        drawn.append(str(here["job_id"].iloc[0]))
    return drawn


def queue_spans(
    result: Result, thresholds: Sequence[float], promote_knob: float = math.inf
) -> pd.DataFrame:
    """Cut the intervals of a run where a job changes queue; found from the records alone.

    Parameters
    ----------
    result : Result
        Records of a run under the paper's rules.
    thresholds : sequence of float
        Upper limits of queues 1 to K-1 (GPU-seconds).
    promote_knob : float
        PROMOTEKNOB.

    Returns
    -------
    DataFrame
        job_id, start, end (s), gpus, queue (1 to K), event: what put the job into this span
        (``start``, ``resume``, ``demoted``, ``promoted``).

    References
    ----------
    Tiresias, NSDI 2019, sections 3.2.3 and 3.4, Pseudocode 2.

    Examples
    --------
    >>> from repro import make, simulate
    >>> trace = job_list({"A": {"gpus": 2, "duration": 5}})
    >>> run = simulate(trace, "1x2", make("tiresias-l", thresholds=(4,)))
    >>> queue_spans(run, (4,))[["start", "end", "queue", "event"]].values.tolist()
    [[0.0, 2.0, 1, 'start'], [2.0, 5.0, 2, 'demoted']]
    """
    limits = [*thresholds, math.inf]
    rows: list[tuple[object, float, float, float, int, str]] = []
    for job, spans in result.intervals.groupby("job_id", sort=False):
        clock, queue, left = 0.0, 0, math.nan
        ordered = spans.sort_values("start")[["start", "end", "gpus"]].to_numpy(float)
        for at, end, gpus in ordered.tolist():
            event = "start" if math.isnan(left) else "resume"
            if at - left >= promote_knob * clock:
                clock, queue, event = 0.0, 0, "promoted"
            while at < end:
                until = min(end, at + limits[queue] / gpus - clock)
                if until > at:
                    rows.append((job, at, until, gpus, queue + 1, event))
                clock, at, event = clock + until - at, until, "demoted"
                queue += clock * gpus >= limits[queue]
            left = end
    columns = ["job_id", "start", "end", "gpus", "queue", "event"]
    return pd.DataFrame(rows, columns=columns).sort_values("start", ignore_index=True)


def attained(result: Result, times: Sequence[float]) -> pd.DataFrame:
    """Return the attained service W_J t_J of each unfinished job at some instants.

    Parameters
    ----------
    result : Result
        Records.
    times : sequence of float
        Instants (s).

    Returns
    -------
    DataFrame
        job_id, time (s), attained (GPU-seconds); NaN before submission and after completion.

    References
    ----------
    Tiresias, NSDI 2019, Pseudocode 1: the priority without a distribution is minus this.

    Examples
    --------
    >>> from repro import simulate
    >>> trace = job_list({"J1": {"gpus": 2, "duration": 2}})
    >>> attained(simulate(trace, "1x2", "sf"), [0, 1.5])["attained"].tolist()
    [0.0, 3.0]
    """
    rows = []
    jobs = result.jobs
    alive = zip(jobs["job_id"], jobs["submit_time"], jobs["end_time"], strict=True)
    for job, submitted, ended in alive:
        of_job = result.intervals[result.intervals["job_id"] == job]
        start, end, gpus = of_job[["start", "end", "gpus"]].to_numpy(float).T
        for time in map(float, times):
            served = float((np.clip(np.minimum(end, time) - start, 0.0, None) * gpus).sum())
            rows.append((job, time, served if submitted <= time <= ended else math.nan))
    return pd.DataFrame(rows, columns=["job_id", "time", "attained"])


def gittins_by_definition(
    samples: Sequence[float], attained_service: float, quanta: npt.ArrayLike
) -> float:
    """Return the Gittins index straight from its definition, over given quanta.

    Parameters
    ----------
    samples : sequence of float
        Equally likely total services (GPU-seconds).
    attained_service : float
        Attained service a (GPU-seconds).
    quanta : array_like
        Values of D (GPU-seconds) the supremum runs over.

    Returns
    -------
    float
        Largest P(S - a <= D | S > a) / E[min(S - a, D) | S > a]; 0 if no sample exceeds a.

    References
    ----------
    Tiresias, NSDI 2019, Pseudocode 1.

    Examples
    --------
    >>> gittins_by_definition([4, 8, 12], 3, np.arange(1, 13)) == 1 / 3
    True
    """
    remaining = np.asarray(samples, float)[:, None] - attained_service
    remaining = remaining[remaining[:, 0] > 0]
    if not len(remaining):
        return 0.0
    quantum = np.atleast_1d(np.asarray(quanta, float))[None, :]
    ending = (remaining <= quantum).mean(axis=0)
    return float((ending / np.minimum(remaining, quantum).mean(axis=0)).max())


def largest_difference(
    rng: np.random.Generator,
    index: Callable[[Sequence[float]], Callable[[float], float]],
    *,
    count: int,
    largest: int,
    longest: int,
    step: float,
) -> float:
    """Return how far an index is from its definition on random distributions, at worst.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the distributions.
    index : callable
        From equally likely total services to the index by attained service.
    count : int
        Number of distributions.
    largest : int
        Largest service (GPU-seconds); services are whole numbers.
    longest : int
        Most services a distribution has.
    step : float
        Distance between the quanta the definition is evaluated at (GPU-seconds).

    Returns
    -------
    float
        Relative to the value by definition; absolute where that is 0.

    Examples
    --------
    >>> from repro.policies.tiresias.gittins_2d import Gittins2D
    >>> def fast(samples):
    ...     return Gittins2D(history=tuple(samples)).ranking()
    >>> size = {"count": 3, "largest": 9, "longest": 4, "step": 0.5}
    >>> largest_difference(np.random.default_rng(0), fast, **size) < 1e-12
    True
    """
    quanta = np.arange(step, largest + 1, step)
    worst = 0.0
    for _ in range(count):
        samples = rng.integers(1, largest + 1, rng.integers(1, longest + 1)).astype(float).tolist()
        fast = index(samples)
        for a in range(int(max(samples)) + 1):
            slow = gittins_by_definition(samples, a, quanta)
            worst = max(worst, abs(fast(float(a)) - slow) / (slow or 1.0))
    return worst
