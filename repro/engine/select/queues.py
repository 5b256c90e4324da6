"""Compiled greedy selection, which looks only at what changes.

The scan of an ordering policy gives every job, from the smallest key up, its whole gang if enough
GPUs are left, and skips it otherwise. A scan at every event would cost the number of unfinished
jobs. Two rules find the first choice that differs from the previous event:

- A waiting job starts if its gang fits the idle GPUs plus those of running jobs of lower priority.
  Among waiting jobs of equal demand only the best can be the next that starts.
- If GPUs are then missing, the best running job that no longer fits stops.

All choices of higher priority are final. The rules apply again until nothing changes.
"""

from typing import NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Flags, Floats, Ints
from repro.model.jobs import State


class Queues(NamedTuple):
    """Pairing heaps of jobs; a job is in at most one.

    There is a heap of waiting jobs for each demand, the best key on top. The other heaps are of
    running jobs whose keys drift alike, the worst key on top.
    """

    #: (jobs, numbers of a key): keys at time zero
    key: Floats
    #: drift of the last number of the key (per second)
    slope: Floats
    gpus: Ints
    #: heap of each job; -1: none
    heap: Ints
    #: heaps of waiting jobs; heaps of running jobs come after them
    num_waiting: int
    #: of each job, -1 for none: first child, next sibling, and previous sibling or else parent
    child: Ints
    after: Ints
    before: Ints
    #: job on top of each heap; -1: none
    top: Ints


def empty(gpus: Ints, key_length: int, num_waiting: int, num_running: int) -> Queues:
    """Empty heaps.

    Parameters
    ----------
    gpus : array of int
        Demand of each job.
    key_length : int
        Numbers of a key.
    num_waiting, num_running : int
        Heaps of waiting and of running jobs.
    """
    heap, child, after, before = (np.full(len(gpus), -1) for _ in range(4))
    key = np.zeros((len(gpus), key_length))
    slope = np.zeros(len(gpus))
    top = np.full(num_waiting + num_running, -1)
    return Queues(key, slope, gpus, heap, num_waiting, child, after, before, top)


@njit()
def _precedes(q: Queues, job: int, other: int, now: float) -> bool:
    """Whether ``job`` has the smaller key at an instant; row numbers break ties."""
    last = q.key.shape[1] - 1
    for column in range(last):
        if q.key[job, column] != q.key[other, column]:
            return bool(q.key[job, column] < q.key[other, column])
    job_key = q.key[job, last]
    other_key = q.key[other, last]
    if q.slope[job] != 0.0:
        job_key += q.slope[job] * now
    if q.slope[other] != 0.0:
        other_key += q.slope[other] * now
    return bool(job_key < other_key) if job_key != other_key else job < other


@njit()
def _merged(q: Queues, root: int, other: int, is_running: bool) -> int:
    """Root of the tree that two trees of a heap are merged into; of running jobs the worst."""
    # keys in one heap drift alike, so that their order at time zero holds at all times
    if _precedes(q, root, other, 0.0) == is_running:
        root, other = other, root
    sibling = q.child[root]
    q.after[other] = sibling
    q.before[other] = root
    q.child[root] = other
    if sibling >= 0:
        q.before[sibling] = other
    return root


@njit()
def insert(q: Queues, job: int, heap: int) -> None:
    """Add a job that is in no heap to a heap."""
    q.heap[job] = heap
    q.child[job] = q.after[job] = q.before[job] = -1
    top = q.top[heap]
    q.top[heap] = job if top < 0 else _merged(q, top, job, heap >= q.num_waiting)


@njit()
def remove(q: Queues, job: int) -> None:
    """Remove a job from its heap."""
    heap = q.heap[job]
    is_running = q.heap[job] >= q.num_waiting
    q.heap[job] = -1
    if q.top[heap] == job:
        root = -1
    else:
        root = q.top[heap]
        previous = q.before[job]
        following = q.after[job]
        if q.child[previous] == job:
            q.child[previous] = following
        else:
            q.after[previous] = following
        if following >= 0:
            q.before[following] = previous
    # merge the children in pairs, then merge the pairs from the last to the first
    pairs = -1
    child = q.child[job]
    while child >= 0:
        sibling = q.after[child]
        following = q.after[sibling] if sibling >= 0 else -1
        tree = _merged(q, child, sibling, is_running) if sibling >= 0 else child
        q.after[tree] = pairs
        pairs = tree
        child = following
    while pairs >= 0:
        following = q.after[pairs]
        q.after[pairs] = q.before[pairs] = -1
        root = pairs if root < 0 else _merged(q, root, pairs, is_running)
        pairs = following
    q.top[heap] = root


@njit()
def best_waiting(q: Queues) -> Ints:
    """Best waiting job of each demand, best first."""
    ranked = np.empty(q.num_waiting, np.int64)
    count = 0
    for job in q.top[: q.num_waiting]:
        if job < 0:
            continue
        rank = count
        while rank > 0 and _precedes(q, job, ranked[rank - 1], 0.0):
            ranked[rank] = ranked[rank - 1]
            rank -= 1
        ranked[rank] = job
        count += 1
    return ranked[:count]


