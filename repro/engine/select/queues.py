"""Compiled greedy selection: the result of a full priority scan for the cost of what changed.

The scan every ordering policy means is: walk all jobs from the best key down and give each its
whole gang if that many GPUs are left, otherwise skip it. Redoing it at every event costs the number
of active jobs. Here only decisions that differ from the previous ones are found:

- a waiting job is taken iff its gang fits into the idle GPUs plus those held by running jobs of
  lower priority; among waiting jobs of one width only the best can be the next taken;
- if GPUs are then missing, the best running job that no longer fits is the first given up.

Both rules concern the topmost change only; everything above it is final.
"""

from typing import NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Flags, Floats, Ints
from repro.model.jobs import State


class Queues(NamedTuple):
    """Waiting jobs, a heap for each width with the best key on top; running jobs, the worst on top.

    Running jobs whose keys drift alike share a heap. All heaps are pairing heaps; a job is in one
    at most.
    """

    #: keys at time zero, shape (jobs, parts), and how fast the last part drifts (per second)
    key: Floats
    slope: Floats
    gpus: Ints
    #: the heap each job is in, -1 for none; those of waiting jobs come before ``lanes``
    heap: Ints
    lanes: int
    #: first child, next sibling, and previous sibling or else parent of each job, -1 for none
    child: Ints
    after: Ints
    before: Ints
    #: the job on top of each heap, -1 for none
    top: Ints


def empty(gpus: Ints, parts: int, lanes: int, more: int) -> Queues:
    """Return heaps for ``lanes`` kinds of waiting jobs and ``more`` of running ones."""
    heap, child, after, before = (np.full(len(gpus), -1) for _ in range(4))
    key = np.zeros((len(gpus), parts))
    top = np.full(lanes + more, -1)
    return Queues(key, np.zeros(len(gpus)), gpus, heap, lanes, child, after, before, top)


@njit()
def _precedes(q: Queues, one: int, other: int, now: float) -> bool:
    """Tell whether a job has the smaller key at an instant; equal keys go by row number."""
    last = q.key.shape[1] - 1
    for part in range(last):
        if q.key[one, part] != q.key[other, part]:
            return bool(q.key[one, part] < q.key[other, part])
    first = q.key[one, last]
    second = q.key[other, last]
    if q.slope[one] != 0.0:
        first += q.slope[one] * now
    if q.slope[other] != 0.0:
        second += q.slope[other] * now
    return bool(first < second) if first != second else one < other


@njit()
def _linked(q: Queues, one: int, other: int, lane: bool) -> int:
    """Make one tree of two; return its top. In a ``lane`` the worst is on top."""
    # keys in one heap drift alike, so that their order at time zero is that of all times
    if _precedes(q, one, other, 0.0) == lane:
        one, other = other, one
    first = q.child[one]
    q.after[other] = first
    q.before[other] = one
    q.child[one] = other
    if first >= 0:
        q.before[first] = other
    return one


@njit()
def insert(q: Queues, job: int, heap: int) -> None:
    """Put a job that is in no heap into one."""
    q.heap[job] = heap
    q.child[job] = q.after[job] = q.before[job] = -1
    top = q.top[heap]
    q.top[heap] = job if top < 0 else _linked(q, top, job, heap >= q.lanes)


@njit()
def remove(q: Queues, job: int) -> None:
    """Take a job out of its heap."""
    heap = q.heap[job]
    lane = q.heap[job] >= q.lanes
    q.heap[job] = -1
    if q.top[heap] == job:
        rest = -1
    else:
        rest = q.top[heap]
        previous = q.before[job]
        following = q.after[job]
        if q.child[previous] == job:
            q.child[previous] = following
        else:
            q.after[previous] = following
        if following >= 0:
            q.before[following] = previous
    # children are linked in pairs, the pairs with each other from the last to the first
    pairs = -1
    one = q.child[job]
    while one >= 0:
        other = q.after[one]
        following = q.after[other] if other >= 0 else -1
        tree = _linked(q, one, other, lane) if other >= 0 else one
        q.after[tree] = pairs
        pairs = tree
        one = following
    while pairs >= 0:
        following = q.after[pairs]
        q.after[pairs] = q.before[pairs] = -1
        rest = pairs if rest < 0 else _linked(q, rest, pairs, lane)
        pairs = following
    q.top[heap] = rest


