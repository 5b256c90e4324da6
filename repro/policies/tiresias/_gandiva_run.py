"""A whole run of Gandiva by the steps of the public simulator, in compiled loops."""

import math
from typing import NamedTuple

import numpy as np

from repro.cluster.spec import Cluster
from repro.compiled import njit
from repro.core.jobs import JobTable, State
from repro.core.records import Intervals
from repro.policies.tiresias._gandiva_simulator import Sets, empty, ends_slice, heads, step
from repro.typing import Flags, Floats, Ints

#: Intervals that are recorded in one call at most, or GPUs of the cluster if more.
_AT_ONCE = 100_000
#: Entries of `Clock.tally`: jobs that hold GPUs, jobs that have arrived, and jobs that have not
#: finished.
_HOLDERS, _ARRIVED, _LEFT = range(3)


class Clock(NamedTuple):
    """Where a run stands."""

    #: the next step (s)
    next: Floats
    tally: Ints
    #: jobs that hold GPUs, in the order of the decision, and those that will
    holders: Ints
    chosen: Ints
    #: of each job, whether it is among ``chosen``, and whether it has finished
    is_chosen: Flags
    finished: Flags


def play(
    table: JobTable,
    cluster: Cluster,
    intervals: Intervals | None,
    *,
    slice_s: float,
    step_s: float,
    at_once: int = _AT_ONCE,
) -> None:
    """Simulate until every job has finished; ``intervals`` None: they are not recorded.

    What the engine would do step by step, held against it by a test.
    """
    n = table.count
    gpus = np.array(table.gpus, dtype=np.int64)
    submit = np.array(table.submit)
    sets = empty(gpus.astype(float), cluster)
    clock = Clock(
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
    clock: Clock,
    state: State,
    submit: Floats,
    slice_s: float,
    step_s: float,
    spans: Floats,
) -> int:
    """Play steps until all jobs have finished or ``spans`` is nearly full; the spans written."""
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
def _complete(clock: Clock, state: State, now: float, spans: Floats) -> int:
    """Book the jobs that have done their work by now; their number."""
    count, kept = 0, 0
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
def _apply(s: Sets, clock: Clock, state: State, now: float, spans: Floats) -> int:
    """Stop and start jobs as the sets say; the number of those that stop."""
    chosen = heads(s, clock.chosen)
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
    """Take the GPUs of a job away, and note since when it held them."""
    state.running[job] = False
    spans[0, count] = job
    spans[1, count] = state.since[job]
    spans[2, count] = now
    state.left[job] = max(0.0, state.left[job] - (now - state.since[job]))
