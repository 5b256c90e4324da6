"""A run of an order in one compiled call, for keys that are known in numbers."""

from collections.abc import Iterable

import numpy as np

from repro.engine.run_settings import RunSettings
from repro.engine.select import queues
from repro.engine.select.queues import Clock, OrderRun
from repro.model.jobs import JobTable
from repro.model.policy import LinearKey
from repro.model.records import Intervals

#: Intervals recorded in one compiled call, or GPUs of the cluster if there are more.
_AT_ONCE = 100_000


def simulate_order(
    table: JobTable,
    linear_key: LinearKey,
    num_gpus: int,
    quantum: float,
    intervals: Intervals,
    settings: RunSettings,
    awaited: Iterable[int] | None,
) -> None:
    """Simulate until all awaited jobs have finished, or until the stop time.

    A test compares the run with that of the engine, event by event.

    Parameters
    ----------
    table : JobTable
        Jobs of the run; their state is written.
    linear_key : LinearKey
        Numbers that give the keys.
    num_gpus : int
        GPUs of the cluster.
    quantum : float
        Seconds between decisions while jobs wait.
    intervals : Intervals
        Record of the intervals in which jobs hold GPUs.
    settings : RunSettings
        Options of the run.
    awaited : iterable of int or None
        Jobs that the run waits for; None: all jobs.
    """
    n = table.count
    gpus = np.array(table.gpus, dtype=np.int64)
    demands, waiting_heap = np.unique(gpus, return_inverse=True)
    drift = linear_key.per_service * gpus - np.full(n, linear_key.per_second)
    drifts, drift_index = np.unique(drift, return_inverse=True)
    is_awaited = np.full(n, awaited is None)
    is_awaited[list(awaited or ())] = True
    run = OrderRun(
        waiting_heap=waiting_heap,
        running_heap=drift_index + len(demands),
        per_second=np.full(n, linear_key.per_second),
        per_service=np.full(n, linear_key.per_service),
        drift=drift,
        submit=np.array(table.submit),
        solo=np.array(table.solo),
        limits=np.array(linear_key.limits, dtype=float),
        awaited=is_awaited,
        arrival_factor=1.0 + settings.rules.tie_rel,
        quantum=quantum,
        stop_time=settings.stop_time,
    )
    key_length = 2 if linear_key.limits else 1
    q = queues.empty(gpus, key_length, len(demands), len(drifts))
    ends, demotions = (queues.empty(gpus, 1, 1, 0) for _ in range(2))
    spans = np.empty((3, 2 * max(_AT_ONCE, num_gpus)))
    clock = Clock(now=0.0, arrived=0, unfinished=int(is_awaited.sum()), idle=num_gpus, waiting=0)
    has_ended = False
    while not has_ended:
        clock, has_ended, count = queues.simulate_events(
            q, ends, demotions, table.state, run, clock, spans
        )
        if settings.keep_intervals:
            job, start, end = spans[:, :count]
            held = gpus[job.astype(int)]
            none = np.full(count, -1)
            # the columns of `Intervals`; the rate is 1, the GPU type is none
            columns = [job, job, start, end, held, held, -none, none]
            intervals.blocks.append(np.array(columns))