@njit()
def _worst_running(q: Queues, now: float) -> int:
    """Lowest-priority running job; -1: no job runs."""
    worst = -1
    for job in q.top[q.num_waiting :]:
        if job >= 0 and (worst < 0 or _precedes(q, worst, job, now)):
            worst = job
    return worst


@njit()
def select(q: Queues, idle: int, now: float) -> tuple[int, Ints]:
    """Idle GPUs after a selection, and its choices in order: a start is a job, a stop -1 - job.

    Jobs that start or stop are in no heap afterwards. A choice is final, so that keys that differ
    only by rounding do no harm.
    """
    choices = [0 for _ in range(0)]
    # running jobs taken out of their heaps for a while, worst first
    below = [0 for _ in range(0)]
    while True:
        waiting = best_waiting(q)
        best = waiting[0] if len(waiting) else -1
        started = -1
        victim = -1
        # the first n jobs of `below` and the GPUs that they hold
        n = 0
        released = 0
        # first the jobs that hold too much, then those that would give way to the best waiting job
        while True:
            short = released < -idle
            if not short and (best < 0 or released >= q.gpus[best] - idle):
                break
            if n == len(below):
                job = _worst_running(q, now)
                if job < 0:
                    break
                below.append(job)
                heap = q.heap[job]
                remove(q, job)
                q.heap[job] = heap
            job = below[n]
            if not short and _precedes(q, job, best, now):
                break
            if short:
                victim = job
            released += q.gpus[job]
            n += 1
        for job in waiting:
            if victim >= 0 and _precedes(q, victim, job, now):
                break
            while n > 0 and _precedes(q, below[n - 1], job, now):
                n -= 1
                released -= q.gpus[below[n]]
            if q.gpus[job] <= idle + released:
                started = job
                break
        if started >= 0:
            remove(q, started)
            idle -= q.gpus[started]
            choices.append(started)
        elif victim >= 0:
            below.remove(victim)
            q.heap[victim] = -1
            idle += q.gpus[victim]
            choices.append(-1 - victim)
        else:
            break
    for job in below:
        insert(q, job, q.heap[job])
    return idle, np.array(choices)


@njit()
def best_waiting_after(q: Queues, jobs: Ints, heaps: Ints) -> Ints:
    """`best_waiting` after jobs, one after the other, have moved to other heaps (-1: none)."""
    for n in range(len(jobs)):
        if q.heap[jobs[n]] >= 0:
            remove(q, jobs[n])
        if heaps[n] >= 0:
            insert(q, jobs[n], heaps[n])
    return best_waiting(q)


@njit()
def select_after(q: Queues, jobs: Ints, heaps: Ints, idle: int, now: float) -> tuple[int, Ints]:
    """`select` after jobs, one after the other, have moved to other heaps (-1: none)."""
    best_waiting_after(q, jobs, heaps)
    return select(q, idle, now)


class OrderRun(NamedTuple):
    """What does not change during a run of an order; see `repro.model.policy.Steady`."""

    #: heap of each job while it waits, and while it runs
    waiting_heap: Ints
    running_heap: Ints
    #: of each job: factors of remaining time (s) and attained service (GPU-seconds) in its key
    per_second: Floats
    per_service: Floats
    #: drift of each key while the job runs (per second)
    drift: Floats
    #: submission of each job (s), and time of a unit of its work alone (s)
    submit: Floats
    solo: Floats
    #: attained service (GPU-seconds) at which a job leaves each queue; empty: no queues
    limits: Floats
    #: whether the run waits for the end of each job
    awaited: Flags
    #: arrivals up to this multiple of an instant are at that instant
    arrival_factor: float
    #: seconds between decisions while jobs wait
    quantum: float
    #: instant (s) at which the run ends
    stop_time: float


class Clock(NamedTuple):
    """Progress of `simulate_events`."""

    now: float
    #: jobs that have arrived
    arrived: int
    #: awaited jobs that have not finished
    unfinished: int
    #: GPUs that no job holds
    idle: int
    #: jobs that wait
    waiting: int


@njit(inline="always")
def _queue(q: Queues, state: State, run: OrderRun, job: int, now: float, runs: bool) -> None:
    """Store the key of a job that is in no heap, and add it to its heap."""
    last = q.key.shape[1] - 1
    if len(run.limits):
        q.key[job, last] = state.first_start[job]
    else:
        left = state.work_left[job] * run.solo[job]
        q.key[job, last] = run.per_second[job] * left + run.per_service[job] * state.service[job]
    q.slope[job] = run.drift[job] if runs else 0.0
    if q.slope[job] != 0.0:
        q.key[job, last] -= q.slope[job] * now
    insert(q, job, run.running_heap[job] if runs else run.waiting_heap[job])


