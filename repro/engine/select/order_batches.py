"""Many runs of an order in one compiled call, for keys that are linear in time."""

from typing import NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Floats, Ints
from repro.engine.select import queues
from repro.engine.select.queues import Buffers, OrderConstants, PairingHeaps, Progress
from repro.model.jobs import State

#: Intervals per job that the arrays have space for at first.
_INTERVALS_PER_JOB = 4


class OrderBatch(NamedTuple):
    """Runs of one order with equally many jobs; a row of each array is a run.

    Jobs are in order of submission. Arrays are (runs, jobs).
    """

    #: submission since the first one of the run (s)
    submit: Floats
    #: duration (s)
    duration: Floats
    #: demand (GPUs)
    gpus: Ints
    #: heap of each job while it waits, and while it runs (-1: chosen at each start)
    waiting_heap: Ints
    running_heap: Ints
    #: predicted over true remaining time
    prediction_factor: Floats
    #: factors of remaining time and attained service in the key, and the slope of a running job
    per_second: Floats
    per_service: Floats
    slope: Floats
    #: time of the first submission (s), (runs,)
    clock_start: Floats
    #: numbers of heaps of waiting and of running jobs
    num_waiting_heaps: int
    num_running_heaps: int
    #: upper limits of the priority queues; see `repro.model.policy.LinearKey`
    limits: Floats
    #: seconds between decisions while jobs wait
    quantum: float
    #: GPUs of the cluster
    num_gpus: int


class BatchRecords(NamedTuple):
    """Records of the runs of an `OrderBatch`."""

    #: completion since the first submission (s), (runs, jobs)
    end: Floats
    #: preemptions, (runs, jobs)
    preemptions: Ints
    #: GPU-seconds held, (runs,)
    held_gpu_s: Floats


class _Space(NamedTuple):
    """Arrays that runs use one after another."""

    q: PairingHeaps
    ends: PairingHeaps
    demotions: PairingHeaps
    buffers: Buffers
    state: State
    #: seconds per unit of work of each job, all 1
    solo: Floats
    #: whether the simulation waits for the end of each job, all True
    awaited: np.ndarray[tuple[int], np.dtype[np.bool_]]


def simulate_batch(batch: OrderBatch) -> BatchRecords:
    """Simulate all runs until all of their jobs have finished.

    A test compares the records with those of `repro.simulate`, run by run.
    """
    num_runs, num_jobs = batch.submit.shape
    records = BatchRecords(
        end=np.empty((num_runs, num_jobs)),
        preemptions=np.empty((num_runs, num_jobs), np.int64),
        held_gpu_s=np.empty(num_runs),
    )
    space = _space_for(batch)
    # a run has to leave half of `spans` empty; see `queues.simulate_events`
    spans = np.empty((3, 2 * max(_INTERVALS_PER_JOB * num_jobs, batch.num_gpus)))
    gpu_seconds = np.empty(num_runs * _INTERVALS_PER_JOB * num_jobs)
    num_intervals = np.empty(num_runs, np.int64)
    first = 0
    while first < num_runs:
        after = simulate_runs(
            batch, space, first, spans, gpu_seconds, num_intervals, records.end, records.preemptions
        )
        start = 0
        for run in range(first, after):
            # NumPy adds in pairs, as pandas does for the records of a single run
            records.held_gpu_s[run] = gpu_seconds[start : start + num_intervals[run]].sum()
            start += num_intervals[run]
        if after == first:
            spans = np.empty((3, 2 * spans.shape[1]))
            gpu_seconds = np.empty(max(len(gpu_seconds), spans.shape[1]))
        first = after
    return records


def _space_for(batch: OrderBatch) -> _Space:
    """Arrays for the runs of a batch."""
    num_jobs = batch.submit.shape[1]
    gpus = np.empty(num_jobs, np.int64)
    key_length = 2 if len(batch.limits) else 1
    q = queues.empty(gpus, key_length, batch.num_waiting_heaps, batch.num_running_heaps)
    return _Space(
        q=q,
        ends=queues.empty(gpus, 1, 1, 0),
        demotions=queues.empty(gpus, 1, 1, 0),
        buffers=queues.buffers_for(q),
        state=State.of([0.0] * num_jobs),
        solo=np.ones(num_jobs),
        awaited=np.ones(num_jobs, np.bool_),
    )


@njit()
def _clear(q: PairingHeaps) -> None:
    """Remove all jobs from the heaps."""
    q.key[:] = 0.0
    q.slope[:] = 0.0
    q.heap[:] = -1
    q.top[:] = -1


@njit(allocates=True, nogil=True)
def simulate_runs(
    batch: OrderBatch,
    space: _Space,
    first: int,
    spans: Floats,
    gpu_seconds: Floats,
    num_intervals: Ints,
    end: Floats,
    preemptions: Ints,
) -> int:
    """Simulate runs in order until all are done, or until an array lacks space for a run.

    Parameters
    ----------
    batch : OrderBatch
        The runs.
    space : _Space
        Arrays for one run at a time, overwritten.
    first : int
        Number of the first run to simulate.
    spans : array of float, shape (3, intervals)
        Overwritten by the intervals of a run.
    gpu_seconds : array of float
        Filled with the GPU-seconds of every interval, run after run.
    num_intervals : array of int, shape (runs,)
        Filled with the number of intervals of each run.
    end, preemptions : array, shape (runs, jobs)
        Filled with the records of each run.

    Returns
    -------
    int
        Number of the first run that is not done; the number of runs if all are done.
    """
    state = space.state
    num_jobs = batch.submit.shape[1]
    num_runs = len(batch.clock_start)
    start = 0
    for run in range(first, num_runs):
        space.q.gpus[:] = batch.gpus[run]
        _clear(space.q)
        _clear(space.ends)
        _clear(space.demotions)
        state.work_left[:] = batch.duration[run]
        state.earlier_held_s[:] = 0.0
        state.earlier_service[:] = 0.0
        state.first_start[:] = np.inf
        state.preemptions[:] = 0
        constants = OrderConstants(
            batch.waiting_heap[run],
            batch.running_heap[run],
            batch.prediction_factor[run],
            batch.per_second[run],
            batch.per_service[run],
            batch.slope[run],
            batch.submit[run],
            space.solo,
            batch.limits,
            space.awaited,
            1.0,
            batch.quantum,
            np.inf,
        )
        _, has_ended, count = queues.simulate_events(
            space.q,
            space.ends,
            space.demotions,
            space.buffers,
            state,
            constants,
            Progress(0.0, 0, num_jobs, batch.num_gpus, 0),
            spans,
        )
        if not has_ended or start + count > len(gpu_seconds):
            return run
        clock_start = batch.clock_start[run]
        for n in range(count):
            # a `Result` stores clock times, and their difference has this rounding error
            duration = (spans[2, n] + clock_start) - (spans[1, n] + clock_start)
            gpu_seconds[start + n] = batch.gpus[run, int(spans[0, n])] * duration
        start += count
        num_intervals[run] = count
        end[run] = state.end
        preemptions[run] = state.preemptions
    return num_runs
