"""Queues and clocks of the jobs of `TiresiasL`, and compiled loops over the demotable jobs.

Tiresias' and Muri's public simulators compare every demotable job with its limit at every event.
The loops keep the order of their floating-point operations, since a rounding error moves a
demotion.
"""

from typing import NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Flags, Floats, Ints
from repro.model.view import View


class QueueState(NamedTuple):
    """Queue, executed time and waiting time of each job, (jobs,)."""

    #: queue; 0: the first
    queue: Ints
    #: whether the job runs
    runs: Flags
    #: start of the present run or wait (s)
    since: Floats
    #: executed time t_J (s) until the present start, or until now if the job waits
    executed: Floats
    #: sum of the waits (s) that have ended, after the first run and since the last promotion; 0 if
    #: waits are not added up
    waited: Floats
    #: first start (s); infinity: not started yet
    first_start: Floats
    #: version of the job's entry in the calendar; entries of other versions are void
    stamp: Ints
    #: demand (GPUs)
    gpus: Ints

    @classmethod
    def of(cls, view: View) -> "QueueState":
        """State of the jobs of a run before they arrive."""
        gpus = view.widths.astype(np.int64)
        queue, stamp = (np.zeros(len(gpus), np.int64) for _ in range(2))
        since, executed, waited = (np.zeros(len(gpus)) for _ in range(3))
        return cls(
            queue=queue,
            runs=np.zeros(len(gpus), np.bool_),
            since=since,
            executed=executed,
            waited=waited,
            first_start=np.full(len(gpus), np.inf),
            stamp=stamp,
            gpus=gpus,
        )

    def services(self, jobs: Ints, now: float) -> Floats:
        """Attained service W_J t_J of ``jobs`` (GPU-seconds), which all run, (jobs,)."""
        services: Floats = (self.executed[jobs] + (now - self.since[jobs])) * self.gpus[jobs]
        return services


@njit()
def demote(
    s: QueueState,
    jobs: Ints,
    limits: Floats,
    now: float,
    rounds_up: bool,
    skip_queues: bool,
    demoted: Ints,
) -> int:
    """Demote the jobs at or beyond their limits.

    Parameters
    ----------
    s : QueueState
        State of the jobs; queues are written.
    jobs : array of int
        Running jobs in any queue but the last.
    limits : array of float
        Upper limit of each queue (GPU-seconds); the last is infinity.
    now : float
        Present time (s).
    rounds_up : bool
        Whether limit / W_J is rounded up to whole seconds. A demotion has its wake-up when t_J
        reaches this time. Executed times are then summed event by event.
    skip_queues : bool
        Whether a job moves past all queues whose limits it has reached.
    demoted : array of int
        Filled with the demoted jobs.

    Returns
    -------
    int
        Number of demoted jobs.
    """
    count = 0
    for job in jobs:
        executed = s.executed[job] + now - s.since[job]
        limit = limits[s.queue[job]]
        gpus = s.gpus[job]
        is_due = executed * gpus >= limit
        if rounds_up:
            # Summed times may stay a rounding error short of the limit for ever. So a demotion is
            # also due once its instant in `next_demotion` has come.
            is_due = is_due or np.ceil(limit / gpus) - executed + now <= now
            s.executed[job] = executed
            s.since[job] = now
        if is_due:
            s.queue[job] += 1
            while skip_queues and executed * gpus >= limits[s.queue[job]]:
                s.queue[job] += 1
            demoted[count] = job
            count += 1
    return count


@njit()
def next_demotion(s: QueueState, jobs: Ints, limits: Floats, now: float, rounds_up: bool) -> float:
    """Wake-up of the public simulators for the next demotion (s); see `demote`."""
    wake = np.inf
    for job in jobs:
        executed = s.executed[job] + (now - s.since[job])
        limit = limits[s.queue[job]]
        gpus = s.gpus[job]
        if rounds_up:
            seconds = np.ceil(limit / gpus) - executed
        else:
            seconds = max(1.0, (limit - executed) // gpus)
        wake = min(wake, seconds + now)
    return wake
