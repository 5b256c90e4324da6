"""A whole run of Gandiva by the steps of the public simulator, in compiled loops."""

import math
from typing import NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Flags, Floats, Ints
from repro.model.cluster.spec import Cluster
from repro.model.jobs import JobTable, State
from repro.model.records import Intervals
from repro.policies.tiresias._gandiva_simulator import Sets, empty_sets, ends_slice, set_heads, step

#: Intervals that are recorded in one call at most, or GPUs of the cluster if more.
_AT_ONCE = 100_000
#: Entries of `StepClock.tally`: numbers of jobs that hold GPUs, that have arrived, and that have
#: not finished.
_HOLDERS, _ARRIVED, _LEFT = range(3)


class StepClock(NamedTuple):
    """Progress of a run, written in place."""

    #: (1,): time of the next step (s)
    next: Floats
    #: (3,): counts
    tally: Ints
    #: (jobs,): jobs that hold GPUs, in the order of the decision
    holders: Ints
    #: (jobs,): jobs that hold GPUs from this step on, in the order of the decision
    chosen: Ints
    #: (jobs,): is among ``chosen``
    is_chosen: Flags
    #: (jobs,): has finished
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

    A test compares the run with that of the engine, step by step.

    Parameters
    ----------
    table : JobTable
        Jobs of the run; their state is written.
    cluster : Cluster
        Nodes with equally many GPUs.
    intervals : Intervals or None
        Record of who held GPUs when; None: nothing is recorded.
    slice_s : float
        Seconds between rotations.
    step_s : float
        Seconds between steps.
    at_once : int
        Intervals recorded in one call of the compiled loop, at most.
    """
    n = table.count
    gpus = np.array(table.gpus, dtype=np.int64)
    submit = np.array(table.submit)
    sets = empty_sets(gpus.astype(float), cluster)
    clock = StepClock(
        next=submit[:1].copy(),
        tally=np.array([0, 0, n]),
        holders=np.zeros(n, np.int64),
        chosen=np.zeros(n, np.int64),
        is_chosen=np.zeros(n, np.bool_),
        finished=np.zeros(n, np.bool_),
    )
    # one step closes as many intervals as there are GPUs at most
    spans = np.empty((3, max(at_once, cluster.num_gpus) + cluster.num_gpus))
    while clock.tally[_LEFT] > 0:
        count = _steps(sets, clock, table.state, submit, slice_s, step_s, spans)
        if intervals is not None:
            job, start, end = spans[:, :count]
            held = gpus[job.astype(int)]
            none = np.full(count, -1)
            intervals.blocks.append(np.array([job, job, start, end, held, held, -none, none]))


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
    room = spans.shape[1] - s.num_gpus
    count = 0
    while tally[_LEFT] > 0 and count < room:
        now = clock.next[0]
        ended = _complete(clock, state, now, spans[:, count:])
        count += ended
        new = tally[_ARRIVED]
        while tally[_ARRIVED] < len(submit) and submit[tally[_ARRIVED]] <= now:
            tally[_ARRIVED] += 1
        rotates = ends_slice(now, slice_s)
        step(s, clock.finished, ended > 0, rotates, new, tally[_ARRIVED])
        count += _apply(s, clock, state, now, spans[:, count:])
        arrival = submit[tally[_ARRIVED]] if tally[_ARRIVED] < len(submit) else math.inf
        # while there are no jobs nothing happens at any step
        idle = tally[_LEFT] == len(submit) - tally[_ARRIVED]
        clock.next[0] = arrival if idle else min(now + step_s, arrival)
    return count


@njit()
def _complete(clock: StepClock, state: State, now: float, spans: Floats) -> int:
    """Finish the jobs whose work is done by ``now`` (s).

    ``spans``, (3, intervals), get their intervals. Returns the number of intervals written.
    """
    count = 0
    kept = 0
    for job in clock.holders[: clock.tally[_HOLDERS]]:
        if state.since[job] + state.left[job] > now:
            clock.holders[kept] = job
            kept += 1
            continue
        _stop(state, job, now, spans, count)
        count += 1
        state.left[job] = 0.0
        state.end[job] = now
        clock.finished[job] = True
    clock.tally[_HOLDERS] = kept
    clock.tally[_LEFT] -= count
    return count


@njit()
def _apply(s: Sets, clock: StepClock, state: State, now: float, spans: Floats) -> int:
    """Stop and start jobs as the sets say.

    ``spans``, (3, intervals), get the intervals of jobs that stop. Returns the number of intervals
    written.
    """
    chosen = set_heads(s, clock.chosen)
    for job in clock.chosen[:chosen]:
        clock.is_chosen[job] = True
    count = 0
    for job in clock.holders[: clock.tally[_HOLDERS]]:
        if not clock.is_chosen[job]:
            _stop(state, job, now, spans, count)
            count += 1
            state.preemptions[job] += 1
    for place in range(chosen):
        job = clock.holders[place] = clock.chosen[place]
        clock.is_chosen[job] = False
        if not state.running[job]:
            state.running[job] = True
            state.since[job] = now
            state.first_start[job] = min(state.first_start[job], now)
    clock.tally[_HOLDERS] = chosen
    return count


@njit()
def _stop(state: State, job: int, now: float, spans: Floats, count: int) -> None:
    """Take the GPUs of a job away and write the interval to column ``count`` of ``spans``."""
    state.running[job] = False
    spans[0, count] = job
    spans[1, count] = state.since[job]
    spans[2, count] = now
    state.left[job] = max(0.0, state.left[job] - (now - state.since[job]))