@njit(inline="always")
def _plan_demotion(demotions: Queues, q: Queues, state: State, run: OrderRun, job: int) -> None:
    """Add the instant at which a running job reaches the limit of its queue."""
    if len(run.limits):
        limit = run.limits[int(q.key[job, 0])]
        if limit < np.inf:
            left = limit / q.gpus[job] - state.held_s[job]
            demotions.key[job, 0] = state.held_since[job] + left
            insert(demotions, job, 0)


@njit(inline="always")
def _give_back(state: State, ends: Queues, demotions: Queues, job: int, now: float) -> None:
    """Book the service of a job that gives its GPUs back."""
    state.service[job] += (now - state.held_since[job]) * state.held_gpus[job]
    state.held_s[job] += now - state.held_since[job]
    state.running[job] = False
    remove(ends, job)
    if demotions.heap[job] >= 0:
        remove(demotions, job)


@njit()
def simulate_events(
    q: Queues,
    ends: Queues,
    demotions: Queues,
    state: State,
    run: OrderRun,
    clock: Clock,
    spans: Floats,
) -> tuple[Clock, bool, int]:
    """Simulate events until the run ends, or until ``spans`` is half full.

    Parameters
    ----------
    q : Queues
        Waiting and running jobs.
    ends : Queues
        One heap: running jobs by the instant of their completion.
    demotions : Queues
        One heap: running jobs by the instant of their demotion.
    state : State
        State of the jobs, written in place.
    run : OrderRun
        What does not change during the run.
    clock : Clock
        Progress so far.
    spans : array of float, shape (3, intervals)
        Filled with the intervals in which jobs held GPUs: job, start and end (s).

    Returns
    -------
    tuple
        Progress, whether the run has ended, and the number of intervals in ``spans``.
    """
    now, arrived, unfinished, idle, waiting = clock
    count = 0
    # an event closes at most as many intervals as jobs run
    half = spans.shape[1] // 2
    while unfinished > 0:
        if count > half:
            return Clock(now, arrived, unfinished, idle, waiting), False, count
        target = ends.key[ends.top[0], 0] if ends.top[0] >= 0 else np.inf
        if arrived < len(run.submit) and run.submit[arrived] <= target:
            target = run.submit[arrived]
        wake = demotions.key[demotions.top[0], 0] if demotions.top[0] >= 0 else np.inf
        if run.quantum < np.inf and waiting > 0:
            wake = min(wake, (np.floor(now / run.quantum + 1e-9) + 1.0) * run.quantum)
        # rounding may put a wake-up at or before now
        target = min(target, wake if wake > now else np.nextafter(now, np.inf))
        if target == np.inf or target > run.stop_time:
            break
        now = target
        # completions
        while ends.top[0] >= 0 and ends.key[ends.top[0], 0] <= now:
            job = ends.top[0]
            spans[0, count] = job
            spans[1, count] = state.held_since[job]
            spans[2, count] = now
            count += 1
            _give_back(state, ends, demotions, job, now)
            remove(q, job)
            idle += q.gpus[job]
            state.work_left[job] = 0.0
            state.end[job] = now
            unfinished -= run.awaited[job]
        # arrivals
        while arrived < len(run.submit) and run.submit[arrived] <= now * run.arrival_factor:
            _queue(q, state, run, arrived, now, False)
            waiting += 1
            arrived += 1
        # demotions
        demoted = [0 for _ in range(0)]
        while demotions.top[0] >= 0 and demotions.key[demotions.top[0], 0] <= now:
            demoted.append(demotions.top[0])
            remove(demotions, demotions.top[0])
        for job in demoted:
            remove(q, job)
            q.key[job, 0] += 1.0
            insert(q, job, run.running_heap[job])
            _plan_demotion(demotions, q, state, run, job)
        # decision: all stops come before the first start
        if waiting == 0:
            continue
        idle, choices = select(q, idle, now)
        for choice in choices:
            if choice >= 0:
                continue
            job = -1 - choice
            waiting += 1
            spans[0, count] = job
            spans[1, count] = state.held_since[job]
            spans[2, count] = now
            count += 1
            _give_back(state, ends, demotions, job, now)
            state.work_left[job] -= (now - state.since[job]) * state.rate[job]
            _queue(q, state, run, job, now, False)
            state.work_left[job] = max(0.0, state.work_left[job])
            state.preemptions[job] += 1
        for job in choices:
            if job < 0:
                continue
            waiting -= 1
            state.first_start[job] = min(state.first_start[job], now)
            _queue(q, state, run, job, now, True)
            state.running[job] = True
            state.held_gpus[job] = q.gpus[job]
            state.held_since[job] = state.since[job] = state.free_from[job] = now
            state.rate[job] = 1.0 / run.solo[job]
            ends.key[job, 0] = now + state.work_left[job] / state.rate[job]
            insert(ends, job, 0)
            _plan_demotion(demotions, q, state, run, job)
    return Clock(now, arrived, unfinished, idle, waiting), True, count
