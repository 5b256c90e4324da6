"""Whole simulations of Gandiva in the steps of the public simulator, in compiled loops."""

import math
from typing import NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Flags, Floats, Ints
from repro.model.cluster.spec import Cluster
from repro.model.jobs import JobTable, State
from repro.model.records import Intervals
from repro.policies.tiresias._gandiva_simulator import Sets, empty_sets, ends_slice, set_heads, step

#: A call of the compiled loop returns once it has recorded this many intervals. If the cluster has
#: more GPUs, their number counts.
_AT_ONCE = 100_000
#: Entries of `StepClock.tally`: jobs that hold GPUs, jobs that have arrived, unfinished jobs.
_HOLDERS, _ARRIVED, _UNFINISHED = range(3)


class StepClock(NamedTuple):
    """Progress of a simulation, written in place."""

    #: (1,): time of the next step (s)
    next: Floats
    #: (3,): numbers of jobs
    tally: Ints
    #: (jobs,): jobs that hold GPUs, in the order of the decision
    holders: Ints
    #: (jobs,): jobs that hold GPUs from this step on, in the order of the decision
    chosen: Ints
    #: (jobs,): whether a job is among ``chosen``
    is_chosen: Flags
    #: (jobs,): whether a job has finished
    finished: Flags


def simulate_steps(
    table: JobTable,
    cluster: Cluster,
    intervals: Intervals | None,
    *,
    slice_s: float,
    step_s: float,
    at_once: int = _AT_ONCE,
) -> None:
    """Simulate until every job has finished.

    A test compares the simulation with that of the engine, step by step.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation; their state is written.
    cluster : Cluster
        Nodes with equally many GPUs.
    intervals : Intervals or None
        Record of the GPUs that jobs hold, by interval. None: no record.
    slice_s : float
        Seconds between rotations.
    step_s : float
        Seconds between steps.
    at_once : int
        A call of the compiled loop returns once it has recorded this many intervals, or as many as
        the cluster has GPUs if these are more.
    """
    num_jobs = table.count
    gpus = np.array(table.gpus, dtype=np.int64)
    submit = np.array(table.submit)
    sets = empty_sets(gpus.astype(float), cluster)
    clock = StepClock(
        next=submit[:1].copy(),
        tally=np.array([0, 0, num_jobs]),
        holders=np.zeros(num_jobs, np.int64),
        chosen=np.zeros(num_jobs, np.int64),
        is_chosen=np.zeros(num_jobs, np.bool_),
        finished=np.zeros(num_jobs, np.bool_),
    )
    # One step ends at most one interval per GPU.
    spans = np.empty((3, max(at_once, cluster.num_gpus) + cluster.num_gpus))
    while clock.tally[_UNFINISHED] > 0:
        num_spans = _steps(sets, clock, table.state, submit, slice_s, step_s, spans)
        if intervals is not None:
            job, start, end = spans[:, :num_spans]
            width = gpus[job.astype(int)]
            nominal_speed = np.ones(num_spans)
            no_type = np.full(num_spans, -1)
            intervals.blocks.append(
                np.array([job, job, start, end, width, width, nominal_speed, no_type])
            )


@njit()
def _steps(
    s: Sets,
    clock: StepClock,
    state: State,
    submit: Floats,
    slice_s: float,
    step_s: float,
    spans: Floats,
) -> int:
    """Simulate steps until all jobs have finished or ``spans`` is nearly full.

    ``submit``, (jobs,): submit time (s). ``spans``, (3, intervals): job, start (s), end (s).
    Returns the number of intervals written.
    """
    tally = clock.tally
    limit = spans.shape[1] - s.num_gpus
    count = 0
    while tally[_UNFINISHED] > 0 and count < limit:
        now = clock.next[0]
        completed = _complete(clock, state, now, spans[:, count:])
        count += completed
        first_new = tally[_ARRIVED]
        while tally[_ARRIVED] < len(submit) and submit[tally[_ARRIVED]] <= now:
            tally[_ARRIVED] += 1
        rotates = ends_slice(now, slice_s)
        step(s, clock.finished, completed > 0, rotates, first_new, tally[_ARRIVED])
        count += _apply(s, clock, state, now, spans[:, count:])
        arrival = submit[tally[_ARRIVED]] if tally[_ARRIVED] < len(submit) else math.inf
        # Without jobs no step changes anything.
        is_idle = tally[_UNFINISHED] == len(submit) - tally[_ARRIVED]
        clock.next[0] = arrival if is_idle else min(now + step_s, arrival)
    return count


@njit()
def _complete(clock: StepClock, state: State, now: float, spans: Floats) -> int:
    """Finish the jobs whose work is done by ``now`` (s).

    Their intervals go to ``spans``, (3, intervals). Returns the number of intervals written.
    """
    count = 0
    kept = 0
    for job in clock.holders[: clock.tally[_HOLDERS]]:
        if state.progress_from[job] + state.work_left[job] > now:
            clock.holders[kept] = job
            kept += 1
            continue
        _stop(state, job, now, spans, count)
        count += 1
        state.work_left[job] = 0.0
        state.end[job] = now
        clock.finished[job] = True
    clock.tally[_HOLDERS] = kept
    clock.tally[_UNFINISHED] -= count
    return count


@njit()
def _apply(s: Sets, clock: StepClock, state: State, now: float, spans: Floats) -> int:
    """Stop and start jobs so that the heads of the sets run.

    Intervals of jobs that stop go to ``spans``, (3, intervals). Returns the number of intervals
    written.
    """
    num_chosen = set_heads(s, clock.chosen)
    for job in clock.chosen[:num_chosen]:
        clock.is_chosen[job] = True
    count = 0
    for job in clock.holders[: clock.tally[_HOLDERS]]:
        if not clock.is_chosen[job]:
            _stop(state, job, now, spans, count)
            count += 1
            state.preemptions[job] += 1
    for index in range(num_chosen):
        job = clock.chosen[index]
        clock.holders[index] = job
        clock.is_chosen[job] = False
        if not state.running[job]:
            state.running[job] = True
            state.progress_from[job] = now
            state.first_start[job] = min(state.first_start[job], now)
    clock.tally[_HOLDERS] = num_chosen
    return count


@njit()
def _stop(state: State, job: int, now: float, spans: Floats, column: int) -> None:
    """Stop a job, and write its interval to a column of ``spans``."""
    state.running[job] = False
    spans[0, column] = job
    spans[1, column] = state.progress_from[job]
    spans[2, column] = now
    state.work_left[job] = max(0.0, state.work_left[job] - (now - state.progress_from[job]))
