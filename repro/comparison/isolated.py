"""JCTs under isolated equal shares, the base of finish-time fairness."""

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Floats, Ints

#: Work below this fraction of a job is rounding.
_ROUNDING = 1e-9


@njit(allocates=True)
def isolated_jcts(submit: Floats, duration: Floats, gpus: Floats, num_gpus: float) -> Floats:
    """JCT of each job if every job in the system had an equal share of its own, (jobs,), s.

    With N jobs in the system, each holds min(its demand, num_gpus / N) GPUs and nothing of what
    others leave. Its progress is proportional to the GPUs that it holds. The JCTs depend on the
    jobs and the cluster alone, so that all policies are measured against the same base.

    Parameters
    ----------
    submit, duration : array of float
        Submit time of each job, and its duration on as many GPUs as it demands (s). The jobs are
        in order of submission.
    gpus : array of float
        Demand of each job (GPUs).
    num_gpus : float
        GPUs of the cluster.
    """
    count = len(submit)
    jct = np.zeros(count)
    remaining = duration.copy()
    present = np.zeros(count, np.int64)
    num_present = 0
    arrived = 0
    now = 0.0
    while arrived < count or num_present > 0:
        if num_present == 0:
            now = max(now, submit[arrived])
        until_arrival = submit[arrived] - now if arrived < count else np.inf
        share = num_gpus / max(1, num_present)
        elapsed, num_kept = _advance(
            present[:num_present], remaining, duration, gpus, share, until_arrival
        )
        now += elapsed
        for job in present[num_kept:num_present]:
            jct[job] = now - submit[job]
        num_present = num_kept
        while arrived < count and submit[arrived] <= now:
            present[num_present] = arrived
            num_present += 1
            arrived += 1
    return jct


@njit()
def _advance(
    present: Ints,
    remaining: Floats,
    duration: Floats,
    gpus: Floats,
    share: float,
    until_arrival: float,
) -> tuple[float, int]:
    """Let the jobs present progress until one ends or the next arrives.

    The result is the time (s), and the number of unfinished jobs, which come first in ``present``.
    """
    until_event = until_arrival
    for job in present:
        rate = min(1.0, share / gpus[job])
        until_event = min(until_event, remaining[job] / rate)
    until_event = max(0.0, until_event)
    kept = 0
    for position in range(len(present)):
        job = present[position]
        rate = min(1.0, share / gpus[job])
        remaining[job] -= until_event * rate
        if remaining[job] > _ROUNDING * duration[job]:
            present[position] = present[kept]
            present[kept] = job
            kept += 1
    return until_event, kept