@njit()
def heads(q: Queues) -> Ints:
    """Return the best waiting job of each width, best first."""
    found = np.empty(q.lanes, np.int64)
    count = 0
    for job in q.top[: q.lanes]:
        if job < 0:
            continue
        place = count
        while place > 0 and _precedes(q, job, found[place - 1], 0.0):
            found[place] = found[place - 1]
            place -= 1
        found[place] = job
        count += 1
    return found[:count]


@njit()
def _worst(q: Queues, now: float) -> int:
    """Return the running job of lowest priority, -1 if none runs."""
    worst = -1
    for job in q.top[q.lanes :]:
        if job >= 0 and (worst < 0 or _precedes(q, worst, job, now)):
            worst = job
    return worst


@njit()
def select(q: Queues, idle: int, now: float) -> tuple[int, Ints]:
    """Return the idle GPUs afterwards, and jobs that start, or as -1 - job that stop, in order.

    They are in no heap then: what is decided is final, which makes ties that only rounding tells
    apart harmless.
    """
    chosen = [0 for _ in range(0)]
    # running jobs taken out of their heaps for a while, worst first
    below = [0 for _ in range(0)]
    while True:
        waiting = heads(q)
        best = waiting[0] if len(waiting) else -1
        started = -1
        victim = -1
        total = 0
        n = 0
        # those who hold too much, then those who would give way to the best waiting job
        while True:
            short = total < -idle
            if not short and (best < 0 or total >= q.gpus[best] - idle):
                break
            if n == len(below):
                job = _worst(q, now)
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
            total += q.gpus[job]
            n += 1
        for job in waiting:
            if victim >= 0 and _precedes(q, victim, job, now):
                break
            while n > 0 and _precedes(q, below[n - 1], job, now):
                n -= 1
                total -= q.gpus[below[n]]
            if q.gpus[job] <= idle + total:
                started = job
                break
        if started >= 0:
            remove(q, started)
            idle -= q.gpus[started]
            chosen.append(started)
        elif victim >= 0:
            below.remove(victim)
            q.heap[victim] = -1
            idle += q.gpus[victim]
            chosen.append(-1 - victim)
        else:
            break
    for job in below:
        insert(q, job, q.heap[job])
    return idle, np.array(chosen)


@njit()
def front(q: Queues, jobs: Ints, heaps: Ints) -> Ints:
    """Move jobs, one after the other, to other heaps (-1 for none), then return the `heads`."""
    for n in range(len(jobs)):
        if q.heap[jobs[n]] >= 0:
            remove(q, jobs[n])
        if heaps[n] >= 0:
            insert(q, jobs[n], heaps[n])
    return heads(q)


@njit()
def changed(q: Queues, jobs: Ints, heaps: Ints, idle: int, now: float) -> tuple[int, Ints]:
    """Move jobs, one after the other, to other heaps (-1 for none), then `select`."""
    front(q, jobs, heaps)
    return select(q, idle, now)


class Pace(NamedTuple):
    """What `play` needs to know of a run besides its jobs; see `repro.model.policy.Steady`."""

    #: of each job: heap while it waits and while it runs, factors of remaining time and attained
    #: service in its key, drift of the key while it runs (per second), submission (s), solo time of
    #: a unit of work (s)
    width: Ints
    lane: Ints
    per_second: Floats
    per_service: Floats
    drift: Floats
    submit: Floats
    solo: Floats
    #: service (GPU-seconds) at which a job leaves each queue; none: there are no queues
    limits: Floats
    #: the run ends when these jobs have
    awaited: Flags
    #: arrivals within this factor of an instant belong to it; decisions while jobs wait (s); end
    near: float
    quantum: float
    stop: float


class Clock(NamedTuple):
    """How far `play` has come: instant, jobs arrived and awaited, idle GPUs, jobs waiting."""

    now: float
    arrived: int
    awaited: int
    idle: int
    waiting: int


@njit(inline="always")
def _file(q: Queues, state: State, pace: Pace, job: int, now: float, running: bool) -> None:
    """Write the key of a job that was in no heap, and put it into one."""
    last = q.key.shape[1] - 1
    if len(pace.limits):
        q.key[job, last] = state.first_start[job]
    else:
        left = state.left[job] * pace.solo[job]
        q.key[job, last] = pace.per_second[job] * left + pace.per_service[job] * state.service[job]
    q.slope[job] = pace.drift[job] if running else 0.0
    if q.slope[job] != 0.0:
        q.key[job, last] -= q.slope[job] * now
    insert(q, job, pace.lane[job] if running else pace.width[job])


