"""JCTs under isolated equal shares, the base of finish-time fairness."""

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Floats

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
        Submit time and duration on the demand of each job (s), in order of submission.
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
        share = num_gpus / max(1, num_present)
        until_event = np.inf
        if arrived < count:
            until_event = submit[arrived] - now
        for place in range(num_present):
            job = present[place]
            rate = min(1.0, share / gpus[job])
            until_event = min(until_event, remaining[job] / rate)
        until_event = max(0.0, until_event)
        now += until_event
        kept = 0
        for place in range(num_present):
            job = present[place]
            rate = min(1.0, share / gpus[job])
            remaining[job] -= until_event * rate
            if remaining[job] <= _ROUNDING * duration[job]:
                jct[job] = now - submit[job]
            else:
                present[kept] = job
                kept += 1
        num_present = kept
        while arrived < count and submit[arrived] <= now:
            present[num_present] = arrived
            num_present += 1
            arrived += 1
    return jct
