"""Simulation of an ordering policy in compiled calls, for keys that are linear in time."""

from collections.abc import Iterable

import numpy as np

from repro.base.typing import Floats, Ints
from repro.engine.run_settings import RunSettings
from repro.engine.select import queues
from repro.engine.select.queues import OrderConstants, Progress
from repro.model.jobs import JobTable
from repro.model.policy import LinearKey
from repro.model.records import Intervals

#: Number of intervals after which a compiled call returns. In a cluster with more GPUs than this,
#: the number of GPUs replaces it.
_INTERVALS_PER_CALL = 100_000


def heaps_of_slopes(slope: Floats, num_gpus: int) -> tuple[Ints, int]:
    """Heap that each job joins while it runs, in the shape of ``slope``, and number of heaps.

    Heaps are numbered from 0, one for each different slope. If there are more slopes than GPUs,
    there is a heap for each GPU, and all entries are -1: the simulation chooses a heap at each
    start.
    """
    slopes, heap = np.unique(slope, return_inverse=True)
    if len(slopes) > num_gpus:
        return np.full(slope.shape, -1), num_gpus
    return heap.reshape(slope.shape), len(slopes)


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

    A test compares the records with those of `Engine`, which has no compiled loop over events.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation; their state is written.
    linear_key : LinearKey
        Coefficients of the keys.
    num_gpus : int
        GPUs of the cluster.
    quantum : float
        Seconds between decisions while jobs wait.
    intervals : Intervals
        Record of the intervals in which jobs hold GPUs.
    settings : RunSettings
        Options of the simulation.
    awaited : iterable of int or None
        Jobs that the simulation waits for; None: all jobs.
    """
    n = table.count
    gpus = np.array(table.gpus, dtype=np.int64)
    demands, waiting_heap = np.unique(gpus, return_inverse=True)
    prediction_factor = np.ones(n)
    # a key without remaining times does not read the predictions
    if np.any(linear_key.per_second) and table.prediction_factors is not None:
        prediction_factor = table.prediction_factors
    slope = linear_key.per_service * gpus - linear_key.per_second * prediction_factor
    running_heap, num_running_heaps = heaps_of_slopes(slope, num_gpus)
    is_awaited = np.full(n, awaited is None)
    is_awaited[list(awaited or ())] = True
    constants = OrderConstants(
        waiting_heap=waiting_heap,
        running_heap=np.where(running_heap < 0, -1, running_heap + len(demands)),
        prediction_factor=prediction_factor,
        per_second=np.full(n, linear_key.per_second),
        per_service=np.full(n, linear_key.per_service),
        slope=slope,
        submit=np.array(table.submit),
        solo=np.array(table.solo),
        limits=np.array(linear_key.limits, dtype=float),
        awaited=is_awaited,
        arrival_factor=1.0 + settings.rules.tie_rel,
        quantum=quantum,
        stop_time=settings.stop_time,
    )
    key_length = 2 if linear_key.limits else 1
    q = queues.empty(gpus, key_length, len(demands), num_running_heaps)
    ends, demotions = (queues.empty(gpus, 1, 1, 0) for _ in range(2))
    buffers = queues.buffers_for(q)
    spans = np.empty((3, 2 * max(_INTERVALS_PER_CALL, num_gpus)))
    unfinished = int(is_awaited.sum())
    progress = Progress(now=0.0, arrived=0, unfinished=unfinished, idle=num_gpus, waiting=0)
    has_ended = False
    while not has_ended:
        progress, has_ended, count = queues.simulate_events(
            q, ends, demotions, buffers, table.state, constants, progress, spans
        )
        if settings.keep_intervals:
            job, start, end = spans[:, :count]
            demand = gpus[job.astype(int)]
            rate = np.ones(count)
            no_type = np.full(count, -1)
            columns = [job, job, start, end, demand, demand, rate, no_type]
            intervals.blocks.append(np.array(columns))
    table.arrived = progress.arrived