@njit(inline="always")
def _await_limit(dues: Queues, q: Queues, state: State, pace: Pace, job: int) -> None:
    """Plan when a running job crosses the limit of its queue."""
    if len(pace.limits):
        limit = pace.limits[int(q.key[job, 0])]
        if limit < np.inf:
            left = limit / q.gpus[job] - state.seconds[job]
            dues.key[job, 0] = state.hold[job] + left
            insert(dues, job, 0)


@njit(inline="always")
def _leave(state: State, ends: Queues, dues: Queues, job: int, now: float) -> None:
    """Book what a job held, which it gives back."""
    state.service[job] += (now - state.hold[job]) * state.held[job]
    state.seconds[job] += now - state.hold[job]
    state.running[job] = False
    remove(ends, job)
    if dues.heap[job] >= 0:
        remove(dues, job)


@njit()
def play(
    q: Queues, ends: Queues, dues: Queues, state: State, pace: Pace, clock: Clock, spans: Floats
) -> tuple[Clock, bool, int]:
    """Simulate events until ``spans`` is full or the run ends; return whether it did, and spans.

    ``spans`` has rows for job, begin and end (s) of holds of GPUs that ended; ``ends`` and ``dues``
    are heaps of completions and of demotions, both by instant.
    """
    now, arrived, awaited, idle, waiting = clock
    count = 0
    room = spans.shape[1] // 2
    while awaited > 0:
        if count > room:
            return Clock(now, arrived, awaited, idle, waiting), False, count
        target = ends.key[ends.top[0], 0] if ends.top[0] >= 0 else np.inf
        if arrived < len(pace.submit) and pace.submit[arrived] <= target:
            target = pace.submit[arrived]
        wake = dues.key[dues.top[0], 0] if dues.top[0] >= 0 else np.inf
        if pace.quantum < np.inf and waiting > 0:
            wake = min(wake, (np.floor(now / pace.quantum + 1e-9) + 1.0) * pace.quantum)
        # rounding may put an instant at or before now: take the next one
        target = min(target, wake if wake > now else np.nextafter(now, np.inf))
        if target == np.inf or target > pace.stop:
            break
        now = target
        while ends.top[0] >= 0 and ends.key[ends.top[0], 0] <= now:
            job = ends.top[0]
            spans[0, count] = job
            spans[1, count] = state.hold[job]
            spans[2, count] = now
            count += 1
            _leave(state, ends, dues, job, now)
            remove(q, job)
            idle += q.gpus[job]
            state.left[job] = 0.0
            state.end[job] = now
            awaited -= pace.awaited[job]
        while arrived < len(pace.submit) and pace.submit[arrived] <= now * pace.near:
            _file(q, state, pace, arrived, now, False)
            waiting += 1
            arrived += 1
        moved = [0 for _ in range(0)]
        while dues.top[0] >= 0 and dues.key[dues.top[0], 0] <= now:
            moved.append(dues.top[0])
            remove(dues, dues.top[0])
        for job in moved:
            remove(q, job)
            q.key[job, 0] += 1.0
            insert(q, job, pace.lane[job])
            _await_limit(dues, q, state, pace, job)
        if waiting == 0:
            continue
        idle, chosen = select(q, idle, now)
        for choice in chosen:
            if choice >= 0:
                continue
            job = -1 - choice
            waiting += 1
            spans[0, count] = job
            spans[1, count] = state.hold[job]
            spans[2, count] = now
            count += 1
            _leave(state, ends, dues, job, now)
            state.left[job] -= (now - state.since[job]) * state.rate[job]
            _file(q, state, pace, job, now, False)
            state.left[job] = max(0.0, state.left[job])
            state.preemptions[job] += 1
        for job in chosen:
            if job < 0:
                continue
            waiting -= 1
            state.first_start[job] = min(state.first_start[job], now)
            _file(q, state, pace, job, now, True)
            state.running[job] = True
            state.held[job] = q.gpus[job]
            state.hold[job] = state.since[job] = state.clean[job] = now
            state.rate[job] = 1.0 / pace.solo[job]
            ends.key[job, 0] = now + state.left[job] / state.rate[job]
            insert(ends, job, 0)
            _await_limit(dues, q, state, pace, job)
    return Clock(now, arrived, awaited, idle, waiting), True, count
